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
    installed: datetime
    current: bool
    toolkits: int = 0
    tools: int = 0
    tool_versions: int = 0
    sessions: int = 0
    size: int = 0
    state: str = ""
    problem: str = ""


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
    current, digests = current_digest(build), _require_digests(build)
    return sorted(
        (_read_stored_snapshot(snapshot_folder(build, digest), current) for digest in digests),
        key=lambda snapshot: (snapshot.installed, snapshot.digest),
        reverse=True,
    )


def snapshot_folder(build: Path, digest: str) -> Path:
    """Return the folder of a snapshot."""
    return build / "snapshots" / digest


def resolve_digest(build: Path, prefix: str) -> str:
    """Return the digest that begins with `prefix`.

    Raises UsageError if none or several do, and SnapshotError if there is no snapshot at all.
    """
    digests = _require_digests(build)
    matches = [digest for digest in digests if digest.startswith(prefix.lower())]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            f"Several snapshots start with {prefix!r}: {', '.join(shorten_digests(matches))}. Write"
            " more of its digest."
        )
    nearest = names.find_nearest(
        prefix[:SHORT_DIGEST_LENGTH],
        [digest[: min(len(prefix), SHORT_DIGEST_LENGTH)] for digest in digests],
    )
    similar = [digest for digest in digests if nearest and digest.startswith(nearest[0])]
    suggestion = (
        f"did you mean {shorten_digests(digests)[digests.index(similar[0])]}? " if similar else ""
    )
    raise UsageError(
        f"No snapshot in {build} starts with {prefix!r}: {suggestion}`toolcatalog snapshots list` "
        "shows all."
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
        problems = verify.verify_snapshot(folder, advance)
    # what is compared with damaged documents would be reported twice
    return problems or compression.verify_compressed_documents(folder)


def switch_current(build: Path, prefix: str, progress: Progress = no_progress) -> CurrentChange:
    """Make `current` name the snapshot whose digest begins with `prefix`, if it is valid.

    Raises UsageError as `resolve_digest` does and if another build is writing, and SnapshotError if
    the snapshot is invalid; `current` is unchanged then.
    """
    _require_digests(build)  # before anything is written, because there may be no build
    with locks.lock_build(build, _UNCHANGED_HINT):
        previous, digest = current_digest(build), resolve_digest(build, prefix)
        problems = verify_by_digest(build, digest, progress)
        if problems:
            raise SnapshotError(
                f"Snapshot {digest} is incomplete or damaged ({_summarize_problems(problems)}), "
                f"and nothing was"
                f" changed: {_REBUILD_OR_SWITCH_HINT}"
            )
        directory.set_current(build, digest)
    return CurrentChange(previous, digest)


def list_prunable(build: Path, keep_count: int) -> list[StoredSnapshot]:
    """Return the snapshots to remove: all but the current one and the `keep_count` newest others.

    Incomplete snapshots are always removed. Raises SnapshotError if none is current, because it is
    unclear then which one is needed.
    """
    snapshots = list_snapshots(build)
    if not any(snapshot.current for snapshot in snapshots):
        raise SnapshotError(
            f"{build / 'current'} names no snapshot, so none is removed: `toolcatalog "
            "snapshots use` one, or build again."
        )
    others = [snapshot for snapshot in snapshots if not snapshot.current]
    newest = [snapshot for snapshot in others if snapshot.state != INCOMPLETE][:keep_count]
    return [snapshot for snapshot in others if snapshot not in newest]


def prune_snapshots(build: Path, keep_count: int) -> PruneResult:
    """Remove what `list_prunable` returns, and the leftovers of killed builds.

    Raises the errors of `list_prunable`, and UsageError if another build is writing.
    """
    _require_digests(build)
    with locks.lock_build(build, _UNCHANGED_HINT):
        prunable = list_prunable(build, keep_count)
        leftover_count = len(directory.find_leftovers(build))
        directory.remove_leftovers(build)
        for snapshot in prunable:
            directory.remove_snapshot(build, snapshot.digest)
    return PruneResult(prunable, leftover_count)


def _require_digests(build: Path) -> list[str]:
    digests = list_digests(build)
    if not digests:
        raise SnapshotError(f"There is no finished build in {build}: {REBUILD_HINT}")
    return digests


def _read_stored_snapshot(folder: Path, current: str) -> StoredSnapshot:
    state = problem = ""
    counts: dict[str, int] = {}
    try:
        manifest = verify.read_manifest(folder, hint=_REBUILD_OR_SWITCH_HINT)
        counts = dict(manifest.counts)
        missing = [*verify.check_file_sizes(folder, verify.list_files(folder, manifest))]
        if missing:
            raise SnapshotError(
                f"Snapshot {folder.name} is incomplete or damaged ({_summarize_problems(missing)}):"
                f" {_REBUILD_OR_SWITCH_HINT}"
            )
    except SnapshotError as error:
        state, problem = (
            UNSUPPORTED if isinstance(error, UnsupportedFormat) else INCOMPLETE,
            str(error),
        )
    return StoredSnapshot(
        digest=folder.name,
        installed=_install_time(folder),
        current=folder.name == current,
        size=files.measure_size(folder),
        state=state,
        problem=problem,
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
