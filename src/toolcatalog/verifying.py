"""A snapshot held against its manifest, byte by byte: what `snapshots verify`, a reload and a copy
from elsewhere go by.

The digest names the manifest, the manifest names every file beside it, and one of those, the
listing, every file in the folders. So who trusts a digest can trust whatever comes through here.
Nothing of a manifest is believed before its seal has been checked, and no path of it leads out of
the folder.
"""

import contextlib
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
_MOST_NUMBER = 1 << 53  # of a size or a count: what every reader of JSON can hold
_COUNTS = {"toolkits", "tools", "tool_versions", "sessions"}
_NEEDED = {
    snapshot.LISTING,
    snapshot.DOCUMENTS,
    snapshot.NUMBERS,
    snapshot.TOOLS,
    snapshot.SETS,
    snapshot.FACTS,
    snapshot.WORDS,
    snapshot.POSTINGS,
    snapshot.COVERS,
}
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

    This is the one place that checks the shape of a manifest: whoever has a `Manifest` may rely on
    every count and every file that a snapshot of this format has. Raises SnapshotError with one
    sentence where there is none (half a snapshot), where it is damaged, and OtherFormat.
    """
    build = named or folder
    try:
        with (folder / snapshot.MANIFEST).open("rb") as file:
            data = file.read(snapshot.MOST_MANIFEST + 1)
        if len(data) > snapshot.MOST_MANIFEST:
            raise ValueError("longer than a manifest is")
        said = orjson.loads(data)
        if _whole_number(said["format"]) != snapshot.FORMAT:
            raise _other_format(build, said["format"], mend)
        if not snapshot.is_sealed(said):
            raise SnapshotError(
                f"The build in {build} is damaged ({snapshot.MANIFEST} is not the one that "
                f"was written): {mend}"
            )
        if snapshot.dump(said) != data:  # a name that stands there twice, for one
            raise ValueError("not as it is written")
        return _manifest(said)
    except FileNotFoundError:
        raise SnapshotError(f"There is no finished build in {build}: {mend}") from None
    except OSError as error:
        raise SnapshotError(
            f"The build in {build} cannot be read ({error.strerror}): {remedy(error)}, or {mend}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SnapshotError(f"The manifest of the build in {build} is damaged: {mend}") from None


def _manifest(said: Mapping[str, Any]) -> Manifest:
    """A manifest whose shape is checked. Raises ValueError, KeyError, TypeError or AttributeError
    where it has another.
    """
    files = {path: _stated(path, of) for path, of in said["files"].items()}
    counts = {name: _whole_number(count) for name, count in said["counts"].items()}
    texts = [*said["about"].values(), said["digest"]]
    if (
        not all(isinstance(text, str) for text in texts)
        or counts.keys() != _COUNTS
        or not files.keys() >= _NEEDED
        or snapshot.MANIFEST in files
        or len({path.casefold() for path in files}) < len(files)
    ):
        raise ValueError("not what a manifest says")
    return Manifest(said["digest"], said["about"], counts, files)


def _stated(path: str, said: Mapping[str, Any]) -> Stated:
    sha256 = said["sha256"]
    if "/" in path or not snapshot.stays_within(path) or not isinstance(sha256, str):
        raise ValueError("no file beside a manifest")
    if not snapshot.is_digest(sha256):
        raise ValueError("no SHA-256")
    return Stated(_whole_number(said["size"]), sha256)


def _whole_number(value: object) -> int:
    """A size or a count. Raises TypeError or ValueError where it is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no whole number")
    if not 0 <= value < _MOST_NUMBER:
        raise ValueError("not as large as anything here can be")
    return value


def _other_format(build: Path, found: int, mend: str) -> OtherFormat:
    newer = found > snapshot.FORMAT
    upgrade = "it is of a newer toolcatalog: upgrade this one, or " if newer else ""
    return OtherFormat(
        f"The build in {build} has format {found}, this program reads {snapshot.FORMAT}: "
        f"{upgrade}{mend}"
    )


def contents(folder: Path, manifest: Manifest) -> dict[str, Stated]:
    """Every file of a snapshot but the manifest, by path: those beside it and, by its listing,
    those in the folders.

    Raises SnapshotError where the listing is not the one that was written, or names what cannot lie
    side by side.
    """
    with contextlib.suppress(OSError, ValueError):
        with (folder / snapshot.LISTING).open("rb") as file:
            data = file.read(snapshot.MOST_LISTING + 1)
        if Stated(len(data), snapshot.sha256(data)) == manifest.files[snapshot.LISTING]:
            return _joined(manifest.files, snapshot.parse_listing(data))
    raise SnapshotError(
        f"{snapshot.LISTING} is not the one that was written, so what is in the folders "
        "cannot be told"
    )


def _joined(beside: Mapping[str, Stated], deep: Mapping[str, Stated]) -> dict[str, Stated]:
    """The files beside a manifest and those in the folders. Raises ValueError where a file of the
    listing lies in no folder, or in one that has the name of a file.
    """
    taken = {path.casefold() for path in beside} | {snapshot.MANIFEST}
    for path in deep:
        folder, _, name = path.rpartition("/")
        if not folder or not name or path.partition("/")[0].casefold() in taken:
            raise ValueError("no file in a folder")
        while folder:
            if folder in deep:
                raise ValueError("a file that is a folder too")
            folder = folder.rpartition("/")[0]
    return {**beside, **deep}


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


def _found(folder: Path) -> set[str]:
    """All that lies in a folder but folders, by path; a link counts as what it is."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def _unlike(folder: Path, path: str, said: Stated) -> str:
    """How a file can be seen to be other than stated, without reading it; empty where it cannot."""
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
