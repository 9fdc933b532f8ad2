"""Snapshot verification: compare every file with the manifest and its checksums.

The digest authenticates the manifest, the manifest every file next to it, and one of those, the
file list, every file in the folders. So if a digest is trusted, all files that pass these checks
can be trusted. No value of a manifest is used before its digest was checked, and no path in it
leads out of the folder.
"""

import contextlib
import hashlib
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolcatalog import encoding
from toolcatalog.errors import REBUILD_HINT, SnapshotError, remedy
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import FileInfo
from toolcatalog.system.files import open_regular

_CHUNK_SIZE = 1 << 20  # bytes
_MAX_INTEGER = 1 << 53  # of sizes and counts: above this, some JSON readers lose precision
_COUNT_NAMES = {"toolkits", "tools", "tool_versions", "sessions"}
_REQUIRED_FILES = {
    snapshot_format.FILE_LIST,
    snapshot_format.DOCUMENTS,
    snapshot_format.NUMBERS,
    snapshot_format.TOOLS,
    snapshot_format.SETS,
    snapshot_format.FACTS,
    snapshot_format.WORDS,
    snapshot_format.POSTINGS,
    snapshot_format.COVERS,
}
_UNLISTED_FILES = {snapshot_format.MANIFEST, snapshot_format.COMPRESSED_DOCUMENTS}
WRONG_CONTENT = "other bytes than were written"


class UnsupportedFormat(SnapshotError):
    """The snapshot has a format that this program does not read."""


class Manifest(NamedTuple):
    """A manifest with a valid digest; `files` are those next to it, by name."""

    digest: str
    about: Mapping[str, str]
    counts: Mapping[str, int]
    files: Mapping[str, FileInfo]


def read_manifest(
    folder: Path, display_folder: Path | None = None, hint: str = REBUILD_HINT
) -> Manifest:
    """Read the manifest of the snapshot in a folder.

    Messages show `display_folder` instead of `folder`, and `hint`, which says how to fix the error.
    Only this function validates the shape of a manifest: a `Manifest` has every count and every
    file that a snapshot of this format needs. Raises SnapshotError if there is no manifest (the
    snapshot is incomplete) or if it is damaged, and UnsupportedFormat.
    """
    build = display_folder or folder
    try:
        with open_regular(folder / snapshot_format.MANIFEST) as file:
            data = file.read(snapshot_format.MAX_MANIFEST_SIZE + 1)
        if len(data) > snapshot_format.MAX_MANIFEST_SIZE:
            raise ValueError("longer than a manifest is")
        value = orjson.loads(data)
        if _parse_integer(value["format"]) != snapshot_format.FORMAT:
            raise _unsupported_format(build, value["format"], hint)
        if not snapshot_format.is_manifest_valid(value):
            raise SnapshotError(
                f"The build in {build} is damaged ({snapshot_format.MANIFEST} is not the one that "
                f"was written): {hint}"
            )
        if encoding.dump_json(value) != data:  # for example a duplicate key
            raise ValueError("not in canonical form")
        return _parse_manifest(value)
    except FileNotFoundError:
        raise SnapshotError(f"There is no finished build in {build}: {hint}") from None
    except OSError as error:
        raise SnapshotError(
            f"The build in {build} cannot be read ({error.strerror}): {remedy(error)}, or {hint}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SnapshotError(f"The manifest of the build in {build} is damaged: {hint}") from None


def _parse_manifest(value: Mapping[str, Any]) -> Manifest:
    """Parse a manifest and validate its shape.

    Raises ValueError, KeyError, TypeError or AttributeError if it has another shape.
    """
    files = {path: _parse_file_info(path, info) for path, info in value["files"].items()}
    counts = {name: _parse_integer(count) for name, count in value["counts"].items()}
    texts = [*value["about"].values(), value["digest"]]
    if (
        not all(isinstance(text, str) for text in texts)
        or counts.keys() != _COUNT_NAMES
        or not files.keys() >= _REQUIRED_FILES
        or not _UNLISTED_FILES.isdisjoint(files)
        or len({path.casefold() for path in files}) < len(files)
    ):
        raise ValueError("not what a manifest says")
    return Manifest(value["digest"], value["about"], counts, files)


def _parse_file_info(path: str, value: Mapping[str, Any]) -> FileInfo:
    sha256 = value["sha256"]
    if "/" in path or not snapshot_format.is_safe_path(path) or not isinstance(sha256, str):
        raise ValueError("no file next to a manifest")
    if not encoding.is_digest(sha256):
        raise ValueError("no SHA-256")
    return FileInfo(_parse_integer(value["size"]), sha256)


def _parse_integer(value: object) -> int:
    """Return a size or a count; raises TypeError or ValueError if it is neither."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no whole number")
    if not 0 <= value < _MAX_INTEGER:
        raise ValueError("larger than any file here can be")
    return value


def _unsupported_format(build: Path, found_format: int, hint: str) -> UnsupportedFormat:
    is_newer = found_format > snapshot_format.FORMAT
    upgrade = "it is of a newer toolcatalog: upgrade this one, or " if is_newer else ""
    return UnsupportedFormat(
        f"The build in {build} has format {found_format}, this program reads"
        f" {snapshot_format.FORMAT}: {upgrade}{hint}"
    )


def list_files(folder: Path, manifest: Manifest) -> dict[str, FileInfo]:
    """Return every file of a snapshot except the manifest, by path.

    These are the files next to the manifest and, from the file list, those in the folders. Raises
    SnapshotError if the file list is not what was written or if its paths conflict.
    """
    with contextlib.suppress(OSError, ValueError):
        with open_regular(folder / snapshot_format.FILE_LIST) as file:
            data = file.read(snapshot_format.MAX_FILE_LIST_SIZE + 1)
        if (
            FileInfo(len(data), encoding.sha256_hex(data))
            == manifest.files[snapshot_format.FILE_LIST]
        ):
            return _merge_file_lists(manifest.files, snapshot_format.parse_file_list(data))
    raise SnapshotError(
        f"{snapshot_format.FILE_LIST} is not the one that was written, so the contents of the "
        "folders are unknown"
    )


def _merge_file_lists(
    top_files: Mapping[str, FileInfo], nested_files: Mapping[str, FileInfo]
) -> dict[str, FileInfo]:
    """Merge the files next to a manifest with those in the folders.

    Raises ValueError if a listed file is in no folder, or in one that has the name of a file.
    """
    top_names = {path.casefold() for path in top_files} | {snapshot_format.MANIFEST}
    for path in nested_files:
        folder, _, name = path.rpartition("/")
        if not folder or not name or path.partition("/")[0].casefold() in top_names:
            raise ValueError("no file in a folder")
        while folder:
            if folder in nested_files:
                raise ValueError("a file that is a folder too")
            folder = folder.rpartition("/")[0]
    return {**top_files, **nested_files}


def count_bytes(folder: Path) -> int:
    """Return how many bytes `verify_snapshot` reads; 0 if that cannot be determined."""
    try:
        manifest = read_manifest(folder)
        return sum(info.size for info in list_files(folder, manifest).values())
    except SnapshotError:
        return 0


def check_file_sizes(folder: Path, expected: Mapping[str, FileInfo]) -> Iterator[str]:
    """Yield a message for each file that is missing or has the wrong size; reads no file."""
    for path, info in sorted(expected.items()):
        if problem := _check_file_size(folder, path, info):
            yield f"{path} {problem}"


def verify_snapshot(folder: Path, advance: Callable[[int], object] = lambda _: None) -> list[str]:
    """Compare every file of a snapshot with its size and SHA-256; return a message per problem.

    The list is empty if the snapshot is valid. Unlisted files and a folder name that is another
    digest are problems too. `advance` is called with numbers of bytes, `count_bytes(folder)` in
    all. May be called in any thread: reading and hashing release the GIL. Raises SnapshotError if
    there is no manifest of this format to compare with.
    """
    manifest, problems = read_manifest(folder), list[str]()
    if encoding.is_digest(folder.name) and folder.name != manifest.digest:
        problems.append(f"{snapshot_format.MANIFEST} is that of {manifest.digest}")
    try:
        files = list_files(folder, manifest)
        problems += [
            f"{path} is not listed"
            for path in sorted(_walk_files(folder) - _UNLISTED_FILES - files.keys())
        ]
    except SnapshotError as error:
        files = {
            path: info for path, info in manifest.files.items() if path != snapshot_format.FILE_LIST
        }
        problems.append(str(error))
    for path, info in sorted(files.items()):
        problem = _check_file_size(folder, path, info)
        if problem:
            advance(info.size)
        elif _hash_file(folder / path, advance) != info.sha256:
            problem = f"has {WRONG_CONTENT}"
        problems += [f"{path} {problem}"] if problem else []
    return problems


def _walk_files(folder: Path) -> set[str]:
    """Return the paths of everything in a folder except folders; symbolic links count as files."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def _check_file_size(folder: Path, path: str, expected: FileInfo) -> str:
    """Return what is wrong with a file as far as its status shows; empty if nothing is."""
    try:
        status = (folder / path).stat()
    except OSError as error:
        return (
            "is missing"
            if isinstance(error, FileNotFoundError | NotADirectoryError)
            else f"cannot be read ({error.strerror})"
        )
    if not stat.S_ISREG(status.st_mode):
        return "is not a file"
    return (
        ""
        if status.st_size == expected.size
        else f"has {status.st_size} bytes and should have {expected.size}"
    )


def _hash_file(file: Path, advance: Callable[[int], object]) -> str:
    """Return the SHA-256 of a file, read in chunks; empty if it cannot be read completely."""
    digest = hashlib.sha256()
    try:
        with file.open("rb", buffering=0) as source:
            while chunk := source.read(_CHUNK_SIZE):
                digest.update(chunk)
                advance(len(chunk))
    except OSError:
        return ""
    return digest.hexdigest()
