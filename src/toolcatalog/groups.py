"""The pages of the site in groups that are made together, each with a digest of all that it is made from.

A batch of tools, a toolkit, and all that is about the whole catalog. Pages are made from what is public: the documents in the parts, and
the indexes of toolkits in the snapshot.

Serves: "only the pages concerned are rewritten" of issue 3.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

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


class File(NamedTuple):
    """A file of the site: where it lies, what makes it, and a digest of all that it is made from, where that is told much sooner."""

    path: str
    make: Callable[[], bytes]
    source: str = ""


Files = Iterator[File]


class Group(Protocol):
    """Files that are made together."""

    @property
    def digest(self) -> str:
        """The digest of all that the files are made from."""

    @property
    def paths(self) -> Sequence[str]:
        """Where they lie in the site."""

    def files(self) -> Files:
        """The files, each to be made before the next is asked for, or not at all."""


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

    def files(self) -> Files:
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


def _about_a_tool(about: Mapping[str, str], toolkit: Toolkit, versions: Versions) -> Files:
    for tool, document in reversed(versions):
        name = "index" if tool is versions[-1][0] else tool.version
        yield File(pages.tool_path(tool.slug, f"{name}.html"), partial(pages.tool_page, about, toolkit, tool))
        yield File(pages.tool_path(tool.slug, f"{name}.json"), partial(bytes, document))
    if len(versions) > 1:
        every = [tool for tool, _ in versions]
        yield File(pages.tool_path(every[-1].slug, "history.html"), partial(pages.history_page, about, toolkit, every))


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

    def files(self) -> Files:
        """As in Group."""
        toolkit, tools = self.index.read()
        changes = _changes([OfToolkit(toolkit, tools)], self.versions)
        page, feed, *older = self._pages
        yield File(page, lambda: pages.toolkit_page(self.about, toolkit, tools, changes))
        yield File(feed, lambda: feeds.atom(f"{toolkit.name}: changes", feed, self.about.get("home", ""), changes))
        newest = {tool["slug"]: tool["version"] for tool in tools}
        for version, path in zip(toolkit.versions, older, strict=False):
            then = self.index.read(version).tools
            yield File(path, partial(pages.older_toolkit_page, self.about, toolkit, version, then, newest))
        yield from self._tools()

    def _tools(self) -> Files:
        """The Markdown of each tool, and with it what holds all of them: they are gone through once, for there may be very many."""
        toolkit, told = self.index.toolkit, list[Twin]()
        lines: dict[str, list[bytes]] = {form: [] for form in exports.FORMS}
        for tool in (versions[-1][0] for task in self.tasks for versions in _tools(task)):
            if tool.toolkit == toolkit.slug:
                told.append(twins.twin(tool, toolkit))
                yield File(pages.tool_path(tool.slug, "index.md"), partial(told[-1].text, 1))
                for form, made in providers.fitted(tool).items():
                    lines[form] += [snapshot.dump(made.definition)] if made.definition else []
        full, *forms = self._for_machines
        yield File(full, lambda: b"".join(twins.llms_full(toolkit, told)))
        yield from map(File, forms, (partial(providers.listed, some) for some in lines.values()))


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
        yield File("feed.xml", lambda: feeds.atom(title, "feed.xml", home, _changes(toolkits, self.versions)))
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
        return _digest(self.program, self.about, place, [tool["digest"] for tool in tools])


def _recent(toolkits: Sequence[OfToolkit]) -> list[Listed]:
    every = (Listed(toolkit, tool) for toolkit, tools in toolkits for tool in tools if tool["deprecation"] is None)
    return sorted(every, key=lambda one: (one.tool["version"], one.tool["slug"]), reverse=True)[:_RECENT]


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
