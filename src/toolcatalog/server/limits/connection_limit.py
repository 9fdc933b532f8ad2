"""Connection limit: file descriptors for clients and for the server itself.

Some descriptors are reserved for the server. Otherwise clients could hold all of them, and the
server could no longer read the key file or open a new snapshot: a revoked key would stay valid and
an old build would stay in service.
"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from toolcatalog.errors import UsageError

try:
    import resource
except ImportError:  # pragma: no cover - this system has no limit of open files
    resource = None  # type: ignore[assignment]  # a module on other systems

_RESERVED = 64  # descriptors for the server itself, at most half of the limit
_LOG_INTERVAL = 60.0  # seconds between two log lines with the same message
_log = logging.getLogger("toolcatalog.server")


def compute_limit() -> int:
    """Return how many descriptors clients may use under the limit of open files."""
    return max(_open_file_limit() - _RESERVED, _open_file_limit() // 2)


def check_limit() -> None:
    """Check that the limit of open files is large enough for the server itself.

    Raises UsageError if it is not: the server would fail on one file or another, at once or later.
    """
    if _open_file_limit() < _RESERVED:
        few = (
            f"This process may have {_open_file_limit()} files open, and a server needs "
            f"{_RESERVED} for itself"
        )
        raise UsageError(f"{few}: allow more (`ulimit -n`, in a systemd unit `LimitNOFILE`).")


def _open_file_limit() -> int:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if resource else -1
    return sys.maxsize if limit < 0 else limit


class ConnectionLimit:
    """A count of connections with a maximum.

    The count exceeds `limit` while connections are being rejected.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used = 0
        self._last_logged = -_LOG_INTERVAL  # when the log last reported that the limit is reached

    def acquire(self) -> bool:
        """Count one more and return whether it is within the limit.

        Call `release` afterwards in either case.
        """
        self._used += 1
        if self._used > self.limit:
            self._log_exhausted()
        return self._used <= self.limit

    def release(self) -> None:
        """Count one less."""
        self._used -= 1

    @contextmanager
    def reserve(self) -> Iterator[bool]:
        """Count one more within a `with` block; yields whether it is within the limit."""
        try:
            yield self.acquire()
        finally:
            self.release()

    def _log_exhausted(self) -> None:
        now = time.monotonic()
        if now - self._last_logged >= _LOG_INTERVAL:
            self._last_logged = now
            what = "connections and files being sent have reached the limit of open files"
            _log.error(
                "%s (%d): more are refused. Raise the limit (ulimit -n), or put a proxy in front",
                what,
                self.limit,
            )


CLIENT_LIMIT = ConnectionLimit(compute_limit())  # shared by all clients of this process
