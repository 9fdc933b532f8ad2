"""Batches: how tool files are grouped for compiling, and which files of a batch changed.

File contents are identified by SHA-256. A file is not read again while it has the signature that
was recorded when it was read (see `system.file_state`).

A batch is a run of tools in slug order. It begins at a slug selected by its checksum, so that
adding or removing a tool moves only boundaries near it. Batches are compiled in any order, by any
process, and the compiled batches are joined in slug order. If one tool changes, its whole batch is
compiled; so a batch that has become large ends at the next of many more slugs. The key of a
compiled batch is the digest of everything that it is made from: this program, the toolkit files,
and the tool files.
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


# the path and signature of a folder, and the path, signature and SHA-256 of each of its files
FolderRow = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderScan:
    """The files of some folders: one row for each folder, and all problems with reading them."""

    rows: Sequence[FolderRow]
    problems: Sequence[Problem] = ()

    @property
    def files(self) -> list[tuple[str, str]]:
        """The path and SHA-256 of each file."""
        return [(path, digest) for row in self.rows for path, _, digest in row[2]]


def are_files_unchanged(root: Path, folders: Sequence[str], rows: Sequence[FolderRow]) -> bool:
    """Return whether the rows describe these folders, and neither folders nor files have
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
    """List folders, reading only files that changed since the rows were recorded."""
    noted = {row[0]: row for row in rows}
    seen = [_scan_folder(root, folder, noted.get(folder, (folder, 0, ()))) for folder in folders]
    return FolderScan(
        rows=[row for row, _ in seen if row[2]],
        problems=[problem for _, some in seen for problem in some],
    )


def list_batch_files(root: Path, folders: Sequence[str]) -> FolderScan:
    """List the files of folders without their SHA-256; the caller reads them."""
    now, rows, problems = time.time_ns(), [], []
    for folder in folders:
        mark = compute_signature(f"{root}/{folder}", now)
        found = catalog_folder.list_folder(root, folder)
        files = [(path, compute_signature(f"{root}/{path}", now), "") for path in found.paths]
        if files:  # ignore empty folders, which git leaves behind
            rows.append((folder, 0 if found.has_subfolders else mark, files))
        problems += found.problems
    return FolderScan(rows=rows, problems=problems)


def _scan_folder(root: Path, folder: str, previous: FolderRow) -> tuple[FolderRow, list[Problem]]:
    """List one folder, and return its row and problems.

    A folder with subfolders gets signature 0 (unreliable), as changes in those do not affect it.
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


_BOUNDARY_SPACING = 128  # average number of tools between slugs that always begin a batch
_LARGE_BATCH, _LARGE_BATCH_SPACING = (
    64,
    16,
)  # from this size on, one slug in 16 begins a new batch


class CacheEntry(NamedTuple):
    """The cache entry of a batch: the key of the compiled batch, and the state of its files.

    The key is empty if another input has changed since. The rows stay JSON, because there may be a
    million files.
    """

    key: str
    rows_json: bytes

    @property
    def rows(self) -> Sequence[FolderRow]:
        """The folder rows of the batch (see `FolderRow`)."""
        rows: Sequence[FolderRow] = orjson.loads(self.rows_json)
        return rows

    @property
    def with_names_only(self) -> "CacheEntry":
        """The same entry with only the names of the files."""
        rows = [
            (folder, 0, [(path.rpartition("/")[2], 0, "") for path, _, _ in files])
            for folder, _, files in self.rows
        ]
        return CacheEntry(self.key, dump_json_compact(rows))


NO_ENTRY = CacheEntry("", b"[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A batch to compile, and everything that the result depends on.

    `toolkit_digests` has the SHA-256 of each toolkit's file, and `cache_entry` comes from the
    previous build. `with_words` is not part of the key: it only adds a section to the compiled
    batch. The program digest covers `with_vectors`, and so does the key.
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
        """The names of the sections that the compiled batch must have."""
        return [name for name in cache.SECTIONS if self.with_words or name != "words"]


def split_into_batches(folders: Sequence[str]) -> list[tuple[str, ...]]:
    """Group tool folders (`toolkits/<toolkit>/<SLUG>`) into batches of about 64, sorted by slug."""
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
    """Return the toolkits that folders or files of tools belong to."""
    return {path.split("/")[1] for path in paths}


def find_cached(task: Task) -> CacheEntry | None:
    """Return the current cache entry of a batch; None if it must be compiled."""
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
    """Return the cache entry of a compiled batch in the cache."""
    return CacheEntry(key, orjson.dumps(rows))


def compute_key(task: Task, files: Sequence[tuple[str, str]]) -> str:
    """Return the key of a batch with these files, given as path and SHA-256."""
    heads = sorted(
        (toolkit, task.toolkit_digests.get(toolkit, ""))
        for toolkit in toolkits_of([path for path, _ in files])
    )
    return hashlib.sha256(
        json.dumps([task.program_digest, heads, sorted(files)]).encode()
    ).hexdigest()
