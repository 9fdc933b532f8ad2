"""Compressed documents: the documents of a snapshot as gzip fragments, in a file of their own.

The file is optional, and the digest of the snapshot does not cover it, because its bytes depend on
the version of the compression library. It belongs to one `tools.json`, which it names by its
SHA-256. Numbers are little-endian.

    fragments  each document as a fragment, followed by a comma as another one; by position
    padding    zeros up to a multiple of eight bytes
    columns    by position: `start` (the offset of each fragment, and the end of the last one); the
               CRC-32 of all plain documents and commas `before` this document (and of all) and
               `through` it; `check` (CRC-32 of the fragment with its separator)
    footer     SHA-256 of `tools.json`, number of documents, CRC-32 of the columns and of the footer
               up to here, magic
    seal       of all bytes before it (see `system.seals`); for builds, readers ignore it

Adjacent documents are one slice of this file. The CRC-32 of their plain bytes follows from those
`before` the first and `through` the last, so no document is read.
"""

import struct
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from zlib_ng import zlib_ng

from toolcatalog.errors import SnapshotError
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import gzip_fragments
from toolcatalog.snapshot.gzip_fragments import Fragments, combine_crc32
from toolcatalog.snapshot.mapped_files import Access, Buffer, FileSlices, map_file, prefetch
from toolcatalog.system import seals

_MAGIC = b"tcdeflt2"
_FOOTER = struct.Struct("<32sQ")  # and then the checksum and the magic
_END = struct.Struct("<Q8s")
_ALIGNMENT = 8  # bytes
SEPARATOR = gzip_fragments.store_fragment(b",")


def find_runs(positions: NDArray[np.uint32]) -> list[tuple[int, int]]:
    """Return the runs of consecutive positions, in the given order.

    A run is its first position and the one after its last.
    """
    if not len(positions):
        return []
    first, last = int(positions[0]), int(positions[-1])
    if last - first == len(positions) - 1 and (positions[1:] > positions[:-1]).all():
        return [(first, last + 1)]
    runs, stop = [], first
    for position in positions.tolist():
        if position != stop:
            runs.append((first, stop))
            first = position
        stop = position + 1
    runs.append((first, stop))
    return runs


class CompressedDocuments:
    """An opened file of compressed documents; each fragment is checked at the first read.

    Raises SnapshotError if the table is damaged or if it belongs to other documents.
    """

    def __init__(self, data: Buffer, documents_sha256: str) -> None:
        columns, count = _read_table(data, documents_sha256)
        starts, narrow_columns = columns[: 8 * (count + 1)], columns[8 * (count + 1) :].cast("I")
        # memoryviews are indexed in a third of the time of arrays
        self._starts, self._prefix_crcs = starts.cast("Q"), narrow_columns[: count + 1]
        self._inclusive_crcs, self._checks = (
            narrow_columns[count + 1 : 2 * count + 1],
            narrow_columns[2 * count + 1 :],
        )
        self._data = memoryview(data)
        self._verified = bytearray(count)
        self._verified_column = np.frombuffer(self._verified, np.bool_)
        start_values = np.frombuffer(starts, np.uint64)
        table_size = len(columns) + _FOOTER.size + _END.size + seals.SEAL_SIZE
        padding = self._data[start_values[-1] : len(data) - table_size]
        if (
            (start_values[1:] < start_values[:-1]).any()
            or any(padding)
            or len(padding) >= _ALIGNMENT
        ):
            raise SnapshotError("its table is damaged")

    def __len__(self) -> int:
        return len(self._verified)

    def read_documents(
        self, positions: NDArray[np.uint32], document_offsets: Sequence[int]
    ) -> Fragments:
        """Return documents with commas between them.

        `document_offsets` are those of `tools.json`. Raises SnapshotError if a fragment is not what
        was written.
        """
        if not len(positions):
            return Fragments(FileSlices(self._data, (), ()), 0, 0)
        if not self._verified_column.take(positions).all():
            for position in positions.tolist():
                self._verify(position, position + 1)
        runs = find_runs(positions)
        starts = [self._starts[first] for first, _ in runs]
        ends = [self._starts[stop] for _, stop in runs]
        sizes = [document_offsets[stop] - document_offsets[first] for first, stop in runs]
        before = [self._prefix_crcs[first] for first, _ in runs]
        through = [self._prefix_crcs[stop] for _, stop in runs]
        # no comma after the last document
        ends[-1] -= len(SEPARATOR)
        sizes[-1] -= 1
        through[-1] = self._inclusive_crcs[runs[-1][1] - 1]
        crc = combine_crc32(before, through, sizes)
        return Fragments(FileSlices(self._data, starts, ends), crc, sum(sizes))

    def read_slice(self, start: int, stop: int) -> memoryview:
        """Return the fragments from one position to another, each with its separator.

        Raises SnapshotError if one is not what was written.
        """
        if self._verified.find(0, start, stop) >= 0:
            self._verify(start, stop)
        return self._data[self._starts[start] : self._starts[stop]]

    def checksums(self) -> tuple["array[int]", "array[int]"]:
        """Return the checksums `before` the documents and `through` them."""
        return array("I", self._prefix_crcs), array("I", self._inclusive_crcs)

    def describe_slice(self, start: int, stop: int) -> tuple[list[int], list[int]]:
        """Return the sizes in bytes and the checksums of the fragments of a slice."""
        starts = self._starts[start : stop + 1].tolist()
        return np.diff(starts).tolist(), self._checks[start:stop].tolist()

    def _verify(self, start: int, stop: int) -> None:
        for position in range(start, stop):
            fragment = self._data[self._starts[position] : self._starts[position + 1]]
            if zlib_ng.crc32(fragment) != self._checks[position]:
                raise SnapshotError(f"the fragment at position {position} is damaged")
            self._verified[position] = 1


def open_compressed_documents(folder: Path, documents_sha256: str) -> CompressedDocuments | None:
    """Open the compressed documents of the snapshot in a folder; None if it has none.

    Raises SnapshotError if they are damaged, and OSError if they cannot be read.
    """
    try:
        data = map_file(folder / snapshot_format.COMPRESSED_DOCUMENTS, Access.RANDOM)
    except FileNotFoundError:
        return None
    return CompressedDocuments(data, documents_sha256)


def _read_table(data: Buffer, documents_sha256: str) -> tuple[memoryview, int]:
    """Return the bytes of the columns, and the number of documents."""
    view = memoryview(data)[: max(0, len(data) - seals.SEAL_SIZE)]
    end = len(view) - _END.size
    footer = end - _FOOTER.size
    if footer < 0:
        raise SnapshotError("it is truncated")
    check, magic = _END.unpack(view[end:])
    sha256, count = _FOOTER.unpack(view[footer:end])
    start = footer - (8 + 4) * (count + 1) - (4 + 4) * count
    prefetch(data, max(start, 0), len(view))
    if magic != _MAGIC or start < 0 or zlib_ng.crc32(view[start:end]) != check:
        raise SnapshotError("its table is damaged")
    if sha256.hex() != documents_sha256:
        raise SnapshotError("it belongs to other documents")
    return view[start:footer], count


def pack_table(
    documents_sha256: str,
    starts: "array[int]",
    prefix_crcs: "array[int]",
    inclusive_crcs: "array[int]",
    checks: "array[int]",
) -> bytes:
    """Return what is between the fragments and the seal: padding, columns and footer."""
    columns = b"".join(column.tobytes() for column in (starts, prefix_crcs, inclusive_crcs, checks))
    table = columns + _FOOTER.pack(bytes.fromhex(documents_sha256), len(checks))
    padding = bytes(-starts[-1] % _ALIGNMENT)
    return padding + table + _END.pack(zlib_ng.crc32(table), _MAGIC)
