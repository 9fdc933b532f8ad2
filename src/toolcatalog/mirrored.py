"""A snapshot as files for any static host: the very bodies that the server answers, under names
that a host makes out of a request. Pure.

    mirror.json                       the snapshot, the toolkits and sessions that were chosen, the sizes of pages
    tools/<SLUG>.json                 the newest version
    tools/<SLUG>.<version>.json       each version
    list/<cursor>.json                the list of all tools, page by page; the first page has a cursor as well
    toolkits/<toolkit>.<cursor>.json  the list of one toolkit
    sessions/<id>.json                the meta tools of a session

A cursor is the one of the API without the `=` at its end. No name of a tool, a toolkit or a version
holds a dot, so none is mistaken.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from toolcatalog import names, snapshot
from toolcatalog.errors import UsageError
from toolcatalog.progress import Track
from toolcatalog.server.operations import page_of
from toolcatalog.server.questions import DEFAULT_ITEMS, MOST_ITEMS, ListQuestion, Page, cursor
from toolcatalog.server.refusals import Refusal, envelope
from toolcatalog.server.view import View
from toolcatalog.store import Filters, Pins, Store

# of pages: what is asked for without a limit, and what comes for the largest
SIZES = (DEFAULT_ITEMS, MOST_ITEMS)
FOLDERS = ("tools", "list", "toolkits", "sessions")
ABOUT = "mirror.json"
_FORMAT = 1  # of a tree
_NEAR = 500  # known names before and after an unknown one that are compared with it
_MISSING = Refusal(
    404,
    "route_not_found",
    "This static mirror has no such file.",
    "A mirror has tools, their versions, lists of all tools or of one toolkit in pages of 20 or 1000, and chosen sessions. "
    "Search, filters and other pages: ask the live server.",
)


class Choice(NamedTuple):
    """What is mirrored: which toolkits (None: all), as a key that is limited to them would see
    them, and which sessions, by id.
    """

    toolkits: tuple[str, ...] | None
    sessions: tuple[str, ...]


class File(NamedTuple):
    """A file of a tree: its path there, its bytes, and the path of an earlier file that may hold
    the same ones; empty: none does.
    """

    path: str
    body: bytes
    twin: str = ""


def chosen(
    store: Store, toolkits: tuple[str, ...] | None, sessions: tuple[str, ...] | None
) -> Choice:
    """A choice from a store, sorted, each once; None for all. Raises UsageError with a sentence for
    each name that is not there.
    """
    faults = [
        _unknown(store, "toolkit", slug) for slug in toolkits or () if store.toolkit(slug) is None
    ]
    faults += [_unknown(store, "session", id) for id in sessions or () if store.session(id) is None]
    if faults:
        raise UsageError("\n".join(faults))
    ids = store.sessions() if sessions is None else sessions
    return Choice(None if toolkits is None else tuple(sorted({*toolkits})), tuple(sorted({*ids})))


def _unknown(store: Store, kind: str, name: str) -> str:
    near = names.nearest(name[: names.LONGEST], store.names_near(kind, name, _NEAR))
    return (
        f"There is no {kind} {name} in this build{f' (did you mean {near[0]}?)' if near else ''}."
    )


def about(store: Store, choice: Choice) -> bytes:
    """`mirror.json`: equal trees, equal bytes."""
    made_from = {"snapshot": store.digest, "toolkits": choice.toolkits, "sessions": choice.sessions}
    return snapshot.dump({"format": _FORMAT, **made_from, "page_sizes": SIZES})


def name_of(store: Store, choice: Choice) -> str:
    """The name of a tree: the snapshot's digest, and eight hex digits that tell choices from one
    another.
    """
    return f"{store.digest}-{snapshot.sha256(about(store, choice))[:8]}"


def missing() -> bytes:
    """`404.json`."""
    return envelope([_MISSING], "mirror")


def tree(store: Store, choice: Choice, track: Track) -> Iterator[File]:
    """All files of a tree, one after another. Raises SnapshotError where a document is not what was
    written.
    """
    view = View(store, choice.toolkits)
    yield from _tools(view, track)
    yield from _lists(view, store.toolkits() if choice.toolkits is None else choice.toolkits, track)
    for id in choice.sessions:
        session = store.session(id)
        yield File(f"sessions/{id}.json", session.answer if session else b"")
    yield File(ABOUT, about(store, choice))


def _tools(view: View, track: Track) -> Iterator[File]:
    """Every version of every tool, and the newest under the name of the tool alone."""
    _, total = view.tools(_question("", Page(1, MOST_ITEMS)))
    with track("Mirroring tools", total) as advance:
        for number in range(1, _pages(total, MOST_ITEMS) + 1):
            found, _ = view.tools(_question("", Page(number, MOST_ITEMS)))
            for newest in found.tolist():
                yield from _versions(view.store, orjson.loads(view.store.document(newest)[0]))
            advance(len(found))


def _versions(store: Store, newest: dict[str, Any]) -> Iterator[File]:
    slug, entry = newest["slug"], store.tool(newest["slug"])
    assert entry is not None
    path, body = "", b""
    for version in entry.versions:
        path, body = f"tools/{slug}.{version}.json", bytes(store.document(entry.number(version))[0])
        yield File(path, body)
    yield File(f"tools/{slug}.json", body, twin=path)


def _lists(view: View, toolkits: Sequence[str], track: Track) -> Iterator[File]:
    """The list of all tools and that of each toolkit."""
    with track("Mirroring lists", 1 + len(toolkits)) as advance:
        for toolkit in ("", *toolkits):
            yield from _list(view, toolkit)
            advance(1)


def _list(view: View, toolkit: str) -> Iterator[File]:
    """Every page of a list, in each size. A list that fits on the smaller page is the same in both."""
    for size in SIZES:
        number, pages = 1, 1
        while number <= pages:
            found, total = view.tools(_question(toolkit, page := Page(number, size)))
            pieces, _ = page_of(*view.store.documents(found), page, total)
            twin = "" if size == SIZES[0] else _path(toolkit, Page(number, SIZES[0]))
            yield File(_path(toolkit, page), b"".join(pieces), twin)
            number, pages = number + 1, _pages(total, size)


def _path(toolkit: str, page: Page) -> str:
    named = cursor(*page).rstrip(b"=").decode()
    return f"toolkits/{toolkit}.{named}.json" if toolkit else f"list/{named}.json"


def _question(toolkit: str, page: Page) -> ListQuestion:
    """A list as it is asked for without parameters, or with `toolkit_slug` alone."""
    return ListQuestion(
        None, Filters(toolkits=(toolkit,) if toolkit else None), Pins(), page, "slug", False
    )


def _pages(total: int, size: int) -> int:
    return -(-total // size)
