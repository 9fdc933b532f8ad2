"""The snapshots that a build's folder holds: which there are, which one is in force, and which can
go.

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

from toolcatalog import files, guarding, names, publishing, snapshot, verifying
from toolcatalog.errors import MEND, SnapshotError, UsageError
from toolcatalog.progress import Track, quietly
from toolcatalog.verifying import OtherFormat

MANY = 10  # snapshots: with more it is time to prune
SHORT = 12  # characters of a digest that people are shown, where they are enough
HALF, FOREIGN = "half", "other format"  # states; the third is none: nothing wrong can be seen
_STILL = "nothing was changed. Try"
_MEND = "build again, or use another one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
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


class Moved(NamedTuple):
    """The digests that `current` named before, perhaps none, and names now."""

    was: str
    now: str


class Pruned(NamedTuple):
    """What was removed, and how many left-overs of killed builds."""

    removed: Sequence[Held]
    left_over: int


def current(build: Path) -> str:
    """The digest of the snapshot that `current` names; empty where it names none that is there."""
    link = build / "current"
    name = link.readlink().name if link.is_symlink() else ""
    return name if snapshot.is_digest(name) and link.exists() else ""


def digests(build: Path) -> list[str]:
    """The names of all snapshots, whole or not, in no order that matters."""
    folder = build / "snapshots"
    return (
        sorted(path.name for path in folder.iterdir() if snapshot.is_digest(path.name))
        if folder.is_dir()
        else []
    )


def held(build: Path) -> list[Held]:
    """All snapshots, the one that was put there last first. Raises SnapshotError where there is
    none.
    """
    now, found = current(build), _present(build)
    return sorted(
        (_held(folder_of(build, digest), now) for digest in found),
        key=lambda one: (one.placed, one.digest),
        reverse=True,
    )


def folder_of(build: Path, digest: str) -> Path:
    """Where a snapshot lies."""
    return build / "snapshots" / digest


def find(build: Path, name: str) -> str:
    """The digest that begins with a name. Raises UsageError where none does or several do,
    SnapshotError where there is none at all.
    """
    every = _present(build)
    found = [digest for digest in every if digest.startswith(name.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"Several snapshots begin with {name!r}: {', '.join(shortened(found))}. Write "
            "more of its digest."
        )
    near = names.nearest(name[:SHORT], [digest[: min(len(name), SHORT)] for digest in every])
    told = [digest for digest in every if near and digest.startswith(near[0])]
    meant = f"did you mean {shortened(every)[every.index(told[0])]}? " if told else ""
    raise UsageError(
        f"No snapshot in {build} begins with {name!r}: {meant}`toolcatalog snapshots list` "
        "shows what there is."
    )


def shortened(every: Sequence[str]) -> list[str]:
    """Of each digest as many characters as tell it from the others, 12 at least."""
    length = next(
        length
        for length in range(SHORT, 65)
        if len({digest[:length] for digest in every}) == len({*every})
    )
    return [digest[:length] for digest in every]


def verify(build: Path, digest: str, track: Track = quietly) -> list[str]:
    """What is wrong with a snapshot, every byte of it verified. Raises SnapshotError where it is
    half, or of another format.
    """
    folder = folder_of(build, digest)
    verifying.read(folder, mend=_MEND)
    with track("Verifying bytes", verifying.size(folder)) as advance:
        return verifying.verify(folder, advance)


def use(build: Path, name: str, track: Track = quietly) -> Moved:
    """Let `current` name the snapshot whose digest begins so, if all of it is whole.

    Raises UsageError as `find` does and where another build is writing, SnapshotError where the
    snapshot is not whole: nothing changes.
    """
    _present(build)  # before anything is written: there may be no build
    with guarding.guarded(build, _STILL):
        was, now = current(build), find(build, name)
        wrong = verify(build, now, track)
        if wrong:
            raise SnapshotError(
                f"Snapshot {now} is not whole ({_counted(wrong)}), and nothing was changed: {_MEND}"
            )
        publishing.point(build, now)
    return Moved(was, now)


def spare(build: Path, keep: int) -> list[Held]:
    """The snapshots that can go: all but the one in force and so many others, the newest; and each
    that is half there.

    Raises SnapshotError where none is in force: it cannot be told then what is wanted.
    """
    every = held(build)
    if not any(one.current for one in every):
        raise SnapshotError(
            f"{build / 'current'} names no snapshot, so none is removed: `toolcatalog "
            "snapshots use` one, or build again."
        )
    others = [one for one in every if not one.current]
    kept = [one for one in others if one.state != HALF][:keep]
    return [one for one in others if one not in kept]


def prune(build: Path, keep: int) -> Pruned:
    """Remove what `spare` tells, and what killed builds have left. Raises what that does, and
    UsageError where another build is writing.
    """
    _present(build)
    with guarding.guarded(build, _STILL):
        gone = spare(build, keep)
        left_over = len(publishing.left_overs(build))
        publishing.tidy(build)
        for one in gone:
            publishing.remove(build, one.digest)
    return Pruned(gone, left_over)


def _present(build: Path) -> list[str]:
    found = digests(build)
    if not found:
        raise SnapshotError(f"There is no finished build in {build}: {MEND}")
    return found


def _held(folder: Path, now: str) -> Held:
    state = wrong = ""
    counts: dict[str, int] = {}
    try:
        manifest = verifying.read(folder, mend=_MEND)
        counts = dict(manifest.counts)
        missing = [*verifying.missing(folder, verifying.contents(folder, manifest))]
        if missing:
            raise SnapshotError(
                f"Snapshot {folder.name} is not whole ({_counted(missing)}): {_MEND}"
            )
    except SnapshotError as error:
        state, wrong = FOREIGN if isinstance(error, OtherFormat) else HALF, str(error)
    return Held(
        digest=folder.name,
        placed=_placed(folder),
        current=folder.name == now,
        size=files.bytes_below(folder),
        state=state,
        wrong=wrong,
        **counts,
    )


def _placed(folder: Path) -> datetime:
    """When a snapshot was put there: its manifest is written last, and taking a file away later
    does not change the time of that.
    """
    manifest = folder / snapshot.MANIFEST
    return datetime.fromtimestamp(
        (manifest if manifest.is_file() else folder).lstat().st_mtime, UTC
    )


def _counted(wrong: Sequence[str]) -> str:
    return wrong[0] if len(wrong) == 1 else f"{wrong[0]}, and {len(wrong) - 1:,} more"
