"""Overview pages of the site: home, lists of tools, tags and scopes, search data, feeds.

A group of the site.

They are made by one worker, because each takes all tools. Lists of tools are most of them, and a
change concerns few: each is told by a digest of what it is made from, so that `site` need not make
it again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

from toolcatalog import openapi
from toolcatalog.build.site_pages import (
    MultiVersionTools,
    SiteFile,
    SiteFiles,
    ToolkitIndex,
    compute_digest,
    latest_tools,
    recent_changes,
)
from toolcatalog.catalog import file_schemas
from toolcatalog.site import feeds, markdown_pages, pages, search_data
from toolcatalog.site.pages import ListedTool, MetaToolSummary

_RECENT_TOOLS = 10
_FIXED_PATHS = (
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
        *(path for _, path in file_schemas.schema_paths()),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPages:
    """All about the whole catalog, from the indexes of its toolkits; `made_from`: what the snapshot
    is made from.

    `tools` are the tools of each toolkit, and `labels` the tags and the scopes, sorted, that tools
    have in their newest versions: enough to tell which files there are without reading an index.
    """

    program_digest: str
    source_digest: str
    about: Mapping[str, str]
    indexes: Sequence[ToolkitIndex]
    meta_tools: Sequence[MetaToolSummary]
    multi_version_tools: MultiVersionTools
    tool_counts: Mapping[str, int]
    labels: Mapping[str, Sequence[str]]

    @property
    def digest(self) -> str:
        """As in Group."""
        return compute_digest("whole", self.program_digest, self.source_digest)

    @property
    def paths(self) -> Sequence[str]:
        """As in Group."""
        total = self._tool_count
        lists = [pages.list_path(number) for number in range(1, pages.count_list_pages(total) + 1)]
        shards = [
            search_data.shard_path(number) for number in range(search_data.count_shards(total))
        ]
        labels = [
            pages.label_path(kind, label) for kind, some in self.labels.items() for label in some
        ]
        found = [
            *_FIXED_PATHS,
            *lists,
            *shards,
            *(f"{kind}/index.html" for kind in self.labels),
            *labels,
        ]
        if self.about.get("home"):
            found += ["opensearch.xml", *feeds.sitemap_paths(len(self._top_paths()) + total)]
        return found

    def files(self) -> SiteFiles:
        """As in Group. The tools are gone through once, and only what is told of all of them is
        kept: there may be very many.
        """
        yield from self._fixed_files()
        kept = _Collected(self.labels)
        every = (
            ListedTool(toolkit, tool)
            for toolkit, tools in map(ToolkitIndex.read, self.indexes)
            for tool in tools
        )
        for number in range(pages.count_list_pages(self._tool_count)):
            if some := [*islice(every, pages.TOOLS_PER_PAGE)]:
                kept.add(some)
            yield from self._list_page_files(number, some)
        yield from self._summary_files(kept)

    @property
    def _tool_count(self) -> int:
        return sum(self.tool_counts.values())

    def _fixed_files(self) -> SiteFiles:
        """What says the same whatever tools there are."""
        about, source = self.about, self._source_digest()
        yield SiteFile(
            "sessions/index.html",
            lambda: pages.render_sessions(about, self.meta_tools),
            self._source_digest(self.meta_tools),
        )
        yield SiteFile(
            "reference/index.html",
            lambda: pages.render_reference(about, openapi.build_document()),
            source,
        )
        yield SiteFile("contribute/index.html", lambda: pages.render_contribute(about), source)
        yield SiteFile("404.html", lambda: pages.render_not_found(about), source)
        yield from (SiteFile(name, partial(pages.read_asset, name)) for name in pages.ASSETS)
        yield from (
            SiteFile(path, partial(file_schemas.render_schema, kind))
            for kind, path in file_schemas.schema_paths()
        )
        if about.get("home"):
            yield SiteFile("opensearch.xml", lambda: feeds.render_opensearch(about))

    def _list_page_files(self, number: int, tools: Sequence[ListedTool]) -> SiteFiles:
        """A page of the list of all tools, and what is said of those on it for the search in the
        page.
        """
        make = partial(pages.render_tool_list, self.about, number + 1, self._tool_count, tools)
        yield SiteFile(
            pages.list_path(number + 1),
            make,
            self._source_digest(number, self._tool_count, _join_digests(tools)),
        )
        for start in range(0, len(tools), search_data.SHARD_SIZE):
            place, some = (
                (number * pages.TOOLS_PER_PAGE + start) // search_data.SHARD_SIZE,
                slice(start, start + search_data.SHARD_SIZE),
            )
            shard = partial(search_data.render_shard, place, [tool for _, tool in tools[some]])
            yield SiteFile(
                search_data.shard_path(place),
                shard,
                self._source_digest(place, _join_digests(tools[some])),
            )

    def _summary_files(self, collected: "_Collected") -> SiteFiles:
        about, home = self.about, self.about.get("home", "")
        toolkits = [
            (index.toolkit, self.tool_counts.get(index.toolkit.slug, 0)) for index in self.indexes
        ]
        yield SiteFile("index.html", lambda: pages.render_home(about, toolkits, collected.recent))
        yield SiteFile(
            "feed.xml",
            lambda: feeds.render_atom(
                f"{about['title']}: changes",
                "feed.xml",
                home,
                recent_changes(collected.changed, self.multi_version_tools),
            ),
        )
        yield SiteFile(
            "llms.txt",
            lambda: markdown_pages.render_llms_txt(
                about, [toolkit for toolkit, _ in toolkits], self.tool_counts
            ),
        )
        yield SiteFile("search-data.js", lambda: collected.search.render_search_data(toolkits))
        yield SiteFile("facets.js", collected.search.render_facets)
        for kind, some in collected.by_label.items():
            yield from self._label_files(kind, some)
        if home:
            addressed = chain(self._top_paths(), map(pages.tool_path, collected.search.slugs()))
            for part in feeds.render_sitemaps(
                home, addressed, len(self._top_paths()) + self._tool_count
            ):
                yield SiteFile(
                    part.path, part.render, compute_digest(self.program_digest, home, part.targets)
                )

    def _label_files(self, kind: str, label_tools: Mapping[str, "_LabelTools"]) -> SiteFiles:
        """All tags, or scopes, and the tools that have each."""
        yield SiteFile(
            f"{kind}/index.html",
            lambda: pages.render_labels(
                self.about, kind, {label: some.count for label, some in label_tools.items()}
            ),
        )
        for label, some in label_tools.items():
            make = partial(pages.render_label, self.about, kind, label, some.count, some.shown)
            yield SiteFile(
                pages.label_path(kind, label),
                make,
                self._source_digest(kind, label, some.count, _join_digests(some.shown)),
            )

    def _source_digest(self, *values: object) -> str:
        """What a list of tools is made from: a document says all that is told of its tool in a
        list, and of its toolkit.
        """
        return compute_digest(self.program_digest, self.about, *values)

    def _top_paths(self) -> list[str]:
        """The pages that a search engine should know, but those of tools."""
        fixed = [
            f"{name}index.html"
            for name in ("", "tools/", "tags/", "scopes/", "sessions/", "reference/", "contribute/")
        ]
        return [*fixed, *(pages.toolkit_path(index.toolkit.slug) for index in self.indexes)]


def _join_digests(tools: Iterable[ListedTool]) -> str:
    """The digests of tools, one behind the other, for all are of one length: thousands of pages are
    told by a thousand each.
    """
    return "".join([tool.digest for _, tool in tools])


@dataclass(slots=True)
class _LabelTools:
    """The tools that have a tag or a scope: how many, and the first of them, which are shown."""

    count: int = 0
    shown: list[ListedTool] = field(default_factory=list)

    def add(self, tool: ListedTool) -> None:
        self.count += 1
        if self.count <= pages.TOOLS_PER_PAGE:
            self.shown.append(tool)


class _Collected:
    """What is kept of tools that have gone by: what the search needs, those that changed last, and
    those that labels show.
    """

    def __init__(self, labels: Mapping[str, Sequence[str]]) -> None:
        self.search = search_data.SearchDataBuilder(labels)
        self.recent: list[ListedTool] = []
        self.changed: list[ListedTool] = []
        self.by_label = {
            kind: {label: _LabelTools() for label in some} for kind, some in labels.items()
        }

    def add(self, tools: Sequence[ListedTool]) -> None:
        self.search.add_tools([tool for _, tool in tools])
        self.recent = latest_tools(
            [*self.recent, *(one for one in tools if one.tool.deprecation is None)], _RECENT_TOOLS
        )
        self.changed = latest_tools([*self.changed, *tools])
        for kind, having in self.by_label.items():
            for one in tools:
                for label in getattr(one.tool, kind):
                    having[label].add(one)
