"""Folder of a mirror: write a tree of files, and make it the current one.

A mirror is a folder with one tree per snapshot and selection:

current                       a link to the current tree, replaced in one step
current.json                  the same for hosts without links:
                              {"snapshot": "<digest>", "tree": "snapshots/..."}
404.json                      the error envelope, for hosts that serve a file for missing paths
snapshots/<digest>-<choice>/  a tree: complete or absent; it never changes once it has its name
.mirror                       marks the folder as a mirror; locked by the process that writes to it

`mirror.tree` has the files of a tree.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from toolcatalog import encoding
from toolcatalog.errors import SnapshotError, UsageError, remedy
from toolcatalog.mirror.tree import (
    FOLDERS,
    INFO_FILE,
    MirrorFile,
    MirrorSelection,
    generate_files,
    render_not_found_body,
    tree_name,
)
from toolcatalog.progress import Progress
from toolcatalog.snapshot import gzip_fragments
from toolcatalog.store.store import Store
from toolcatalog.system import files

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
