"""What a server answers from just now: one snapshot, exchanged for another between two requests.

A request takes `now` once and goes by that to its end, so no answer is put together from two
snapshots. What was served before goes when the last request that holds it is done: its files are
mapped, and the mapping ends with the last piece of it that is still to be sent.
"""

import os
import threading
import time
from typing import Protocol

from toolcatalog.keys import KeyRing
from toolcatalog.server.limiting import Limits
from toolcatalog.server.operations import Operations
from toolcatalog.server.remembered import Remembered
from toolcatalog.server.tallies import Counts, Now
from toolcatalog.server.witness import Witness
from toolcatalog.store import Store


class Flag(Protocol):
    """Something that is said once and heard by all who ask: an event of threads, or of processes."""

    def is_set(self) -> bool:
        """Whether it has been said."""
        ...


class Serving:
    """One opened snapshot with all that belongs to it and to no other."""

    def __init__(self, store: Store, keys: KeyRing) -> None:
        self.store = store
        self.operations = Operations(store, keys)
        self.remembered = Remembered()
        self.snapshot = store.digest.encode()
        self.opened = time.monotonic()


class Live:
    """What is served `now` (None: nothing is open yet), to the holders of which keys, and whether
    this server is about to end.

    `limits` count the lists of each key; None: nobody does.
    """

    def __init__(
        self,
        keys: KeyRing,
        store: Store | None,
        draining: Flag | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.keys = keys
        self.limits = limits
        self.now = None if store is None else Serving(store, keys)
        self.draining = draining or threading.Event()
        self.witness = Witness()

    def exchange(self, store: Store) -> None:
        """Answer from this store from the next request on. May be called in any thread."""
        self.now = Serving(store, self.keys)

    @property
    def snapshot(self) -> bytes:
        """The digest of what is served now; empty where nothing is open."""
        now = self.now
        return now.snapshot if now else b""

    def counts(self) -> Counts:
        """What this process has counted until now, and how it is. May be called in any thread."""
        now = self.now
        about = (now.store.digest, now.opened, len(now.remembered)) if now else ("", 0.0, 0)
        return self.witness.tallies.counts(Now(os.getpid(), *about))
