"""The pages of the site in groups that are made together, each with a digest of all that it is made from.

A batch of tools, a toolkit, and all that is about the whole catalog. Pages are made from what is public: the documents in the parts, and
the indexes of toolkits in the snapshot.

Serves: "only the pages concerned are rewritten" of issue 3.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

from toolcatalog import compiling, editors, exports, feeds, finding, openapi, pages, providers, snapshot, twins
from toolcatalog.batches import Task
from toolcatalog.entries import Row, summary
from toolcatalog.feeds import Changed
from toolcatalog.pages import Listed, MetaTool, OfToolkit
from toolcatalog.snapshot import Tool, Toolkit
from toolcatalog.twins import Twin

_RECENT = 10
_FEED = 100
_KINDS = ("tags", "scopes")
Rendered = Iterator[tuple[str, bytes]]  # path and bytes of each file


class Group(Protocol):
    """Files that are made together."""

    @property
    def digest(self) -> str:
        """The digest of all that the files are made from."""

    @property
    def paths(self) -> Sequence[str]:
        """Where they lie in the site."""

    def render(self) -> Iterable[tuple[str, bytes]]:
        """Path and bytes of each file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """All about a batch of tools, from its part."""

    task: Task
    about: Mapping[str, str]
    toolkits: Mapping[str, Toolkit]

    @property
    def digest(self) -> str:
        """As in Group."""
        return _digest("tools", self.task.known.key, self.about)

    @property
    def paths(self) -> Sequence[str]:
        """As in Group."""
        found: list[str] = []
        for folder, _, files in self.task.known.rows:
            versions = sorted(path.rpartition("/")[2].removesuffix(".yaml") for path, _, _ in files)
            found += _paths(folder.rpartition("/")[2], versions)
        return found

    def render(self) -> Rendered:
        """As in Group."""
        for versions in _tools(self.task):
            yield from _about_a_tool(self.about, self.toolkits[versions[-1][0].toolkit], versions)


def _paths(slug: str, versions: Sequence[str]) -> Iterator[str]:
    """The files about a tool that has these versions."""
    more = [f"{version}.{kind}" for version in versions[:-1] for kind in ("html", "json")]
    more += ["history.html"] if len(versions) > 1 else []
    return (pages.tool_path(slug, file) for file in ("index.html", "index.json", *more))


Versions = Sequence[tuple[Tool, bytes]]  # of a tool, oldest first, each with its document


def _tools(task: Task) -> Iterator[Versions]:
    """The tools of a batch."""
    part = compiling.part_of(task, "facts", "newest", "older")
    ends, versions = {True: 0, False: 0}, []
    for newest, size, deprecation in zip(part.facts.newest, part.facts.sizes, part.facts.deprecations, strict=True):
        start = ends[newest]
        ends[newest] = start + size + 1
        document = (part.newest if newest else part.older)[start : start + size]
        versions.append((snapshot.tool_of(orjson.loads(document), deprecation), document))
        if newest:
            yield versions
            versions = []


def _about_a_tool(about: Mapping[str, str], toolkit: Toolkit, versions: Versions) -> Rendered:
    newest, document = versions[-1]
    yield pages.tool_path(newest.slug), pages.tool_page(about, toolkit, newest)
    yield pages.tool_path(newest.slug, "index.json"), document
    for tool, older in versions[:-1]:
        yield pages.tool_path(tool.slug, f"{tool.version}.html"), pages.tool_page(about, toolkit, tool)
        yield pages.tool_path(tool.slug, f"{tool.version}.json"), older
    if len(versions) > 1:
        yield pages.tool_path(newest.slug, "history.html"), pages.history_page(about, toolkit, [tool for tool, _ in versions])


Several = Mapping[str, Mapping[str, Sequence[str]]]  # of toolkits the tools that have several versions, with those, oldest first


class Index(NamedTuple):
    """Where the indexes of a toolkit lie, one for each of its versions."""

    toolkit: Toolkit
    folder: Path

    def read(self, version: str = "") -> OfToolkit:
        """The toolkit with the rows of its tools at a version, the newest where none is named; a toolkit without tools has no version."""
        if not self.toolkit.versions:
            return OfToolkit(self.toolkit, [])
        file = self.folder / snapshot.index_path(self.toolkit.slug, version or self.toolkit.versions[-1])
        return OfToolkit(self.toolkit, orjson.loads(file.read_bytes())["tools"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """All about a toolkit, from its index and the parts with its tools; what is for machines is made for a tool and the toolkit at once."""

    program: str
    about: Mapping[str, str]
    index: Index
    tasks: Sequence[Task]
    versions: Several

    @property
    def digest(self) -> str:
        """As in Group."""
        return _digest("toolkit", self.program, self.about, self.index.toolkit, [task.known.key for task in self.tasks])

    @property
    def paths(self) -> Sequence[str]:
        """As in Group."""
        return [*self._pages, *self._for_machines, *(pages.tool_path(slug, "index.md") for slug in self._slugs())]

    @property
    def _pages(self) -> list[str]:
        files = ("index.html", "feed.xml", *(f"{version}.html" for version in self.index.toolkit.versions[:-1]))
        return [pages.toolkit_path(self.index.toolkit.slug, file) for file in files]

    @property
    def _for_machines(self) -> list[str]:
        files = ("llms-full.txt", *(f"{form}.json" for form in exports.FORMS))
        return [pages.toolkit_path(self.index.toolkit.slug, file) for file in files]

    def _slugs(self) -> Iterator[str]:
        start = f"toolkits/{self.index.toolkit.slug}/"
        folders = (row[0] for task in self.tasks for row in task.known.rows)
        return (folder.removeprefix(start) for folder in folders if folder.startswith(start))

    def render(self) -> Rendered:
        """As in Group."""
        toolkit, tools = self.index.read()
        changes = _changes([OfToolkit(toolkit, tools)], self.versions)
        page, feed, *older = self._pages
        yield page, pages.toolkit_page(self.about, toolkit, tools, changes)
        yield feed, feeds.atom(f"{toolkit.name}: changes", feed, self.about.get("home", ""), changes)
        versions = {tool["slug"]: tool["version"] for tool in tools}
        for version, path in zip(toolkit.versions, older, strict=False):
            yield path, pages.older_toolkit_page(self.about, toolkit, version, self.index.read(version).tools, versions)
        yield from self._tools()

    def _tools(self) -> Rendered:
        """The Markdown of each tool, and with it what holds all of them: they are gone through once, for there may be very many."""
        toolkit, told = self.index.toolkit, list[Twin]()
        lines: dict[str, list[bytes]] = {form: [] for form in exports.FORMS}
        for tool in (versions[-1][0] for task in self.tasks for versions in _tools(task)):
            if tool.toolkit == toolkit.slug:
                told.append(twins.twin(tool, toolkit))
                yield pages.tool_path(tool.slug, "index.md"), told[-1].text(1)
                for form, made in providers.fitted(tool).items():
                    lines[form] += [snapshot.dump(made.definition)] if made.definition else []
        whole = b"".join(twins.llms_full(toolkit, told))
        yield from zip(self._for_machines, [whole, *map(providers.listed, lines.values())], strict=True)


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
        return _digest("whole", self.program, self.made_from)

    @property
    def paths(self) -> Sequence[str]:
        """As in Group."""
        return [path for path, _ in self._files(self._toolkits())]

    def render(self) -> Rendered:
        """As in Group."""
        for path, make in self._files(self._toolkits()):
            yield path, make()

    def _toolkits(self) -> list[OfToolkit]:
        return [index.read() for index in self.indexes]

    def _files(self, toolkits: Sequence[OfToolkit]) -> Iterator[tuple[str, Any]]:
        """The path of each file, and what makes it."""
        about = self.about
        yield "index.html", lambda: pages.home(about, toolkits, _recent(toolkits))
        listed = pages.pages_of(toolkits)
        total = sum(len(some.tools) for some in toolkits)
        for number, some in enumerate(listed, 1):
            yield pages.list_path(number), lambda number=number, some=some: pages.list_page(about, number, len(listed), total, some)
        for kind in _KINDS:
            yield from _labels(about, kind, toolkits)
        yield "sessions/index.html", lambda: pages.sessions_page(about, self.meta_tools)
        yield "reference/index.html", lambda: pages.reference_page(about, openapi.document())
        yield "contribute/index.html", lambda: pages.contribute_page(about)
        yield "404.html", lambda: pages.lost_page(about)
        yield "search-data.js", lambda: finding.data(toolkits)
        yield "facets.js", lambda: finding.facets(toolkits)
        for number in range(-(-total // finding.SHARD)):
            yield finding.shard_path(number), lambda number=number: finding.shard(toolkits, number)
        yield (
            "feed.xml",
            lambda: feeds.atom(f"{about['title']}: changes", "feed.xml", about.get("home", ""), _changes(toolkits, self.versions)),
        )
        counts = {some.toolkit.slug: len(some.tools) for some in toolkits}
        yield "llms.txt", lambda: twins.llms(about, [some.toolkit for some in toolkits], counts)
        for name in pages.ASSETS:
            yield name, lambda name=name: pages.asset(name)
        for kind, path in editors.paths():
            yield path, lambda kind=kind: editors.schema_file(kind)
        if about.get("home"):
            yield "opensearch.xml", lambda: feeds.opensearch(about)
            for path, data in feeds.sitemap(about["home"], _canonical(toolkits)).items():
                yield path, lambda data=data: data


def _recent(toolkits: Sequence[OfToolkit]) -> list[Listed]:
    every = (Listed(toolkit, tool) for toolkit, tools in toolkits for tool in tools if tool["deprecation"] is None)
    return sorted(every, key=lambda one: (one.tool["version"], one.tool["slug"]), reverse=True)[:_RECENT]


def _labels(about: Mapping[str, str], kind: str, toolkits: Sequence[OfToolkit]) -> Iterator[tuple[str, Any]]:
    found: dict[str, list[Listed]] = {}
    for toolkit, tools in toolkits:
        for tool in tools:
            for label in tool[kind]:
                found.setdefault(label, []).append(Listed(toolkit, tool))
    labels = dict(sorted(found.items()))
    yield f"{kind}/index.html", lambda: pages.labels_page(about, kind, {label: len(tools) for label, tools in labels.items()})
    for label, some in labels.items():
        yield pages.label_path(kind, label), lambda label=label, some=some: pages.label_page(about, kind, label, some)


def _canonical(toolkits: Sequence[OfToolkit]) -> list[str]:
    """The pages that a search engine should know."""
    fixed = [f"{name}index.html" for name in ("", "tools/", "tags/", "scopes/", "sessions/", "reference/", "contribute/")]
    kits = [pages.toolkit_path(toolkit.slug) for toolkit, _ in toolkits]
    return [*fixed, *kits, *(pages.tool_path(tool["slug"]) for _, tools in toolkits for tool in tools)]


def _changes(toolkits: Sequence[OfToolkit], versions: Several) -> list[Changed]:
    """What has happened to tools last, newest first."""
    every = chain.from_iterable(
        _of_tool(toolkit, tool, versions[toolkit.slug].get(tool["slug"], ())) for toolkit, tools in toolkits for tool in tools
    )
    newest = heapq.nlargest(_FEED, every, key=lambda one: (one.version, one.slug))
    return [one._replace(summary=summary(one.summary)) for one in newest]


def _of_tool(toolkit: Toolkit, tool: Row, versions: Sequence[str]) -> Iterator[Changed]:
    """What has happened to a tool that has these versions, or only the one it is in."""
    about = tool["slug"], tool["name"], (toolkit.slug, toolkit.name)
    for place, version in enumerate(versions or [tool["version"]]):
        yield Changed(*about, version, "new version" if place else "new tool", tool["description"])
    if tool["deprecation"] is not None:
        yield Changed(*about, tool["version"], "deprecated", tool["description"])


def _digest(*made_from: object) -> str:
    return snapshot.sha256(snapshot.dump(made_from))
