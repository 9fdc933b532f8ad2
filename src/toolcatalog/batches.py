"""How tools are put together for compiling, and what is known of a batch before anything is
compiled.

A batch is a run of tools in the order of their slugs. It begins at a slug that is told by its
checksum, so that a tool more or less moves no boundary but its own, or a few near to it; batches
are compiled in any order, anywhere, and their parts put together in the order of the slugs. Where
one tool has changed, all of its batch is compiled; so one that has become large ends at the next of
many more slugs. The key of a part is the digest of everything that it is made from: this program,
the toolkits' files, and the tools' files.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from toolcatalog import inventory, parts
from toolcatalog.inventory import Row
from toolcatalog.snapshot import dump_to_hold

if TYPE_CHECKING:
    from toolcatalog import model

_APART = 128  # tools between two slugs, on average, that begin a batch in any case
_LARGE, _NEAR = 64, 16  # a batch with so many tools ends at a slug that one in so many is


class Known(NamedTuple):
    """The key of a batch's part, and its files as they were when the part was made, as JSON: there
    may be a million of them.

    The key is empty where something else that it was made from has changed since.
    """

    key: str
    noted: bytes

    @property
    def rows(self) -> Sequence[Row]:
        """The files: see `inventory`."""
        rows: Sequence[Row] = orjson.loads(self.noted)
        return rows

    @property
    def names_only(self) -> "Known":
        """The same with nothing of the files but their names."""
        rows = [
            (folder, 0, [(path.rpartition("/")[2], 0, "") for path, _, _ in files])
            for folder, _, files in self.rows
        ]
        return Known(self.key, dump_to_hold(rows))


NOTHING = Known("", b"[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A batch, and what its part depends on. `heads`: the SHA-256 of each toolkit's file; `known`:
    from the build before.

    `vectors` is told by `program` too, and so by the key. `words`: they are to be counted in the
    part.
    """

    root: Path
    cache: Path
    program: str
    folders: tuple[str, ...]
    heads: Mapping[str, str]
    toolkits: "Mapping[str, model.Toolkit]"
    known: Known = NOTHING
    vectors: bool = False
    words: bool = True

    @property
    def sections(self) -> list[str]:
        """What the part has to hold."""
        return [name for name in parts.SECTIONS if self.words or name != "words"]


def batches(folders: Sequence[str]) -> list[tuple[str, ...]]:
    """Folders of tools (`toolkits/<toolkit>/<SLUG>`) as batches of 64 or so, sorted by slug."""
    found: list[list[str]] = []
    for slug, folder in sorted((folder.rpartition("/")[2], folder) for folder in folders):
        told = zlib.crc32(slug.encode("utf-8", "surrogateescape"))
        if not found or told % _APART == 0 or (len(found[-1]) >= _LARGE and told % _NEAR == 0):
            found.append([])
        found[-1].append(folder)
    return [tuple(batch) for batch in found]


def toolkits_of(paths: Sequence[str]) -> set[str]:
    """The toolkits that folders or files of tools belong to."""
    return {path.split("/")[1] for path in paths}


def looked(task: Task) -> Known | None:
    """The batch as it stands in the cache; None where it must be compiled."""
    rows = task.known.rows
    if task.known.key and inventory.unchanged(task.root, task.folders, rows):
        return task.known
    seen = inventory.look(task.root, task.folders, rows)
    if seen.problems or not all(digest for _, digest in seen.files):
        return None
    found = key(task, seen.files)
    whole = found == task.known.key or parts.load(task.cache, found, task.sections) is not None
    return known(found, seen.rows) if whole else None


def known(key: str, rows: Sequence[Row]) -> Known:
    """What is known of a batch whose part is in the cache."""
    return Known(key, orjson.dumps(rows))


def key(task: Task, files: Sequence[tuple[str, str]]) -> str:
    """The key of a batch that has these files, given by path and SHA-256."""
    heads = sorted(
        (toolkit, task.heads.get(toolkit, ""))
        for toolkit in toolkits_of([path for path, _ in files])
    )
    return hashlib.sha256(json.dumps([task.program, heads, sorted(files)]).encode()).hexdigest()
