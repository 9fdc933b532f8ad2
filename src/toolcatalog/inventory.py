"""Which files a batch of tools has and what they hold, without reading those that have not changed
since they were read last.

What a file holds is known by its SHA-256. A file whose signature is the one that was noted when it
was read is not read again.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcatalog.catalog import folder as catalog_folder
from toolcatalog.errors import Problem
from toolcatalog.system.file_state import compute_signature, has_signature

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
