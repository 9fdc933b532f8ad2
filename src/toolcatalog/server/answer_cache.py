"""Answer cache: the answers of one snapshot by visible toolkits, coding, path and query string.

A snapshot never changes and has a cache of its own, so an answer stays valid. A large page in the
order of the files is a view of a mapped file and takes little memory; other pages are copies.
"""

from collections.abc import Hashable

from toolcatalog.server.metrics.counters import CacheCounts
from toolcatalog.server.responses import Answer, BodyChunk

MAX_SIZE = 64 * 1024 * 1024  # bytes of all entries together
MAX_ENTRY_SIZE = 2 * 1024 * 1024  # bytes of one entry
_ENTRY_OVERHEAD = 1500  # bytes of a key, an answer with its headers and their dictionary entry
_CHUNK_OVERHEAD = 220  # bytes of a chunk without the data that it owns

CacheKey = tuple[Hashable, ...]


class AnswerCache:
    """A cache of answers with a maximum size; the oldest entries are removed when it is full.

    `counts` counts the answers that were in it, and those that had to be made. Only for the thread
    of the event loop.
    """

    def __init__(self, counts: CacheCounts | None = None, max_size: int = MAX_SIZE) -> None:
        self._counts = CacheCounts() if counts is None else counts
        self._max_size = max_size
        self._size = 0
        self._entries: dict[CacheKey, tuple[Answer, int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: CacheKey) -> Answer | None:
        """Return the cached answer for a key, or None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._counts.hits += 1
        return entry[0]

    def add(self, key: CacheKey, answer: Answer) -> None:
        """Add an answer unless it is too large."""
        self._counts.misses += 1
        size = _ENTRY_OVERHEAD + _key_size(key) + sum(map(_chunk_size, answer.chunks))
        if size > min(MAX_ENTRY_SIZE, self._max_size) or key in self._entries:
            return
        self._entries[key] = (answer, size)
        self._size += size
        while self._size > self._max_size:
            self._size -= self._entries.pop(next(iter(self._entries)))[1]


def _key_size(key: CacheKey) -> int:
    """Return the memory that the texts of a key take; a character may take four bytes."""
    return sum(4 * len(part) for part in key if isinstance(part, bytes | str))


def _chunk_size(chunk: BodyChunk) -> int:
    """Return the memory that a chunk takes; the data of a view is that of a mapped file."""
    return _CHUNK_OVERHEAD + (len(chunk) if isinstance(chunk, bytes) else 0)
