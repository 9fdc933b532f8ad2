"""Connection limit: file descriptors for clients and for the server itself.

Some no client gets: without them a revoked key would be good, and an old build served, for as long
as somebody holds all others.
"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from toolcatalog.errors import UsageError

try:
    import resource
except ImportError:  # pragma: no cover - nobody limits open files on this system
    resource = None  # type: ignore[assignment]  # a module elsewhere

_RESERVED = 64  # descriptors for what a server itself reads and writes, or half of what there are
_LOG_INTERVAL = 60.0  # seconds between two lines of the log that say the same
_log = logging.getLogger("toolcatalog.server")


def compute_limit() -> int:
    """How many descriptors clients may hold: what the limit of open files leaves."""
    return max(_open_file_limit() - _RESERVED, _open_file_limit() // 2)


def check_limit() -> None:
    """Raises UsageError where the limit leaves too few for the server alone: it would fail at one
    file or another, now or later.
    """
    if _open_file_limit() < _RESERVED:
        few = f"This process may have {_open_file_limit()} files open, and a server needs {_RESERVED} for itself"
        raise UsageError(f"{few}: allow more (`ulimit -n`, in a systemd unit `LimitNOFILE`).")


def _open_file_limit() -> int:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if resource else -1
    return sys.maxsize if limit < 0 else limit


class ConnectionLimit:
    """A count of them, which may be above the `most` for as long as it takes to refuse somebody."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used = 0
        self._last_logged = -_LOG_INTERVAL  # when the log last said that there are no more

    def acquire(self) -> bool:
        """Count one more, and tell whether there is room for it. It is to be given back in any
        case.
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
        """One more for a while; whether there is room for it."""
        try:
            yield self.acquire()
        finally:
            self.release()

    def _log_exhausted(self) -> None:
        now = time.monotonic()
        if now - self._last_logged >= _LOG_INTERVAL:
            self._last_logged = now
            what = "connections, and files of the site on their way, are as many as the limit of open files allows"
            _log.error(
                "%s (%d): more are refused. Raise the limit (ulimit -n), or put a proxy in front",
                what,
                self.limit,
            )


CLIENT_LIMIT = ConnectionLimit(compute_limit())  # of this process
