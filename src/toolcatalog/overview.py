"""The pages that are about all of a catalog: home, lists of tools, tags and scopes, data of the search, feeds. A group of the site.

They are made by one worker, because each takes all tools. Lists of tools are most of them, and a change concerns few: each is told by a
digest of what it is made from, so that `site` need not make it again.

Serves: "only the pages concerned are rewritten" of issue 3.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from toolcatalog import editors, feeds, finding, openapi, pages, twins
from toolcatalog.entries import Row
from toolcatalog.groups import File, Files, Index, Several, changes, digest_of
from toolcatalog.pages import Listed, MetaTool, OfToolkit

_RECENT = 10
_KINDS = ("tags", "scopes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """All about the whole catalog, from the indexes of its toolkits; `made_from`: what the snapshot is made from."""

    program: str
    made_from: str
    about: Mapping[str, str]
    indexes: Sequence[Index]
    meta_tools: Sequence[MetaTool]
    versions: Several

    @property
    def digest(self) -> str:
        """As in Group."""
        return digest_of("whole", self.program, self.made_from)

    @property
    def paths(self) -> Sequence[str]:
        """As in Group."""
        return [file.path for file in self.files()]

    def files(self) -> Files:
        """As in Group."""
        about, toolkits = self.about, [index.read() for index in self.indexes]
        yield File("index.html", lambda: pages.home(about, toolkits, _recent(toolkits)))
        yield from self._lists(toolkits)
        for kind in _KINDS:
            yield from self._labels(kind, toolkits)
        yield File("sessions/index.html", lambda: pages.sessions_page(about, self.meta_tools))
        yield File("reference/index.html", lambda: pages.reference_page(about, openapi.document()))
        yield File("contribute/index.html", lambda: pages.contribute_page(about))
        yield File("404.html", lambda: pages.lost_page(about))
        yield File("search-data.js", lambda: finding.data(toolkits))
        yield File("facets.js", lambda: finding.facets(toolkits))
        title, home = f"{about['title']}: changes", about.get("home", "")
        yield File("feed.xml", lambda: feeds.atom(title, "feed.xml", home, changes(toolkits, self.versions)))
        counts = {some.toolkit.slug: len(some.tools) for some in toolkits}
        yield File("llms.txt", lambda: twins.llms(about, [some.toolkit for some in toolkits], counts))
        yield from (File(name, partial(pages.asset, name)) for name in pages.ASSETS)
        yield from (File(path, partial(editors.schema_file, kind)) for kind, path in editors.paths())
        if home:
            yield File("opensearch.xml", lambda: feeds.opensearch(about))
            yield from (File(path, partial(bytes, data)) for path, data in feeds.sitemap(home, _canonical(toolkits)).items())

    def _lists(self, toolkits: Sequence[OfToolkit]) -> Files:
        """The list of all tools in pages, and what is said of them for the search in the page."""
        listed = pages.pages_of(toolkits)
        total = sum(len(some.tools) for some in toolkits)
        for number, some in enumerate(listed, 1):
            make = partial(pages.list_page, self.about, number, len(listed), total, some)
            rows = chain.from_iterable(of.tools for of in some)
            yield File(pages.list_path(number), make, self._source([number, len(listed), total], rows))
        tools = [tool for of in toolkits for tool in of.tools]
        for number in range(-(-total // finding.SHARD)):
            shard = tools[number * finding.SHARD : (number + 1) * finding.SHARD]
            yield File(finding.shard_path(number), partial(finding.shard, number, shard), self._source([number], shard))

    def _labels(self, kind: str, toolkits: Sequence[OfToolkit]) -> Files:
        """All tags, or scopes, and the tools that have each."""
        found: dict[str, list[Listed]] = {}
        for toolkit, tools in toolkits:
            for tool in tools:
                for label in tool[kind]:
                    found.setdefault(label, []).append(Listed(toolkit, tool))
        labels = dict(sorted(found.items()))
        counts = {label: len(tools) for label, tools in labels.items()}
        yield File(f"{kind}/index.html", lambda: pages.labels_page(self.about, kind, counts))
        for label, some in labels.items():
            make = partial(pages.label_page, self.about, kind, label, some)
            yield File(pages.label_path(kind, label), make, self._source([kind, label], (one.tool for one in some)))

    def _source(self, place: Sequence[object], tools: Iterable[Row]) -> str:
        """What a list of tools is made from: a document says all that is told of its tool in a list, and of its toolkit."""
        return digest_of(self.program, self.about, place, [tool["digest"] for tool in tools])


def _recent(toolkits: Sequence[OfToolkit]) -> list[Listed]:
    every = (Listed(toolkit, tool) for toolkit, tools in toolkits for tool in tools if tool["deprecation"] is None)
    return sorted(every, key=lambda one: (one.tool["version"], one.tool["slug"]), reverse=True)[:_RECENT]


def _canonical(toolkits: Sequence[OfToolkit]) -> list[str]:
    """The pages that a search engine should know."""
    fixed = [f"{name}index.html" for name in ("", "tools/", "tags/", "scopes/", "sessions/", "reference/", "contribute/")]
    kits = [pages.toolkit_path(toolkit.slug) for toolkit, _ in toolkits]
    return [*fixed, *kits, *(pages.tool_path(tool["slug"]) for _, tools in toolkits for tool in tools)]
