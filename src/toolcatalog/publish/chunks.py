"""Content-defined chunks: split a file so that a change leaves other chunks equal.

With chunks of a fixed size, a document that grows by one byte would shift all following bytes into
other chunks. Here a chunk ends where a hash of the 16 bytes before it is below a threshold,
wherever these bytes are in the file. The functions are pure.
"""

import mmap
from collections.abc import Iterator

import numpy as np

MIN_CHUNK_SIZE = 1 << 15  # bytes; only the last chunk of a file may be smaller
MAX_CHUNK_SIZE = 1 << 20
_AVERAGE_GAP = 1 << 16  # average distance of boundaries in bytes
_WINDOW_SIZE = 16  # bytes that are hashed
_WORD_SIZE = 8
_BLOCK_SIZE = 1 << 22  # bytes processed at once
# odd constants without a pattern
_FIRST_MULTIPLIER, _SECOND_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_UINT64_ONE = np.uint64(1)
_HASH_THRESHOLD = np.uint64((1 << 64) // _AVERAGE_GAP)


def split_chunks(data: bytes | mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each chunk of a file, in order and without gaps.

    A chunk has MIN_CHUNK_SIZE to MAX_CHUNK_SIZE bytes, about 100 KB on average; the last may be
    smaller.
    """
    start = 0
    for end in _find_boundaries(data):
        while end - start > MAX_CHUNK_SIZE:
            yield start, start + MAX_CHUNK_SIZE
            start += MAX_CHUNK_SIZE
        if end - start >= MIN_CHUNK_SIZE:
            yield start, end
            start = end
    while start < len(data):
        yield start, min(start + MAX_CHUNK_SIZE, len(data))
        start += MAX_CHUNK_SIZE


def _find_boundaries(data: bytes | mmap.mmap) -> Iterator[int]:
    """Yield possible chunk ends; near the border of two blocks one may be repeated."""
    for start in range(0, len(data), _BLOCK_SIZE):
        block = data[start : start + _BLOCK_SIZE + _WINDOW_SIZE + _WORD_SIZE]
        marks = [_find_marks(block, offset) for offset in range(_WORD_SIZE)]
        yield from (np.sort(np.concatenate(marks)) + (start + _WINDOW_SIZE)).tolist()


def _find_marks(block: bytes, offset: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return where windows that mark a boundary start, of every 8th position from `offset` on."""
    words = (
        np.frombuffer(block, "<u8", max(0, len(block) - offset) // _WORD_SIZE, offset)
        if len(block) >= offset + _WORD_SIZE
        else np.empty(0, "<u8")
    )
    hashes = ((words[:-1] * _FIRST_MULTIPLIER) ^ words[1:]) * _SECOND_MULTIPLIER
    # minus one, which wraps around 0: in a run of zero bytes, every position would be a boundary
    return np.flatnonzero(hashes - _UINT64_ONE < _HASH_THRESHOLD) * _WORD_SIZE + offset
