"""Binary tables of a snapshot: a memory-mapped hash table, and numeric columns as arrays.

Looking a name up touches a slot, two places and the entry itself, whatever the size of the table,
and the pages touched belong to the operating system, which shares them between processes and drops
them when it must. Every entry carries a checksum that is held against its bytes when it is first
read; the slots and places have one of their own, checked at opening. Numbers are little-endian.

    head     magic, entries, slots, checksum of slots and places
    slots    where entry i is, i + 1 stands in the first free slot from CRC-32(name) on; 0 is a free slot
    places   where each entry begins, from the end of the places on, and where the last one ends
    entries  sorted by name: checksum, length of the name, name, value

By place, which is the order in which the documents lie: `offset` (where each begins, and where one
more would), `tag`, `check` (its CRC-32) and `number`; by number: `place`, and the ranks `name` and
`version`.
"""

import mmap
import struct
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolcatalog.errors import REBUILD_HINT, SnapshotError
from toolcatalog.snapshot.format import TAG_SIZE

ToolIds = NDArray[np.uint32]


_MAGIC = b"tctable1"
_HEADER = struct.Struct("<8sQQII")
_ENTRY_HEADER_SIZE = 8  # bytes of an entry before its name
_BLOCK_SIZE = 1 << 20  # bytes
_SAMPLE_COUNT = 256

_EMPTY_HEADER = (b"", 0, 0, 0, 0)

Buffer = bytes | mmap.mmap  # what gives bytes where it is cut


def pack_table(
    names: Sequence[str], sizes: Sequence[int], values: Iterable[bytes]
) -> Iterator[bytes]:
    """The bytes of a table, piece by piece.

    `names` are distinct and sorted by code point; `sizes` are those of the `values` in bytes, which
    may come lazily.
    """
    keys = [name.encode() for name in names]
    slots = array("I", bytes(4 << max(3, (2 * len(keys)).bit_length())))
    mask = len(slots) - 1
    for number, key in enumerate(keys, 1):
        at = zlib.crc32(key) & mask
        while slots[at]:
            at = (at + 1) & mask
        slots[at] = number
    lengths = (_ENTRY_HEADER_SIZE + len(key) + size for key, size in zip(keys, sizes, strict=True))
    places = np.fromiter(accumulate(lengths, initial=0), "<u8", len(keys) + 1)
    index = slots.tobytes() + places.tobytes()
    yield _HEADER.pack(_MAGIC, len(keys), len(slots), zlib.crc32(index), 0)
    yield index
    block: list[bytes] = []
    length = 0
    for key, size, value in zip(keys, sizes, values, strict=True):
        assert len(value) == size
        named = len(key).to_bytes(4, "little") + key
        block += (zlib.crc32(value, zlib.crc32(named)).to_bytes(4, "little"), named, value)
        length += size
        if length > _BLOCK_SIZE:
            yield b"".join(block)
            block, length = [], 0
    yield b"".join(block)


class Table:
    """An opened table. Raises SnapshotError where its bytes are not those that were written."""

    def __init__(self, data: Buffer) -> None:
        if sys.byteorder != "little":
            raise SnapshotError("A snapshot can be served on little-endian machines only.")
        magic, count, slots, check, _ = (
            _HEADER.unpack(data[: _HEADER.size]) if len(data) >= _HEADER.size else _EMPTY_HEADER
        )
        self._entries_start = _HEADER.size + 4 * slots + 8 * (count + 1)  # of the entries
        # a cut of the map itself would be a copy: dozens of megabytes at a million
        index = memoryview(data)[_HEADER.size : self._entries_start]
        if magic != _MAGIC or self._entries_start > len(data) or zlib.crc32(index) != check:
            raise SnapshotError("a table is damaged")
        self._slots, self._offsets = index[: 4 * slots].cast("I"), index[4 * slots :].cast("Q")
        self._data = data
        self._mask = slots - 1
        # which entries were read before and found as they were written
        self._verified = bytearray(count)
        filled = np.frombuffer(self._slots, np.uint32)
        if (
            self._entries_start + self._offsets[count] != len(data)
            or slots & self._mask  # no power of two
            # a lookup of an unknown name ends at a free slot
            or not count == np.count_nonzero(filled) < slots
            or filled.max() > count
        ):
            raise SnapshotError("a table is damaged")

    def __len__(self) -> int:
        return len(self._verified)

    def get(self, name: str) -> bytes | None:
        """The value of a name; None where there is none."""
        found = self.find(name)
        return None if found is None else found[1]

    def find(self, name: str) -> tuple[int, bytes] | None:
        """The place of a name among all in order, and its value; None where there is no such name."""
        key = name.encode("utf-8", "surrogateescape")
        named = len(key).to_bytes(4, "little") + key
        at = zlib.crc32(key) & self._mask
        while number := self._slots[at]:
            entry = self._entry_at(number - 1)
            if entry.startswith(named, 4):
                return number - 1, entry[4 + len(named) :]
            at = (at + 1) & self._mask
        return None

    def entry_at(self, index: int) -> tuple[str, bytes]:
        """The name and the value that have this place among all in order."""
        entry = self._entry_at(index)
        end = 8 + int.from_bytes(entry[4:8], "little")
        return entry[8:end].decode("utf-8", "replace"), entry[end:]

    def names(self, start: int, stop: int) -> list[str]:
        """The names from one place in their order to another."""
        entries = map(self._entry_at, range(max(0, start), min(stop, len(self))))
        return [
            entry[8 : 8 + int.from_bytes(entry[4:8], "little")].decode("utf-8", "replace")
            for entry in entries
        ]

    def bisect(self, name: str) -> int:
        """How many names sort before this one."""
        key = name.encode("utf-8", "surrogateescape")
        step, milestones = self._sampled_names
        passed = bisect_left(milestones, key)
        return bisect_left(
            range(len(self)),
            key,
            max(0, passed - 1) * step,
            min(passed * step, len(self)),
            key=self._name_at,
        )

    @cached_property
    def _sampled_names(self) -> tuple[int, list[bytes]]:
        """A fixed number of names, in order, and how far they stand apart: half of the way to any
        other, without touching an entry.
        """
        step = max(1, len(self) // _SAMPLE_COUNT)
        return step, [self._name_at(number) for number in range(0, len(self), step)]

    def _name_at(self, index: int) -> bytes:
        entry = self._entry_at(index)
        return entry[8 : 8 + int.from_bytes(entry[4:8], "little")]

    def _entry_at(self, index: int) -> bytes:
        entry: bytes = self._data[
            self._entries_start + self._offsets[index] : self._entries_start
            + self._offsets[index + 1]
        ]
        if not self._verified[index]:
            if zlib.crc32(entry[4:]) != int.from_bytes(entry[:4], "little"):
                raise SnapshotError(
                    f"An entry of a table has other bytes than were written: {REBUILD_HINT}"
                )
            self._verified[index] = 1
        return entry


_OFFSET_TYPE = "<u8"  # of these there is one more than there are tool versions
_COLUMN_TYPES = {
    "tag": f"V{TAG_SIZE}",
    "check": "<u4",
    "number": "<u4",
    "place": "<u4",
    "name": "<u4",
    "version": "<u4",
}


def unpack_columns(data: memoryview) -> dict[str, NDArray[Any]]:
    """The columns by name; nothing is copied. Raises ValueError where the bytes are not those of
    columns, or where a column refers to what is not there.
    """
    every, end, found = np.frombuffer(data, np.uint8), 0, {}
    count = (len(every) - np.dtype(_OFFSET_TYPE).itemsize) // sum(
        np.dtype(kind).itemsize for kind in (_OFFSET_TYPE, *_COLUMN_TYPES.values())
    )
    for name, kind, items in (
        ("offset", _OFFSET_TYPE, count + 1),
        *((name, kind, count) for name, kind in _COLUMN_TYPES.items()),
    ):
        start, end = end, end + items * np.dtype(kind).itemsize
        found[name] = every[start:end].view(kind)
    offset = found["offset"]
    if (
        count < 0
        or end != len(every)
        or (offset[1:] < offset[:-1]).any()
        or any((found[name] >= count).any() for name in ("number", "place"))
    ):
        raise ValueError("no columns")
    return found


def pack_columns(columns: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of the columns."""
    return b"".join(
        columns[name].astype(kind, copy=False).tobytes()
        for name, kind in (("offset", _OFFSET_TYPE), *_COLUMN_TYPES.items())
    )
