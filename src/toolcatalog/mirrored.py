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

from toolcatalog import encoding, names
from toolcatalog.errors import UsageError
from toolcatalog.progress import Progress
from toolcatalog.server.operations import render_list_page
from toolcatalog.server.questions import (
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
    ListParams,
    Page,
    encode_cursor,
)
from toolcatalog.server.refusals import ErrorDetail, render_envelope
from toolcatalog.server.view import CatalogView
from toolcatalog.store.store import Filters, Store, VersionPins

# of pages: what is asked for without a limit, and what comes for the largest
PAGE_SIZES = (DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
FOLDERS = ("tools", "list", "toolkits", "sessions")
INFO_FILE = "mirror.json"
_FORMAT = 1  # of a tree
_NEARBY_NAMES = 500  # known names before and after an unknown one that are compared with it
_NOT_FOUND = ErrorDetail(
    404,
    "route_not_found",
    "This static mirror has no such file.",
    "A mirror has tools, their versions, lists of all tools or of one toolkit in pages of 20 or 1000, and chosen sessions. "
    "Search, filters and other pages: ask the live server.",
)


class MirrorSelection(NamedTuple):
    """What is mirrored: which toolkits (None: all), as a key that is limited to them would see
    them, and which sessions, by id.
    """

    toolkits: tuple[str, ...] | None
    sessions: tuple[str, ...]


class MirrorFile(NamedTuple):
    """A file of a tree: its path there, its bytes, and the path of an earlier file that may hold
    the same ones; empty: none does.
    """

    path: str
    body: bytes
    same_as: str = ""


def make_selection(
    store: Store, toolkits: tuple[str, ...] | None, sessions: tuple[str, ...] | None
) -> MirrorSelection:
    """A choice from a store, sorted, each once; None for all. Raises UsageError with a sentence for
    each name that is not there.
    """
    faults = [
        _unknown_name_message(store, "toolkit", slug)
        for slug in toolkits or ()
        if store.get_toolkit_versions(slug) is None
    ]
    faults += [
        _unknown_name_message(store, "session", id)
        for id in sessions or ()
        if store.get_session(id) is None
    ]
    if faults:
        raise UsageError("\n".join(faults))
    ids = store.list_sessions() if sessions is None else sessions
    return MirrorSelection(
        None if toolkits is None else tuple(sorted({*toolkits})), tuple(sorted({*ids}))
    )


def _unknown_name_message(store: Store, kind: str, name: str) -> str:
    near = names.find_nearest(
        name[: names.MAX_LENGTH], store.nearby_names(kind, name, _NEARBY_NAMES)
    )
    return (
        f"There is no {kind} {name} in this build{f' (did you mean {near[0]}?)' if near else ''}."
    )


def render_info(store: Store, selection: MirrorSelection) -> bytes:
    """`mirror.json`: equal trees, equal bytes."""
    made_from = {
        "snapshot": store.digest,
        "toolkits": selection.toolkits,
        "sessions": selection.sessions,
    }
    return encoding.dump_json({"format": _FORMAT, **made_from, "page_sizes": PAGE_SIZES})


def tree_name(store: Store, selection: MirrorSelection) -> str:
    """The name of a tree: the snapshot's digest, and eight hex digits that tell choices from one
    another.
    """
    return f"{store.digest}-{encoding.sha256_hex(render_info(store, selection))[:8]}"


def render_not_found_body() -> bytes:
    """`404.json`."""
    return render_envelope([_NOT_FOUND], "mirror")


def generate_files(
    store: Store, selection: MirrorSelection, progress: Progress
) -> Iterator[MirrorFile]:
    """All files of a tree, one after another. Raises SnapshotError where a document is not what was
    written.
    """
    view = CatalogView(store, selection.toolkits)
    yield from _tool_files(view, progress)
    yield from _all_list_files(
        view, store.list_toolkits() if selection.toolkits is None else selection.toolkits, progress
    )
    for id in selection.sessions:
        session = store.get_session(id)
        yield MirrorFile(f"sessions/{id}.json", session.answer if session else b"")
    yield MirrorFile(INFO_FILE, render_info(store, selection))


def _tool_files(view: CatalogView, progress: Progress) -> Iterator[MirrorFile]:
    """Every version of every tool, and the newest under the name of the tool alone."""
    _, total = view.list_tools(_list_params("", Page(1, MAX_PAGE_SIZE)))
    with progress("Mirroring tools", total) as advance:
        for number in range(1, _count_pages(total, MAX_PAGE_SIZE) + 1):
            found, _ = view.list_tools(_list_params("", Page(number, MAX_PAGE_SIZE)))
            for newest in found.tolist():
                yield from _version_files(
                    view.store, orjson.loads(view.store.read_document(newest)[0])
                )
            advance(len(found))


def _version_files(store: Store, newest: dict[str, Any]) -> Iterator[MirrorFile]:
    slug, entry = newest["slug"], store.get_tool(newest["slug"])
    assert entry is not None
    path, body = "", b""
    for version in entry.versions:
        path, body = (
            f"tools/{slug}.{version}.json",
            bytes(store.read_document(entry.tool_id(version))[0]),
        )
        yield MirrorFile(path, body)
    yield MirrorFile(f"tools/{slug}.json", body, same_as=path)


def _all_list_files(
    view: CatalogView, toolkits: Sequence[str], progress: Progress
) -> Iterator[MirrorFile]:
    """The list of all tools and that of each toolkit."""
    with progress("Mirroring lists", 1 + len(toolkits)) as advance:
        for toolkit in ("", *toolkits):
            yield from _list_files(view, toolkit)
            advance(1)


def _list_files(view: CatalogView, toolkit: str) -> Iterator[MirrorFile]:
    """Every page of a list, in each size. A list that fits on the smaller page is the same in both."""
    for size in PAGE_SIZES:
        number, pages = 1, 1
        while number <= pages:
            found, total = view.list_tools(_list_params(toolkit, page := Page(number, size)))
            pieces, _ = render_list_page(*view.store.read_documents(found), page, total)
            twin = "" if size == PAGE_SIZES[0] else _list_path(toolkit, Page(number, PAGE_SIZES[0]))
            yield MirrorFile(_list_path(toolkit, page), b"".join(pieces), twin)
            number, pages = number + 1, _count_pages(total, size)


def _list_path(toolkit: str, page: Page) -> str:
    named = encode_cursor(*page).rstrip(b"=").decode()
    return f"toolkits/{toolkit}.{named}.json" if toolkit else f"list/{named}.json"


def _list_params(toolkit: str, page: Page) -> ListParams:
    """A list as it is asked for without parameters, or with `toolkit_slug` alone."""
    return ListParams(
        None, Filters(toolkits=(toolkit,) if toolkit else None), VersionPins(), page, "slug", False
    )


def _count_pages(total: int, size: int) -> int:
    return -(-total // size)
