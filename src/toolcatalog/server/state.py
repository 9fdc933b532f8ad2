"""Server state: the snapshot in service, and the cache of its answers.

A store
never changes, so they stay right.

A request takes `now` once and goes by that to its end, so no answer is put together from two
snapshots. What was served before goes when the last request that holds it is done: its files are
mapped, and the mapping ends with the last piece of it that is still to be sent.
"""

import os
import threading
import time
from collections.abc import Hashable
from typing import Protocol

from toolcatalog.keys.api_keys import KeyRing
from toolcatalog.server.metrics.counters import CounterValues, WorkerStatus
from toolcatalog.server.metrics.requests import RequestObserver
from toolcatalog.server.operations import OperationResult, Operations
from toolcatalog.server.rate_limit import RateLimiter
from toolcatalog.store.store import Store

# of all answers together, in units of about a hundred bytes: a unit for each piece, and for what
# stands around them
_MAX_SIZE = 1 << 17
_ENTRY_OVERHEAD = 4
_MAX_CHUNKS = 128  # pieces of one answer


class ResponseCache(dict[Hashable, OperationResult]):
    """Answers by what was asked, and by whom as far as that matters. The oldest go when there are
    too many.
    """

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def add(self, key: Hashable, result: OperationResult) -> None:
        """Remember an answer, unless it has very many pieces."""
        if key in self or len(result.chunks) > _MAX_CHUNKS:
            return
        self[key] = result
        self._size += len(result.chunks) + _ENTRY_OVERHEAD
        while self._size > _MAX_SIZE:
            self._size -= len(self.pop(next(iter(self))).chunks) + _ENTRY_OVERHEAD


class Flag(Protocol):
    """Something that is said once and heard by all who ask: an event of threads, or of processes."""

    def is_set(self) -> bool:
        """Whether it has been said."""
        ...


class ServedSnapshot:
    """One opened snapshot with all that belongs to it and to no other."""

    def __init__(self, store: Store, keys: KeyRing) -> None:
        self.store = store
        self.operations = Operations(store, keys)
        self.cache = ResponseCache()
        self.digest = store.digest.encode()
        self.opened_at = time.monotonic()


class AppState:
    """What is served `now` (None: nothing is open yet), to the holders of which keys, and whether
    this server is about to end.

    `limits` count the lists of each key; None: nobody does.
    """

    def __init__(
        self,
        keys: KeyRing,
        store: Store | None,
        draining: Flag | None = None,
        rate_limiter: RateLimiter | None = None,
    ) -> None:
        self.keys = keys
        self.rate_limiter = rate_limiter
        self.current = None if store is None else ServedSnapshot(store, keys)
        self.draining = draining or threading.Event()
        self.observer = RequestObserver()

    def switch_snapshot(self, store: Store) -> None:
        """Answer from this store from the next request on. May be called in any thread."""
        self.current = ServedSnapshot(store, self.keys)

    @property
    def digest(self) -> bytes:
        """The digest of what is served now; empty where nothing is open."""
        now = self.current
        return now.digest if now else b""

    def get_counts(self) -> CounterValues:
        """What this process has counted until now, and how it is. May be called in any thread."""
        now = self.current
        about = (now.store.digest, now.opened_at, len(now.cache)) if now else ("", 0.0, 0)
        return self.observer.counters.get_values(WorkerStatus(os.getpid(), *about))
