"""Static mirror: the API's responses as files for any static host.

A mirror is a folder with one tree per snapshot and selection:

current                       a link to the current tree, replaced in one step
current.json                  the same for hosts without links:
                              {"snapshot": "<digest>", "tree": "snapshots/..."}
404.json                      the error envelope, for hosts that serve a file for missing paths
snapshots/<digest>-<choice>/  a tree: complete or absent; it never changes once it has its name
.mirror                       marks the folder as a mirror; locked by the process that writes to it

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

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolcatalog import encoding, names
from toolcatalog.errors import SnapshotError, UsageError, remedy
from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.progress import Progress
from toolcatalog.server.bodies import join_body
from toolcatalog.server.catalog_view import CatalogView
from toolcatalog.server.error_responses import ErrorDetail, render_envelope
from toolcatalog.server.mcp_registry import McpRegistry
from toolcatalog.server.operations import Operations, render_list_page
from toolcatalog.server.query_params import (
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
    ListParams,
    Page,
    encode_cursor,
)
from toolcatalog.server.responses import Answer
from toolcatalog.snapshot import gzip_fragments
from toolcatalog.store.store import Filters, Store, VersionPins
from toolcatalog.system import files
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


_TREES_FOLDER, _CURRENT_LINK, _POINTER_FILE, _NOT_FOUND_FILE, _LOCK_FILE = (
    "snapshots",
    "current",
    "current.json",
    "404.json",
    ".mirror",
)
_PARTIAL_SUFFIX, _COMPRESSED_SUFFIX = ".part", ".gz"
# no name begins with a dot, so no path leads out of the tree
_SAFE_PATH = re.compile("(?:[A-Za-z0-9_-][A-Za-z0-9_.~-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.~-]*")
_TREE_NAME = re.compile(r"[0-9a-f]{64}-[0-9a-f]{8}")


class MirrorResult(NamedTuple):
    """The current tree, relative to the mirror, and whether it has changed."""

    tree: str
    changed: bool


def update_mirror(
    store: Store, folder: Path, selection: MirrorSelection, timestamp: int, progress: Progress
) -> MirrorResult:
    """Update a mirror to a snapshot.

    The previous tree is kept and older ones are removed. A tree that already exists is read, and
    written again if it is incomplete. `timestamp` is in seconds since 1970. Raises UsageError if
    the folder cannot be used, and SnapshotError if the snapshot is damaged; the current tree then
    stays.
    """
    with _lock_mirror(folder):
        _remove_leftovers(folder)
        before = _current_tree(folder)
        tree = folder / _TREES_FOLDER / tree_name(store, selection)
        if not (tree.is_dir() and _is_complete(tree, generate_files(store, selection, progress))):
            _write_tree(
                tree,
                before,
                max(timestamp, _newest_timestamp(folder) + 1),
                generate_files(store, selection, progress),
            )
        changed = _set_current(folder, tree.name, store.digest)
        _prune_trees(folder, tree, before)
    return MirrorResult(f"{_TREES_FOLDER}/{tree.name}", changed)


@contextmanager
def _lock_mirror(folder: Path) -> Iterator[None]:
    """Lock a folder that is a mirror or may become one.

    Raises UsageError for a folder that cannot be used, and for any OSError inside the block.
    """
    try:
        theirs = [
            name
            for name in (_CURRENT_LINK, _TREES_FOLDER, _POINTER_FILE)
            if (folder / name).exists() or (folder / name).is_symlink()
        ]
        if theirs and not (folder / _LOCK_FILE).exists():
            raise UsageError(
                f"{folder} contains `{theirs[0]}`, which no mirror created: name an empty folder."
            )
        folder.mkdir(parents=True, exist_ok=True)
        with files.lock(folder / _LOCK_FILE) as got_it:
            if not got_it:
                raise UsageError(
                    f"Another command is writing to {folder}: try again when it is done."
                )
            yield
    except OSError as error:
        where = error.filename or folder
        wrong = f"Cannot write {where} ({error.strerror})"
        raise UsageError(
            f"{wrong}: {remedy(error)}, or name another folder. The current mirror is unchanged."
        ) from None


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of a command that was killed."""
    files.remove_temporary_files(folder)
    for left_over in (folder / _TREES_FOLDER).glob(f"*{_PARTIAL_SUFFIX}"):
        files.remove(left_over)


def _current_tree(folder: Path) -> Path | None:
    """Return the tree that `current` names; None if there is none."""
    link = folder / _CURRENT_LINK
    tree = folder / _TREES_FOLDER / (link.readlink().name if link.is_symlink() else "")
    return tree if _TREE_NAME.fullmatch(tree.name) and tree.is_dir() else None


def _newest_timestamp(folder: Path) -> int:
    """Return the modification time of the newest tree, in seconds; 0 if there is none.

    A host distinguishes files by their size and second of change. A new tree is always later than
    all before it, whatever the clock says, so two files with the same name never look equal.
    """
    return max(
        (int(about.stat().st_mtime) for about in folder.glob(f"{_TREES_FOLDER}/*/{INFO_FILE}")),
        default=0,
    )


def _is_complete(tree: Path, expected: Iterable[MirrorFile]) -> bool:
    return all(
        files.has_content(f"{tree}/{file.path}", file.body)
        and _read_compressed(f"{tree}/{file.path}", file.body)
        for file in expected
    )


def _read_compressed(path: str, body: bytes) -> bytes | None:
    """Return the compressed form of a file; None if it is missing or has another content."""
    try:
        data = files.read_plain_file(Path(path + _COMPRESSED_SUFFIX))
    except OSError:
        return None
    return data if gzip_fragments.is_gzip_of(data, body) else None


def _write_tree(
    tree: Path, previous: Path | None, timestamp: int, new_files: Iterable[MirrorFile]
) -> None:
    """Write a tree under a temporary name, and rename it when it is complete.

    Unchanged files are linked from the previous tree.
    """
    made, damaged = (
        tree.with_name(f"new{_PARTIAL_SUFFIX}"),
        tree.with_name(f"damaged{_PARTIAL_SUFFIX}"),
    )
    for folder in FOLDERS:
        (made / folder).mkdir(parents=True)
    for file in new_files:
        if not _SAFE_PATH.fullmatch(file.path):  # names of a snapshot that was not checked
            raise SnapshotError(
                f"A name in the snapshot is unsafe as the path of a file: {file.path[:80]!r}"
            )
        candidates = [f"{made}/{file.same_as}"] if file.same_as else []
        candidates += [f"{previous}/{file.path}"] if previous else []
        _write_file(f"{made}/{file.path}", file.body, timestamp, candidates)
    if tree.exists():
        tree.rename(damaged)
    made.rename(tree)
    files.remove(damaged)


def _write_file(path: str, body: bytes, timestamp: int, candidates: Sequence[str]) -> None:
    """Write a file and its compressed form, each as a link to that of a candidate if it is equal.

    What a candidate has is decompressed and compared, which takes a quarter of the time.
    """
    files.link_or_write(path, body, timestamp, candidates)
    copies = (_read_compressed(candidate, body) for candidate in candidates)
    compressed = next(filter(None, copies), None) or gzip_fragments.compress_gzip(body)
    files.link_or_write(
        path + _COMPRESSED_SUFFIX,
        compressed,
        timestamp,
        [candidate + _COMPRESSED_SUFFIX for candidate in candidates],
    )


def _set_current(folder: Path, tree: str, digest: str) -> bool:
    """Make a complete tree the current one; return whether another one was."""
    target, link = f"{_TREES_FOLDER}/{tree}", folder / _CURRENT_LINK
    changed = not (link.is_symlink() and str(link.readlink()) == target)
    if changed:
        files.replace_symlink(link, target)
    files.write_if_changed(folder / _NOT_FOUND_FILE, render_not_found_body())
    files.write_if_changed(
        folder / _POINTER_FILE, encoding.dump_json({"snapshot": digest, "tree": target})
    )
    return changed


def _prune_trees(folder: Path, tree: Path, previous: Path | None) -> None:
    """Remove all trees but this one and the previous one.

    Requests may still read the previous tree, and caches may return to it.
    """
    others = [
        path
        for path in (folder / _TREES_FOLDER).iterdir()
        if _TREE_NAME.fullmatch(path.name) and path not in (tree, previous)
    ]
    if previous in (None, tree):
        others = sorted(others, key=lambda path: (path / INFO_FILE).stat().st_mtime)[:-1]
    for other in others:
        files.remove(other)
