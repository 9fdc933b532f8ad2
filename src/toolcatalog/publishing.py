"""A snapshot put in its place: written beside, renamed when it is complete, and pointed to last, in one step."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from toolcatalog import files, signatures, snapshot
from toolcatalog.snapshot import Stated

_PART = ".part"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build has made: the snapshot's digest, whether `current` names another one than before, and counts."""

    digest: str
    changed: bool
    toolkits: int
    tools: int
    tool_versions: int
    sessions: int
    pages: int


def built(out: Path, digest: str, *, changed: bool, pages: int) -> Built:
    """What stands in a build, by its manifest."""
    counts = orjson.loads((out / "snapshots" / digest / snapshot.MANIFEST).read_bytes())["counts"]
    return Built(digest=digest, changed=changed, pages=pages, **counts)


def tidy(out: Path) -> None:
    """Remove what a build that was killed has left behind."""
    files.clean(out)
    for left_over in (out / "snapshots").glob(f"*{_PART}"):
        files.remove(left_over)


def beside(out: Path) -> Path:
    """An empty folder for a new snapshot."""
    made = out / "snapshots" / f"new{_PART}"
    files.remove(made)
    made.mkdir(parents=True)
    return made


def place(made: Path, digest: str, stated: Mapping[str, Stated]) -> Path:
    """Give a complete snapshot its name. One that is there already stays, if it is whole."""
    folder, damaged = made.with_name(digest), made.with_name(f"{digest}.damaged{_PART}")
    if _is_whole(folder, {**stated, snapshot.MANIFEST: _stated(made / snapshot.MANIFEST)}):
        files.remove(made)
        return folder
    if folder.exists():  # it leaves under a name that the next build removes, should this one be killed
        folder.rename(damaged)
    made.rename(folder)
    files.remove(damaged)
    return folder


def point(out: Path, digest: str) -> bool:
    """Let `current` name a snapshot that is in its place; tell whether it named another one before."""
    current, target = out / "current", f"snapshots/{digest}"
    changed = not (current.is_symlink() and str(current.readlink()) == target)
    if changed:
        files.point(current, target)
    return changed


def is_left(out: Path, digest: str, stamp: str) -> bool:
    """Tell whether `current` names this snapshot, and its files are as they were when it was written."""
    current = out / "current"
    named = bool(digest) and current.is_symlink() and str(current.readlink()) == f"snapshots/{digest}"
    return named and stamp_of(out / "snapshots" / digest) == stamp


def stamp_of(folder: Path) -> str:
    """The state of all files of a snapshot; empty where it cannot be told."""
    try:
        listed = [
            *orjson.loads((folder / snapshot.MANIFEST).read_bytes())["files"],
            *orjson.loads((folder / snapshot.LISTING).read_bytes()),
        ]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return ""
    return signatures.stamp(folder, [snapshot.MANIFEST, *sorted(listed)])


def _is_whole(folder: Path, stated: Mapping[str, Stated]) -> bool:
    """Tell whether the folder already holds the very bytes."""
    return folder.is_dir() and all((folder / path).is_file() and _stated(folder / path) == said for path, said in stated.items())


def _stated(file: Path) -> Stated:
    return Stated(*files.digested(file))
