"""A snapshot put in its place: written beside, renamed when it is complete, and pointed to last, in
one step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from toolcatalog import files, signatures, snapshot
from toolcatalog.errors import ShrunkCatalog
from toolcatalog.snapshot import Stated

# of a hundred tools that a build may be without: whatever is wanted, and what happens from day to
# day
ALL, FEW = 100, 10
_PART = ".part"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build has made: the snapshot's digest, whether `current` names another one than
    before, and counts. `kept`: pages in the site that were made elsewhere and are no longer made.
    """

    digest: str
    changed: bool
    toolkits: int
    tools: int
    tool_versions: int
    sessions: int
    pages: int
    kept: int = 0


def built(out: Path, digest: str, *, changed: bool, pages: int, kept: int = 0) -> Built:
    """What stands in a build, by its manifest."""
    counts = orjson.loads((out / "snapshots" / digest / snapshot.MANIFEST).read_bytes())["counts"]
    return Built(digest=digest, changed=changed, pages=pages, kept=kept, **counts)


def tidy(out: Path) -> None:
    """Remove what a build that was killed has left behind."""
    files.clean(out)
    for left_over in left_overs(out):
        files.remove(left_over)


def left_overs(out: Path) -> list[Path]:
    """Snapshots that were never completed, or never removed to their end."""
    return [*(out / "snapshots").glob(f"*{_PART}")]


def remove(out: Path, digest: str) -> None:
    """Remove a snapshot. It leaves its name first, so that it is never half there; who has it open
    goes on reading it.
    """
    folder = out / "snapshots" / digest
    gone = folder.with_name(f"{digest}.removed{_PART}")
    folder.rename(gone)
    files.remove(gone)


def keep_most(out: Path, tools: int, may_lose: int) -> None:
    """Raise ShrunkCatalog where a snapshot of so many tools is without more than `may_lose` of a
    hundred of those in force.
    """
    before = _tools(out)
    if 100 * (before - tools) > may_lose * before:
        gone = f"The catalog has {tools:,} tools, and the build in {out} serves {before:,}: more than {may_lose} % of them would be gone"
        raise ShrunkCatalog(
            f"{gone}, so nothing was published. Mend the catalog, or build with "
            "--allow-shrink if it is meant."
        )


def _tools(out: Path) -> int:
    """How many tools the snapshot in force has, whatever its format; 0 where there is none, or its
    manifest is damaged.
    """
    try:
        manifest = orjson.loads((out / "current" / snapshot.MANIFEST).read_bytes())
        return int(manifest["counts"]["tools"]) if snapshot.is_sealed(manifest) else 0
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0


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
    # it leaves under a name that the next build removes, should this one be killed
    if folder.exists():
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
    """Tell whether `current` names this snapshot, and its files are as they were when it was
    written.
    """
    current = out / "current"
    named = (
        bool(digest) and current.is_symlink() and str(current.readlink()) == f"snapshots/{digest}"
    )
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
    return folder.is_dir() and all(
        (folder / path).is_file() and _stated(folder / path) == said
        for path, said in stated.items()
    )


def _stated(file: Path) -> Stated:
    return Stated(*files.digested(file))
