"""Snapshot retention: list the snapshots of a build, roll back to one, prune old ones.

A snapshot is never changed. To use another is to move one link, under the lock that builds take and
after every byte has been verified, so that nobody is ever sent to half of anything. What is removed
leaves its name first, so that it is never half there; a server that has it open keeps reading it,
because the operating system keeps a file as long as it is mapped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from toolcatalog import encoding, names
from toolcatalog.errors import REBUILD_HINT, SnapshotError, UsageError
from toolcatalog.progress import Progress, no_progress
from toolcatalog.snapshot import directory, locks, verify
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.verify import UnsupportedFormat
from toolcatalog.system import files

PRUNE_HINT_THRESHOLD = 10  # snapshots: with more it is time to prune
SHORT_DIGEST_LENGTH = 12  # characters of a digest that people are shown, where they are enough
INCOMPLETE, UNSUPPORTED = (
    "half",
    "other format",
)  # states; the third is none: nothing wrong can be seen
_UNCHANGED_HINT = "nothing was changed. Try"
_REBUILD_OR_SWITCH_HINT = "build again, or use another one."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSnapshot:
    """A snapshot as it lies there. `placed`: when it was put there, UTC; `size`: its bytes on disk;
    numbers are 0 where it is not readable.

    `state` is HALF, FOREIGN or empty, by the sizes of its files alone; `wrong` says in a sentence
    why, empty where nothing is.
    """

    digest: str
    placed: datetime
    current: bool
    toolkits: int = 0
    tools: int = 0
    tool_versions: int = 0
    sessions: int = 0
    size: int = 0
    state: str = ""
    wrong: str = ""


class CurrentChange(NamedTuple):
    """The digests that `current` named before, perhaps none, and names now."""

    previous: str
    current: str


class PruneResult(NamedTuple):
    """What was removed, and how many left-overs of killed builds."""

    removed: Sequence[StoredSnapshot]
    leftover_count: int


def current_digest(build: Path) -> str:
    """The digest of the snapshot that `current` names; empty where it names none that is there."""
    link = build / "current"
    name = link.readlink().name if link.is_symlink() else ""
    return name if encoding.is_digest(name) and link.exists() else ""


def list_digests(build: Path) -> list[str]:
    """The names of all snapshots, whole or not, in no order that matters."""
    folder = build / "snapshots"
    return (
        sorted(path.name for path in folder.iterdir() if encoding.is_digest(path.name))
        if folder.is_dir()
        else []
    )


def list_snapshots(build: Path) -> list[StoredSnapshot]:
    """All snapshots, the one that was put there last first. Raises SnapshotError where there is
    none.
    """
    now, found = current_digest(build), _require_digests(build)
    return sorted(
        (_read_stored_snapshot(snapshot_folder(build, digest), now) for digest in found),
        key=lambda one: (one.placed, one.digest),
        reverse=True,
    )


def snapshot_folder(build: Path, digest: str) -> Path:
    """Where a snapshot lies."""
    return build / "snapshots" / digest


def resolve_digest(build: Path, prefix: str) -> str:
    """The digest that begins with a name. Raises UsageError where none does or several do,
    SnapshotError where there is none at all.
    """
    every = _require_digests(build)
    found = [digest for digest in every if digest.startswith(prefix.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"Several snapshots begin with {prefix!r}: {', '.join(shorten_digests(found))}. Write "
            "more of its digest."
        )
    near = names.find_nearest(
        prefix[:SHORT_DIGEST_LENGTH],
        [digest[: min(len(prefix), SHORT_DIGEST_LENGTH)] for digest in every],
    )
    told = [digest for digest in every if near and digest.startswith(near[0])]
    meant = f"did you mean {shorten_digests(every)[every.index(told[0])]}? " if told else ""
    raise UsageError(
        f"No snapshot in {build} begins with {prefix!r}: {meant}`toolcatalog snapshots list` "
        "shows what there is."
    )


def shorten_digests(digests: Sequence[str]) -> list[str]:
    """Of each digest as many characters as tell it from the others, 12 at least."""
    length = next(
        length
        for length in range(SHORT_DIGEST_LENGTH, 65)
        if len({digest[:length] for digest in digests}) == len({*digests})
    )
    return [digest[:length] for digest in digests]


def verify_by_digest(build: Path, digest: str, progress: Progress = no_progress) -> list[str]:
    """What is wrong with a snapshot, every byte of it verified. Raises SnapshotError where it is
    half, or of another format.
    """
    folder = snapshot_folder(build, digest)
    verify.read_manifest(folder, hint=_REBUILD_OR_SWITCH_HINT)
    with progress("Verifying bytes", verify.count_bytes(folder)) as advance:
        return verify.verify_snapshot(folder, advance)


def switch_current(build: Path, prefix: str, progress: Progress = no_progress) -> CurrentChange:
    """Let `current` name the snapshot whose digest begins so, if all of it is whole.

    Raises UsageError as `find` does and where another build is writing, SnapshotError where the
    snapshot is not whole: nothing changes.
    """
    _require_digests(build)  # before anything is written: there may be no build
    with locks.lock_build(build, _UNCHANGED_HINT):
        was, now = current_digest(build), resolve_digest(build, prefix)
        wrong = verify_by_digest(build, now, progress)
        if wrong:
            raise SnapshotError(
                f"Snapshot {now} is not whole ({_summarize_problems(wrong)}), and nothing was changed: {_REBUILD_OR_SWITCH_HINT}"
            )
        directory.set_current(build, now)
    return CurrentChange(was, now)


def list_prunable(build: Path, keep: int) -> list[StoredSnapshot]:
    """The snapshots that can go: all but the one in force and so many others, the newest; and each
    that is half there.

    Raises SnapshotError where none is in force: it cannot be told then what is wanted.
    """
    every = list_snapshots(build)
    if not any(one.current for one in every):
        raise SnapshotError(
            f"{build / 'current'} names no snapshot, so none is removed: `toolcatalog "
            "snapshots use` one, or build again."
        )
    others = [one for one in every if not one.current]
    kept = [one for one in others if one.state != INCOMPLETE][:keep]
    return [one for one in others if one not in kept]


def prune_snapshots(build: Path, keep: int) -> PruneResult:
    """Remove what `spare` tells, and what killed builds have left. Raises what that does, and
    UsageError where another build is writing.
    """
    _require_digests(build)
    with locks.lock_build(build, _UNCHANGED_HINT):
        gone = list_prunable(build, keep)
        left_over = len(directory.find_leftovers(build))
        directory.remove_leftovers(build)
        for one in gone:
            directory.remove_snapshot(build, one.digest)
    return PruneResult(gone, left_over)


def _require_digests(build: Path) -> list[str]:
    found = list_digests(build)
    if not found:
        raise SnapshotError(f"There is no finished build in {build}: {REBUILD_HINT}")
    return found


def _read_stored_snapshot(folder: Path, current: str) -> StoredSnapshot:
    state = wrong = ""
    counts: dict[str, int] = {}
    try:
        manifest = verify.read_manifest(folder, hint=_REBUILD_OR_SWITCH_HINT)
        counts = dict(manifest.counts)
        missing = [*verify.check_file_sizes(folder, verify.list_files(folder, manifest))]
        if missing:
            raise SnapshotError(
                f"Snapshot {folder.name} is not whole ({_summarize_problems(missing)}): {_REBUILD_OR_SWITCH_HINT}"
            )
    except SnapshotError as error:
        state, wrong = (
            UNSUPPORTED if isinstance(error, UnsupportedFormat) else INCOMPLETE,
            str(error),
        )
    return StoredSnapshot(
        digest=folder.name,
        placed=_install_time(folder),
        current=folder.name == current,
        size=files.measure_size(folder),
        state=state,
        wrong=wrong,
        **counts,
    )


def _install_time(folder: Path) -> datetime:
    """When a snapshot was put there: its manifest is written last, and taking a file away later
    does not change the time of that.
    """
    manifest = folder / snapshot_format.MANIFEST
    return datetime.fromtimestamp(
        (manifest if manifest.is_file() else folder).lstat().st_mtime, UTC
    )


def _summarize_problems(problems: Sequence[str]) -> str:
    return problems[0] if len(problems) == 1 else f"{problems[0]}, and {len(problems) - 1:,} more"
