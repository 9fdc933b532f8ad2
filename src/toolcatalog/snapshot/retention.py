"""Snapshot retention: list the snapshots of a build, roll back to one, prune old ones.

A snapshot is never changed. Switching replaces one symbolic link, under the lock that builds take
and after every byte was verified, so that no reader gets an incomplete snapshot. A snapshot is
renamed before it is removed, so that none is ever partly removed under its name. A server that has
it open can still read it, because the operating system keeps mapped files.
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

PRUNE_HINT_THRESHOLD = 10  # with more snapshots than this, pruning is suggested
SHORT_DIGEST_LENGTH = 12  # characters of a digest in messages, if that is unambiguous
INCOMPLETE, UNSUPPORTED = (
    "half",
    "other format",
)  # states; empty if no problem was detected
_UNCHANGED_HINT = "nothing was changed. Try"
_REBUILD_OR_SWITCH_HINT = "build again, or use another one."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSnapshot:
    """A snapshot in a build folder.

    `placed` is the time of its installation, in UTC; `size` is its bytes on disk. The counts are 0
    if the manifest is not readable. `state` is INCOMPLETE, UNSUPPORTED or empty, by the manifest
    and the sizes of the files alone; `wrong` is the message, empty if there is none.
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
    """The digest that `current` named before, perhaps empty, and the one it names now."""

    previous: str
    current: str


class PruneResult(NamedTuple):
    """The removed snapshots, and the number of removed leftovers of killed builds."""

    removed: Sequence[StoredSnapshot]
    leftover_count: int


def current_digest(build: Path) -> str:
    """Return the digest of the snapshot that `current` names; empty if there is none."""
    link = build / "current"
    name = link.readlink().name if link.is_symlink() else ""
    return name if encoding.is_digest(name) and link.exists() else ""


def list_digests(build: Path) -> list[str]:
    """Return the digests of all snapshots, complete or not."""
    folder = build / "snapshots"
    return (
        sorted(path.name for path in folder.iterdir() if encoding.is_digest(path.name))
        if folder.is_dir()
        else []
    )


def list_snapshots(build: Path) -> list[StoredSnapshot]:
    """Return all snapshots, the last installed one first; raises SnapshotError if there is none."""
    now, found = current_digest(build), _require_digests(build)
    return sorted(
        (_read_stored_snapshot(snapshot_folder(build, digest), now) for digest in found),
        key=lambda one: (one.placed, one.digest),
        reverse=True,
    )


def snapshot_folder(build: Path, digest: str) -> Path:
    """Return the folder of a snapshot."""
    return build / "snapshots" / digest


def resolve_digest(build: Path, prefix: str) -> str:
    """Return the digest that begins with `prefix`.

    Raises UsageError if none or several do, and SnapshotError if there is no snapshot at all.
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
    """Return prefixes of the digests, of the least length that is unambiguous: 12 or more."""
    length = next(
        length
        for length in range(SHORT_DIGEST_LENGTH, 65)
        if len({digest[:length] for digest in digests}) == len({*digests})
    )
    return [digest[:length] for digest in digests]


def verify_by_digest(build: Path, digest: str, progress: Progress = no_progress) -> list[str]:
    """Verify every byte of a snapshot and return a message per problem.

    This includes the compressed documents, which the digest does not cover.
    Raises SnapshotError if the manifest is missing or damaged, or of another format.
    """
    from toolcatalog.snapshot import compression  # noqa: PLC0415 - imports numpy

    folder = snapshot_folder(build, digest)
    verify.read_manifest(folder, hint=_REBUILD_OR_SWITCH_HINT)
    with progress("Verifying bytes", verify.count_bytes(folder)) as advance:
        wrong = verify.verify_snapshot(folder, advance)
    # what is compared with damaged documents would be reported twice
    return wrong or compression.verify_compressed_documents(folder)


def switch_current(build: Path, prefix: str, progress: Progress = no_progress) -> CurrentChange:
    """Make `current` name the snapshot whose digest begins with `prefix`, if it is valid.

    Raises UsageError as `resolve_digest` does and if another build is writing, and SnapshotError if
    the snapshot is invalid; `current` is unchanged then.
    """
    _require_digests(build)  # before anything is written, because there may be no build
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
    """Return the snapshots to remove: all except the current one and the `keep` newest others.

    Incomplete snapshots are always removed. Raises SnapshotError if none is current, because it is
    unclear then which one is needed.
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
    """Remove what `list_prunable` returns, and the leftovers of killed builds.

    Raises the errors of `list_prunable`, and UsageError if another build is writing.
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
    """Return the installation time of a snapshot.

    It is the modification time of the manifest, which is written last and does not change if
    another file is removed later.
    """
    manifest = folder / snapshot_format.MANIFEST
    return datetime.fromtimestamp(
        (manifest if manifest.is_file() else folder).lstat().st_mtime, UTC
    )


def _summarize_problems(problems: Sequence[str]) -> str:
    return problems[0] if len(problems) == 1 else f"{problems[0]}, and {len(problems) - 1:,} more"
