"""Page groups of the site: pages that are rendered together, with a digest of their input.

This module has the groups of a batch of tools and of a toolkit; `build.site_overview` has the group
of the whole catalog. Pages are rendered from public data only: the documents in the compiled
batches, and the toolkit indexes in the snapshot.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Protocol

import orjson

from toolcatalog import encoding
from toolcatalog.build import compiler
from toolcatalog.build.batches import CachedBatch
from toolcatalog.errors import UsageError
from toolcatalog.exports import definitions, providers
from toolcatalog.site import feeds, lists, markdown_pages, pages, search_data
from toolcatalog.site.feeds import ToolChange
from toolcatalog.site.lists import ToolRow
from toolcatalog.site.markdown_pages import ToolMarkdown
from toolcatalog.site.pages import ListedTool, ToolkitTools
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import Tool, Toolkit
from toolcatalog.textutils import first_sentence

_FEED_LENGTH = 100


class SiteFile(NamedTuple):
    """A file of the site: its path, a function that renders it, and a digest of its input.

    The digest is empty unless it is much faster to compute than the file.
    """

    path: str
    render: Callable[[], bytes]
    source_digest: str = ""


SiteFiles = Iterator[SiteFile]


class PageGroup(Protocol):
    """Files that are rendered together."""

    @property
    def digest(self) -> str:
        """The digest of everything that the files are made from."""

    @property
    def paths(self) -> Sequence[str]:
        """The paths of the files in the site."""

    def files(self) -> SiteFiles:
        """Yield the files; each must be rendered before the next is requested, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPages:
    """The HTML and JSON pages of the tools of a batch, from the compiled batch."""

    batch: CachedBatch
    about: Mapping[str, str]
    toolkits: Mapping[str, Toolkit]

    @property
    def digest(self) -> str:
        """See `PageGroup.digest`."""
        return compute_digest("tools", self.batch.entry.key, self.about)

    @property
    def paths(self) -> Sequence[str]:
        """See `PageGroup.paths`."""
        paths: list[str] = []
        for folder, _, files in self.batch.entry.rows:
            versions = sorted(path.rpartition("/")[2].removesuffix(".yaml") for path, _, _ in files)
            paths += _tool_paths(folder.rpartition("/")[2], versions)
        return paths

    def files(self) -> SiteFiles:
        """See `PageGroup.files`."""
        for versions in _read_tools(self.batch):
            yield from _tool_files(self.about, self.toolkits[versions[-1][0].toolkit], versions)


def _tool_paths(slug: str, versions: Sequence[str]) -> Iterator[str]:
    """Yield the paths of the pages of a tool with these versions."""
    yield pages.tool_path(slug, "index.html")
    yield pages.tool_path(slug, "index.json")
    for version in versions[:-1]:
        yield pages.tool_path(slug, f"{version}.html")
        yield pages.tool_path(slug, f"{version}.json")
    if len(versions) > 1:
        yield pages.tool_path(slug, "history.html")


# the versions of a tool, oldest first, each with its document
ToolVersions = Sequence[tuple[Tool, bytes]]


def _read_tools(batch: CachedBatch) -> Iterator[ToolVersions]:
    """Yield the versions of each tool of a batch."""
    compiled = compiler.load_or_compile(batch, "facts", "newest", "older")
    facts, ends, versions = compiled.facts, {True: 0, False: 0}, []
    columns = facts.newest, facts.sizes, facts.deprecations, facts.sources
    for newest, size, deprecation, source in zip(*columns, strict=True):
        start = ends[newest]
        ends[newest] = start + size + 1
        document = (compiled.newest if newest else compiled.older)[start : start + size]
        tool = snapshot_format.tool_from_document(orjson.loads(document), deprecation, source)
        versions.append((tool, document))
        if newest:
            yield versions
            versions = []


def _read_newest(batch: CachedBatch, toolkit: str) -> Iterator[Tool]:
    """Yield the newest version of each tool of a batch that belongs to the toolkit."""
    compiled = compiler.load_or_compile(batch, "facts", "newest")
    facts, end = compiled.facts, 0
    columns = facts.newest, facts.sizes, facts.toolkits, facts.deprecations, facts.sources
    for newest, size, tool_toolkit, deprecation, source in zip(*columns, strict=True):
        if not newest:
            continue
        start, end = end, end + size + 1
        if tool_toolkit == toolkit:
            document = orjson.loads(compiled.newest[start : start + size])
            yield snapshot_format.tool_from_document(document, deprecation, source)


def _tool_files(about: Mapping[str, str], toolkit: Toolkit, versions: ToolVersions) -> SiteFiles:
    newest = versions[-1][0]
    for tool, document in reversed(versions):
        name = "index" if tool is newest else tool.version
        page = partial(pages.render_tool, about, toolkit, tool)
        yield SiteFile(pages.tool_path(tool.slug, f"{name}.html"), page)
        yield SiteFile(pages.tool_path(tool.slug, f"{name}.json"), partial(bytes, document))
    if len(versions) > 1:
        page = partial(pages.render_history, about, toolkit, [tool for tool, _ in versions])
        yield SiteFile(pages.tool_path(newest.slug, "history.html"), page)


# by toolkit and tool: the versions of tools with several versions, oldest first
MultiVersionTools = Mapping[str, Mapping[str, Sequence[str]]]


class ToolkitIndex(NamedTuple):
    """A toolkit, and the snapshot folder with its indexes, one for each of its versions."""

    toolkit: Toolkit
    folder: Path

    def read(self, version: str = "") -> ToolkitTools:
        """Return the toolkit with the rows of its tools at a version, by default the newest.

        A toolkit without tools has no version and no rows.
        """
        if not self.toolkit.versions:
            return ToolkitTools(self.toolkit, [])
        path = snapshot_format.toolkit_index_path(
            self.toolkit.slug, version or self.toolkit.versions[-1]
        )
        rows = orjson.loads((self.folder / path).read_bytes())["tools"]
        return ToolkitTools(self.toolkit, [*map(lists.make_row, rows)])


class CheckedFile(NamedTuple):
    """A logo or font in the catalog folder, and the SHA-256 with which it was checked."""

    path: Path
    digest: str

    def read(self) -> bytes:
        """Return the contents; raises UsageError if they have changed since the check."""
        data = self.path.read_bytes()
        if encoding.sha256_hex(data) != self.digest:
            raise UsageError(f"{self.path} was changed during the build: build again.")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitPages:
    """The pages of a toolkit, from its indexes and the compiled batches with its tools.

    The Markdown pages of its tools belong to this group too, because the toolkit's exports are made
    from the same definitions.
    """

    program_digest: str
    about: Mapping[str, str]
    index: ToolkitIndex
    batches: Sequence[CachedBatch]
    multi_version_tools: MultiVersionTools
    logo: CheckedFile | None = None

    @property
    def digest(self) -> str:
        """See `PageGroup.digest`."""
        return compute_digest(
            "toolkit",
            self.logo.digest if self.logo else "",
            self.program_digest,
            self.about,
            self.index.toolkit,
            [batch.entry.key for batch in self.batches],
        )

    @property
    def paths(self) -> Sequence[str]:
        """See `PageGroup.paths`."""
        return [
            *self._html_paths,
            *self._export_paths,
            *self._logo_paths,
            *(pages.tool_path(slug, "index.md") for slug in self._slugs()),
        ]

    @property
    def _html_paths(self) -> list[str]:
        files = (
            "index.html",
            "feed.xml",
            "tools.js",
            *(f"{version}.html" for version in self.index.toolkit.versions[:-1]),
        )
        return [pages.toolkit_path(self.index.toolkit.slug, file) for file in files]

    @property
    def _export_paths(self) -> list[str]:
        files = ("llms-full.txt", *(f"{form}.json" for form in definitions.FORMATS))
        return [pages.toolkit_path(self.index.toolkit.slug, file) for file in files]

    @property
    def _logo_paths(self) -> list[str]:
        return [self.index.toolkit.logo_file] if self.logo else []

    def _slugs(self) -> Iterator[str]:
        start = f"toolkits/{self.index.toolkit.slug}/"
        folders = (row[0] for batch in self.batches for row in batch.entry.rows)
        return (folder.removeprefix(start) for folder in folders if folder.startswith(start))

    def files(self) -> SiteFiles:
        """See `PageGroup.files`."""
        toolkit, tools = self.index.read()
        listed_tools = (ListedTool(toolkit, tool) for tool in tools)
        changes = recent_changes(listed_tools, self.multi_version_tools)
        home = self.about.get("home", "")
        page, feed, data, *older = self._html_paths
        yield SiteFile(page, partial(pages.render_toolkit, self.about, toolkit, tools, changes))
        title = f"{toolkit.name}: changes"
        yield SiteFile(feed, partial(feeds.render_atom, title, feed, home, changes))
        if self.logo:
            yield SiteFile(toolkit.logo_file, self.logo.read)
        yield SiteFile(data, partial(search_data.render_toolkit_tools, toolkit, tools))
        newest = {tool.slug: tool.version for tool in tools}
        for version, path in zip(toolkit.versions, older, strict=False):
            older_tools = self.index.read(version).tools
            arguments = self.about, toolkit, version, older_tools, newest
            yield SiteFile(path, partial(pages.render_older_toolkit, *arguments))
        yield from self._export_files()

    def _export_files(self) -> SiteFiles:
        """Yield the Markdown page of each tool, then the files with all tools.

        The tools are read only once, because there may be very many.
        """
        toolkit, markdown_tools = self.index.toolkit, list[ToolMarkdown]()
        lines: dict[str, list[bytes]] = {form: [] for form in definitions.FORMATS}
        tools = (_read_newest(batch, toolkit.slug) for batch in self.batches)
        for tool in chain.from_iterable(tools):
            markdown_tools.append(markdown_pages.to_markdown(tool, toolkit))
            page = partial(markdown_tools[-1].render, 1)
            yield SiteFile(pages.tool_path(tool.slug, "index.md"), page)
            for form, fitted in providers.fit_definitions(tool).items():
                if fitted.definition:
                    lines[form].append(encoding.dump_json(fitted.definition))
        full, *forms = self._export_paths
        yield SiteFile(full, partial(_render_full_text, toolkit, markdown_tools))
        for path, form_lines in zip(forms, lines.values(), strict=True):
            yield SiteFile(path, partial(providers.render_json_array, form_lines))


def _render_full_text(toolkit: Toolkit, tools: Sequence[ToolMarkdown]) -> bytes:
    return b"".join(markdown_pages.render_llms_full_txt(toolkit, tools))


def latest_tools(tools: Iterable[ListedTool], limit: int = _FEED_LENGTH) -> list[ListedTool]:
    """Return the tools that changed last, newest first, at most `limit`.

    Tools that changed on the same day keep their order.
    """
    return sorted(tools, key=attrgetter("tool.version"), reverse=True)[:limit]


def recent_changes(tools: Iterable[ListedTool], versions: MultiVersionTools) -> list[ToolChange]:
    """Return the last changes to tools, newest first, at most 100.

    The tools that changed last are enough for this, because the last change of a tool is its
    newest.
    """
    changes = [
        change
        for toolkit, tool in latest_tools(tools)
        for change in _tool_changes(toolkit, tool, versions[toolkit.slug].get(tool.slug, ()))
    ]
    changes.sort(key=attrgetter("version"), reverse=True)
    return [
        change._replace(summary=first_sentence(change.summary)) for change in changes[:_FEED_LENGTH]
    ]


def _tool_changes(toolkit: Toolkit, tool: ToolRow, versions: Sequence[str]) -> Iterator[ToolChange]:
    """Yield the changes of a tool with these versions; without any, it has only the current one."""
    about = tool.slug, tool.name, (toolkit.slug, toolkit.name)
    for index, version in enumerate(versions or [tool.version]):
        yield ToolChange(*about, version, "new version" if index else "new tool", tool.description)
    if tool.deprecation is not None:
        yield ToolChange(*about, tool.version, "deprecated", tool.description)


def compute_digest(*values: object) -> str:
    """Return a digest of these values, as far as JSON represents them."""
    return encoding.sha256_hex(encoding.dump_json(values))
