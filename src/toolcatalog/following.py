"""A local folder kept in step with what is published in an object store: a cache of the very shape
of a build, that a server opens as one.

    <cache>/snapshots/<digest>/   as in a build
    <cache>/current               as in a build: a link to the snapshot in force
    <cache>/chunks/<digest>.json  of which chunks that snapshot is made
    and, with a verify key, what `accepting` notes

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

from toolcatalog import (
    accepting,
    depot,
    fetching,
    files,
    holding,
    opening,
    publishing,
    threads,
    verifying,
)
from toolcatalog.depot import Refused
from toolcatalog.errors import MEND, SnapshotError, ToolcatalogError, remedy
from toolcatalog.objects import Missing, Objects, Read, StoreError, Tag
from toolcatalog.signing import Signed, VerifyKeys

# seconds between two looks at the pointer, more or less: so that a new one is noticed within two
INTERVAL = 1.5
KEPT = 3  # snapshots in a cache
_JOBS = 16  # objects fetched at a time
MOST_SIZE = 8 << 30  # bytes of a snapshot that is fetched, unless somebody says otherwise
# seconds, at most, until a snapshot is tried again that was no good, or that could not be fetched
# or written
_MOST_REFUSAL, _MOST_PATIENCE = 3600.0, 60.0
_MOST_REFUSED = 16  # refused snapshots that are remembered; with so many, new ones wait as well
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


class _Failure(NamedTuple):
    """Why a snapshot could not be taken, and when it is tried again on the monotonic clock."""

    why: str
    pause: float  # seconds
    until: float


class _Failures:
    """The snapshots that could not be taken, each with a pause that doubles with each failure.

    One that is new is tried at once, until there are many: then it waits as long as the last of
    them, so that a store cannot have another digest fetched at each look. One that could be taken is
    no reason to forget others: the pointer may go back and forth. A failure is forgotten an hour
    after its pause.
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._failures: dict[str, _Failure] = {}

    def check(self, digest: str) -> None:
        """Raise Refused, with the reason of last time, where a snapshot is let alone for now."""
        self._expire()
        failure = self._failures.get(digest)
        if failure is None and len(self._failures) >= _MOST_REFUSED:
            failure = next(reversed(self._failures.values()))
        if failure and time.monotonic() < failure.until:
            raise Refused(failure.why)

    def add(self, digest: str, why: str, most: float) -> None:
        """Note that a snapshot could not be taken: it is tried again after `most` seconds at the
        latest.
        """
        self._expire()
        before = self._failures.pop(digest, None)
        if before is None and len(self._failures) >= _MOST_REFUSED:
            before = next(reversed(self._failures.values()))
            del self._failures[next(iter(self._failures))]
        pause = min(most, 2 * (before.pause if before else self._least))
        self._failures[digest] = _Failure(why, pause, time.monotonic() + _shortened(pause))

    def remove(self, digest: str) -> None:
        """Forget the failures of a snapshot: it was taken."""
        self._failures.pop(digest, None)

    def _expire(self) -> None:
        oldest = time.monotonic() - _MOST_REFUSAL
        self._failures = {
            digest: failure for digest, failure in self._failures.items() if failure.until > oldest
        }


def _shortened(pause: float) -> float:
    return pause * (1 - _SPREAD * random.random())  # noqa: S311 - it guards nothing


class Follower:
    """Follows one store into one cache. `fetched` and `refused` count snapshots, `objects` and
    `size` what came over the network, `failed` looks that failed, for whatever reason.

    `last_error` is the sentence of the last look that failed, empty where it did not;
    `last_success` is when the pointer was last read and followed, in seconds since 1970, 0 for
    never.
    """

    def __init__(
        self,
        url: str,
        cache: Path,
        interval: float = INTERVAL,
        *,
        most: int = MOST_SIZE,
        keys: VerifyKeys | None = None,
        allow_rollback: bool = False,
    ) -> None:
        """Take a URL as `objects` does, and a folder that may not be there yet. A snapshot may have
        `most` bytes. With `keys` only a snapshot is taken that one of them has signed, and an older
        one than the last only where `allow_rollback` is given.

        `interval` is the pause between two looks in seconds. Raises StoreError where the URL is
        none.
        """
        self.cache = cache
        self._most, self._keys, self._allow_rollback = most, keys, allow_rollback
        self.fetched = self.refused = self.failed = self.objects = self.size = 0
        self.last_error, self.last_success = "", 0.0
        self._objects = Objects(url)
        self._tag: Tag | None = None
        self._failures = _Failures(interval)
        self._asking = _Backoff(interval, _MOST_ABSENCE)
        self._stopped = threading.Event()

    def has_one(self) -> bool:
        """Tell whether the cache holds a snapshot that can be served: one whose manifest holds and
        whose files have their sizes, and whose signature is good where keys are given.
        """
        folder = Path(os.path.realpath(self.cache / "current"))
        try:
            if self._keys:
                accepting.require(self.cache, folder.name, self._keys)
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
        return _shortened(self._asking.wait)

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
            self._take(read)
            self._tag = read.tag  # not before: what could not be taken is looked at again

    def _take(self, read: Read) -> None:
        """Let `current` name the snapshot of a pointer, fetched first where it is not here. One
        that could not be taken is let alone for a while.
        """
        digest = depot.named(read.data)
        signed = self._checked(read.data)
        self._failures.check(digest)
        try:
            self._fetch(digest)
        except (ToolcatalogError, OSError) as error:
            is_refused = isinstance(error, Refused | SnapshotError)
            self.refused += is_refused
            most = _MOST_REFUSAL if is_refused else _MOST_PATIENCE
            self._failures.add(digest, _sentence(error, self.cache), most)
            raise
        self._failures.remove(digest)
        if signed:
            accepting.record(read.data, signed, self.cache)
        if publishing.point(self.cache, digest):
            _log.info("Snapshot %s is here.", digest[:12])
        self._prune()

    def _checked(self, pointer: bytes) -> Signed | None:
        """The signed statement of a pointer, where keys are given. Raises Refused, which counts once
        for each reason: nothing is fetched for it.
        """
        if self._keys is None:
            return None
        try:
            return accepting.check(
                pointer, self._keys, self.cache, allow_rollback=self._allow_rollback
            )
        except Refused as error:
            self.refused += str(error) != self.last_error
            raise

    def _fetch(self, digest: str) -> None:
        publishing.tidy(self.cache)
        if not self._is_here(digest):
            _log.info("Fetching snapshot %s.", digest[:12])
            came = fetching.fetch(self._objects, digest, self.cache, _JOBS, self._most)
            self.fetched, self.objects, self.size = (
                self.fetched + 1,
                self.objects + came.objects,
                self.size + came.size,
            )

    def _is_here(self, digest: str) -> bool:
        folder = self.cache / "snapshots" / digest
        try:
            if not folder.is_dir() or verifying.verify(folder):
                return False
            opening.check(folder, folder, MEND)
        except SnapshotError:
            return False
        return True

    def _prune(self) -> None:
        """Keep the newest snapshots. A process that has an older one open keeps reading it until it
        lets it go.
        """
        for held in holding.spare(self.cache, KEPT - 1):
            publishing.remove(self.cache, held.digest)
        fetching.forget(self.cache)
        accepting.forget(self.cache)


def _sentence(error: Exception, cache: Path) -> str:
    if isinstance(error, OSError):
        return f"Cannot write to {cache} ({error.strerror or error}): {remedy(error)}."
    return str(error)
