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
from toolcatalog.build.batches import Task
from toolcatalog.exports import definitions, providers
from toolcatalog.site import feeds, lists, markdown_pages, pages
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

    task: Task
    about: Mapping[str, str]
    toolkits: Mapping[str, Toolkit]

    @property
    def digest(self) -> str:
        """See `PageGroup.digest`."""
        return compute_digest("tools", self.task.cache_entry.key, self.about)

    @property
    def paths(self) -> Sequence[str]:
        """See `PageGroup.paths`."""
        found: list[str] = []
        for folder, _, files in self.task.cache_entry.rows:
            versions = sorted(path.rpartition("/")[2].removesuffix(".yaml") for path, _, _ in files)
            found += _tool_paths(folder.rpartition("/")[2], versions)
        return found

    def files(self) -> SiteFiles:
        """See `PageGroup.files`."""
        for versions in _read_tools(self.task):
            yield from _tool_files(self.about, self.toolkits[versions[-1][0].toolkit], versions)


def _tool_paths(slug: str, versions: Sequence[str]) -> Iterator[str]:
    """Yield the paths of the pages of a tool with these versions."""
    more = [f"{version}.{kind}" for version in versions[:-1] for kind in ("html", "json")]
    more += ["history.html"] if len(versions) > 1 else []
    return (pages.tool_path(slug, file) for file in ("index.html", "index.json", *more))


ToolVersions = Sequence[
    tuple[Tool, bytes]
]  # the versions of a tool, oldest first, each with its document


def _read_tools(task: Task) -> Iterator[ToolVersions]:
    """Yield the versions of each tool of a batch."""
    part = compiler.load_or_compile(task, "facts", "newest", "older")
    ends, versions = {True: 0, False: 0}, []
    facts = part.facts
    for newest, size, deprecation, source in zip(
        facts.newest, facts.sizes, facts.deprecations, facts.sources, strict=True
    ):
        start = ends[newest]
        ends[newest] = start + size + 1
        document = (part.newest if newest else part.older)[start : start + size]
        versions.append(
            (
                snapshot_format.tool_from_document(orjson.loads(document), deprecation, source),
                document,
            )
        )
        if newest:
            yield versions
            versions = []


def _tool_files(about: Mapping[str, str], toolkit: Toolkit, versions: ToolVersions) -> SiteFiles:
    for tool, document in reversed(versions):
        name = "index" if tool is versions[-1][0] else tool.version
        yield SiteFile(
            pages.tool_path(tool.slug, f"{name}.html"),
            partial(pages.render_tool, about, toolkit, tool),
        )
        yield SiteFile(pages.tool_path(tool.slug, f"{name}.json"), partial(bytes, document))
    if len(versions) > 1:
        every = [tool for tool, _ in versions]
        yield SiteFile(
            pages.tool_path(every[-1].slug, "history.html"),
            partial(pages.render_history, about, toolkit, every),
        )


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
        file = self.folder / snapshot_format.toolkit_index_path(
            self.toolkit.slug, version or self.toolkit.versions[-1]
        )
        return ToolkitTools(
            self.toolkit, [*map(lists.make_row, orjson.loads(file.read_bytes())["tools"])]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitPages:
    """The pages of a toolkit, from its indexes and the compiled batches with its tools.

    The Markdown pages of its tools belong to this group too, because the toolkit's exports are made
    from the same definitions.
    """

    program_digest: str
    about: Mapping[str, str]
    index: ToolkitIndex
    tasks: Sequence[Task]
    multi_version_tools: MultiVersionTools

    @property
    def digest(self) -> str:
        """See `PageGroup.digest`."""
        return compute_digest(
            "toolkit",
            self.program_digest,
            self.about,
            self.index.toolkit,
            [task.cache_entry.key for task in self.tasks],
        )

    @property
    def paths(self) -> Sequence[str]:
        """See `PageGroup.paths`."""
        return [
            *self._html_paths,
            *self._export_paths,
            *(pages.tool_path(slug, "index.md") for slug in self._slugs()),
        ]

    @property
    def _html_paths(self) -> list[str]:
        files = (
            "index.html",
            "feed.xml",
            *(f"{version}.html" for version in self.index.toolkit.versions[:-1]),
        )
        return [pages.toolkit_path(self.index.toolkit.slug, file) for file in files]

    @property
    def _export_paths(self) -> list[str]:
        files = ("llms-full.txt", *(f"{form}.json" for form in definitions.FORMATS))
        return [pages.toolkit_path(self.index.toolkit.slug, file) for file in files]

    def _slugs(self) -> Iterator[str]:
        start = f"toolkits/{self.index.toolkit.slug}/"
        folders = (row[0] for task in self.tasks for row in task.cache_entry.rows)
        return (folder.removeprefix(start) for folder in folders if folder.startswith(start))

    def files(self) -> SiteFiles:
        """See `PageGroup.files`."""
        toolkit, tools = self.index.read()
        changed = recent_changes(
            (ListedTool(toolkit, tool) for tool in tools), self.multi_version_tools
        )
        page, feed, *older = self._html_paths
        yield SiteFile(page, lambda: pages.render_toolkit(self.about, toolkit, tools, changed))
        yield SiteFile(
            feed,
            lambda: feeds.render_atom(
                f"{toolkit.name}: changes", feed, self.about.get("home", ""), changed
            ),
        )
        newest = {tool.slug: tool.version for tool in tools}
        for version, path in zip(toolkit.versions, older, strict=False):
            then = self.index.read(version).tools
            yield SiteFile(
                path,
                partial(pages.render_older_toolkit, self.about, toolkit, version, then, newest),
            )
        yield from self._export_files()

    def _export_files(self) -> SiteFiles:
        """Yield the Markdown page of each tool, then the files with all tools.

        The tools are read only once, because there may be very many.
        """
        toolkit, told = self.index.toolkit, list[ToolMarkdown]()
        lines: dict[str, list[bytes]] = {form: [] for form in definitions.FORMATS}
        for tool in (versions[-1][0] for task in self.tasks for versions in _read_tools(task)):
            if tool.toolkit == toolkit.slug:
                told.append(markdown_pages.to_markdown(tool, toolkit))
                yield SiteFile(pages.tool_path(tool.slug, "index.md"), partial(told[-1].render, 1))
                for form, made in providers.fit_definitions(tool).items():
                    lines[form] += [encoding.dump_json(made.definition)] if made.definition else []
        full, *forms = self._export_paths
        yield SiteFile(full, lambda: b"".join(markdown_pages.render_llms_full_txt(toolkit, told)))
        yield from map(
            SiteFile, forms, (partial(providers.render_json_array, some) for some in lines.values())
        )


def latest_tools(tools: Iterable[ListedTool], limit: int = _FEED_LENGTH) -> list[ListedTool]:
    """Return the tools that changed last, newest first, at most `limit`."""
    # fast, because the input is nearly sorted
    return sorted(tools, key=attrgetter("tool.version", "tool.slug"), reverse=True)[:limit]


def recent_changes(tools: Iterable[ListedTool], versions: MultiVersionTools) -> list[ToolChange]:
    """Return the last changes to tools, newest first, at most 100.

    The tools that changed last are enough for this, because the last change of a tool is its
    newest.
    """
    happened = chain.from_iterable(
        _tool_changes(*one, versions[one.toolkit.slug].get(one.tool.slug, ()))
        for one in latest_tools(tools)
    )
    newest = sorted(happened, key=attrgetter("version", "slug"), reverse=True)[:_FEED_LENGTH]
    return [one._replace(summary=first_sentence(one.summary)) for one in newest]


def _tool_changes(toolkit: Toolkit, tool: ToolRow, versions: Sequence[str]) -> Iterator[ToolChange]:
    """Yield the changes of a tool with these versions; if none are given, it has only the
    current one.
    """
    about = tool.slug, tool.name, (toolkit.slug, toolkit.name)
    for place, version in enumerate(versions or [tool.version]):
        yield ToolChange(*about, version, "new version" if place else "new tool", tool.description)
    if tool.deprecation is not None:
        yield ToolChange(*about, tool.version, "deprecated", tool.description)


def compute_digest(*values: object) -> str:
    """Return a digest of these values, as far as JSON represents them."""
    return encoding.sha256_hex(encoding.dump_json(values))
