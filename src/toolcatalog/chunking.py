"""A file into chunks whose ends its own bytes decide, so that a change in one place leaves the
chunks before and behind it as they were.

With chunks of a fixed size, a document that becomes one byte longer would move all that follows
into other chunks. Here a chunk ends where a hash of the sixteen bytes before says so, wherever in
the file those are. Pure.
"""

import mmap
from collections.abc import Iterator

import numpy as np

LEAST = 1 << 15  # bytes of a chunk, but for the last of a file
MOST = 1 << 20
_ONE_IN = 1 << 16  # places, on average, is the end of a chunk
_WINDOW = 16  # bytes that decide
_WORD = 8
_BLOCK = 1 << 22  # bytes looked at in one go
# odd, and without a pattern
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_ONE = np.uint64(1)
_BELOW = np.uint64((1 << 64) // _ONE_IN)


def spans(data: bytes | mmap.mmap) -> Iterator[tuple[int, int]]:
    """Where the chunks of a file begin and end, in order and without gaps: of LEAST to MOST bytes,
    some 100 KB on average.
    """
    begin = 0
    for end in _ends(data):
        while end - begin > MOST:
            yield begin, begin + MOST
            begin += MOST
        if end - begin >= LEAST:
            yield begin, end
            begin = end
    while begin < len(data):
        yield begin, min(begin + MOST, len(data))
        begin += MOST


def _ends(data: bytes | mmap.mmap) -> Iterator[int]:
    """Where a chunk may end. Near the border of two blocks a place may come twice."""
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK + _WINDOW + _WORD]
        found = [_marked(block, offset) for offset in range(_WORD)]
        yield from (np.sort(np.concatenate(found)) + (start + _WINDOW)).tolist()


def _marked(block: bytes, offset: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Where, of every eighth place from the offset on, a window begins that marks an end."""
    words = (
        np.frombuffer(block, "<u8", max(0, len(block) - offset) // _WORD, offset)
        if len(block) >= offset + _WORD
        else np.empty(0, "<u8")
    )
    hashes = ((words[:-1] * _FIRST) ^ words[1:]) * _SECOND
    # less one: where all is zero, every place would be an end
    return np.flatnonzero(hashes - _ONE < _BELOW) * _WORD + offset
