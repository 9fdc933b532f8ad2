"""Overview pages of the site: home, lists of tools, tags and scopes, search data, feeds.

They form one page group, rendered by one worker, because each needs all tools. Most of them are
lists of tools, and a change affects few lists. So each list has a digest of its input, and the site
writer renders only the lists whose input changed.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

from toolcatalog import openapi
from toolcatalog.build.site_pages import (
    CheckedFile,
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

_RECENT_CHANGES = 10  # on the home page
_RECENT_TOOLS = 5  # in the search
_MAX_EXAMPLE_SIZE = 1 << 16  # bytes of a tool or a session in the API reference
_FIXED_PATHS = (
    "index.html",
    "sessions/index.html",
    "reference/index.html",
    "contribute/index.html",
    "changes/index.html",
    "404.html",
    "search-data.js",
    "search-words.js",
    "facets.js",
    "feed.xml",
    "llms.txt",
    *assets.NAMES,
    *(path for _, path in file_schemas.schema_paths()),
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
    sessions: Collection[Session]
    multi_version_tools: MultiVersionTools
    tool_counts: Mapping[str, int]
    labels: Mapping[str, Sequence[str]]
    logo: CheckedFile | None = None
    fonts: Mapping[str, CheckedFile] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """See `PageGroup.digest`."""
        return compute_digest("whole", self.program_digest, self.source_digest)

    @property
    def paths(self) -> Sequence[str]:
        """See `PageGroup.paths`."""
        tool_count = self._tool_count
        paths = [*_FIXED_PATHS, *self.fonts]
        paths += map(pages.list_path, range(1, pages.count_list_pages(tool_count) + 1))
        paths += map(search_data.shard_path, range(search_data.count_shards(tool_count)))
        for kind, labels in self.labels.items():
            paths.append(f"{kind}/index.html")
            paths += (pages.label_path(kind, label) for label in labels)
        if self.about.get("home"):
            paths.append("opensearch.xml")
            paths += feeds.sitemap_paths(len(self._top_paths()) + tool_count)
        return paths

    def files(self) -> SiteFiles:
        """See `PageGroup.files`.

        The tools are read once, and only what all-tool pages need is kept, because there may be
        very many.
        """
        yield from self._fixed_files()
        collected = _Collected(self.labels)
        tools = (
            ListedTool(toolkit, tool)
            for toolkit, rows in map(ToolkitIndex.read, self.indexes)
            for tool in rows
        )
        for number in range(pages.count_list_pages(self._tool_count)):
            page_tools = [*islice(tools, pages.TOOLS_PER_PAGE)]
            if page_tools:
                collected.add(page_tools)
            yield from self._list_page_files(number, page_tools)
        yield from self._summary_files(collected)

    @property
    def _tool_count(self) -> int:
        return sum(self.tool_counts.values())

    def _fixed_files(self) -> SiteFiles:
        """Yield the files that do not depend on the tools."""
        about, source = self.about, self._source_digest()
        sessions = partial(pages.render_sessions, about, self.meta_tools, self.sessions)
        yield SiteFile("sessions/index.html", sessions)
        yield SiteFile("reference/index.html", self._render_reference)
        yield SiteFile("contribute/index.html", partial(pages.render_contribute, about), source)
        yield SiteFile("404.html", partial(pages.render_not_found, about), source)
        for name in assets.NAMES:
            if name == assets.ICON and self.logo:
                yield SiteFile(name, self.logo.read)
            else:
                yield SiteFile(name, partial(assets.read_asset, name, about, self.fonts.keys()))
        for path, font in self.fonts.items():
            yield SiteFile(path, font.read)
        for kind, path in file_schemas.schema_paths():
            yield SiteFile(path, partial(file_schemas.render_schema, kind))
        if about.get("home"):
            yield SiteFile("opensearch.xml", partial(feeds.render_opensearch, about))

    def _render_reference(self) -> bytes:
        calls = self._example_calls()
        return pages.render_reference(self.about, openapi.build_document(), calls)

    def _example_calls(self) -> Mapping[str, ExampleCall]:
        """Return example calls with the first tool of the snapshot and the first session.

        A large tool or session has no example.
        """
        if not self._tool_count:
            return {}
        folder = self.indexes[0].folder
        with (folder / snapshot_format.DOCUMENTS).open("rb") as file:
            start = file.read(_MAX_EXAMPLE_SIZE).decode(errors="ignore")
        try:
            tool, _ = json.JSONDecoder().raw_decode(start, 1)
        except json.JSONDecodeError:  # the first tool is too large for an example
            return {}
        responses = {}
        for session in islice(self.sessions, 1):
            response = folder / snapshot_format.session_path(session.id)
            if response.is_file() and response.stat().st_size <= _MAX_EXAMPLE_SIZE:
                responses[session.id] = json.loads(response.read_bytes())
        return reference_page.example_calls(tool, responses)

    def _list_page_files(self, number: int, tools: Sequence[ListedTool]) -> SiteFiles:
        """Yield a page of the list of all tools, and the search summaries of the tools on it."""
        total = self._tool_count
        source = self._source_digest(number, total, _join_digests(tools))
        page = partial(pages.render_tool_list, self.about, number + 1, total, tools)
        yield SiteFile(pages.list_path(number + 1), page, source)
        first_shard = number * pages.TOOLS_PER_PAGE // search_data.SHARD_SIZE
        starts = range(0, len(tools), search_data.SHARD_SIZE)
        for shard, start in enumerate(starts, first_shard):
            shard_tools = tools[start : start + search_data.SHARD_SIZE]
            source = self._source_digest(shard, _join_digests(shard_tools))
            render = partial(search_data.render_shard, shard, [tool for _, tool in shard_tools])
            yield SiteFile(search_data.shard_path(shard), render, source)

    def _summary_files(self, collected: "_Collected") -> SiteFiles:
        """Yield the files that need all tools."""
        about, search = self.about, collected.search
        toolkits = [
            (index.toolkit, self.tool_counts.get(index.toolkit.slug, 0)) for index in self.indexes
        ]
        changes = recent_changes(collected.changed, self.multi_version_tools)
        dated = [change for change in changes if change.version != lists.BASE_VERSION]
        home = partial(pages.render_home, about, toolkits, dated[:_RECENT_CHANGES])
        recent = _recent_slugs(dated)
        yield SiteFile("index.html", home)
        yield SiteFile("changes/index.html", partial(pages.render_changes, about, dated))
        yield SiteFile("feed.xml", partial(self._render_feed, changes))
        yield SiteFile("llms.txt", self._render_llms_txt)
        yield SiteFile("search-data.js", partial(search.render_search_data, toolkits, recent))
        yield SiteFile("search-words.js", search.render_words)
        yield SiteFile("facets.js", search.render_facets)
        for kind, label_tools in collected.by_label.items():
            yield from self._label_files(kind, label_tools)
        if about.get("home"):
            yield from self._sitemap_files(search.slugs())

    def _render_feed(self, changes: Sequence[ToolChange]) -> bytes:
        title, home = f"{self.about['title']}: changes", self.about.get("home", "")
        return feeds.render_atom(title, "feed.xml", home, changes)

    def _render_llms_txt(self) -> bytes:
        toolkits = [index.toolkit for index in self.indexes]
        return markdown_pages.render_llms_txt(self.about, toolkits, self.tool_counts)

    def _sitemap_files(self, slugs: Iterable[str]) -> SiteFiles:
        home, top_paths = self.about["home"], self._top_paths()
        paths = chain(top_paths, map(pages.tool_path, slugs))
        for part in feeds.render_sitemaps(home, paths, len(top_paths) + self._tool_count):
            source = compute_digest(self.program_digest, home, part.targets)
            yield SiteFile(part.path, part.render, source)

    def _label_files(self, kind: str, label_tools: Mapping[str, "_LabelTools"]) -> SiteFiles:
        """Yield the list of all tags, or scopes, and the page of each."""
        groups = _group_labels(kind, label_tools)
        labels = partial(pages.render_labels, self.about, kind, groups)
        yield SiteFile(f"{kind}/index.html", labels)
        for label, tools in label_tools.items():
            source = self._source_digest(kind, label, tools.count, _join_digests(tools.shown))
            page = partial(pages.render_label, self.about, kind, label, tools.count, tools.shown)
            yield SiteFile(pages.label_path(kind, label), page, source)

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
        counts = {label: tools.count for label, tools in label_tools.items()}
        return [("", counts)] if counts else []
    groups: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for label, tools in label_tools.items():
        for name, count in tools.toolkits.items():
            groups[name][label] = count
    return sorted(groups.items())


class _Collected:
    """The data collected while tools are read: search data, recent changes, and tools by label."""

    def __init__(self, labels: Mapping[str, Sequence[str]]) -> None:
        self.search = search_data.SearchDataBuilder(labels)
        self.changed: list[ListedTool] = []
        self.by_label = {
            kind: {label: _LabelTools() for label in names} for kind, names in labels.items()
        }

    def add(self, tools: Sequence[ListedTool]) -> None:
        self.search.add_tools([tool for _, tool in tools])
        self.changed = latest_tools([*self.changed, *tools])
        for kind, label_tools in self.by_label.items():
            for tool in tools:
                for label in getattr(tool.tool, kind):
                    label_tools[label].add(tool)
