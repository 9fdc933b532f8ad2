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

from toolcatalog import files, mirrored, snapshot
from toolcatalog.errors import UsageError, remedy
from toolcatalog.mirrored import Choice, File
from toolcatalog.progress import Track
from toolcatalog.store import Store

_TREES, _CURRENT, _POINTER, _MISSING, _LOCK = (
    "snapshots",
    "current",
    "current.json",
    "404.json",
    ".mirror",
)
_PART = ".part"
_NAME = re.compile(r"[0-9a-f]{64}-[0-9a-f]{8}")


class Mirrored(NamedTuple):
    """The tree in force now, relative to the mirror, and whether another one was before."""

    tree: str
    changed: bool


def mirror(store: Store, to: Path, choice: Choice, now: int, track: Track) -> Mirrored:
    """Bring a mirror to a snapshot; `now`: seconds since 1970. What was served before is kept,
    older trees go.

    A tree that is there already is read through, and made again where it is not whole. Raises
    UsageError where the folder cannot be used, and SnapshotError where the snapshot is damaged;
    then the tree in force stays.
    """
    with _guarded(to):
        _tidy(to)
        before = _in_force(to)
        tree = to / _TREES / mirrored.name_of(store, choice)
        if not (tree.is_dir() and _is_whole(tree, mirrored.tree(store, choice, track))):
            _make(tree, before, max(now, _latest(to) + 1), mirrored.tree(store, choice, track))
        changed = _point(to, tree.name, store.digest)
        _prune(to, tree, before)
    return Mirrored(f"{_TREES}/{tree.name}", changed)


@contextmanager
def _guarded(to: Path) -> Iterator[None]:
    """Alone with a folder that is a mirror or may become one, and with words for what may go wrong
    there.
    """
    try:
        theirs = [
            name
            for name in (_CURRENT, _TREES, _POINTER)
            if (to / name).exists() or (to / name).is_symlink()
        ]
        if theirs and not (to / _LOCK).exists():
            raise UsageError(
                f"{to} holds `{theirs[0]}`, and no mirror of ours made it: name an empty folder."
            )
        to.mkdir(parents=True, exist_ok=True)
        with files.alone(to / _LOCK) as got_it:
            if not got_it:
                raise UsageError(f"Another command is writing to {to}: try again when it is done.")
            yield
    except OSError as error:
        where = error.filename or to
        wrong = f"Cannot write {where} ({error.strerror})"
        raise UsageError(
            f"{wrong}: {remedy(error)}, or name another folder. What was served is untouched."
        ) from None


def _tidy(to: Path) -> None:
    """Remove what a command that was killed has left."""
    files.clean(to)
    for left_over in (to / _TREES).glob(f"*{_PART}"):
        files.remove(left_over)


def _in_force(to: Path) -> Path | None:
    """The tree that `current` names; None where there is none."""
    link = to / _CURRENT
    tree = to / _TREES / (link.readlink().name if link.is_symlink() else "")
    return tree if _NAME.fullmatch(tree.name) and tree.is_dir() else None


def _latest(to: Path) -> int:
    """When the newest tree was made.

    A host tells files apart by size and second of change. A new tree is always later than all
    before it, whatever the clock says, so two files of one name never look alike.
    """
    return max(
        (int(about.stat().st_mtime) for about in to.glob(f"{_TREES}/*/{mirrored.ABOUT}")), default=0
    )


def _is_whole(tree: Path, wanted: Iterable[File]) -> bool:
    return all(files.holds(f"{tree}/{file.path}", file.body) for file in wanted)


def _make(tree: Path, before: Path | None, when: int, wanted: Iterable[File]) -> None:
    """Make a tree beside, sharing what is as it was before, and give it its name when it is
    complete.
    """
    made, damaged = tree.with_name(f"new{_PART}"), tree.with_name(f"damaged{_PART}")
    for folder in mirrored.FOLDERS:
        (made / folder).mkdir(parents=True)
    for file in wanted:
        twins = [f"{made}/{file.twin}"] if file.twin else []
        files.lay(
            f"{made}/{file.path}",
            file.body,
            when,
            [*twins, f"{before}/{file.path}"] if before else twins,
        )
    if tree.exists():
        tree.rename(damaged)
    made.rename(tree)
    files.remove(damaged)


def _point(to: Path, tree: str, digest: str) -> bool:
    """Put a complete tree in force; tell whether another one was."""
    target, link = f"{_TREES}/{tree}", to / _CURRENT
    changed = not (link.is_symlink() and str(link.readlink()) == target)
    if changed:
        files.point(link, target)
    files.write_changed(to / _MISSING, mirrored.missing())
    files.write_changed(to / _POINTER, snapshot.dump({"snapshot": digest, "tree": target}))
    return changed


def _prune(to: Path, tree: Path, before: Path | None) -> None:
    """Remove all trees but this one and the one before it, which requests may still be at, and to
    which caches may come back.
    """
    others = [
        path
        for path in (to / _TREES).iterdir()
        if _NAME.fullmatch(path.name) and path not in (tree, before)
    ]
    if before in (None, tree):
        others = sorted(others, key=lambda path: (path / mirrored.ABOUT).stat().st_mtime)[:-1]
    for other in others:
        files.remove(other)
