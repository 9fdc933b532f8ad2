"""The pages that are about all of a catalog: home, lists of tools, tags and scopes, data of the search, feeds. A group of the site.

They are made by one worker, because each takes all tools. Lists of tools are most of them, and a change concerns few: each is told by a
digest of what it is made from, so that `site` need not make it again.

Serves: "only the pages concerned are rewritten" of issue 3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest

from toolcatalog import editors, feeds, finding, openapi, pages, twins
from toolcatalog.groups import File, Files, Index, Several, changes, digest_of
from toolcatalog.pages import Listed, MetaTool, OfToolkit

_RECENT = 10
_SINGLE = (
    *("index.html", "sessions/index.html", "reference/index.html", "contribute/index.html", "404.html"),
    *("search-data.js", "facets.js", "feed.xml", "llms.txt", *pages.ASSETS, *(path for _, path in editors.paths())),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """All about the whole catalog, from the indexes of its toolkits; `made_from`: what the snapshot is made from.

    `tools` are the tools of each toolkit, and `labels` the tags and the scopes, sorted, that tools have in their newest versions: enough
    to tell which files there are without reading an index.
    """

    program: str
    made_from: str
    about: Mapping[str, str]
    indexes: Sequence[Index]
    meta_tools: Sequence[MetaTool]
    versions: Several
    tools: Mapping[str, int]
    labels: Mapping[str, Sequence[str]]

    @property
    def digest(self) -> str:
        """As in Group."""
        return digest_of("whole", self.program, self.made_from)

    @property
    def paths(self) -> Sequence[str]:
        """As in Group."""
        total = sum(self.tools.values())
        lists = [pages.list_path(number) for number in range(1, pages.lists(total) + 1)]
        shards = [finding.shard_path(number) for number in range(finding.shards(total))]
        labels = [pages.label_path(kind, label) for kind, some in self.labels.items() for label in some]
        found = [*_SINGLE, *lists, *shards, *(f"{kind}/index.html" for kind in self.labels), *labels]
        if self.about.get("home"):
            found += ["opensearch.xml", *feeds.sitemap_paths(len(self._above()) + total)]
        return found

    def files(self) -> Files:
        """As in Group."""
        about, toolkits = self.about, [index.read() for index in self.indexes]
        every = [Listed(toolkit, tool) for toolkit, tools in toolkits for tool in tools]
        yield File("index.html", lambda: pages.home(about, toolkits, _recent(every)))
        source = self._source()  # of pages that say the same whatever tools there are
        yield File("sessions/index.html", lambda: pages.sessions_page(about, self.meta_tools), self._source(self.meta_tools))
        yield File("reference/index.html", lambda: pages.reference_page(about, openapi.document()), source)
        yield File("contribute/index.html", lambda: pages.contribute_page(about), source)
        yield File("404.html", lambda: pages.lost_page(about), source)
        yield File("search-data.js", lambda: finding.data(toolkits))
        places = {kind: self._places(kind, every) for kind in self.labels}
        yield File("facets.js", lambda: finding.facets(toolkits), self._source(len(every), places))
        title, home = f"{about['title']}: changes", about.get("home", "")
        yield File("feed.xml", lambda: feeds.atom(title, "feed.xml", home, changes(toolkits, self.versions)))
        yield File("llms.txt", lambda: twins.llms(about, [some.toolkit for some in toolkits], self.tools))
        yield from (File(name, partial(pages.asset, name)) for name in pages.ASSETS)
        yield from (File(path, partial(editors.schema_file, kind)) for kind, path in editors.paths())
        digests = [tool.digest for _, tool in every]
        yield from self._lists(toolkits, every, digests)
        for kind, some in places.items():
            yield from self._labels(kind, some, every, digests)
        if home:
            yield File("opensearch.xml", lambda: feeds.opensearch(about))
            addressed = [*self._above(), *(pages.tool_path(tool.slug) for _, tool in every)]
            source = digest_of(self.program, home, addressed)
            yield from (File(path, make, source) for path, make in feeds.sitemap(home, addressed).items())

    def _lists(self, toolkits: Sequence[OfToolkit], every: Sequence[Listed], digests: Sequence[str]) -> Files:
        """The list of all tools in pages, and what is said of them for the search in the page."""
        total, listed = len(every), pages.pages_of(toolkits)
        for number, some in enumerate(listed):
            make = partial(pages.list_page, self.about, number + 1, len(listed), total, some)
            page = slice(number * pages.LISTED, (number + 1) * pages.LISTED)
            yield File(pages.list_path(number + 1), make, self._source(number, len(listed), total, digests[page]))
        for number in range(finding.shards(total)):
            shard = slice(number * finding.SHARD, (number + 1) * finding.SHARD)
            make = partial(finding.shard, number, [tool for _, tool in every[shard]])
            yield File(finding.shard_path(number), make, self._source(number, digests[shard]))

    def _places(self, kind: str, every: Sequence[Listed]) -> dict[str, list[int]]:
        """Of each tag, or scope, the places of the tools that have it."""
        places: dict[str, list[int]] = {label: [] for label in self.labels[kind]}
        for place, (_, tool) in enumerate(every):
            for label in getattr(tool, kind):
                places[label].append(place)
        return places

    def _labels(self, kind: str, places: Mapping[str, Sequence[int]], every: Sequence[Listed], digests: Sequence[str]) -> Files:
        """All tags, or scopes, and the tools that have each."""
        counts = {label: len(some) for label, some in places.items()}
        yield File(f"{kind}/index.html", lambda: pages.labels_page(self.about, kind, counts))
        for label, some in places.items():
            make = partial(self._label, kind, label, every, some)
            yield File(pages.label_path(kind, label), make, self._source(kind, label, [*map(digests.__getitem__, some)]))

    def _label(self, kind: str, label: str, every: Sequence[Listed], places: Sequence[int]) -> bytes:
        return pages.label_page(self.about, kind, label, [every[place] for place in places])

    def _source(self, *made_from: object) -> str:
        """What a list of tools is made from: a document says all that is told of its tool in a list, and of its toolkit."""
        return digest_of(self.program, self.about, *made_from)

    def _above(self) -> list[str]:
        """The pages that a search engine should know, but those of tools."""
        fixed = [f"{name}index.html" for name in ("", "tools/", "tags/", "scopes/", "sessions/", "reference/", "contribute/")]
        return [*fixed, *(pages.toolkit_path(index.toolkit.slug) for index in self.indexes)]


def _recent(every: Sequence[Listed]) -> list[Listed]:
    alive = (one for one in every if one.tool.deprecation is None)
    return nlargest(_RECENT, alive, key=lambda one: (one.tool.version, one.tool.slug))
