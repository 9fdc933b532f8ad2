"""API keys in Redis: the key document, and a synchronized local key file.

Needs the extra `redis`.

The document is the same as in a key file, with hashes only. It is in one Redis hash with two
fields: `document`, and `version`, a random word that is new after each change. So a server polls a
few bytes only, and it notices another Redis, or one that was emptied and filled again.

In each server, one thread, whatever the number of workers, checks twice a second whether the
document has changed, and writes a new one to the local file, from which the keys are read as usual.
So if Redis is unreachable, the last keys stay valid, also after a restart. A document must not undo
a change: if a key of the file is missing in it or lives longer (a revoked key would be valid
again), it is older, or somebody else's. It is rejected, and the log says so.
"""

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from toolcatalog.errors import KeyFileError, ToolcatalogError
from toolcatalog.keys import api_keys
from toolcatalog.keys.api_keys import ApiKey, compute_expiry
from toolcatalog.keys.redis_connection import RedisAddress, load_library
from toolcatalog.keys.storage import FileKeyStorage

_REDIS_KEY = "toolcatalog:keys"
# attempts to update while others change the document; one of them succeeds each time
_MAX_ATTEMPTS = 100
_TIMEOUT = 1.0  # seconds to wait for a response

T = TypeVar("T")


class RedisKeyStorage:
    """The key document in Redis: a `keys.storage.KeyStorage`."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address

    def __str__(self) -> str:
        return f"key document in {self.address}"

    @property
    def location(self) -> str:
        """Redis with its host and port."""
        return str(self.address)

    @property
    def cli_option(self) -> str:
        """The command line option that names it, without the password."""
        return "--redis URL"

    def read(self) -> bytes | None:
        """Return the document; see `KeyStorage.read`."""
        return self.read_versioned()[1]

    def read_version(self) -> bytes | None:
        """Return the version of the document; None if there is none.

        The version is new after each change. Raises KeyFileError.
        """
        with self._connect() as client:
            version: bytes | None = client.hget(_REDIS_KEY, "version")
        return version

    def read_versioned(self) -> tuple[bytes | None, bytes | None]:
        """Return the version and the document that belongs to it.

        Raises KeyFileError if Redis does not respond.
        """
        with self._connect() as client:
            version, document = client.hmget(_REDIS_KEY, "version", "document")
        return version, document

    def update(self, transform: Callable[[bytes | None], tuple[bytes, T]]) -> T:
        """Replace the document; see `KeyStorage.update`.

        Redis detects a concurrent change, and `transform` is called again.
        """
        watch_error = load_library().WatchError
        with self._connect() as client, client.pipeline(transaction=True) as pipe:
            for _ in range(_MAX_ATTEMPTS):
                with contextlib.suppress(watch_error):
                    pipe.watch(_REDIS_KEY)
                    data, result = transform(pipe.hget(_REDIS_KEY, "document"))
                    pipe.multi()
                    pipe.hset(
                        _REDIS_KEY, mapping={"document": data, "version": secrets.token_hex(8)}
                    )
                    pipe.execute()
                    return result
        raise KeyFileError(f"Other commands keep changing the {self}: try again.")

    @contextlib.contextmanager
    def _connect(self) -> Iterator[Any]:
        """Open a connection for the block; errors become KeyFileError with one sentence."""
        redis = load_library()
        try:
            with self.address.connect(_TIMEOUT) as client:
                yield client
        except (redis.RedisError, redis.exceptions.RedisClusterException, OSError) as error:
            raise KeyFileError(
                f"{self.address} failed to process the request ({error}): is it running, and "
                "--redis right?"
            ) from None


_POLL_INTERVAL = 0.5  # seconds
_MAX_NAMED_KEYS = 3  # maximum number of keys in a log message
_log = logging.getLogger("toolcatalog.keys")


class KeySync(threading.Thread):
    """A thread that copies the keys from Redis to a file until the process ends.

    `sync_once` may be called before, so that a server has its keys at the start.
    """

    def __init__(self, remote: RedisKeyStorage, file: Path) -> None:
        super().__init__(name="keys from Redis", daemon=True)
        self._remote = remote
        self._file = FileKeyStorage(file)
        self._applied_version: bytes | None = None  # the version in the file
        self._last_error = ""  # last logged error

    def run(self) -> None:
        """Synchronize again and again."""
        while True:
            self.sync_once()
            time.sleep(_POLL_INTERVAL)

    def sync_once(self) -> None:
        """Apply a change, if there is one; an error is logged once."""
        try:
            if (
                self._applied_version is None
                or self._remote.read_version() != self._applied_version
            ):
                self._apply()
            self._log_outcome("")
        except ToolcatalogError as error:
            self._log_outcome(str(error))
        except Exception as error:  # noqa: BLE001 - the library raises any error for a bad reply
            self._log_outcome(f"{self._remote.location} failed ({error!r})")

    def _apply(self) -> None:
        version, document = self._remote.read_versioned()
        if version is None or document is None:
            raise KeyFileError(
                f"There is no {self._remote}: `toolcatalog keys push --redis URL` copies those "
                f"of a file there."
            )
        remote_keys = api_keys.parse_keys(document, self._remote)
        self._file.update(lambda current: (self._next_document(current, remote_keys), None))
        self._applied_version = version
        _log.info("keys loaded from %s: %d", self._remote.location, len(remote_keys))

    def _next_document(self, current: bytes | None, incoming: Sequence[ApiKey]) -> bytes:
        """Return the new document for the file.

        Raises KeyFileError if it would undo a change.
        """
        current_keys = api_keys.parse_keys(current, self._file) if current is not None else ()
        if rolled_back := find_rolled_back(current_keys, incoming):
            ids = ", ".join(key.id for key in rolled_back[:_MAX_NAMED_KEYS]) + (
                ", ..." if len(rolled_back) > _MAX_NAMED_KEYS else ""
            )
            help = (
                f"`toolcatalog keys push {self._file.cli_option} --redis URL` merges both, or move"
                " the file away if Redis is right."
            )
            raise KeyFileError(
                f"The {self._remote} is older than the {self._file}, or another's ({ids}): {help}"
            )
        return api_keys.serialize_keys(incoming)

    def _log_outcome(self, error: str) -> None:
        if error and error != self._last_error:
            _log.error("keeping the current keys: %s", error)
        elif self._last_error and not error:
            _log.info("keys are synchronized with %s again", self._remote.location)
        self._last_error = error


def find_rolled_back(current: Iterable[ApiKey], incoming: Iterable[ApiKey]) -> list[ApiKey]:
    """Return the keys of `current` that are missing in `incoming` or end later there.

    No command does that.
    """
    expiries = {key.sha256: compute_expiry(key) for key in incoming}
    return [
        key
        for key in current
        if key.sha256 not in expiries or expiries[key.sha256] > compute_expiry(key)
    ]


def merge_keys(first: Iterable[ApiKey], second: Iterable[ApiKey]) -> list[ApiKey]:
    """Return all keys of both, oldest first; of a key in both, the one that ends earlier."""
    keys_by_hash: dict[str, ApiKey] = {}
    for key in (*first, *second):
        if key.sha256 not in keys_by_hash or compute_expiry(key) < compute_expiry(
            keys_by_hash[key.sha256]
        ):
            keys_by_hash[key.sha256] = key
    return sorted(keys_by_hash.values(), key=lambda key: key.created)
