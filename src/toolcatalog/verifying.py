"""A snapshot held against its manifest, byte by byte: what `snapshots verify`, a reload and a copy
from elsewhere go by.

The digest names the manifest, the manifest names every file beside it, and one of those, the
listing, every file in the folders. So who trusts a digest can trust whatever comes through here.
Nothing of a manifest is believed before its seal has been checked, and no path of it leads out of
the folder.
"""

import hashlib
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolcatalog import snapshot
from toolcatalog.errors import MEND, SnapshotError, remedy
from toolcatalog.snapshot import Stated

_CHUNK = 1 << 20  # bytes
OTHERS = "other bytes than were written"


class OtherFormat(SnapshotError):
    """The snapshot is of a format that this program does not read."""


class Manifest(NamedTuple):
    """A manifest whose seal holds: `files` are those beside it, by name."""

    digest: str
    about: Mapping[str, str]
    counts: Mapping[str, int]
    files: Mapping[str, Stated]


def read(folder: Path, named: Path | None = None, mend: str = MEND) -> Manifest:
    """The manifest of the snapshot in a folder; `named` is the folder that people know it by,
    `mend` what they can do.

    Raises SnapshotError with one sentence where there is none (half a snapshot), where it is
    damaged, and OtherFormat.
    """
    build = named or folder
    try:
        said = orjson.loads((folder / snapshot.MANIFEST).read_bytes())
        if said["format"] != snapshot.FORMAT:
            raise _other_format(build, said["format"], mend)
        if not snapshot.is_sealed(said):
            raise SnapshotError(
                f"The build in {build} is damaged ({snapshot.MANIFEST} is not the one that "
                f"was written): {mend}"
            )
        return Manifest(said["digest"], said["about"], said["counts"], _stated(said["files"]))
    except FileNotFoundError:
        raise SnapshotError(f"There is no finished build in {build}: {mend}") from None
    except OSError as error:
        raise SnapshotError(
            f"The build in {build} cannot be read ({error.strerror}): {remedy(error)}, or {mend}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SnapshotError(f"The manifest of the build in {build} is damaged: {mend}") from None


def _other_format(build: Path, found: object, mend: str) -> OtherFormat:
    newer = isinstance(found, int) and found > snapshot.FORMAT
    upgrade = "it is of a newer toolcatalog: upgrade this one, or " if newer else ""
    return OtherFormat(
        f"The build in {build} has format {found}, this program reads {snapshot.FORMAT}: "
        f"{upgrade}{mend}"
    )


def contents(folder: Path, manifest: Manifest) -> dict[str, Stated]:
    """Every file of a snapshot but the manifest, by path: those beside it and, by its listing,
    those in the folders.

    Raises SnapshotError where the listing is not the one that was written.
    """
    try:
        data = (folder / snapshot.LISTING).read_bytes()
        if Stated(len(data), snapshot.sha256(data)) == manifest.files[snapshot.LISTING]:
            return {**manifest.files, **_stated(orjson.loads(data))}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # likewise
    raise SnapshotError(
        f"{snapshot.LISTING} is not the one that was written, so what is in the folders "
        "cannot be told"
    )


def size(folder: Path) -> int:
    """How many bytes `verify` goes through; what cannot be told counts as nothing."""
    try:
        manifest = read(folder)
        return sum(said.size for said in contents(folder, manifest).values())
    except SnapshotError:
        return 0


def missing(folder: Path, files: Mapping[str, Stated]) -> Iterator[str]:
    """What can be seen to be wrong with files without reading them: in words, one for each."""
    for path, said in sorted(files.items()):
        if wrong := _unlike(folder, path, said):
            yield f"{path} {wrong}"


def verify(folder: Path, advance: Callable[[int], object] = lambda _: None) -> list[str]:
    """Hold every file of the snapshot in a folder against its size and SHA-256: what is wrong, in
    words; nothing where it is whole.

    Tells also what is not listed, and a folder that has another's name. `advance` is told bytes,
    `size(folder)` in all. May be called in any thread: while bytes are read and hashed others go
    on. Raises SnapshotError where there is no manifest of this format to hold them against.
    """
    manifest, wrong = read(folder), list[str]()
    if snapshot.is_digest(folder.name) and folder.name != manifest.digest:
        wrong.append(f"{snapshot.MANIFEST} is that of {manifest.digest}")
    try:
        files = contents(folder, manifest)
        wrong += [
            f"{path} is not listed" for path in sorted(_found(folder) - {snapshot.MANIFEST, *files})
        ]
    except SnapshotError as error:
        files = {path: said for path, said in manifest.files.items() if path != snapshot.LISTING}
        wrong.append(str(error))
    for path, said in sorted(files.items()):
        unlike = _unlike(folder, path, said)
        if unlike:
            advance(said.size)
        elif _sha256(folder / path, advance) != said.sha256:
            unlike = f"has {OTHERS}"
        wrong += [f"{path} {unlike}"] if unlike else []
    return wrong


def _stated(said: Mapping[str, Mapping[str, Any]]) -> dict[str, Stated]:
    return {path: Stated(int(of["size"]), str(of["sha256"])) for path, of in said.items()}


def _found(folder: Path) -> set[str]:
    """All that lies in a folder but folders, by path; a link counts as what it is."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def _unlike(folder: Path, path: str, said: Stated) -> str:
    """How a file can be seen to be other than stated, without reading it; empty where it cannot."""
    if not snapshot.stays_within(path):
        return "would lie elsewhere"
    try:
        found = (folder / path).stat()
    except OSError as error:
        return (
            "is missing"
            if isinstance(error, FileNotFoundError | NotADirectoryError)
            else f"cannot be read ({error.strerror})"
        )
    if not stat.S_ISREG(found.st_mode):
        return "is not a file"
    return (
        ""
        if found.st_size == said.size
        else f"has {found.st_size} bytes and should have {said.size}"
    )


def _sha256(file: Path, advance: Callable[[int], object]) -> str:
    """The SHA-256 of a file, read in chunks; empty where it cannot be read to its end."""
    seen = hashlib.sha256()
    try:
        with file.open("rb", buffering=0) as source:
            while chunk := source.read(_CHUNK):
                seen.update(chunk)
                advance(len(chunk))
    except OSError:
        return ""
    return seen.hexdigest()
