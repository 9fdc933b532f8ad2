"""Follower: keep a local build directory in sync with an object store.

    <cache>/snapshots/<digest>/   as in a build
    <cache>/current               as in a build: a link to the current snapshot
    <cache>/chunks/<digest>.json  the chunks of that snapshot
    <cache>/.downloaded           tells readers that the snapshots come from a store
    and, with a verify key, the files of `publish.trusted_pointers`

If the store is slow, wrong or unreachable, the local snapshot stays in service. One process at a
time writes to a cache.
"""

import hashlib
import logging
import os
import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from toolcatalog.errors import REBUILD_HINT, SnapshotError, ToolcatalogError, remedy
from toolcatalog.publish import download, layout, trusted_pointers
from toolcatalog.publish.layout import InvalidRemoteSnapshot
from toolcatalog.publish.object_store import (
    ObjectContent,
    ObjectNotFound,
    ObjectStorage,
    ObjectTag,
    StoreError,
)
from toolcatalog.publish.signatures import SignedStatement, VerifyKeys
from toolcatalog.snapshot import compression, directory, retention, verify
from toolcatalog.store import open as store_open
from toolcatalog.system import files, threads

# approximate seconds between two polls, so that a new pointer is noticed within two seconds
POLL_INTERVAL = 1.5
_LOCK_FILE = ".lock"
KEPT_SNAPSHOTS = 3  # number of snapshots in a cache
_JOBS = 16  # parallel downloads
MAX_SNAPSHOT_SIZE = 8 << 30  # default limit in bytes of a snapshot to download
# Maximum seconds until the next attempt at a snapshot: one that was invalid, and one that could
# not be fetched or written.
_MAX_REJECTION_DELAY, _MAX_RETRY_DELAY = 3600.0, 60.0
_MAX_REMEMBERED_FAILURES = 16  # remembered failures; with this many, new snapshots are delayed too
_MAX_BLOCKED_POLLS = 40  # polls without the lock until it is an error: about a minute
_MAX_POLL_DELAY = 10.0  # maximum seconds between two polls while the store is unreachable
# Maximum share by which a delay is shortened, so that replicas that were started together do
# not poll together.
_JITTER = 0.2
_log = logging.getLogger("toolcatalog.following")


def default_cache(url: str) -> Path:
    """Return the default cache of a store: in the user's cache folder, by a hash of the URL."""
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache_folder / "toolcatalog" / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]


class _Backoff:
    """A delay in seconds that doubles with each failure, up to a maximum."""

    def __init__(self, minimum: float, maximum: float) -> None:
        self.minimum, self.maximum, self.delay = minimum, maximum, minimum

    def fail(self) -> None:
        self.delay = min(self.maximum, 2 * self.delay)

    def reset(self) -> None:
        self.delay = self.minimum


class _FailedDownload(NamedTuple):
    """Why a snapshot could not be activated, and when to retry on the monotonic clock."""

    reason: str
    delay: float  # seconds
    retry_at: float


class _FailedDownloads:
    """The snapshots that could not be activated, each with a delay that doubles with each failure.

    A new snapshot is tried at once, unless many failures are remembered: then it waits as long as
    the latest of them, so that a store cannot cause a download of another digest at each poll. A
    success does not clear the failures of other snapshots, because the pointer may go back and
    forth. A failure is forgotten an hour after its delay.
    """

    def __init__(self, min_delay: float) -> None:
        self._min_delay = min_delay
        self._failures: dict[str, _FailedDownload] = {}

    def check(self, digest: str) -> None:
        """Raise InvalidRemoteSnapshot with the last reason if a snapshot must not be tried yet."""
        self._expire()
        failure = self._failures.get(digest)
        if failure is None and len(self._failures) >= _MAX_REMEMBERED_FAILURES:
            failure = next(reversed(self._failures.values()))
        if failure and time.monotonic() < failure.retry_at:
            raise InvalidRemoteSnapshot(failure.reason)

    def add(self, digest: str, reason: str, max_delay: float) -> None:
        """Record a failure of a snapshot.

        The next attempt is after `max_delay` seconds at the latest.
        """
        self._expire()
        previous = self._failures.pop(digest, None)
        if previous is None and len(self._failures) >= _MAX_REMEMBERED_FAILURES:
            previous = next(reversed(self._failures.values()))
            del self._failures[next(iter(self._failures))]
        delay = min(max_delay, 2 * (previous.delay if previous else self._min_delay))
        self._failures[digest] = _FailedDownload(
            reason, delay, time.monotonic() + _with_jitter(delay)
        )

    def remove(self, digest: str) -> None:
        """Forget the failures of a snapshot, because it was activated."""
        self._failures.pop(digest, None)

    def _expire(self) -> None:
        oldest = time.monotonic() - _MAX_REJECTION_DELAY
        self._failures = {
            digest: failure
            for digest, failure in self._failures.items()
            if failure.retry_at > oldest
        }


def _with_jitter(delay: float) -> float:
    return delay * (1 - _JITTER * random.random())  # noqa: S311 - not used for security


class Follower:
    """Keeps one cache in sync with one store.

    `snapshots_fetched` and `snapshots_rejected` count snapshots, `objects_fetched` and
    `bytes_fetched` downloads, and `failed_polls` polls that failed for any reason. `last_error` is
    the message of the last poll, empty if it succeeded. `last_success` is when the pointer was last
    read and followed, in seconds since 1970; 0 means never.
    """

    def __init__(
        self,
        url: str,
        cache: Path,
        interval: float = POLL_INTERVAL,
        *,
        max_size: int = MAX_SNAPSHOT_SIZE,
        keys: VerifyKeys | None = None,
        allow_rollback: bool = False,
    ) -> None:
        """Create a follower of a URL (see `ObjectStorage`) for a folder that need not exist yet.

        A snapshot may have up to `max_size` bytes. With `keys`, only signed snapshots are accepted,
        and older ones than the last only with `allow_rollback`. `interval` is the delay between two
        polls in seconds. Raises StoreError if the URL is invalid.
        """
        self.cache = cache
        self._max_size, self._keys, self._allow_rollback = max_size, keys, allow_rollback
        self.snapshots_fetched = self.snapshots_rejected = self.failed_polls = (
            self.objects_fetched
        ) = self.bytes_fetched = 0
        self.last_error, self.last_success = "", 0.0
        self._storage = ObjectStorage(url)
        self._pointer_tag: ObjectTag | None = None
        self._failures = _FailedDownloads(interval)
        self._poll_backoff = _Backoff(interval, _MAX_POLL_DELAY)
        self._blocked_polls = 0  # polls since the cache could be locked
        self._stopped = threading.Event()

    def has_snapshot(self) -> bool:
        """Return whether the cache has a snapshot that can be served.

        Its manifest and file sizes must be valid, and its signature too if there are keys.
        """
        folder = Path(os.path.realpath(self.cache / "current"))
        try:
            if self._keys:
                trusted_pointers.require_signature(self.cache, folder.name, self._keys)
            manifest = verify.read_manifest(folder)
            return not any(
                True for _ in verify.check_file_sizes(folder, verify.list_files(folder, manifest))
            )
        except SnapshotError:
            return False

    def start(self) -> None:
        """Start to poll in a daemon thread."""
        with suppress(OSError):  # the first poll reports it
            self._mark_cache()
        threads.start(threading.Thread(target=self._run, name="following", daemon=True))

    def stop(self) -> None:
        """Stop polling; does not wait for a poll in progress."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.poll()
            self._stopped.wait(self._next_delay())

    def _next_delay(self) -> float:
        return _with_jitter(self._poll_backoff.delay)

    def poll(self) -> None:
        """Poll the store once and follow it.

        Never raises: an error is logged once, and the local snapshot stays in service. A poll while
        another server on this machine updates the cache has no outcome, unless that takes long.
        """
        try:
            self._mark_cache()
            with files.lock(self.cache / _LOCK_FILE) as is_locked:
                if is_locked:
                    self._blocked_polls = 0
                    self._check_pointer()
                else:
                    self._record_blocked()
            if is_locked:
                self._record_outcome("")
        except (ToolcatalogError, OSError) as error:
            self._record_outcome(_format_error(error, self.cache))
        except Exception:  # noqa: BLE001 - keep serving; the next poll may succeed
            _log.exception("Following %s failed", self._storage.url)
            self._record_outcome("This is a bug in toolcatalog.")

    def _mark_cache(self) -> None:
        """Create the cache, marked as one, before anyone opens a snapshot in it."""
        self.cache.mkdir(parents=True, exist_ok=True)
        directory.mark_downloaded(self.cache)

    def _record_blocked(self) -> None:
        """Count a poll without the lock. Raises StoreError if there were too many in a row."""
        self._blocked_polls += 1
        if self._blocked_polls >= _MAX_BLOCKED_POLLS:
            raise StoreError(
                f"{self.cache / _LOCK_FILE} has been locked for {_MAX_BLOCKED_POLLS} polls: find "
                "the process that has it open, such as another server that fetches a snapshot."
            )

    def _record_outcome(self, error: str) -> None:
        """Record the outcome of a poll; log it if it is new."""
        self.failed_polls += error != ""
        if error and error != self.last_error:
            _log.warning("%s Keeping the current snapshot.", error)
        if not error and self.last_error:
            _log.info("Following %s again.", self._storage.url)
        self.last_error = error
        self.last_success = self.last_success if error else time.time()

    def _check_pointer(self) -> None:
        try:
            content = self._storage.read(layout.POINTER, layout.MAX_POINTER_SIZE, self._pointer_tag)
        except StoreError as error:
            self._poll_backoff.fail()
            if isinstance(error, ObjectNotFound):
                raise StoreError(f"Nothing is published in {self._storage.url} yet.") from None
            raise
        self._poll_backoff.reset()
        if content:
            self._activate(content)
            self._pointer_tag = content.tag  # only now, so that a failed snapshot is tried again

    def _activate(self, content: ObjectContent) -> None:
        """Make `current` name the snapshot of a pointer; download it first if necessary.

        A snapshot that fails is not tried again for a while.
        """
        digest = layout.parse_pointer(content.data)
        signed = self._verify_signature(content.data)
        self._failures.check(digest)
        try:
            self._download(digest)
        except (ToolcatalogError, OSError) as error:
            is_refused = isinstance(error, InvalidRemoteSnapshot | SnapshotError)
            self.snapshots_rejected += is_refused
            max_delay = _MAX_REJECTION_DELAY if is_refused else _MAX_RETRY_DELAY
            self._failures.add(digest, _format_error(error, self.cache), max_delay)
            raise
        self._failures.remove(digest)
        self._compress_documents(digest)
        if signed:
            trusted_pointers.record_accepted(content.data, signed, self.cache)
        if directory.set_current(self.cache, digest):
            _log.info("Fetched snapshot %s.", digest[:12])
        self._prune()

    def _verify_signature(self, pointer: bytes) -> SignedStatement | None:
        """Return the signed statement of a pointer; None without keys, and where none were used.

        Raises InvalidRemoteSnapshot, which counts as a rejection once for each reason. Nothing is
        downloaded then.
        """
        try:
            if self._keys is None:
                trusted_pointers.require_no_signatures(self.cache)
                return None
            return trusted_pointers.verify_pointer(
                pointer, self._keys, self.cache, allow_rollback=self._allow_rollback
            )
        except InvalidRemoteSnapshot as error:
            self.snapshots_rejected += str(error) != self.last_error
            raise

    def _download(self, digest: str) -> None:
        directory.remove_leftovers(self.cache)
        if not self._is_stored(digest):
            _log.info("Fetching snapshot %s.", digest[:12])
            result = download.download_snapshot(
                self._storage, digest, self.cache, _JOBS, self._max_size
            )
            self.snapshots_fetched, self.objects_fetched, self.bytes_fetched = (
                self.snapshots_fetched + 1,
                self.objects_fetched + result.object_count,
                self.bytes_fetched + result.bytes_received,
            )

    def _compress_documents(self, digest: str) -> None:
        """Compress the documents of a downloaded snapshot; without them, answers are not
        precompressed.
        """
        try:
            compression.ensure_compressed_documents(self.cache, digest, is_private=True)
        except (SnapshotError, OSError) as error:
            _log.warning(
                "The documents of snapshot %s cannot be compressed: %s", digest[:12], error
            )

    def _is_stored(self, digest: str) -> bool:
        folder = self.cache / "snapshots" / digest
        try:
            if not folder.is_dir() or verify.verify_snapshot(folder):
                return False
            store_open.check_snapshot(folder, folder, REBUILD_HINT)
        except SnapshotError:
            return False
        return True

    def _prune(self) -> None:
        """Remove all but the newest snapshots; a process that has one open can still read it."""
        for snapshot in retention.list_prunable(self.cache, KEPT_SNAPSHOTS - 1):
            directory.remove_snapshot(self.cache, snapshot.digest)
        download.remove_stale_chunk_lists(self.cache)
        trusted_pointers.remove_stale_signatures(self.cache)


def _format_error(error: Exception, cache: Path) -> str:
    if isinstance(error, OSError):
        return f"Cannot write to {cache} ({error.strerror or error}): {remedy(error)}."
    return str(error)
