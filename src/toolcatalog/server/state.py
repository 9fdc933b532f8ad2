"""Server state: the snapshot in service, and the cache of its responses.

A store never changes, so cached responses stay valid.

A request reads `AppState.current` once and uses it to its end, so no response is made from two
snapshots. The previous snapshot is freed when the last request that uses it ends: its files are
mapped into memory, and the mapping ends when its last chunk has been sent.
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

# the size of all results together, in units of about a hundred bytes: one for each chunk, and some
# for each entry
_MAX_SIZE = 1 << 17
_ENTRY_OVERHEAD = 4
_MAX_CHUNKS = 128  # chunks of one result


class ResponseCache(dict[Hashable, OperationResult]):
    """A cache of results by request and, where it matters, by what the key may see.

    The oldest entries are removed when the cache is full.
    """

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def add(self, key: Hashable, result: OperationResult) -> None:
        """Add a result, unless it has more than `_MAX_CHUNKS` chunks."""
        if key in self or len(result.chunks) > _MAX_CHUNKS:
            return
        self[key] = result
        self._size += len(result.chunks) + _ENTRY_OVERHEAD
        while self._size > _MAX_SIZE:
            self._size -= len(self.pop(next(iter(self))).chunks) + _ENTRY_OVERHEAD


class Flag(Protocol):
    """A flag that is set once: an event of threads, or of processes."""

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        ...


class ServedSnapshot:
    """An open snapshot with its operations and its cache."""

    def __init__(self, store: Store, keys: KeyRing) -> None:
        self.store = store
        self.operations = Operations(store, keys)
        self.cache = ResponseCache()
        self.digest = store.digest.encode()
        self.opened_at = time.monotonic()


class AppState:
    """The state of a server process: the snapshot, the keys and the limits.

    `current` is None if no snapshot is open yet. `draining` is set when the server is about to
    stop. `rate_limiter` counts the list requests of each key; None means no limit.
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
        """Serve this store from the next request on. Thread-safe."""
        self.current = ServedSnapshot(store, self.keys)

    @property
    def digest(self) -> bytes:
        """The digest of the current snapshot; empty if none is open."""
        now = self.current
        return now.digest if now else b""

    def get_counts(self) -> CounterValues:
        """Return the counts and the status of this process. Thread-safe."""
        now = self.current
        about = (now.store.digest, now.opened_at, len(now.cache)) if now else ("", 0.0, 0)
        return self.observer.counters.get_values(WorkerStatus(os.getpid(), *about))
