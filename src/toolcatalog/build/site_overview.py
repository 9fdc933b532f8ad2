"""Overview pages of the site: home, lists of tools, tags and scopes, search data, feeds.

They form one page group, rendered by one worker, because each needs all tools. Most of them are
lists of tools, and a change affects few lists. So each list has a digest of its input, and the site
writer renders only the lists whose input changed.
"""

import json
from collections import Counter, defaultdict
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
from toolcatalog.site import (
    assets,
    feeds,
    lists,
    markdown_pages,
    pages,
    reference_page,
    search_data,
)
from toolcatalog.site.feeds import ToolChange
from toolcatalog.site.pages import ListedTool, MetaToolSummary
from toolcatalog.site.reference_page import ExampleCall
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import Session

_RECENT_CHANGES = 10
_RECENT_TOOLS = 5  # in the search
_MAX_EXAMPLE_SIZE = 1 << 16  # bytes of a tool in the API reference
_FIXED_PATHS = (
    *(
        "index.html",
        "sessions/index.html",
        "reference/index.html",
        "contribute/index.html",
        "changes/index.html",
        "404.html",
    ),
    *(
        "search-data.js",
        "search-words.js",
        "facets.js",
        "feed.xml",
        "llms.txt",
        *assets.NAMES,
        *(path for _, path in file_schemas.schema_paths()),
    ),
)


_TOP_FOLDERS = (
    *("", "tools/", "tags/", "scopes/", "changes/"),
    *("sessions/", "reference/", "contribute/"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPages:
    """The pages about the whole catalog, from the indexes of its toolkits.

    `source_digest` is the digest of everything that the snapshot is made from. `tool_counts` has
    the number of tools of each toolkit, and `labels` the sorted tags and scopes of the newest tool
    versions: enough to list the paths without reading an index.
    """

    program_digest: str
    source_digest: str
    about: Mapping[str, str]
    indexes: Sequence[ToolkitIndex]
    meta_tools: Sequence[MetaToolSummary]
    sessions: Sequence[Session]
    multi_version_tools: MultiVersionTools
    tool_counts: Mapping[str, int]
    labels: Mapping[str, Sequence[str]]

    @property
    def digest(self) -> str:
        """See `PageGroup.digest`."""
        return compute_digest("whole", self.program_digest, self.source_digest)

    @property
    def paths(self) -> Sequence[str]:
        """See `PageGroup.paths`."""
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
        """See `PageGroup.files`.

        The tools are read once, and only what all-tool pages need is kept, because there may be
        very many.
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

    def _example_calls(self) -> Mapping[str, ExampleCall]:
        """Return example calls with the first tool of the snapshot and the first session."""
        if not self._tool_count:
            return {}
        folder = self.indexes[0].folder
        with (folder / snapshot_format.DOCUMENTS).open("rb") as file:
            start = file.read(_MAX_EXAMPLE_SIZE).decode(errors="ignore")
        try:
            tool, _ = json.JSONDecoder().raw_decode(start, 1)
        except json.JSONDecodeError:  # the first tool is too large for an example
            return {}
        responses = {
            session.id: json.loads((folder / f"sessions/{session.id}.json").read_bytes())
            for session in self.sessions[:1]
            if (folder / f"sessions/{session.id}.json").is_file()
        }
        return reference_page.example_calls(tool, responses)

    @property
    def _tool_count(self) -> int:
        return sum(self.tool_counts.values())

    def _fixed_files(self) -> SiteFiles:
        """Yield the files that do not depend on the tools."""
        about, source = self.about, self._source_digest()
        yield SiteFile(
            "sessions/index.html",
            lambda: pages.render_sessions(about, self.meta_tools, self.sessions),
        )
        yield SiteFile(
            "reference/index.html",
            lambda: pages.render_reference(about, openapi.build_document(), self._example_calls()),
        )
        yield SiteFile("contribute/index.html", lambda: pages.render_contribute(about), source)
        yield SiteFile("404.html", lambda: pages.render_not_found(about), source)
        yield from (
            SiteFile(name, partial(assets.read_asset, name, about)) for name in assets.NAMES
        )
        yield from (
            SiteFile(path, partial(file_schemas.render_schema, kind))
            for kind, path in file_schemas.schema_paths()
        )
        if about.get("home"):
            yield SiteFile("opensearch.xml", lambda: feeds.render_opensearch(about))

    def _list_page_files(self, number: int, tools: Sequence[ListedTool]) -> SiteFiles:
        """Yield a page of the list of all tools, and the search summaries of the tools on it."""
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
        changes = recent_changes(collected.changed, self.multi_version_tools)
        dated = [change for change in changes if change.version != lists.BASE_VERSION]
        yield SiteFile(
            "index.html", lambda: pages.render_home(about, toolkits, dated[:_RECENT_CHANGES])
        )
        yield SiteFile("changes/index.html", lambda: pages.render_changes(about, dated))
        yield SiteFile(
            "feed.xml",
            lambda: feeds.render_atom(f"{about['title']}: changes", "feed.xml", home, changes),
        )
        yield SiteFile(
            "llms.txt",
            lambda: markdown_pages.render_llms_txt(
                about, [toolkit for toolkit, _ in toolkits], self.tool_counts
            ),
        )
        yield SiteFile(
            "search-data.js",
            lambda: collected.search.render_search_data(toolkits, _recent_slugs(dated)),
        )
        yield SiteFile("search-words.js", collected.search.render_words)
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
        """Yield the list of all tags, or scopes, and the page of each."""
        yield SiteFile(
            f"{kind}/index.html",
            lambda: pages.render_labels(self.about, kind, _group_labels(kind, label_tools)),
        )
        for label, some in label_tools.items():
            make = partial(pages.render_label, self.about, kind, label, some.count, some.shown)
            yield SiteFile(
                pages.label_path(kind, label),
                make,
                self._source_digest(kind, label, some.count, _join_digests(some.shown)),
            )

    def _source_digest(self, *values: object) -> str:
        """Return the source digest of a list of tools.

        The digest of a tool's document covers everything that a list shows of the tool and its
        toolkit.
        """
        return compute_digest(self.program_digest, self.about, *values)

    def _top_paths(self) -> list[str]:
        """Return the pages for search engines, except those of tools."""
        fixed = [f"{name}index.html" for name in _TOP_FOLDERS]
        return [*fixed, *(pages.toolkit_path(index.toolkit.slug) for index in self.indexes)]


def _join_digests(tools: Iterable[ListedTool]) -> str:
    """Return the digests of tools, joined; the result is unambiguous, as all have the same
    length.
    """
    return "".join([tool.digest for _, tool in tools])


@dataclass(slots=True)
class _LabelTools:
    """The tools that have a tag or a scope: their number, and the first of them, which are
    shown.
    """

    count: int = 0
    shown: list[ListedTool] = field(default_factory=list)
    toolkits: Counter[str] = field(default_factory=Counter)  # number of tools by toolkit name

    def add(self, tool: ListedTool) -> None:
        self.count += 1
        self.toolkits[tool.toolkit.name] += 1
        if self.count <= pages.TOOLS_PER_PAGE:
            self.shown.append(tool)


def _recent_slugs(changes: Sequence[ToolChange]) -> list[str]:
    slugs = (change.slug for change in changes if change.what != "deprecated")
    return [*islice(dict.fromkeys(slugs), _RECENT_TOOLS)]


def _group_labels(
    kind: str, label_tools: Mapping[str, _LabelTools]
) -> list[tuple[str, dict[str, int]]]:
    """Return the number of tools of each label: of scopes by toolkit, of tags in one group."""
    if kind == "tags":
        return [("", {label: of.count for label, of in label_tools.items()})] if label_tools else []
    groups: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for label, of in label_tools.items():
        for name, count in of.toolkits.items():
            groups[name][label] = count
    return sorted(groups.items())


class _Collected:
    """The data collected while tools are read: search data, recent changes, and tools by label."""

    def __init__(self, labels: Mapping[str, Sequence[str]]) -> None:
        self.search = search_data.SearchDataBuilder(labels)
        self.changed: list[ListedTool] = []
        self.by_label = {
            kind: {label: _LabelTools() for label in some} for kind, some in labels.items()
        }

    def add(self, tools: Sequence[ListedTool]) -> None:
        self.search.add_tools([tool for _, tool in tools])
        self.changed = latest_tools([*self.changed, *tools])
        for kind, having in self.by_label.items():
            for one in tools:
                for label in getattr(one.tool, kind):
                    having[label].add(one)
