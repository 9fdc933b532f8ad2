"""Server state: the snapshot in service, the keys and the limits.

A request reads `AppState.current` once and uses it to its end, so no response is made from two
snapshots. The previous snapshot is freed when the last request that uses it ends: its files are
mapped into memory, and the mapping ends when its last chunk has been sent.
"""

import os
import time
from typing import Protocol

from toolcatalog.api.operations import Operations
from toolcatalog.keys.api_keys import KeyRing
from toolcatalog.server.answer_cache import AnswerCache
from toolcatalog.server.limits.rate_limit import RateLimiter
from toolcatalog.server.metrics.counters import CacheCounts, CounterValues, WorkerStatus
from toolcatalog.server.metrics.request_observer import RequestObserver
from toolcatalog.store.store import Store


class Flag(Protocol):
    """A flag that is set once: an event of threads, or of processes."""

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        ...


class LocalFlag:
    """A flag of one process that a signal handler can set.

    It has no lock: a second signal can interrupt the handler while it holds one, and then waits for
    itself.
    """

    def __init__(self) -> None:
        self._value = False

    def set(self) -> None:
        """Set the flag."""
        self._value = True

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._value


class ServedSnapshot:
    """An open snapshot with its operations and its cache of answers."""

    def __init__(self, store: Store, counts: CacheCounts) -> None:
        self.store = store
        self.cache = AnswerCache(counts)
        self.operations = Operations(store)
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
        self.draining = draining or LocalFlag()
        self.observer = RequestObserver()
        self.current: ServedSnapshot | None = None
        if store is not None:
            self.switch_snapshot(store)

    def switch_snapshot(self, store: Store) -> None:
        """Serve this store from the next request on. Thread-safe."""
        self.current = ServedSnapshot(store, self.observer.counters.cache)

    @property
    def digest(self) -> bytes:
        """The digest of the current snapshot; empty if none is open."""
        served = self.current
        return served.digest if served else b""

    def get_counts(self) -> CounterValues:
        """Return the counts and the status of this process. Thread-safe."""
        served = self.current
        status = (
            (served.store.digest, served.opened_at, len(served.cache)) if served else ("", 0.0, 0)
        )
        return self.observer.counters.get_values(WorkerStatus(os.getpid(), *status))
