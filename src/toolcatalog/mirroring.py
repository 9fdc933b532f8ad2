"""A mirror on disk: trees of files for a static host, each made beside the one in force and pointed
to when it is complete.

current                       a link to the tree in force, moved in one step current.json
the same for hosts without links: {"snapshot": "<digest>", "tree": "snapshots/..."} 404.json
the error envelope, for hosts that take a file for what is not there snapshots/<digest>-<choice>/  a
tree (see `mirrored`): complete, or not there; it never changes once it has its name .mirror
says that the folder is a mirror, and is locked by who writes to it
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from toolcatalog import encoding, mirrored
from toolcatalog.errors import UsageError, remedy
from toolcatalog.mirrored import MirrorFile, MirrorSelection
from toolcatalog.progress import Progress
from toolcatalog.store.store import Store
from toolcatalog.system import files

_TREES_FOLDER, _CURRENT_LINK, _POINTER_FILE, _NOT_FOUND_FILE, _LOCK_FILE = (
    "snapshots",
    "current",
    "current.json",
    "404.json",
    ".mirror",
)
_PARTIAL_SUFFIX = ".part"
_TREE_NAME = re.compile(r"[0-9a-f]{64}-[0-9a-f]{8}")


class MirrorResult(NamedTuple):
    """The tree in force now, relative to the mirror, and whether another one was before."""

    tree: str
    changed: bool


def update_mirror(
    store: Store, folder: Path, selection: MirrorSelection, timestamp: int, progress: Progress
) -> MirrorResult:
    """Bring a mirror to a snapshot; `now`: seconds since 1970. What was served before is kept,
    older trees go.

    A tree that is there already is read through, and made again where it is not whole. Raises
    UsageError where the folder cannot be used, and SnapshotError where the snapshot is damaged;
    then the tree in force stays.
    """
    with _lock_mirror(folder):
        _remove_leftovers(folder)
        before = _current_tree(folder)
        tree = folder / _TREES_FOLDER / mirrored.tree_name(store, selection)
        if not (
            tree.is_dir()
            and _is_complete(tree, mirrored.generate_files(store, selection, progress))
        ):
            _write_tree(
                tree,
                before,
                max(timestamp, _newest_timestamp(folder) + 1),
                mirrored.generate_files(store, selection, progress),
            )
        changed = _set_current(folder, tree.name, store.digest)
        _prune_trees(folder, tree, before)
    return MirrorResult(f"{_TREES_FOLDER}/{tree.name}", changed)


@contextmanager
def _lock_mirror(folder: Path) -> Iterator[None]:
    """Alone with a folder that is a mirror or may become one, and with words for what may go wrong
    there.
    """
    try:
        theirs = [
            name
            for name in (_CURRENT_LINK, _TREES_FOLDER, _POINTER_FILE)
            if (folder / name).exists() or (folder / name).is_symlink()
        ]
        if theirs and not (folder / _LOCK_FILE).exists():
            raise UsageError(
                f"{folder} holds `{theirs[0]}`, and no mirror of ours made it: name an empty folder."
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
            f"{wrong}: {remedy(error)}, or name another folder. What was served is untouched."
        ) from None


def _remove_leftovers(folder: Path) -> None:
    """Remove what a command that was killed has left."""
    files.remove_temporary_files(folder)
    for left_over in (folder / _TREES_FOLDER).glob(f"*{_PARTIAL_SUFFIX}"):
        files.remove(left_over)


def _current_tree(folder: Path) -> Path | None:
    """The tree that `current` names; None where there is none."""
    link = folder / _CURRENT_LINK
    tree = folder / _TREES_FOLDER / (link.readlink().name if link.is_symlink() else "")
    return tree if _TREE_NAME.fullmatch(tree.name) and tree.is_dir() else None


def _newest_timestamp(folder: Path) -> int:
    """When the newest tree was made.

    A host tells files apart by size and second of change. A new tree is always later than all
    before it, whatever the clock says, so two files of one name never look alike.
    """
    return max(
        (
            int(about.stat().st_mtime)
            for about in folder.glob(f"{_TREES_FOLDER}/*/{mirrored.INFO_FILE}")
        ),
        default=0,
    )


def _is_complete(tree: Path, expected: Iterable[MirrorFile]) -> bool:
    return all(files.has_content(f"{tree}/{file.path}", file.body) for file in expected)


def _write_tree(
    tree: Path, previous: Path | None, timestamp: int, new_files: Iterable[MirrorFile]
) -> None:
    """Make a tree beside, sharing what is as it was before, and give it its name when it is
    complete.
    """
    made, damaged = (
        tree.with_name(f"new{_PARTIAL_SUFFIX}"),
        tree.with_name(f"damaged{_PARTIAL_SUFFIX}"),
    )
    for folder in mirrored.FOLDERS:
        (made / folder).mkdir(parents=True)
    for file in new_files:
        twins = [f"{made}/{file.same_as}"] if file.same_as else []
        files.link_or_write(
            f"{made}/{file.path}",
            file.body,
            timestamp,
            [*twins, f"{previous}/{file.path}"] if previous else twins,
        )
    if tree.exists():
        tree.rename(damaged)
    made.rename(tree)
    files.remove(damaged)


def _set_current(folder: Path, tree: str, digest: str) -> bool:
    """Put a complete tree in force; tell whether another one was."""
    target, link = f"{_TREES_FOLDER}/{tree}", folder / _CURRENT_LINK
    changed = not (link.is_symlink() and str(link.readlink()) == target)
    if changed:
        files.replace_symlink(link, target)
    files.write_if_changed(folder / _NOT_FOUND_FILE, mirrored.render_not_found_body())
    files.write_if_changed(
        folder / _POINTER_FILE, encoding.dump_json({"snapshot": digest, "tree": target})
    )
    return changed


def _prune_trees(folder: Path, tree: Path, previous: Path | None) -> None:
    """Remove all trees but this one and the one before it, which requests may still be at, and to
    which caches may come back.
    """
    others = [
        path
        for path in (folder / _TREES_FOLDER).iterdir()
        if _TREE_NAME.fullmatch(path.name) and path not in (tree, previous)
    ]
    if previous in (None, tree):
        others = sorted(others, key=lambda path: (path / mirrored.INFO_FILE).stat().st_mtime)[:-1]
    for other in others:
        files.remove(other)
