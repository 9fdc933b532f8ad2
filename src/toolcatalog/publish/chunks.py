"""Content-defined chunks: split a file so that a change leaves other chunks equal.

With chunks of a fixed size, a document that becomes one byte longer would move all that follows
into other chunks. Here a chunk ends where a hash of the sixteen bytes before says so, wherever in
the file those are. Pure.
"""

import mmap
from collections.abc import Iterator

import numpy as np

MIN_CHUNK_SIZE = 1 << 15  # bytes of a chunk, but for the last of a file
MAX_CHUNK_SIZE = 1 << 20
_AVERAGE_GAP = 1 << 16  # places, on average, is the end of a chunk
_WINDOW_SIZE = 16  # bytes that decide
_WORD_SIZE = 8
_BLOCK_SIZE = 1 << 22  # bytes looked at in one go
# odd, and without a pattern
_FIRST_MULTIPLIER, _SECOND_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_UINT64_ONE = np.uint64(1)
_HASH_THRESHOLD = np.uint64((1 << 64) // _AVERAGE_GAP)


def split_chunks(data: bytes | mmap.mmap) -> Iterator[tuple[int, int]]:
    """Where the chunks of a file begin and end, in order and without gaps: of LEAST to MOST bytes,
    some 100 KB on average.
    """
    begin = 0
    for end in _find_boundaries(data):
        while end - begin > MAX_CHUNK_SIZE:
            yield begin, begin + MAX_CHUNK_SIZE
            begin += MAX_CHUNK_SIZE
        if end - begin >= MIN_CHUNK_SIZE:
            yield begin, end
            begin = end
    while begin < len(data):
        yield begin, min(begin + MAX_CHUNK_SIZE, len(data))
        begin += MAX_CHUNK_SIZE


def _find_boundaries(data: bytes | mmap.mmap) -> Iterator[int]:
    """Where a chunk may end. Near the border of two blocks a place may come twice."""
    for start in range(0, len(data), _BLOCK_SIZE):
        block = data[start : start + _BLOCK_SIZE + _WINDOW_SIZE + _WORD_SIZE]
        found = [_find_marks(block, offset) for offset in range(_WORD_SIZE)]
        yield from (np.sort(np.concatenate(found)) + (start + _WINDOW_SIZE)).tolist()


def _find_marks(block: bytes, offset: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Where, of every eighth place from the offset on, a window begins that marks an end."""
    words = (
        np.frombuffer(block, "<u8", max(0, len(block) - offset) // _WORD_SIZE, offset)
        if len(block) >= offset + _WORD_SIZE
        else np.empty(0, "<u8")
    )
    hashes = ((words[:-1] * _FIRST_MULTIPLIER) ^ words[1:]) * _SECOND_MULTIPLIER
    # less one: where all is zero, every place would be an end
    return np.flatnonzero(hashes - _UINT64_ONE < _HASH_THRESHOLD) * _WORD_SIZE + offset
