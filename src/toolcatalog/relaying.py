"""A server's key file, kept in step with the key document in Redis.

One thread of a server, whatever the number of its workers, looks twice a second whether the
document has changed, and writes what is new into the file, from which the keys are read as ever. So
with Redis away the last keys stay in force, over a restart too. Nothing is taken over that takes
something back: a document in which a key of the file is not there, or lives longer (one that was
revoked would be good again), is an older one, or another's. It is refused with a line in the log.
"""

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from toolcatalog import keys
from toolcatalog.errors import KeyFileError, ToolcatalogError
from toolcatalog.keeping import FileKeyStorage
from toolcatalog.keys import ApiKey, compute_expiry
from toolcatalog.remote import RedisKeyStorage

_POLL_INTERVAL = 0.5  # seconds
_MAX_NAMED_KEYS = 3  # keys that a line of the log names
_log = logging.getLogger("toolcatalog.keys")


class KeySync(threading.Thread):
    """Follows until the process ends. `look` may be called once before, so that a server has its
    keys when it starts.
    """

    def __init__(self, remote: RedisKeyStorage, file: Path) -> None:
        super().__init__(name="keys from Redis", daemon=True)
        self._remote = remote
        self._file = FileKeyStorage(file)
        self._applied_version: bytes | None = None  # the version that is in the file
        self._last_error = ""  # what the log said last

    def run(self) -> None:
        """Look, again and again."""
        while True:
            self.sync_once()
            time.sleep(_POLL_INTERVAL)

    def sync_once(self) -> None:
        """Take over what has changed. What stands in the way is told in the log, once."""
        try:
            if (
                self._applied_version is None
                or self._remote.read_version() != self._applied_version
            ):
                self._apply()
            self._log_outcome("")
        except ToolcatalogError as error:
            self._log_outcome(str(error))

    def _apply(self) -> None:
        version, document = self._remote.read_versioned()
        if version is None or document is None:
            raise KeyFileError(
                f"There is no {self._remote}: `toolcatalog keys push --redis URL` puts those "
                "of a file there."
            )
        theirs = keys.parse_keys(document, self._remote)
        self._file.update(lambda ours: (self._next_document(ours, theirs), None))
        self._applied_version = version
        _log.info("keys taken from %s: %d", self._remote.location, len(theirs))

    def _next_document(self, current: bytes | None, incoming: Sequence[ApiKey]) -> bytes:
        """The document that takes the place of the file's. Raises KeyFileError where it would take
        something back.
        """
        before = keys.parse_keys(current, self._file) if current is not None else ()
        if behind := find_rolled_back(before, incoming):
            named = ", ".join(key.id for key in behind[:_MAX_NAMED_KEYS]) + (
                ", ..." if len(behind) > _MAX_NAMED_KEYS else ""
            )
            mend = f"`toolcatalog keys push {self._file.cli_option} --redis URL` joins both, or move the file away if Redis is right."
            raise KeyFileError(
                f"The {self._remote} is older than the {self._file}, or another's ({named}): {mend}"
            )
        return keys.serialize_keys(incoming)

    def _log_outcome(self, error: str) -> None:
        if error and error != self._last_error:
            _log.error("keys stay as they were: %s", error)
        elif self._last_error and not error:
            _log.info("keys follow %s again", self._remote.location)
        self._last_error = error


def find_rolled_back(before: Iterable[ApiKey], after: Iterable[ApiKey]) -> list[ApiKey]:
    """The keys that are no longer there afterwards, or end later than they did: no command does
    that.
    """
    ends = {key.sha256: compute_expiry(key) for key in after}
    return [
        key for key in before if key.sha256 not in ends or ends[key.sha256] > compute_expiry(key)
    ]


def merge_keys(first: Iterable[ApiKey], second: Iterable[ApiKey]) -> list[ApiKey]:
    """All keys of both, oldest first; of a key that both have, the one that ends earlier."""
    every: dict[str, ApiKey] = {}
    for key in (*first, *second):
        if key.sha256 not in every or compute_expiry(key) < compute_expiry(every[key.sha256]):
            every[key.sha256] = key
    return sorted(every.values(), key=lambda key: key.created)
