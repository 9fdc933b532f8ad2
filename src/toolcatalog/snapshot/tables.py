"""Binary tables of a snapshot: a memory-mapped hash table, and numeric columns as arrays.

A lookup reads a slot, two offsets and the entry itself, whatever the size of the table. The pages
belong to the operating system, which shares them between processes and can drop them. Every entry
has a checksum that is checked at the first read; the slots and offsets have their own, checked at
opening. Numbers are little-endian.

    header   magic, entry count, slot count, checksum of slots and offsets, seed
    slots    entry i is in the first free slot from the hash of its name on, as i + 1; 0 is a free
             slot. The hash is CRC-32. Names can be made to collide in it: if they do, the hash is
             BLAKE2b with a seed from all names, and the magic is another.
    offsets  the start of each entry from the end of the offsets on, and the end of the last one
    entries  sorted by name: checksum, length of the name, name, value

Columns by position, which is the order of the documents in their file: `offset` (the start of each
document, and one more for the end), `tag`, `check` (CRC-32 of the document) and `number`. Columns
by tool id: `place` (the position), and the ranks `name` and `version`.
"""

import hashlib
import struct
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolcatalog.errors import REBUILD_HINT, SnapshotError
from toolcatalog.snapshot.format import TAG_SIZE
from toolcatalog.snapshot.mapped_files import Buffer, prefetch

ToolIds = NDArray[np.uint32]


_MAGIC, _SEEDED_MAGIC = b"tctable1", b"tctable2"
_HEADER = struct.Struct("<8sQQII")
_ENTRY_HEADER_SIZE = 8  # bytes before the name of an entry
_BLOCK_SIZE = 1 << 20  # bytes
_SAMPLE_COUNT = 256
_CHECKED_SLOTS = 4096  # at a time, so that opening a table takes little memory

_EMPTY_HEADER = (b"", 0, 0, 0, 0)


def pack_table(
    names: Sequence[str], sizes: Sequence[int], values: Iterable[bytes]
) -> Iterator[bytes]:
    """Yield the bytes of a table, piece by piece.

    `names` are distinct and sorted by code point; `sizes` are those of the `values` in bytes.
    `values` may be lazy.
    """
    keys = [name.encode() for name in names]
    magic, seed, slots = _MAGIC, 0, _fill_slots(keys, zlib.crc32)
    if slots is None:
        seed = zlib.crc32(hashlib.blake2b(b"\0".join(keys)).digest())
        magic, slots = _SEEDED_MAGIC, _fill_slots(keys, _seeded_hash(seed))
        assert slots is not None
    lengths = (_ENTRY_HEADER_SIZE + len(key) + size for key, size in zip(keys, sizes, strict=True))
    offsets = np.fromiter(accumulate(lengths, initial=0), "<u8", len(keys) + 1)
    index = slots.tobytes() + offsets.tobytes()
    yield _HEADER.pack(magic, len(keys), len(slots), zlib.crc32(index), seed)
    yield index
    block: list[bytes] = []
    length = 0
    for key, size, value in zip(keys, sizes, values, strict=True):
        assert len(value) == size
        header = len(key).to_bytes(4, "little") + key
        block += (zlib.crc32(value, zlib.crc32(header)).to_bytes(4, "little"), header, value)
        length += size
        if length > _BLOCK_SIZE:
            yield b"".join(block)
            block, length = [], 0
    yield b"".join(block)


Hash = Callable[[bytes], int]


def _fill_slots(keys: Sequence[bytes], hash: Hash) -> "array[int] | None":
    """Return the slots of a table; None if the names collide too often."""
    slots = array("I", bytes(4 << max(3, (2 * len(keys)).bit_length())))
    mask, steps = len(slots) - 1, 0
    for number, key in enumerate(keys, 1):
        slot = hash(key) & mask
        while slots[slot]:
            slot = (slot + 1) & mask
            steps += 1
        slots[slot] = number
        if steps > _max_steps(len(slots)):
            return None
    return slots if _count_steps(np.frombuffer(slots, np.uint32)) <= _max_steps(mask + 1) else None


def _seeded_hash(seed: int) -> Hash:
    key = seed.to_bytes(4, "little")
    return lambda name: int.from_bytes(
        hashlib.blake2b(name, digest_size=4, key=key).digest(), "little"
    )


def _count_steps(slots: NDArray[np.uint32]) -> int:
    """Return the steps of lookups of unknown names, one from each slot. There is a free slot."""
    steps, last = 0, _last_free(slots) - len(slots)
    for start in range(0, len(slots), _CHECKED_SLOTS):
        free = np.flatnonzero(slots[start : start + _CHECKED_SLOTS] == 0) + start
        if len(free):
            runs = np.diff(free, prepend=last) - 1
            steps += int((runs * (runs + 1) // 2).sum())
            last = int(free[-1])
    return steps


def _is_permutation(slots: NDArray[np.uint32], count: int) -> bool:
    """Return whether each entry is in one slot, if as many slots are used as there are entries."""
    is_used = np.zeros(count + 1, np.bool_)
    if len(slots) and slots.max() > count:
        return False
    is_used[slots] = True
    return bool(is_used[1:].all())


def _is_ascending(offsets: NDArray[np.uint64]) -> bool:
    """Return whether entries follow each other; shorter ones than a header fail their checksum."""
    return bool((offsets[1:] >= offsets[:-1]).all())


def _last_free(slots: NDArray[np.uint32]) -> int:
    number = len(slots) - 1
    while slots[number]:
        number -= 1
    return number


def _max_steps(slot_count: int) -> int:
    """Return the most steps of a table; a good hash takes about 1.5 for each slot."""
    return 4 * slot_count + 4096


class Table:
    """An opened table; methods raise SnapshotError if its bytes are not what was written."""

    def __init__(self, data: Buffer) -> None:
        if sys.byteorder != "little":
            raise SnapshotError("A snapshot can be served on little-endian machines only.")
        magic, count, slots, check, seed = (
            _HEADER.unpack(data[: _HEADER.size]) if len(data) >= _HEADER.size else _EMPTY_HEADER
        )
        self._entries_start = _HEADER.size + 4 * slots + 8 * (count + 1)  # of the first entry
        prefetch(data, _HEADER.size, self._entries_start)
        # a slice of the map itself would be a copy: dozens of megabytes for a million entries
        index = memoryview(data)[_HEADER.size : self._entries_start]
        if (
            magic not in (_MAGIC, _SEEDED_MAGIC)
            or self._entries_start > len(data)
            or zlib.crc32(index) != check
        ):
            raise SnapshotError("a table is damaged")
        self._slots, self._offsets = index[: 4 * slots].cast("I"), index[4 * slots :].cast("Q")
        self._data = data
        self._mask = slots - 1
        self._hash: Hash = zlib.crc32 if magic == _MAGIC else _seeded_hash(seed)
        self._sampled_names: dict[int, bytes] = {}
        used_slots = np.frombuffer(self._slots, np.uint32)
        if (
            self._entries_start + self._offsets[count] != len(data)
            or slots & self._mask  # not a power of two
            # a lookup of an unknown name ends at a free slot
            or not count == np.count_nonzero(used_slots) < slots
            or not _is_permutation(used_slots, count)
            or _count_steps(used_slots) > _max_steps(slots)
            or not _is_ascending(np.frombuffer(self._offsets, np.uint64))
        ):
            raise SnapshotError("a table is damaged")
        self._verified = bytearray(count)  # entries that matched their checksum

    def __len__(self) -> int:
        return len(self._verified)

    @property
    def largest_entry(self) -> int:
        """The size of the largest entry in bytes, with its name."""
        return int(np.diff(np.frombuffer(self._offsets, np.uint64)).max(initial=0))

    def get(self, name: str) -> bytes | None:
        """Return the value of a name; None if the name is missing."""
        match = self.find(name)
        return None if match is None else match[1]

    def find(self, name: str) -> tuple[int, bytes] | None:
        """Return the index of a name in the sorted names, and its value; None if it is missing."""
        key = name.encode("utf-8", "surrogateescape")
        header = len(key).to_bytes(4, "little") + key
        slot = self._hash(key) & self._mask
        while number := self._slots[slot]:
            if not self._verified[number - 1]:
                self._entry_at(number - 1)
            # other entries may be large, so only their names are read
            start = self._entries_start + self._offsets[number - 1] + 4
            if self._data[start : start + len(header)] == header:
                return number - 1, self._entry_at(number - 1)[4 + len(header) :]
            slot = (slot + 1) & self._mask
        return None

    def find_all(self, names: Iterable[str]) -> Iterator[tuple[int, str, bytes]]:
        """Yield index, name and value of those of the names that are there.

        For many names that are mostly missing, this takes half of the time of `find`.
        """
        slots, mask, hash = self._slots, self._mask, self._hash
        for name in names:
            if slots[hash(name.encode("utf-8", "surrogateescape")) & mask] and (
                matches := self.find(name)
            ):
                yield matches[0], name, matches[1]

    def entry_at(self, index: int) -> tuple[str, bytes]:
        """Return the name and the value at this index of the sorted names."""
        entry = self._entry_at(index)
        end = 8 + int.from_bytes(entry[4:8], "little")
        return entry[8:end].decode("utf-8", "replace"), entry[end:]

    def names(self, start: int, stop: int) -> list[str]:
        """Return the names from one index to another, in order."""
        entries = map(self._entry_at, range(max(0, start), min(stop, len(self))))
        return [
            entry[8 : 8 + int.from_bytes(entry[4:8], "little")].decode("utf-8", "replace")
            for entry in entries
        ]

    def bisect(self, name: str) -> int:
        """Return the number of names that sort before this one."""
        key = name.encode("utf-8", "surrogateescape")
        step = max(1, len(self) // _SAMPLE_COUNT)
        samples = range(0, len(self), step)
        passed_count = bisect_left(samples, key, key=self._sampled_name_at)
        return bisect_left(
            range(len(self)),
            key,
            max(0, passed_count - 1) * step,
            min(passed_count * step, len(self)),
            key=self._name_at,
        )

    def _sampled_name_at(self, index: int) -> bytes:
        """Return a name as `_name_at` does, from memory after the first time.

        These names are half of the steps of each search.
        """
        name = self._sampled_names.get(index)
        if name is None:
            name = self._sampled_names[index] = self._name_at(index)
        return name

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


_OFFSET_TYPE = "<u8"  # it has one item more than there are tool versions
_MIN_STEP = 3  # bytes of a document, `{}` at least, and of the comma or bracket after it
_COLUMN_TYPES = {
    "tag": f"V{TAG_SIZE}",
    "check": "<u4",
    "number": "<u4",
    "place": "<u4",
    "name": "<u4",
    "version": "<u4",
}


def unpack_columns(data: memoryview) -> dict[str, NDArray[Any]]:
    """Return the columns by name, without a copy.

    Raises ValueError if the bytes are no columns, or if a column refers to a missing item.
    """
    content, end, columns = np.frombuffer(data, np.uint8), 0, {}
    count = (len(content) - np.dtype(_OFFSET_TYPE).itemsize) // sum(
        np.dtype(kind).itemsize for kind in (_OFFSET_TYPE, *_COLUMN_TYPES.values())
    )
    for name, kind, items in (
        ("offset", _OFFSET_TYPE, count + 1),
        *((name, kind, count) for name, kind in _COLUMN_TYPES.items()),
    ):
        start, end = end, end + items * np.dtype(kind).itemsize
        columns[name] = content[start:end].view(kind)
    offset = columns["offset"]
    if (
        count < 0
        or end != len(content)
        or (offset[1:] < offset[:-1]).any()
        or np.diff(offset).min(initial=_MIN_STEP) < _MIN_STEP
        or any((columns[name] >= count).any() for name in ("number", "place"))
    ):
        raise ValueError("no columns")
    return columns


def pack_columns(columns: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of the columns."""
    return b"".join(
        columns[name].astype(kind, copy=False).tobytes()
        for name, kind in (("offset", _OFFSET_TYPE), *_COLUMN_TYPES.items())
    )
