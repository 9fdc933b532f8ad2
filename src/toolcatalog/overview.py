"""The pages that are about all of a catalog: home, lists of tools, tags and scopes, data of the
search, feeds. A group of the site.

They are made by one worker, because each takes all tools. Lists of tools are most of them, and a
change concerns few: each is told by a digest of what it is made from, so that `site` need not make
it again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

from toolcatalog import editors, feeds, finding, openapi, pages, twins
from toolcatalog.groups import File, Files, Index, Several, changes, digest_of, latest
from toolcatalog.pages import Listed, MetaTool

_RECENT = 10
_SINGLE = (
    *(
        "index.html",
        "sessions/index.html",
        "reference/index.html",
        "contribute/index.html",
        "404.html",
    ),
    *(
        "search-data.js",
        "facets.js",
        "feed.xml",
        "llms.txt",
        *pages.ASSETS,
        *(path for _, path in editors.paths()),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """All about the whole catalog, from the indexes of its toolkits; `made_from`: what the snapshot
    is made from.

    `tools` are the tools of each toolkit, and `labels` the tags and the scopes, sorted, that tools
    have in their newest versions: enough to tell which files there are without reading an index.
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
        total = self._total
        lists = [pages.list_path(number) for number in range(1, pages.lists(total) + 1)]
        shards = [finding.shard_path(number) for number in range(finding.shards(total))]
        labels = [
            pages.label_path(kind, label) for kind, some in self.labels.items() for label in some
        ]
        found = [
            *_SINGLE,
            *lists,
            *shards,
            *(f"{kind}/index.html" for kind in self.labels),
            *labels,
        ]
        if self.about.get("home"):
            found += ["opensearch.xml", *feeds.sitemap_paths(len(self._above()) + total)]
        return found

    def files(self) -> Files:
        """As in Group. The tools are gone through once, and only what is told of all of them is
        kept: there may be very many.
        """
        yield from self._fixed()
        kept = _Kept(self.labels)
        every = (
            Listed(toolkit, tool)
            for toolkit, tools in map(Index.read, self.indexes)
            for tool in tools
        )
        for number in range(pages.lists(self._total)):
            if some := [*islice(every, pages.LISTED)]:
                kept.add(some)
            yield from self._list(number, some)
        yield from self._about_all(kept)

    @property
    def _total(self) -> int:
        return sum(self.tools.values())

    def _fixed(self) -> Files:
        """What says the same whatever tools there are."""
        about, source = self.about, self._source()
        yield File(
            "sessions/index.html",
            lambda: pages.sessions_page(about, self.meta_tools),
            self._source(self.meta_tools),
        )
        yield File(
            "reference/index.html", lambda: pages.reference_page(about, openapi.document()), source
        )
        yield File("contribute/index.html", lambda: pages.contribute_page(about), source)
        yield File("404.html", lambda: pages.lost_page(about), source)
        yield from (File(name, partial(pages.asset, name)) for name in pages.ASSETS)
        yield from (
            File(path, partial(editors.schema_file, kind)) for kind, path in editors.paths()
        )
        if about.get("home"):
            yield File("opensearch.xml", lambda: feeds.opensearch(about))

    def _list(self, number: int, tools: Sequence[Listed]) -> Files:
        """A page of the list of all tools, and what is said of those on it for the search in the
        page.
        """
        make = partial(pages.list_page, self.about, number + 1, self._total, tools)
        yield File(
            pages.list_path(number + 1), make, self._source(number, self._total, _digests(tools))
        )
        for start in range(0, len(tools), finding.SHARD):
            place, some = (
                (number * pages.LISTED + start) // finding.SHARD,
                slice(start, start + finding.SHARD),
            )
            shard = partial(finding.shard, place, [tool for _, tool in tools[some]])
            yield File(finding.shard_path(place), shard, self._source(place, _digests(tools[some])))

    def _about_all(self, kept: "_Kept") -> Files:
        about, home = self.about, self.about.get("home", "")
        toolkits = [
            (index.toolkit, self.tools.get(index.toolkit.slug, 0)) for index in self.indexes
        ]
        yield File("index.html", lambda: pages.home(about, toolkits, kept.recent))
        yield File(
            "feed.xml",
            lambda: feeds.atom(
                f"{about['title']}: changes", "feed.xml", home, changes(kept.changed, self.versions)
            ),
        )
        yield File(
            "llms.txt", lambda: twins.llms(about, [toolkit for toolkit, _ in toolkits], self.tools)
        )
        yield File("search-data.js", lambda: kept.search.data(toolkits))
        yield File("facets.js", kept.search.facets)
        for kind, some in kept.having.items():
            yield from self._labels(kind, some)
        if home:
            addressed = chain(self._above(), map(pages.tool_path, kept.search.slugs()))
            for part in feeds.sitemap(home, addressed, len(self._above()) + self._total):
                yield File(part.path, part.make, digest_of(self.program, home, part.leads_to))

    def _labels(self, kind: str, having: Mapping[str, "_Having"]) -> Files:
        """All tags, or scopes, and the tools that have each."""
        yield File(
            f"{kind}/index.html",
            lambda: pages.labels_page(
                self.about, kind, {label: some.count for label, some in having.items()}
            ),
        )
        for label, some in having.items():
            make = partial(pages.label_page, self.about, kind, label, some.count, some.first)
            yield File(
                pages.label_path(kind, label),
                make,
                self._source(kind, label, some.count, _digests(some.first)),
            )

    def _source(self, *made_from: object) -> str:
        """What a list of tools is made from: a document says all that is told of its tool in a
        list, and of its toolkit.
        """
        return digest_of(self.program, self.about, *made_from)

    def _above(self) -> list[str]:
        """The pages that a search engine should know, but those of tools."""
        fixed = [
            f"{name}index.html"
            for name in ("", "tools/", "tags/", "scopes/", "sessions/", "reference/", "contribute/")
        ]
        return [*fixed, *(pages.toolkit_path(index.toolkit.slug) for index in self.indexes)]


def _digests(tools: Iterable[Listed]) -> str:
    """The digests of tools, one behind the other, for all are of one length: thousands of pages are
    told by a thousand each.
    """
    return "".join([tool.digest for _, tool in tools])


@dataclass(slots=True)
class _Having:
    """The tools that have a tag or a scope: how many, and the first of them, which are shown."""

    count: int = 0
    first: list[Listed] = field(default_factory=list)

    def add(self, tool: Listed) -> None:
        self.count += 1
        if self.count <= pages.LISTED:
            self.first.append(tool)


class _Kept:
    """What is kept of tools that have gone by: what the search needs, those that changed last, and
    those that labels show.
    """

    def __init__(self, labels: Mapping[str, Sequence[str]]) -> None:
        self.search = finding.Search(labels)
        self.recent: list[Listed] = []
        self.changed: list[Listed] = []
        self.having = {kind: {label: _Having() for label in some} for kind, some in labels.items()}

    def add(self, tools: Sequence[Listed]) -> None:
        self.search.add([tool for _, tool in tools])
        self.recent = latest(
            [*self.recent, *(one for one in tools if one.tool.deprecation is None)], _RECENT
        )
        self.changed = latest([*self.changed, *tools])
        for kind, having in self.having.items():
            for one in tools:
                for label in getattr(one.tool, kind):
                    having[label].add(one)
