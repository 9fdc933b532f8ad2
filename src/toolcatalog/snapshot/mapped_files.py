"""Mapped files: the files of a snapshot as memory, with advice on how they are read."""

import mmap
import os
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

Buffer = bytes | mmap.mmap  # slices of it are bytes


class Access(Enum):
    """How a mapped file is read, which decides how much the system reads ahead of a page."""

    RANDOM = "MADV_RANDOM"  # nothing, except what `prefetch` names
    SEQUENTIAL = "MADV_SEQUENTIAL"  # much
    WHOLE = "MADV_WILLNEED"  # everything, at once


def map_file(file: Path, access: Access) -> Buffer:
    """Map a file into memory for reading; an empty one is empty bytes, and so is a pipe.

    Raises OSError.
    """
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not os.fstat(handle).st_size:
            return b""
        data = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(handle)
    _advise(data, access.value, 0, len(data))
    return data


class FileSlices:
    """Slices of a mapped file: views that are created whenever they are iterated over.

    `starts` and `stops` are the offsets of the slices, in bytes. `size` is their number of bytes.
    """

    __slots__ = ("_data", "_starts", "_stops", "size")

    def __init__(self, data: memoryview, starts: Sequence[int], stops: Sequence[int]) -> None:
        self._data, self._starts, self._stops = data, starts, stops
        self.size = sum(stops) - sum(starts)

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[memoryview]:
        data = self._data
        return iter(
            [data[start:stop] for start, stop in zip(self._starts, self._stops, strict=True)]
        )


def prefetch(data: Buffer, start: int, size: int) -> None:
    """Load a range of a mapped file that is about to be read completely."""
    aligned_start = min(start, len(data)) // mmap.PAGESIZE * mmap.PAGESIZE
    if isinstance(data, mmap.mmap) and aligned_start < len(data):
        _advise(data, "MADV_WILLNEED", aligned_start, min(start + size, len(data)) - aligned_start)


def release(data: Buffer) -> None:
    """Let go of the pages of a mapped file, which are read again when they are needed."""
    if isinstance(data, mmap.mmap):
        _advise(data, "MADV_DONTNEED", 0, len(data))


def _advise(data: mmap.mmap, advice: str, start: int, size: int) -> None:
    """Advise the system about a range of a mapped file, if it takes such advice."""
    if hasattr(mmap, advice) and size > 0:
        data.madvise(getattr(mmap, advice), start, size)
