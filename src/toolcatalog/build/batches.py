"""Batches: how tool files are grouped for compiling, and which files of a batch changed.

What a file holds is known by its SHA-256. A file whose signature is the one that was noted when it
was read is not read again.

A batch is a run of tools in the order of their slugs. It begins at a slug that is told by its
checksum, so that a tool more or less moves no boundary but its own, or a few near to it; batches
are compiled in any order, anywhere, and their parts put together in the order of the slugs. Where
one tool has changed, all of its batch is compiled; so one that has become large ends at the next of
many more slugs. The key of a part is the digest of everything that it is made from: this program,
the toolkits' files, and the tools' files.
"""

import hashlib
import json
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from toolcatalog.build import cache
from toolcatalog.catalog import folder as catalog_folder
from toolcatalog.encoding import dump_json_compact
from toolcatalog.errors import Problem
from toolcatalog.system.file_state import compute_signature, has_signature

if TYPE_CHECKING:
    from toolcatalog.catalog import model


# of a folder: its path, its signature, and of each file its path, signature and SHA-256
FolderRow = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderScan:
    """The files of some folders: a row for each folder, to be noted, and all problems of looking
    into them.
    """

    rows: Sequence[FolderRow]
    problems: Sequence[Problem] = ()

    @property
    def files(self) -> list[tuple[str, str]]:
        """Path and SHA-256 of each file."""
        return [(path, digest) for row in self.rows for path, _, digest in row[2]]


def are_files_unchanged(root: Path, folders: Sequence[str], rows: Sequence[FolderRow]) -> bool:
    """Tell whether these folders are those of the rows, and neither they nor their files have
    changed.
    """
    if [row[0] for row in rows] != [*folders]:
        return False
    base = f"{root}/"
    return all(
        has_signature(base + folder, noted)
        and all(has_signature(base + path, mark) for path, mark, _ in files)
        for folder, noted, files in rows
    )


def scan_folders(root: Path, folders: Sequence[str], rows: Sequence[FolderRow]) -> FolderScan:
    """Look into folders, reading only what has changed since the rows were noted."""
    noted = {row[0]: row for row in rows}
    seen = [_scan_folder(root, folder, noted.get(folder, (folder, 0, ()))) for folder in folders]
    return FolderScan(
        rows=[row for row, _ in seen if row[2]],
        problems=[problem for _, some in seen for problem in some],
    )


def list_batch_files(root: Path, folders: Sequence[str]) -> FolderScan:
    """The files of folders, to be read by the caller: without SHA-256."""
    now, rows, problems = time.time_ns(), [], []
    for folder in folders:
        mark = compute_signature(f"{root}/{folder}", now)
        found = catalog_folder.list_folder(root, folder)
        files = [(path, compute_signature(f"{root}/{path}", now), "") for path in found.paths]
        if files:  # a folder without any, as git leaves them, is as good as none
            rows.append((folder, 0 if found.has_subfolders else mark, files))
        problems += found.problems
    return FolderScan(rows=rows, problems=problems)


def _scan_folder(root: Path, folder: str, previous: FolderRow) -> tuple[FolderRow, list[Problem]]:
    """A folder looked into. One that has folders in it has no signature to rely on: what happens in
    those leaves it as it was.
    """
    now = time.time_ns()
    mark = compute_signature(f"{root}/{folder}", now)
    known = {path: (before, digest) for path, before, digest in previous[2]}
    if mark and mark == previous[1]:
        return (folder, mark, [_scan_file(root, path, known, now) for path in known]), []
    found = catalog_folder.list_folder(root, folder)
    return (
        folder,
        0 if found.has_subfolders else mark,
        [_scan_file(root, path, known, now) for path in found.paths],
    ), found.problems


def _scan_file(
    root: Path, path: str, previous: Mapping[str, tuple[int, str]], now: int
) -> FolderRow:
    mark = compute_signature(f"{root}/{path}", now)
    before, digest = previous.get(path, (0, ""))
    return (
        path,
        mark,
        digest if mark and mark == before else catalog_folder.file_digest(root, path),
    )


_BOUNDARY_SPACING = 128  # tools between two slugs, on average, that begin a batch in any case
_LARGE_BATCH, _LARGE_BATCH_SPACING = (
    64,
    16,
)  # a batch with so many tools ends at a slug that one in so many is


class CacheEntry(NamedTuple):
    """The key of a batch's part, and its files as they were when the part was made, as JSON: there
    may be a million of them.

    The key is empty where something else that it was made from has changed since.
    """

    key: str
    rows_json: bytes

    @property
    def rows(self) -> Sequence[FolderRow]:
        """The files: see `build.batches`."""
        rows: Sequence[FolderRow] = orjson.loads(self.rows_json)
        return rows

    @property
    def with_names_only(self) -> "CacheEntry":
        """The same with nothing of the files but their names."""
        rows = [
            (folder, 0, [(path.rpartition("/")[2], 0, "") for path, _, _ in files])
            for folder, _, files in self.rows
        ]
        return CacheEntry(self.key, dump_json_compact(rows))


NO_ENTRY = CacheEntry("", b"[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A batch, and what its part depends on. `heads`: the SHA-256 of each toolkit's file; `known`:
    from the build before.

    `vectors` is told by `program` too, and so by the key. `words`: they are to be counted in the
    part.
    """

    root: Path
    cache: Path
    program_digest: str
    folders: tuple[str, ...]
    toolkit_digests: Mapping[str, str]
    toolkits: "Mapping[str, model.Toolkit]"
    cache_entry: CacheEntry = NO_ENTRY
    with_vectors: bool = False
    with_words: bool = True

    @property
    def sections(self) -> list[str]:
        """What the part has to hold."""
        return [name for name in cache.SECTIONS if self.with_words or name != "words"]


def split_into_batches(folders: Sequence[str]) -> list[tuple[str, ...]]:
    """Folders of tools (`toolkits/<toolkit>/<SLUG>`) as batches of 64 or so, sorted by slug."""
    found: list[list[str]] = []
    for slug, folder in sorted((folder.rpartition("/")[2], folder) for folder in folders):
        told = zlib.crc32(slug.encode("utf-8", "surrogateescape"))
        if (
            not found
            or told % _BOUNDARY_SPACING == 0
            or (len(found[-1]) >= _LARGE_BATCH and told % _LARGE_BATCH_SPACING == 0)
        ):
            found.append([])
        found[-1].append(folder)
    return [tuple(batch) for batch in found]


def toolkits_of(paths: Sequence[str]) -> set[str]:
    """The toolkits that folders or files of tools belong to."""
    return {path.split("/")[1] for path in paths}


def find_cached(task: Task) -> CacheEntry | None:
    """The batch as it stands in the cache; None where it must be compiled."""
    rows = task.cache_entry.rows
    if task.cache_entry.key and are_files_unchanged(task.root, task.folders, rows):
        return task.cache_entry
    seen = scan_folders(task.root, task.folders, rows)
    if seen.problems or not all(digest for _, digest in seen.files):
        return None
    found = compute_key(task, seen.files)
    whole = (
        found == task.cache_entry.key
        or cache.load_batch(task.cache, found, task.sections) is not None
    )
    return make_entry(found, seen.rows) if whole else None


def make_entry(key: str, rows: Sequence[FolderRow]) -> CacheEntry:
    """What is known of a batch whose part is in the cache."""
    return CacheEntry(key, orjson.dumps(rows))


def compute_key(task: Task, files: Sequence[tuple[str, str]]) -> str:
    """The key of a batch that has these files, given by path and SHA-256."""
    heads = sorted(
        (toolkit, task.toolkit_digests.get(toolkit, ""))
        for toolkit in toolkits_of([path for path, _ in files])
    )
    return hashlib.sha256(
        json.dumps([task.program_digest, heads, sorted(files)]).encode()
    ).hexdigest()
