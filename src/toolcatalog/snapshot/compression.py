"""Compression of a snapshot's documents: write the file that `compressed_documents` reads.

Builds and followers call this for a snapshot that is complete. What it makes is never downloaded:
compressed documents that somebody else made could decode to something else. For the same reason,
only a file with this user's seal is kept or copied from (see `system.seals`).
"""

import contextlib
import hashlib
import hmac
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from zlib_ng import zlib_ng

from toolcatalog.errors import SnapshotError
from toolcatalog.snapshot import compressed_documents, gzip_fragments, tables, verify
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.compressed_documents import SEPARATOR, CompressedDocuments
from toolcatalog.snapshot.mapped_files import Access, map_file
from toolcatalog.system import files, seals

_OpenDocuments = Callable[[Path, str], CompressedDocuments | None]

_BLOCK_SIZE = 1 << 20  # bytes of compressed documents that are collected before they are written
_MAX_DOCUMENT_SIZE = 1 << 24  # bytes; a document is compressed in memory
_COMPARED_SIZE = 1 << 20  # bytes of documents that are compared at once


def ensure_compressed_documents(out: Path, digest: str, *, is_private: bool = False) -> None:
    """Write the compressed documents of an installed snapshot unless this user has written them.

    `is_private`: only this program writes to the folder, so all files are as if sealed. Fragments
    of documents that the current snapshot has, too, are copied from there. Raises OSError, and
    SnapshotError if the snapshot is damaged.
    """
    folder = out / "snapshots" / digest
    open_documents = compressed_documents.open_compressed_documents if is_private else _open_sealed
    documents_sha256 = verify.read_manifest(folder).files[snapshot_format.DOCUMENTS].sha256
    with contextlib.suppress(SnapshotError):  # they are damaged, and replaced
        if open_documents(folder, documents_sha256):
            return
    _write(folder, documents_sha256, _open_existing(out / "current", open_documents))


def write_compressed_documents(folder: Path, documents_sha256: str, previous: Path) -> None:
    """Write the compressed documents of the snapshot in a folder, which needs no manifest yet.

    `documents_sha256` is that of `tools.json`. Fragments that the `previous` snapshot has, too, are
    copied if this user has written them. Raises OSError, and SnapshotError if the snapshot is
    damaged.
    """
    _write(folder, documents_sha256, _open_existing(previous, _open_sealed))


def _write(folder: Path, documents_sha256: str, previous: "_Existing | None") -> None:
    source = _open_source(folder, documents_sha256)
    # outside of the snapshot, so that nothing unlisted is left in it
    part = folder.with_name(f"{folder.name}.{snapshot_format.COMPRESSED_DOCUMENTS}.part")
    try:
        files.write_pieces(part, _render(source, previous))
        files.move_file(str(part), str(folder / snapshot_format.COMPRESSED_DOCUMENTS))
    finally:
        files.remove(part)


def _open_sealed(folder: Path, documents_sha256: str) -> CompressedDocuments | None:
    """Open the compressed documents of a snapshot; None without any that this user has sealed.

    Raises SnapshotError if they are damaged, and OSError if they cannot be read.
    """
    compressed = compressed_documents.open_compressed_documents(folder, documents_sha256)
    return compressed if compressed and _has_valid_seal(folder) else None


def _has_valid_seal(folder: Path) -> bool:
    data = memoryview(map_file(folder / snapshot_format.COMPRESSED_DOCUMENTS, Access.SEQUENTIAL))
    end = len(data) - seals.SEAL_SIZE
    return hmac.compare_digest(_compute_seal(hashlib.sha256(data[:end])), data[end:])


def _compute_seal(digest: "hashlib._Hash") -> bytes:
    return seals.compute_seal(snapshot_format.COMPRESSED_DOCUMENTS, digest.digest())


def verify_compressed_documents(folder: Path) -> list[str]:
    """Compare the compressed documents of a snapshot with the plain ones; a message per problem.

    The list is empty if there are none. No checksum in the file is trusted: every fragment is
    decompressed. Raises OSError, and SnapshotError if the snapshot has no valid manifest.
    """
    documents_sha256 = verify.read_manifest(folder).files[snapshot_format.DOCUMENTS].sha256
    try:
        compressed = compressed_documents.open_compressed_documents(folder, documents_sha256)
        if compressed:
            _compare(_open_source(folder, documents_sha256), compressed)
    except (SnapshotError, ValueError) as error:
        return [f"{snapshot_format.COMPRESSED_DOCUMENTS} is damaged ({error}): remove it"]
    return []


def _compare(source: "_Source", compressed: CompressedDocuments) -> None:
    """Raise ValueError or SnapshotError if a fragment or a checksum is not that of a document."""
    if len(compressed) != source.count or compressed.checksums() != _prefix_checksums(source):
        raise ValueError("checksums of other documents")
    for position, document in enumerate(source.read_documents(0, source.count)):
        slice_ = compressed.read_slice(position, position + 1)
        fragment, separator = slice_[: -len(SEPARATOR)], slice_[-len(SEPARATOR) :]
        plain = gzip_fragments.decompress_fragment(fragment, len(document))
        if separator != SEPARATOR or plain != document:
            raise ValueError(f"the fragment at position {position} has other content")


@dataclass(frozen=True, slots=True)
class _Source:
    """The documents of a snapshot."""

    sha256: str
    data: memoryview
    count: int
    columns: Mapping[str, NDArray[Any]]

    def slice(self, start: int, stop: int) -> memoryview:
        """Return adjacent documents with what is between them."""
        first, end = self.columns["offset"][[start, stop]].tolist()
        return self.data[first : end - 1]

    def read_documents(self, start: int, stop: int) -> Iterator[memoryview]:
        """Yield documents by position; raises SnapshotError if one is not what was written."""
        offsets = self.columns["offset"][start : stop + 1].tolist()
        checks = self.columns["check"][start:stop].tolist()
        for (first, end), check in zip(pairwise(offsets), checks, strict=True):
            document = self.data[first : end - 1]
            if zlib_ng.crc32(document) != check:
                raise SnapshotError(f"the document at offset {first} is damaged")
            yield document


class _Slice(NamedTuple):
    """Adjacent fragments, each with its separator, and their sizes and checksums."""

    data: bytes | memoryview
    sizes: Sequence[int]
    checks: Sequence[int]


def _open_source(folder: Path, documents_sha256: str) -> _Source:
    data, numbers = (
        memoryview(map_file(folder / name, Access.SEQUENTIAL))
        for name in (snapshot_format.DOCUMENTS, snapshot_format.NUMBERS)
    )
    try:
        columns = tables.unpack_columns(numbers)
    except ValueError:
        raise SnapshotError(f"{snapshot_format.NUMBERS} is damaged") from None
    if columns["offset"][-1] > len(data):
        raise SnapshotError(f"{snapshot_format.NUMBERS} belongs to other documents")
    if np.diff(columns["offset"]).max(initial=0) > _MAX_DOCUMENT_SIZE:
        raise SnapshotError("a document is too large to compress")
    return _Source(documents_sha256, data, len(columns["check"]), columns)


class _Existing(NamedTuple):
    """The documents of a snapshot, plain and compressed, and their keys."""

    source: _Source
    compressed: CompressedDocuments
    keys: NDArray[Any]


def _open_existing(folder: Path, open_documents: _OpenDocuments) -> _Existing | None:
    """Open the compressed documents of a snapshot; None if there are none or damaged ones."""
    try:
        files.open_regular(folder / snapshot_format.MANIFEST).close()  # a pipe would block
        documents_sha256 = verify.read_manifest(folder).files[snapshot_format.DOCUMENTS].sha256
        source = _open_source(folder, documents_sha256)
        compressed = open_documents(folder, documents_sha256)
    except (SnapshotError, OSError):
        return None
    if compressed is None or len(compressed) != source.count:
        return None
    return _Existing(source, compressed, _document_keys(source.columns))


def _render(source: _Source, previous: _Existing | None) -> Iterator[bytes | memoryview]:
    """Yield the bytes of the file, piece by piece."""
    starts, checks, digest = array("Q", [0]), array("I"), hashlib.sha256()
    for piece in _fragment_slices(source, previous):
        digest.update(piece.data)
        yield piece.data
        starts.extend(accumulate(piece.sizes, initial=starts.pop()))
        checks.extend(piece.checks)
    crcs = _prefix_checksums(source)
    table = compressed_documents.pack_table(source.sha256, starts, *crcs, checks)
    digest.update(table)
    yield table + _compute_seal(digest)


def _prefix_checksums(source: _Source) -> tuple["array[int]", "array[int]"]:
    """Return the CRC-32 of all documents and commas before each document and through it."""
    prefix_crcs, inclusive_crcs = array("I", [0]), array("I")
    sizes = (np.diff(source.columns["offset"].astype(np.int64)) - 1).tolist()
    crc = 0
    for check, size in zip(source.columns["check"].tolist(), sizes, strict=True):
        crc = gzip_fragments.append_crc32(crc, check, size)
        inclusive_crcs.append(crc)
        crc = zlib_ng.crc32(b",", crc)
        prefix_crcs.append(crc)
    return prefix_crcs, inclusive_crcs


def _fragment_slices(source: _Source, previous: _Existing | None) -> Iterator[_Slice]:
    """Yield all fragments in order, copied from the previous snapshot where it has them."""
    if previous is None:
        yield from _compress(source, 0, source.count)
        return
    matches = _match_keys(_document_keys(source.columns), previous.keys)
    for start, stop in _split_runs(matches):
        match = int(matches[start])
        copy = _copy(source, start, stop, previous, match) if match >= 0 else None
        if copy:
            yield copy
        else:
            yield from _compress(source, start, stop)


def _compress(source: _Source, start: int, stop: int) -> Iterator[_Slice]:
    block: list[bytes] = []
    size = 0
    for fragment in gzip_fragments.compress_fragments(source.read_documents(start, stop)):
        block.append(fragment + SEPARATOR)
        size += len(fragment)
        if size > _BLOCK_SIZE:
            yield _pack_slice(block)
            block, size = [], 0
    yield _pack_slice(block)


def _pack_slice(fragments: Sequence[bytes]) -> _Slice:
    return _Slice(b"".join(fragments), [*map(len, fragments)], [*map(zlib_ng.crc32, fragments)])


def _copy(source: _Source, start: int, stop: int, previous: _Existing, match: int) -> _Slice | None:
    """Return the fragments of equal documents from `match` on in another snapshot.

    Returns None if they are damaged, or if the documents differ: keys are what a snapshot states,
    and its author may have stated those of other documents.
    """
    end = match + stop - start
    if not _are_equal(source.slice(start, stop), previous.source.slice(match, end)):
        return None
    try:
        data = previous.compressed.read_slice(match, end)
    except SnapshotError:
        return None
    return _Slice(data, *previous.compressed.describe_slice(match, end))


def _are_equal(data: memoryview, other: memoryview) -> bool:
    """Return whether two large slices have the same bytes; views are compared item by item."""
    return len(data) == len(other) and all(
        bytes(data[start : start + _COMPARED_SIZE])
        == other[start : start + _COMPARED_SIZE].tobytes()
        for start in range(0, len(data), _COMPARED_SIZE)
    )


def _match_keys(keys: NDArray[Any], candidates: NDArray[Any]) -> NDArray[np.int64]:
    """Return the position of each key among others; -1 if it is not there."""
    if not len(candidates):
        return np.full(len(keys), -1)
    order = np.argsort(candidates["first"])
    positions = np.searchsorted(candidates["first"], keys["first"], sorter=order)
    matches = order[np.minimum(positions, len(order) - 1)]
    return np.where(candidates[matches] == keys, matches, -1)


def _document_keys(columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return what identifies each document: its tag in two parts, its checksum, its size."""
    keys = np.empty(len(columns["check"]), "<u8,<u8,<u4,<i8")
    keys.dtype.names = ("first", "second", "check", "size")
    tags = columns["tag"].view("<u8").reshape(-1, 2)
    keys["first"], keys["second"] = tags[:, 0], tags[:, 1]
    keys["check"], keys["size"] = columns["check"], np.diff(columns["offset"].astype(np.int64))
    return keys


def _split_runs(matches: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the ranges of positions whose matches are adjacent, or that have none."""
    steps = np.diff(matches)
    is_same = np.where(matches[:-1] < 0, matches[1:] < 0, steps == 1)
    bounds = [0, *(np.flatnonzero(~is_same) + 1).tolist(), len(matches)]
    return [*pairwise(bounds)] if len(matches) else []
