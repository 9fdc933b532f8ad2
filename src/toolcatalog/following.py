"""A local folder kept in step with what is published in an object store: a cache of the very shape
of a build, that a server opens as one.

    <cache>/snapshots/<digest>/   as in a build
    <cache>/current               as in a build: a link to the snapshot in force
    <cache>/chunks/<digest>.json  of which chunks that snapshot is made

The store may be slow, wrong, or away: what is there stays, and is served. One process at a time
writes into a cache.
"""

import hashlib
import logging
import os
import random
import threading
import time
from pathlib import Path
from typing import NamedTuple

from toolcatalog import depot, fetching, files, holding, publishing, threads, verifying
from toolcatalog.depot import Refused
from toolcatalog.errors import SnapshotError, ToolcatalogError, remedy
from toolcatalog.objects import Missing, Objects, StoreError, Tag

# seconds between two looks at the pointer, more or less: so that a new one is noticed within two
INTERVAL = 1.5
KEPT = 3  # snapshots in a cache
_JOBS = 16  # objects fetched at a time
_MOST_PATIENCE = 60.0  # seconds until what was refused, or could not be written, is tried again
_MOST_ABSENCE = 10.0  # seconds between two looks while the store is away
# of a pause, at most, by which it is shorter: replicas that were started together do not ask
# together
_SPREAD = 0.2
_log = logging.getLogger("toolcatalog.following")


def default_cache(url: str) -> Path:
    """Where the copy of a store goes if nobody says otherwise: in the user's cache folder, under a
    hash of the URL.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "toolcatalog" / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]


class _Backoff:
    """A pause in seconds that doubles with each failure, up to a most."""

    def __init__(self, least: float, most: float) -> None:
        self.least, self.most, self.wait = least, most, least

    def fail(self) -> None:
        self.wait = min(self.most, 2 * self.wait)

    def reset(self) -> None:
        self.wait = self.least


class _Failed(NamedTuple):
    """A snapshot that could not be taken, why, and when it is tried again on the monotonic clock."""

    digest: str
    why: str
    until: float


class Follower:
    """Follows one store into one cache. `fetched` and `refused` count snapshots, `objects` and
    `size` what came over the network, `failed` looks that failed, for whatever reason.

    `last_error` is the sentence of the last look that failed, empty where it did not;
    `last_success` is when the pointer was last read and followed, in seconds since 1970, 0 for
    never.
    """

    def __init__(self, url: str, cache: Path, interval: float = INTERVAL) -> None:
        """Take a URL as `objects` does, and a folder that may not be there yet. Raises StoreError
        where the URL is none.
        """
        self.cache = cache
        self.fetched = self.refused = self.failed = self.objects = self.size = 0
        self.last_error, self.last_success = "", 0.0
        self._objects = Objects(url)
        self._tag: Tag | None = None
        self._failed: _Failed | None = None
        self._asking, self._taking = (
            _Backoff(interval, _MOST_ABSENCE),
            _Backoff(interval, _MOST_PATIENCE),
        )
        self._stopped = threading.Event()

    def has_one(self) -> bool:
        """Tell whether the cache holds a snapshot that can be served: one whose manifest holds and
        whose files have their sizes.
        """
        folder = Path(os.path.realpath(self.cache / "current"))
        try:
            manifest = verifying.read(folder)
            return not any(
                True for _ in verifying.missing(folder, verifying.contents(folder, manifest))
            )
        except SnapshotError:
            return False

    def start(self) -> None:
        """Follow from now on, in a thread that ends with the process."""
        threads.begin(threading.Thread(target=self._run, name="following", daemon=True))

    def stop(self) -> None:
        """Follow no longer; what is under way is not waited for."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.follow()
            self._stopped.wait(self._pause())

    def _pause(self) -> float:
        return self._asking.wait * (1 - _SPREAD * random.random())  # noqa: S311 - it guards nothing

    def follow(self) -> None:
        """Look at the store once and follow it. Never raises: what is wrong is told in the log,
        once, and what is there stays.
        """
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            with files.alone(self.cache / ".lock") as is_ours:
                if is_ours:  # else another server on this machine keeps this very folder in step
                    self._look()
            self._note("")
        except (ToolcatalogError, OSError) as error:
            self._note(_sentence(error, self.cache))
        except Exception:  # noqa: BLE001 - whatever it is: what is there goes on, and the next look may do better
            _log.exception("Following %s went wrong", self._objects.url)
            self._note("That is a bug of ours.")

    def _note(self, error: str) -> None:
        """Remember how a look has ended; the log tells what is new."""
        self.failed += error != ""
        if error and error != self.last_error:
            _log.warning("%s What is here stays.", error)
        if not error and self.last_error:
            _log.info("%s is followed again.", self._objects.url)
        self.last_error = error
        self.last_success = self.last_success if error else time.time()

    def _look(self) -> None:
        try:
            read = self._objects.read(depot.POINTER, depot.MOST_POINTER, self._tag)
        except StoreError as error:
            self._asking.fail()
            if isinstance(error, Missing):
                raise StoreError(f"Nothing is published in {self._objects.url} yet.") from None
            raise
        self._asking.reset()
        if read:
            self._take(depot.named(read.data))
            self._tag = read.tag  # not before: what could not be taken is looked at again

    def _take(self, digest: str) -> None:
        """Let `current` name the snapshot, fetched first where it is not here. One that could not
        be taken is let alone for a while.
        """
        if self._failed and self._failed.digest != digest:
            self._taking.reset()
        elif self._failed and time.monotonic() < self._failed.until:
            raise Refused(self._failed.why)
        try:
            self._fetch(digest)
        except (ToolcatalogError, OSError) as error:
            self.refused += isinstance(error, Refused | SnapshotError)
            self._taking.fail()
            self._failed = _Failed(
                digest, _sentence(error, self.cache), time.monotonic() + self._taking.wait
            )
            raise
        self._failed = None
        self._taking.reset()
        if publishing.point(self.cache, digest):
            _log.info("Snapshot %s is here.", digest[:12])
        self._prune()

    def _fetch(self, digest: str) -> None:
        publishing.tidy(self.cache)
        if not self._is_here(digest):
            _log.info("Fetching snapshot %s.", digest[:12])
            came = fetching.fetch(self._objects, digest, self.cache, _JOBS)
            self.fetched, self.objects, self.size = (
                self.fetched + 1,
                self.objects + came.objects,
                self.size + came.size,
            )

    def _is_here(self, digest: str) -> bool:
        folder = self.cache / "snapshots" / digest
        try:
            return folder.is_dir() and not verifying.verify(folder)
        except SnapshotError:
            return False

    def _prune(self) -> None:
        """Keep the newest snapshots. A process that has an older one open keeps reading it until it
        lets it go.
        """
        for held in holding.spare(self.cache, KEPT - 1):
            publishing.remove(self.cache, held.digest)
        fetching.forget(self.cache)


def _sentence(error: Exception, cache: Path) -> str:
    if isinstance(error, OSError):
        return f"Cannot write to {cache} ({error.strerror or error}): {remedy(error)}."
    return str(error)
