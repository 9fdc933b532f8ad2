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

from toolcatalog import tree
from toolcatalog.errors import Problem
from toolcatalog.signatures import holds, signature

# of a folder: its path, its signature, and of each file its path, signature and SHA-256
Row = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The files of some folders: a row for each folder, to be noted, and all problems of looking
    into them.
    """

    rows: Sequence[Row]
    problems: Sequence[Problem] = ()

    @property
    def files(self) -> list[tuple[str, str]]:
        """Path and SHA-256 of each file."""
        return [(path, digest) for row in self.rows for path, _, digest in row[2]]


def unchanged(root: Path, folders: Sequence[str], rows: Sequence[Row]) -> bool:
    """Tell whether these folders are those of the rows, and neither they nor their files have
    changed.
    """
    if [row[0] for row in rows] != [*folders]:
        return False
    base = f"{root}/"
    return all(
        holds(base + folder, noted) and all(holds(base + path, mark) for path, mark, _ in files)
        for folder, noted, files in rows
    )


def look(root: Path, folders: Sequence[str], rows: Sequence[Row]) -> Seen:
    """Look into folders, reading only what has changed since the rows were noted."""
    noted = {row[0]: row for row in rows}
    seen = [_folder(root, folder, noted.get(folder, (folder, 0, ()))) for folder in folders]
    return Seen(
        rows=[row for row, _ in seen if row[2]],
        problems=[problem for _, some in seen for problem in some],
    )


def listed(root: Path, folders: Sequence[str]) -> Seen:
    """The files of folders, to be read by the caller: without SHA-256."""
    now, rows, problems = time.time_ns(), [], []
    for folder in folders:
        mark = signature(f"{root}/{folder}", now)
        found = tree.files_in(root, folder)
        files = [(path, signature(f"{root}/{path}", now), "") for path in found.paths]
        if files:  # a folder without any, as git leaves them, is as good as none
            rows.append((folder, 0 if found.deep else mark, files))
        problems += found.problems
    return Seen(rows=rows, problems=problems)


def _folder(root: Path, folder: str, noted: Row) -> tuple[Row, list[Problem]]:
    """A folder looked into. One that has folders in it has no signature to rely on: what happens in
    those leaves it as it was.
    """
    now = time.time_ns()
    mark = signature(f"{root}/{folder}", now)
    known = {path: (before, digest) for path, before, digest in noted[2]}
    if mark and mark == noted[1]:
        return (folder, mark, [_file(root, path, known, now) for path in known]), []
    found = tree.files_in(root, folder)
    return (
        folder,
        0 if found.deep else mark,
        [_file(root, path, known, now) for path in found.paths],
    ), found.problems


def _file(root: Path, path: str, known: Mapping[str, tuple[int, str]], now: int) -> Row:
    mark = signature(f"{root}/{path}", now)
    before, digest = known.get(path, (0, ""))
    return (path, mark, digest if mark and mark == before else tree.digest(root, path))
