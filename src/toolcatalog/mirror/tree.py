"""Files of a mirror: the answers of the API to a key, with one path for each request.

A tree contains:

mirror.json                       the snapshot, the selected toolkits and sessions, the page sizes
tools/<SLUG>.json                 the newest version
tools/<SLUG>.<version>.json       each version
list/<cursor>.json                the pages of the list of all tools; the first has a cursor, too
toolkits/<toolkit>.<cursor>.json  the pages of the list of one toolkit
sessions/<id>.json                the meta tools of a session
slugs.json                        the slugs of all tools
toolkit/<toolkit>.json            a toolkit
toolkit_list/<cursor>.json        the pages of the list of toolkits
categories/<cursor>.json          the pages of the list of categories
servers/<cursor>.json             the pages of the list of MCP servers
server/<name>.json                the versions of an MCP server, its name with `~` for the slash
server/<name>~<version>.json      an MCP server in its version, and as `latest`
<path>.gz                         each of these files compressed, for hosts that send such a file as
                                  it is, like nginx with `gzip_static`

A cursor is that of the API without the `=` at its end. No name of a tool, a toolkit or a version
contains a dot, so the file names are unambiguous.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from toolcatalog import encoding, names
from toolcatalog.api.answers import Answer
from toolcatalog.api.bodies import join_body
from toolcatalog.api.catalog_view import CatalogView
from toolcatalog.api.error_responses import ErrorDetail, render_envelope
from toolcatalog.api.mcp_registry import McpRegistry
from toolcatalog.api.operations import Operations, render_list_page
from toolcatalog.api.query_params import (
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
    ListParams,
    Page,
    encode_cursor,
)
from toolcatalog.errors import UsageError
from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.progress import Progress
from toolcatalog.store.store import Filters, Store, VersionPins
from toolcatalog.versions import LATEST

# the default page size and the largest one
PAGE_SIZES = (DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
FOLDERS = (
    *("tools", "list", "toolkits", "sessions"),
    *("toolkit", "toolkit_list", "categories", "servers", "server"),
)
INFO_FILE = "mirror.json"
_FORMAT = 3  # the format version of a tree
_NEARBY_NAMES = 500  # known names before and after an unknown one that are compared with it
_NOT_FOUND = ErrorDetail(
    404,
    "route_not_found",
    "This static mirror has no such file.",
    "A mirror has tools, toolkits, MCP servers, their lists in pages of 20 or 1000, and chosen "
    "sessions. Search, filters and other pages: ask the live server.",
)


class MirrorSelection(NamedTuple):
    """What is mirrored: toolkit slugs (None: all) and session ids.

    The mirror shows what a key that is limited to these toolkits would see.
    """

    toolkits: tuple[str, ...] | None
    sessions: tuple[str, ...]


class MirrorFile(NamedTuple):
    """A file of a tree: its path in the tree, and its bytes.

    `same_as` is the path of an earlier file that may have the same bytes; empty if there is none.
    """

    path: str
    body: bytes
    same_as: str = ""


def make_selection(
    store: Store, toolkits: tuple[str, ...] | None, sessions: tuple[str, ...] | None
) -> MirrorSelection:
    """Return a selection from a store, sorted and without duplicates; None selects all.

    Raises UsageError with a sentence for each unknown name.
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
    """Return the bytes of `mirror.json`; equal trees have equal bytes."""
    made_from = {
        "snapshot": store.digest,
        "toolkits": selection.toolkits,
        "sessions": selection.sessions,
    }
    return encoding.dump_json({"format": _FORMAT, **made_from, "page_sizes": PAGE_SIZES})


def tree_name(store: Store, selection: MirrorSelection) -> str:
    """Return the name of a tree.

    It is the digest of the snapshot, and eight hexadecimal digits that depend on the selection.
    """
    return f"{store.digest}-{encoding.sha256_hex(render_info(store, selection))[:8]}"


def render_not_found_body() -> bytes:
    """Return the bytes of `404.json`."""
    return render_envelope([_NOT_FOUND], "mirror")


def generate_files(
    store: Store, selection: MirrorSelection, progress: Progress
) -> Iterator[MirrorFile]:
    """Yield all files of a tree. Raises SnapshotError if a document is damaged."""
    view = CatalogView(store, selection.toolkits)
    yield from _tool_files(view, progress)
    yield from _all_list_files(
        view, store.list_toolkits() if selection.toolkits is None else selection.toolkits, progress
    )
    yield from _toolkit_files(store, selection, progress)
    for id in selection.sessions:
        session = store.get_session(id)
        yield MirrorFile(f"sessions/{id}.json", session.answer if session else b"")
    yield MirrorFile(INFO_FILE, render_info(store, selection))


def _tool_files(view: CatalogView, progress: Progress) -> Iterator[MirrorFile]:
    """Yield every version of every tool, and the newest under the slug alone."""
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
    """Yield the list of all tools and that of each toolkit."""
    with progress("Mirroring lists", 1 + len(toolkits)) as advance:
        for toolkit in ("", *toolkits):
            yield from _list_files(view, toolkit)
            advance(1)


def _list_files(view: CatalogView, toolkit: str) -> Iterator[MirrorFile]:
    """Yield every page of a list, in each size.

    A list that fits on a page of the smaller size is the same in both.
    """
    for size in PAGE_SIZES:
        number, pages = 1, 1
        while number <= pages:
            found, total = view.list_tools(_list_params(toolkit, page := Page(number, size)))
            body, _ = render_list_page(*view.store.read_documents(found), page, total)
            twin = "" if size == PAGE_SIZES[0] else _list_path(toolkit, Page(number, PAGE_SIZES[0]))
            yield MirrorFile(_list_path(toolkit, page), join_body(body), twin)
            number, pages = number + 1, _count_pages(total, size)


def _list_path(toolkit: str, page: Page) -> str:
    return f"toolkits/{toolkit}.{_page_name(page)}" if toolkit else f"list/{_page_name(page)}"


def _page_name(page: Page) -> str:
    return f"{encode_cursor(*page).rstrip(b'=').decode()}.json"


def _list_params(toolkit: str, page: Page) -> ListParams:
    """Return the parameters of a list without filters, or with `toolkit_slug` alone."""
    return ListParams(
        None, Filters(toolkits=(toolkit,) if toolkit else None), VersionPins(), page, "slug", False
    )


def _count_pages(total: int, size: int) -> int:
    return -(-total // size)


def _toolkit_files(
    store: Store, selection: MirrorSelection, progress: Progress
) -> Iterator[MirrorFile]:
    """Yield slugs, toolkits, categories and MCP servers as the API lists them for a key."""
    key = _make_key(selection)
    api = Operations(store)
    yield MirrorFile("slugs.json", _join(api.list_slugs(key, b"")))
    toolkits = store.list_toolkits() if selection.toolkits is None else selection.toolkits
    with progress("Mirroring toolkits", len(toolkits)) as advance:
        for toolkit in toolkits:
            yield MirrorFile(f"toolkit/{toolkit}.json", _join(api.get_toolkit(key, toolkit, b"")))
            advance(1)
    yield from _page_files("toolkit_list", partial(api.list_toolkits, key))
    yield from _page_files("categories", partial(api.list_categories, key))
    yield from _page_files("servers", partial(api.list_servers, key))
    for server in McpRegistry(store, selection.toolkits).entries:
        name = server.name.replace("/", "~")
        yield MirrorFile(f"server/{name}.json", _join(api.get_server(key, server.name, None, b"")))
        path, body = (
            f"server/{name}~{server.version}.json",
            _join(api.get_server(key, server.name, server.version, b"")),
        )
        yield MirrorFile(path, body)
        yield MirrorFile(f"server/{name}~{LATEST}.json", body, same_as=path)


def _page_files(folder: str, list_page: Callable[[bytes], Answer]) -> Iterator[MirrorFile]:
    """Yield every page of a list of the API, in each size."""
    for size in PAGE_SIZES:
        number, has_more = 1, True
        while has_more:
            page = Page(number, size)
            body = _join(list_page(b"cursor=" + encode_cursor(*page)))
            twin = f"{folder}/{_page_name(Page(number, PAGE_SIZES[0]))}"
            same_as = "" if size == PAGE_SIZES[0] else twin
            yield MirrorFile(f"{folder}/{_page_name(page)}", body, same_as)
            value = orjson.loads(body)
            number += 1
            has_more = bool(value.get("next_cursor") or value.get("metadata", {}).get("nextCursor"))


def _make_key(selection: MirrorSelection) -> ApiKey:
    """Return a key that sees what is mirrored."""
    return ApiKey(
        id="mirror",
        project="",
        toolkits=selection.toolkits,
        sha256="",
        hint="",
        created="",
        lifetime=None,
    )


def _join(answer: Answer) -> bytes:
    return join_body(answer.body)
