"""Frequent terms: which tools contain a term, and about how high their values are, as bits.

`search.query.pruning` adds up these bits to bound the score of every tool, many times faster than
it could add up postings. Only terms of more than one in 32 tool versions are here. Builds write the
file only for catalogs with at least MIN_TOOLS tool versions: in others, it would save nothing.

The values of a term are rounded up to one of four levels, which are equally far apart: `base`,
`base + step`, `base + 2 * step` and `base + 3 * step`. A term has three rows with a bit for every
tool: whether the tool contains the term, and the two bits of its level.

    rows       term by term: members, low bit of the level, high bit; each row is filled up with 0
               to a multiple of eight bytes
    columns    of the terms: number, base, step, checksum of the rows; four bytes each
    footer     number of terms, and the checksum of the columns; four bytes each

Every byte follows from the postings (`index_reader.TextIndex.pack_frequent_terms`).
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog.errors import REBUILD_HINT, SnapshotError
from toolcatalog.snapshot.mapped_files import Buffer, prefetch
from toolcatalog.snapshot.tables import ToolIds

MIN_TOOLS = 1 << 18  # tool versions
MIN_SHARE = 32  # a term is frequent if more than one in so many tool versions contain it
_LEVELS = 4
_FOOTER = struct.Struct("<II")
_COLUMN_COUNT = 4
_ROW_COUNT = 3

PostingValues = NDArray[np.uint16]
Bits = NDArray[np.uint64]  # a set of tools, one bit for each


class FrequentTerm(NamedTuple):
    """The tools that contain a frequent term, and the two bits of each one's level."""

    base: int
    step: int
    members: Bits
    low: Bits
    high: Bits

    @property
    def bound(self) -> int:
        """The highest level: no value is higher."""
        return self.base + (_LEVELS - 1) * self.step


def pack_bits(is_member: NDArray[np.bool_]) -> Bits:
    """Return a set of tools as bits, from a mask by number."""
    packed = np.packbits(is_member, bitorder="little")
    bits = np.zeros(_word_count(len(is_member)), np.uint64)
    bits.view(np.uint8)[: len(packed)] = packed
    return bits


def unpack_bits(bits: Bits, limit: int | None = None) -> ToolIds:
    """Return a set of tools as numbers in ascending order, from its bits; the first `limit`."""
    words = bits.nonzero()[0][:limit]
    positions = np.unpackbits(bits[words].view(np.uint8), bitorder="little").nonzero()[0]
    tool_ids: ToolIds = (words[positions >> 6] << 6 | positions & 63).astype(np.uint32)
    return tool_ids[:limit]


def count_bits(bits: Bits) -> int:
    """Return the number of tools in a set."""
    return int(np.bitwise_count(bits).sum(dtype=np.int64))


def pack(terms: Iterable[tuple[int, PostingValues]]) -> Iterator[bytes]:
    """Yield the bytes of the file, from frequent terms in the order of their numbers.

    Each comes with a value for every tool, 0 for those that do not contain it.
    """
    rows: list[tuple[int, ...]] = []
    for number, values in terms:
        is_member = values > 0
        lowest, highest = int(values[is_member].min()), int(values.max())
        step = (highest - lowest) // _LEVELS + 1
        levels = (np.maximum(values, lowest) - lowest) // step
        data = b"".join(
            pack_bits(row).astype("<u8").tobytes()
            for row in (is_member, levels & 1 > 0, levels & 2 > 0)
        )
        rows.append((number, lowest + step - 1, step, zlib.crc32(data)))
        yield data
    columns = np.array(rows, "<u4").reshape(-1, _COLUMN_COUNT).T.tobytes()
    yield columns + _FOOTER.pack(len(rows), zlib.crc32(columns))


class FrequentTerms:
    """The opened file of frequent terms.

    Methods raise SnapshotError if the data read differs from what was written.
    """

    def __init__(self, data: Buffer, tool_count: int) -> None:
        self._file = data
        self._data = memoryview(data)
        if len(data) < _FOOTER.size:
            raise _damaged()
        count, checksum = _FOOTER.unpack(self._data[-_FOOTER.size :])
        self._row_size = 8 * _word_count(tool_count)
        end = count * _ROW_COUNT * self._row_size
        content = self._data[end : -_FOOTER.size]
        if len(content) != 4 * _COLUMN_COUNT * count or zlib.crc32(content) != checksum:
            raise _damaged()
        columns = np.frombuffer(content, "<u4").reshape(_COLUMN_COUNT, count).tolist()
        self._columns = {
            number: (position, *rest)
            for position, (number, *rest) in enumerate(zip(*columns, strict=True))
        }
        self._terms: dict[int, FrequentTerm] = {}

    def get(self, number: int) -> FrequentTerm | None:
        """Return the term with this number; None if it is not frequent."""
        term = self._terms.get(number)
        if term is None and number in self._columns:
            term = self._terms[number] = self._read(number)
        return term

    def _read(self, number: int) -> FrequentTerm:
        position, base, step, checksum = self._columns[number]
        size = _ROW_COUNT * self._row_size
        start = position * size
        prefetch(self._file, start, size)
        data = self._data[start : start + size]
        if zlib.crc32(data) != checksum:
            raise _damaged()
        return FrequentTerm(base, step, *np.frombuffer(data, "<u8").reshape(_ROW_COUNT, -1))


def _word_count(tool_count: int) -> int:
    return -(-tool_count // 64)


def _damaged() -> SnapshotError:
    return SnapshotError(f"Frequent words are not what was written: {REBUILD_HINT}")
