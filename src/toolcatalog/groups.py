"""The pages of the site in groups that are made together, each with a digest of all that it is made
from.

Here are those of a batch of tools and of a toolkit; `overview` has those of the whole catalog.
Pages are made from what is public: the documents in the parts, and the indexes of toolkits in the
snapshot.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, Protocol

import orjson

from toolcatalog import compiling, entries, exports, feeds, pages, providers, snapshot, twins
from toolcatalog.batches import Task
from toolcatalog.entries import Row, summary
from toolcatalog.feeds import Changed
from toolcatalog.pages import Listed, OfToolkit
from toolcatalog.snapshot import Tool, Toolkit
from toolcatalog.twins import Twin

_FEED = 100


class File(NamedTuple):
    """A file of the site: where it lies, what makes it, and a digest of all that it is made from,
    where that is told much sooner.
    """

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
        return digest_of("tools", self.task.known.key, self.about)

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
    for newest, size, deprecation in zip(
        part.facts.newest, part.facts.sizes, part.facts.deprecations, strict=True
    ):
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
        yield File(
            pages.tool_path(tool.slug, f"{name}.html"),
            partial(pages.tool_page, about, toolkit, tool),
        )
        yield File(pages.tool_path(tool.slug, f"{name}.json"), partial(bytes, document))
    if len(versions) > 1:
        every = [tool for tool, _ in versions]
        yield File(
            pages.tool_path(every[-1].slug, "history.html"),
            partial(pages.history_page, about, toolkit, every),
        )


# of toolkits the tools that have several versions, with those, oldest first
Several = Mapping[str, Mapping[str, Sequence[str]]]


class Index(NamedTuple):
    """Where the indexes of a toolkit lie, one for each of its versions."""

    toolkit: Toolkit
    folder: Path

    def read(self, version: str = "") -> OfToolkit:
        """The toolkit with the rows of its tools at a version, the newest where none is named; a
        toolkit without tools has no version.
        """
        if not self.toolkit.versions:
            return OfToolkit(self.toolkit, [])
        file = self.folder / snapshot.index_path(
            self.toolkit.slug, version or self.toolkit.versions[-1]
        )
        return OfToolkit(
            self.toolkit, [*map(entries.row, orjson.loads(file.read_bytes())["tools"])]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """All about a toolkit, from its index and the parts with its tools; what is for machines is
    made for a tool and the toolkit at once.
    """

    program: str
    about: Mapping[str, str]
    index: Index
    tasks: Sequence[Task]
    versions: Several

    @property
    def digest(self) -> str:
        """As in Group."""
        return digest_of(
            "toolkit",
            self.program,
            self.about,
            self.index.toolkit,
            [task.known.key for task in self.tasks],
        )

    @property
    def paths(self) -> Sequence[str]:
        """As in Group."""
        return [
            *self._pages,
            *self._for_machines,
            *(pages.tool_path(slug, "index.md") for slug in self._slugs()),
        ]

    @property
    def _pages(self) -> list[str]:
        files = (
            "index.html",
            "feed.xml",
            *(f"{version}.html" for version in self.index.toolkit.versions[:-1]),
        )
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
        changed = changes((Listed(toolkit, tool) for tool in tools), self.versions)
        page, feed, *older = self._pages
        yield File(page, lambda: pages.toolkit_page(self.about, toolkit, tools, changed))
        yield File(
            feed,
            lambda: feeds.atom(
                f"{toolkit.name}: changes", feed, self.about.get("home", ""), changed
            ),
        )
        newest = {tool.slug: tool.version for tool in tools}
        for version, path in zip(toolkit.versions, older, strict=False):
            then = self.index.read(version).tools
            yield File(
                path, partial(pages.older_toolkit_page, self.about, toolkit, version, then, newest)
            )
        yield from self._tools()

    def _tools(self) -> Files:
        """The Markdown of each tool, and with it what holds all of them: they are gone through
        once, for there may be very many.
        """
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


def latest(tools: Iterable[Listed], most: int = _FEED) -> list[Listed]:
    """So many tools at most that changed last, newest first."""
    # nearly sorted as they come
    return sorted(tools, key=attrgetter("tool.version", "tool.slug"), reverse=True)[:most]


def changes(tools: Iterable[Listed], versions: Several) -> list[Changed]:
    """What has happened to tools last, newest first: to as many at most as changed last, since the
    last change of each is its newest.
    """
    happened = chain.from_iterable(
        _of_tool(*one, versions[one.toolkit.slug].get(one.tool.slug, ())) for one in latest(tools)
    )
    newest = sorted(happened, key=attrgetter("version", "slug"), reverse=True)[:_FEED]
    return [one._replace(summary=summary(one.summary)) for one in newest]


def _of_tool(toolkit: Toolkit, tool: Row, versions: Sequence[str]) -> Iterator[Changed]:
    """What has happened to a tool that has these versions, or only the one it is in."""
    about = tool.slug, tool.name, (toolkit.slug, toolkit.name)
    for place, version in enumerate(versions or [tool.version]):
        yield Changed(*about, version, "new version" if place else "new tool", tool.description)
    if tool.deprecation is not None:
        yield Changed(*about, tool.version, "deprecated", tool.description)


def digest_of(*made_from: object) -> str:
    """What tells whatever pages are made from, as far as JSON holds it, from all else."""
    return snapshot.sha256(snapshot.dump(made_from))
