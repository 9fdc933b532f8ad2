"""The access log: one JSON line for each request, written by a thread.

A line names the API key by its id. The key itself is redacted wherever a client wrote it, in the
path or in the request id; no other header is logged except a valid `traceparent`. Lines of several
processes stay whole: each write consists of whole lines, to a file opened to append, or is no
larger than a pipe takes in one piece. A file that was renamed or removed (logrotate) is opened
again before the next lines. Lines that cannot be written are dropped and counted, and the server
log says so.
"""

import contextlib
import ipaddress
import logging
import os
import re
import select
import stat
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from toolcatalog.errors import UsageError
from toolcatalog.keys.api_keys import redact
from toolcatalog.server.metrics.counters import LOG_LINES_DROPPED, Counters
from toolcatalog.system import threads

STANDARD_OUTPUT = Path("-")
_FLUSH_INTERVAL = 0.2  # seconds
_FLUSH_LINES = 192  # queued lines that are written without waiting: about 64 KiB
_MAX_QUEUED = 16_384  # lines queued while a disk hangs; more are dropped
_MAX_WRITE_SIZE = 64 * 1024  # bytes of one write
_MAX_PATH_LENGTH = 2048  # bytes of a path with its query
# bytes of a path with its query that are queued; the end of a longer one may be a part of a key
MAX_QUEUED_PATH, _MAX_KEY_LENGTH = 4096, 1024
# bytes that a pipe takes in one piece
_PIPE_WRITE_SIZE = select.PIPE_BUF if hasattr(select, "PIPE_BUF") else 512
_SHORT_PATH_LENGTH = 256  # bytes of a path if the line would be larger than that
_CLOSE_TIMEOUT = 2.0  # seconds that `close` waits for the last lines
_CONTROL = re.compile(rb"\x7f|\xc2[\x80-\x9f]")  # control characters that orjson does not escape
_log = logging.getLogger("toolcatalog.server")


class AccessLogEntry(NamedTuple):
    """One answered request.

    `timestamp`: seconds since 1970. `duration`: seconds. `size`: bytes of the body as sent. `key`
    and `project` are empty if the request had no valid key.
    """

    timestamp: float
    duration: float
    request_id: bytes
    method: str
    path: bytes
    route: str
    status: int
    size: int
    key: str
    project: str
    snapshot: bytes
    traceparent: bytes | None
    client: str


def format_line(entry: AccessLogEntry) -> bytes:
    """Return the line of a request, with its line break.

    JSON strings escape whatever a client sent that could end a line or control a terminal.
    """
    whole = _format_json(entry, _MAX_PATH_LENGTH)
    return whole if len(whole) <= _PIPE_WRITE_SIZE else _format_json(entry, _SHORT_PATH_LENGTH)


def _format_json(entry: AccessLogEntry, max_path_length: int) -> bytes:
    # redacted before it is cut: a part of a key is secret, too
    path = redact(entry.path[:MAX_QUEUED_PATH].decode("latin-1"))
    if len(entry.path) >= MAX_QUEUED_PATH:
        path = path[:-_MAX_KEY_LENGTH]
    fields = {
        "time": datetime.fromtimestamp(entry.timestamp, UTC).isoformat(timespec="milliseconds"),
        "request_id": redact(entry.request_id.decode("latin-1")),
        "method": entry.method,
        "path": path[:max_path_length],
        "route": entry.route,
        "status": entry.status,
        "bytes": entry.size,
        "milliseconds": round(entry.duration * 1000, 3),
        "key": entry.key or None,
        "project": entry.project[:_SHORT_PATH_LENGTH] or None,
        "snapshot": entry.snapshot[:12].decode() or None,
        "client": _valid_address(entry.client),
    }
    if entry.traceparent is not None:
        fields["traceparent"] = entry.traceparent.decode("latin-1")
    line = orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    return _CONTROL.sub(lambda match: b"\\u%04x" % ord(match[0].decode()), line)


def _valid_address(text: str) -> str | None:
    """Return an IP address, or None: a proxy may pass any text on that a client sent."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def check_writable(file: Path) -> None:
    """Check that the access log can be written. Raises UsageError if it cannot."""
    if file == STANDARD_OUTPUT:
        return
    try:
        os.close(_open_file(file))
    except OSError as error:
        raise UsageError(
            f"The access log {file} cannot be written ({error.strerror}): name another file "
            "with --access-log."
        ) from None


def _open_file(file: Path | None) -> int:
    if file is None:
        return 1
    return os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, 0o640)


class AccessLog:
    """The access log of one process.

    It starts its thread at once, and drops lines that cannot be written.
    """

    def __init__(self, file: Path, counters: Counters) -> None:
        self._file = None if file == STANDARD_OUTPUT else file.absolute()
        self._counters = counters
        self._queue: deque[AccessLogEntry] = deque()
        self._wake = threading.Event()
        self._is_closing = False
        self._has_partial_line = False  # whether the last write ended within a line
        self._is_writable = True
        self._was_full = False
        self._handle: int | None = None
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        threads.start(self._thread)

    def enqueue(self, entry: AccessLogEntry) -> None:
        """Queue a request to be written soon.

        Only for the thread of the event loop. Never blocks and never fails.
        """
        waiting = self._queue
        if len(waiting) < _MAX_QUEUED:
            waiting.append(entry)
            if len(waiting) == _FLUSH_LINES:
                self._wake.set()
        else:
            self._counters.count_event(LOG_LINES_DROPPED)
            if not self._was_full:
                _log.error("lines of the access log are dropped, and counted: too many wait")
            self._was_full = True

    def close(self) -> None:
        """Write all queued lines, for two seconds at most. Nothing may be queued afterwards."""
        self._is_closing = True
        self._wake.set()
        self._thread.join(_CLOSE_TIMEOUT)

    def _run(self) -> None:
        while not self._is_closing:
            self._wake.wait(_FLUSH_INTERVAL)
            self._wake.clear()
            try:
                self._flush()
            except Exception:  # noqa: BLE001 - the thread must go on
                _log.exception("lines of the access log are lost")
        self._flush()

    def _flush(self) -> None:
        """Write all lines that are queued now."""
        lines = [format_line(self._queue.popleft()) for _ in range(len(self._queue))]
        if not lines:
            return
        try:
            handle = self._handle = self._reopen_if_rotated()
        except OSError as error:
            self._count_dropped(len(lines), error)
            return
        largest = _MAX_WRITE_SIZE if stat.S_ISREG(os.fstat(handle).st_mode) else _PIPE_WRITE_SIZE
        for batch in _batch_lines(lines, largest):
            self._write(handle, batch)

    def _reopen_if_rotated(self) -> int:
        """Return the file to write to: a new one if the old one was renamed or removed.

        If no new one can be opened, returns the old one. Raises OSError if there is neither.
        """
        held = self._handle
        if held is None or self._file is None:
            return _open_file(self._file)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(self._file.stat(), os.fstat(held)):
                return held
        try:
            found = _open_file(self._file)
        except OSError:
            return held
        os.close(held)
        self._has_partial_line = False
        return found

    def _write(self, handle: int, batch: list[bytes]) -> None:
        data = b"".join([b"\n", *batch] if self._has_partial_line else batch)
        try:
            while data:
                written = os.write(handle, data)
                self._has_partial_line = data[written - 1 : written] != b"\n"
                data = data[written:]
        except OSError as error:
            self._count_dropped(len(batch), error)
            return
        if not self._is_writable:
            _log.info("the access log is written again")
        self._is_writable = True

    def _count_dropped(self, line_count: int, error: OSError) -> None:
        self._counters.count_event(LOG_LINES_DROPPED, line_count)
        if self._is_writable:
            _log.error(
                "lines of the access log are dropped, and counted: it cannot be written (%s)",
                error.strerror,
            )
        self._is_writable = False


def _batch_lines(lines: Iterable[bytes], max_size: int) -> Iterator[list[bytes]]:
    """Yield lines in batches of at most `max_size` bytes; a longer line gets its own batch."""
    batch: list[bytes] = []
    size = 0
    for one in lines:
        if batch and size + len(one) > max_size:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one)
    if batch:
        yield batch
