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
from toolcatalog.encoding import dump_json_compact
from toolcatalog.inventory import FolderRow

if TYPE_CHECKING:
    from toolcatalog.catalog import model

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
        """The files: see `inventory`."""
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
        return [name for name in parts.SECTIONS if self.with_words or name != "words"]


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
    if task.cache_entry.key and inventory.are_files_unchanged(task.root, task.folders, rows):
        return task.cache_entry
    seen = inventory.scan_folders(task.root, task.folders, rows)
    if seen.problems or not all(digest for _, digest in seen.files):
        return None
    found = compute_key(task, seen.files)
    whole = (
        found == task.cache_entry.key
        or parts.load_batch(task.cache, found, task.sections) is not None
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
