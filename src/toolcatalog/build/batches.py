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
from toolcatalog.encoding import dump_json, dump_json_compact
from toolcatalog.errors import Problem
from toolcatalog.system.file_state import compute_signature, has_signature

if TYPE_CHECKING:
    from toolcatalog.catalog import model


# the path and signature of a folder, and the path, signature and SHA-256 of each of its files
FolderRow = Sequence[Any]

_BOUNDARY_SPACING = 128  # average number of tools between slugs that always begin a batch
# from this size on, one slug in 16 begins a new batch
_LARGE_BATCH, _LARGE_BATCH_SPACING = 64, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderScan:
    """The files of some folders: one row for each folder, and all problems with reading them."""

    rows: Sequence[FolderRow]
    problems: Sequence[Problem] = ()

    @property
    def files(self) -> list[tuple[str, str]]:
        """The path and SHA-256 of each file."""
        return [(path, digest) for row in self.rows for path, _, digest in row[2]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A batch to compile, and everything that the result depends on.

    `toolkit_digests` has the SHA-256 of each toolkit's file. `with_words` is not part of the key:
    it only adds a section to the compiled batch. The program digest covers `with_vectors` and the
    files in the folder `model`, and so does the key.
    """

    root: Path
    cache: Path
    program_digest: str
    folders: tuple[str, ...]
    toolkit_digests: Mapping[str, str]
    toolkits: "Mapping[str, model.Toolkit]"
    with_vectors: bool = False
    model: Path | None = None
    with_words: bool = True

    @property
    def sections(self) -> list[str]:
        """The names of the sections that the compiled batch must have."""
        return [name for name in cache.SECTIONS if self.with_words or name != "words"]


class CacheEntry(NamedTuple):
    """The key of a compiled batch, and the state of the files that it was made from.

    `toolkits_json` has the SHA-256 of each toolkit's file. The rows stay JSON, because there may be
    a million files.
    """

    key: str
    with_words: bool
    toolkits_json: bytes
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
        return self._replace(rows_json=dump_json_compact(rows))


class CachedBatch(NamedTuple):
    """A batch whose compiled form is in the cache."""

    task: Task
    entry: CacheEntry


def make_entry(task: Task, key: str, rows: Sequence[FolderRow], *, with_words: bool) -> CacheEntry:
    """Return the cache entry of a batch that is in the cache."""
    return CacheEntry(key, with_words, dump_json_compact(task.toolkit_digests), dump_json(rows))


def split_into_batches(folders: Sequence[str]) -> list[tuple[str, ...]]:
    """Group tool folders (`toolkits/<toolkit>/<SLUG>`) into batches of about 64, sorted by slug."""
    groups: list[list[str]] = []
    for slug, folder in sorted((folder.rpartition("/")[2], folder) for folder in folders):
        if not groups or _begins_batch(slug, len(groups[-1])):
            groups.append([])
        groups[-1].append(folder)
    return [tuple(group) for group in groups]


def _begins_batch(slug: str, previous_size: int) -> bool:
    checksum = zlib.crc32(slug.encode("utf-8", "surrogateescape"))
    spacing = _LARGE_BATCH_SPACING if previous_size >= _LARGE_BATCH else _BOUNDARY_SPACING
    return checksum % spacing == 0


def toolkits_of(paths: Sequence[str]) -> set[str]:
    """Return the toolkits that folders or files of tools belong to."""
    return {path.split("/")[1] for path in paths}


def compute_key(task: Task, files: Sequence[tuple[str, str]]) -> str:
    """Return the key of a batch with these files, given as path and SHA-256."""
    toolkits = sorted(
        (toolkit, task.toolkit_digests.get(toolkit, ""))
        for toolkit in toolkits_of([path for path, _ in files])
    )
    data = json.dumps([task.program_digest, toolkits, sorted(files)])
    return hashlib.sha256(data.encode()).hexdigest()


def find_cached(batch: tuple[Task, CacheEntry | None]) -> CacheEntry | None:
    """Return the current cache entry of a batch; None if it must be compiled.

    The batch comes with the entry that the previous build recorded, or None.
    """
    task, recorded = batch
    rows = recorded.rows if recorded else ()
    has_sections = recorded is not None and (recorded.with_words or not task.with_words)
    if (
        recorded
        and has_sections
        and recorded.toolkits_json == dump_json(task.toolkit_digests)
        and are_files_unchanged(task.root, task.folders, rows)
    ):
        return recorded
    scan = scan_folders(task.root, task.folders, rows)
    if scan.problems or not all(digest for _, digest in scan.files):
        return None
    key = compute_key(task, scan.files)
    if recorded and has_sections and recorded.key == key:
        return make_entry(task, key, scan.rows, with_words=recorded.with_words)
    if cache.load_batch(task.cache, key, task.sections) is None:
        return None
    return make_entry(task, key, scan.rows, with_words=task.with_words)


def are_files_unchanged(root: Path, folders: Sequence[str], rows: Sequence[FolderRow]) -> bool:
    """Return whether the rows are those of these folders, and nothing in them has changed."""
    if [row[0] for row in rows] != [*folders]:
        return False
    base = f"{root}/"
    return all(
        has_signature(base + folder, folder_signature)
        and all(has_signature(base + path, signature) for path, signature, _ in files)
        for folder, folder_signature, files in rows
    )


def scan_folders(root: Path, folders: Sequence[str], rows: Sequence[FolderRow]) -> FolderScan:
    """List folders, reading only files that changed since the rows were recorded."""
    recorded = {row[0]: row for row in rows}
    scans = [
        _scan_folder(root, folder, recorded.get(folder, (folder, 0, ()))) for folder in folders
    ]
    return FolderScan(
        rows=[row for row, _ in scans if row[2]],
        problems=[problem for _, problems in scans for problem in problems],
    )


def _scan_folder(root: Path, folder: str, previous: FolderRow) -> tuple[FolderRow, list[Problem]]:
    """List one folder, and return its row and problems.

    A folder with subfolders gets signature 0 (unreliable), as changes in those do not affect it.
    """
    now = time.time_ns()
    signature = compute_signature(f"{root}/{folder}", now)
    recorded = {path: (before, digest) for path, before, digest in previous[2]}
    if signature and signature == previous[1]:
        return (folder, signature, [_scan_file(root, path, recorded, now) for path in recorded]), []
    listing = catalog_folder.list_folder(root, folder)
    rows = [_scan_file(root, path, recorded, now) for path in listing.paths]
    return (folder, 0 if listing.has_subfolders else signature, rows), listing.problems


def _scan_file(
    root: Path, path: str, recorded: Mapping[str, tuple[int, str]], now: int
) -> FolderRow:
    signature = compute_signature(f"{root}/{path}", now)
    before, digest = recorded.get(path, (0, ""))
    if not signature or signature != before:
        digest = catalog_folder.file_digest(root, path)
    return path, signature, digest


def list_batch_files(root: Path, folders: Sequence[str]) -> FolderScan:
    """List the files of folders without their SHA-256; the caller reads them."""
    now, rows, problems = time.time_ns(), [], []
    for folder in folders:
        signature = compute_signature(f"{root}/{folder}", now)
        listing = catalog_folder.list_folder(root, folder)
        files = [(path, compute_signature(f"{root}/{path}", now), "") for path in listing.paths]
        if files:  # ignore empty folders, which git leaves behind
            rows.append((folder, 0 if listing.has_subfolders else signature, files))
        problems += listing.problems
    return FolderScan(rows=rows, problems=problems)
