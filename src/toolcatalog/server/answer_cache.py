"""Answer cache: the answers of one snapshot by visible toolkits, coding, path and query string.

A snapshot never changes and has a cache of its own, so an answer stays valid. A large page is read
from a mapped file whenever it is sent, and takes little memory; small pages are copies.
"""

from collections import OrderedDict
from collections.abc import Hashable

from toolcatalog.server.metrics.counters import CacheCounts
from toolcatalog.server.responses import PreparedAnswer

MAX_SIZE = 64 * 1024 * 1024  # bytes of all entries together
MAX_ENTRY_SIZE = 2 * 1024 * 1024  # bytes of one entry
_ENTRY_OVERHEAD = 1500  # bytes of a key, an answer with its headers and their dictionary entry

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
        self._entries: OrderedDict[CacheKey, PreparedAnswer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: CacheKey) -> PreparedAnswer | None:
        """Return the cached answer for a key, or None."""
        answer = self._entries.get(key)
        if answer is not None:
            self._counts.hits += 1
        return answer

    def add(self, key: CacheKey, answer: PreparedAnswer) -> None:
        """Add an answer unless it is too large."""
        self._counts.misses += 1
        size = _entry_size(key, answer)
        if size > min(MAX_ENTRY_SIZE, self._max_size) or key in self._entries:
            return
        self._entries[key] = answer
        self._size += size
        while self._size > self._max_size:
            self._size -= _entry_size(*self._entries.popitem(last=False))


def _entry_size(key: CacheKey, answer: PreparedAnswer) -> int:
    """Return the memory that an entry takes, in bytes.

    A character of a text takes up to four bytes.
    """
    texts = sum(4 * len(part) for part in key if isinstance(part, bytes | str))
    body = answer.body
    return _ENTRY_OVERHEAD + texts + (len(body) if isinstance(body, bytes) else body.memory)
