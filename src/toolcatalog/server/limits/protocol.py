"""The HTTP protocol: uvicorn's, with limits on slow and oversized clients.

uvicorn reads a head of any length, waits for the rest of a request without a limit, and keeps a
response until the client reads it. A few clients could therefore use all memory or all file
descriptors. `LimitedProtocol` bounds sizes (`MAX_HEAD_SIZE`, `MAX_REQUEST_SIZE`) and checks each
connection every `check_interval` seconds, which costs almost nothing per request. It closes a
connection whose request is still incomplete and unchanged at the second check, and one whose client
has read nothing of its response for six checks. It rejects a connection for which there is no file
descriptor (`server.limits.connection_limit`).

uvicorn has no settings for these limits, so this class depends on internals of uvicorn's
HttpToolsProtocol. With a version of uvicorn that was not tested, `select_protocol` returns
uvicorn's own protocol.
"""

import logging
from asyncio import Transport
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from toolcatalog.api.bodies import join_body
from toolcatalog.api.error_responses import ErrorDetail, invalid_request, too_many_connections
from toolcatalog.server.limits.connection_limit import CLIENT_LIMIT
from toolcatalog.server.request_context import assign_request_id
from toolcatalog.server.responses import (
    RESPONSE_EXTENSION,
    Header,
    Response,
    ResponseContext,
    encode_headers,
    make_error_response,
)

TESTED_VERSIONS = ("0.52", "0.53", "0.54")  # of uvicorn

# bytes of a head, and of one header in it: to parse a list of 60 KB takes many milliseconds
MAX_HEAD_SIZE, MAX_FIELD_SIZE = 64 * 1024, 16 * 1024
MAX_HEADER_COUNT = 100  # clients and proxies send a few dozen
# requests that wait for the response to an earlier one on the connection, and bytes of their heads
# and of their bodies
MAX_PIPELINED_REQUESTS, MAX_PIPELINED_SIZE = 64, 256 * 1024
# bytes of a request with its body; more than 64 KiB of a body are discarded
MAX_REQUEST_SIZE = 4 * 1024 * 1024
# chunks and trailers in data that is received at once, each of which costs as much as a header
MAX_PIECES = 2048
_SLICE_SIZE = 16 * 1024  # bytes that are parsed before limits are checked again
# bytes of a path: more than the 1,024 characters of a page, encoded in nine bytes each
_MAX_PATH_SIZE = 10_000
# bytes of a response that a client must read to count as progress: the system reports free buffer
# space in large steps only
MIN_WRITE_PROGRESS = 64 * 1024
_MAX_STALLED_CHECKS = 6  # checks during which a client may read nothing
_CLOSE_HEADER: Header = (b"connection", b"close")
_log = logging.getLogger("toolcatalog.server")


def select_protocol(version: str = uvicorn.__version__) -> Any:
    """Return the protocol class for a version of uvicorn, for `uvicorn.Config(http=...)`."""
    if version.startswith(tuple(f"{tested}." for tested in TESTED_VERSIONS)):
        return LimitedProtocol
    _log.warning(
        "uvicorn %s was not tested: slow and oversized clients are not limited (tested: %s)",
        version,
        ", ".join(TESTED_VERSIONS),
    )
    return "auto"


class _PieceCounter:
    """Counts the pieces of bodies in data that is received at once."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        """Count a piece. Raises ValueError, and so ends the connection, if there are too many."""
        self.count += 1
        if self.count > MAX_PIECES:
            raise ValueError("too many pieces of a body")


class _IgnoredTrailers(list[Header]):
    """Takes the trailers of a chunked body, which are ignored (RFC 9110, 6.5.1)."""

    def __init__(self, pieces: _PieceCounter) -> None:
        super().__init__()
        self._pieces = pieces

    def append(self, header: Header) -> None:  # noqa: ARG002 - as of a list
        """Count a trailer."""
        self._pieces.add()


class LimitedProtocol(HttpToolsProtocol):
    """One connection with limits on its time and sizes."""

    check_interval = 10.0  # seconds between two checks
    connection_limit = CLIENT_LIMIT
    _encoded_headers: tuple[list[Header], bytes] = ([], b"")  # of every response

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request_size = 0  # bytes of the current request, without its first packet
        self._sized_request: Any = None  # the request to which they belong
        self._drain_count = 0  # how often the client has read what was buffered
        # the newest request, `_drain_count`, and bytes still buffered, at the last change
        self._last_progress: tuple[Any, int, int] = (None, -1, 0)
        self._stalled_checks = 0  # checks since the last change
        self._check_task: Any = None
        self._waiting_sizes: list[int] = []  # of the heads of requests that wait, oldest first
        self._active_cycle: Any = None  # the running request; `cycle` is the newest one
        self._may_be_large = False  # whether this head can be larger than allowed
        self._pieces = _PieceCounter()
        self._trailers = _IgnoredTrailers(self._pieces)
        self._refusal: ErrorDetail | None = None  # why the head being read is refused
        self._extensions = {RESPONSE_EXTENSION: {"writer": self}}

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Start the periodic check; reject the connection if the limit is reached."""
        super().connection_made(transport)
        self._check_task = self.loop.call_later(self.check_interval, self._check_progress)
        if not self.connection_limit.acquire():
            self._send_error(too_many_connections())

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the checks and tell the running request that the client is gone.

        uvicorn tells it only if no other request came after it.
        """
        self.connection_limit.release()
        self._check_task.cancel()
        if self._active_cycle is not None and not self._active_cycle.response_complete:
            self._active_cycle.disconnected = True
            self._active_cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data, and close the connection if the request is too large."""
        self._may_be_large = len(data) > MAX_FIELD_SIZE or self._is_in_head
        self._pieces.count = 0
        if len(data) <= _SLICE_SIZE:
            super().data_received(data)
        else:
            self._receive_slices(data)
        if self.pipeline:
            self._limit_waiting_bodies()
        if self.scope is not self._sized_request:
            self._sized_request, self._request_size = self.scope, 0
            return
        self._request_size += len(data)
        if self._request_size > MAX_HEAD_SIZE and not self.transport.is_closing():
            self._limit_size()

    def _limit_size(self) -> None:
        if self._is_in_head:
            self._send_error(_head_too_large())
        elif self._request_size > MAX_REQUEST_SIZE and not self._is_between_requests:
            self.transport.close()

    def _receive_slices(self, data: bytes) -> None:
        for start in range(0, len(data), _SLICE_SIZE):
            super().data_received(data[start : start + _SLICE_SIZE])
            if self.transport.is_closing():
                break
            if self._is_in_head and len(self.headers) > MAX_HEADER_COUNT:
                self._send_error(_head_too_large())
                break

    def _limit_waiting_bodies(self) -> None:
        if sum(len(cycle.body) for cycle, _ in self.pipeline) > MAX_PIPELINED_SIZE:
            self.transport.close()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._pieces.add()
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """Start the request, unless its head is too large or does not have one `Host`.

        An exception makes the parser fail, and then `send_400_response` answers. The end of an
        overlong path is left out.
        """
        self._refusal = self._check_head()
        if self._refusal:
            raise ValueError(self._refusal.message)
        if len(self.url) > _MAX_PATH_SIZE:
            self.url = _cut_path(self.url)
        self.scope["extensions"] = self._extensions  # type: ignore[typeddict-item]  # any value
        super().on_headers_complete()
        if not self._is_in_head:
            self.headers = self._trailers

    def _check_head(self) -> ErrorDetail | None:
        if self.pipeline and self._is_pipeline_full():
            return invalid_request(
                f"connection: more than {MAX_PIPELINED_REQUESTS} requests, or"
                f" {MAX_PIPELINED_SIZE // 1024} KiB of heads, wait for a response.",
                "Read responses before sending more requests.",
            )
        host_count = [name for name, _ in self.headers].count(b"host")
        if len(self.headers) > MAX_HEADER_COUNT or (self._may_be_large and self._is_head_large()):
            return _head_too_large()
        if host_count > 1 or (not host_count and self.parser.get_http_version() != "1.0"):
            return invalid_request(
                f"host: {host_count} headers.", "Send one Host, as RFC 9112, 3.2 has it."
            )
        return None

    def _is_pipeline_full(self) -> bool:
        """Return whether too many requests wait; counts the one whose head is complete now."""
        answered = len(self._waiting_sizes) - len(self.pipeline)
        del self._waiting_sizes[: max(0, answered)]
        self._waiting_sizes.append(self._measure_head())
        return (
            len(self.pipeline) >= MAX_PIPELINED_REQUESTS
            or sum(self._waiting_sizes) > MAX_PIPELINED_SIZE
        )

    def _is_head_large(self) -> bool:
        largest = max((len(value) for _, value in self.headers), default=0)
        return largest > MAX_FIELD_SIZE or self._measure_head() > MAX_HEAD_SIZE

    def _measure_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    # uvicorn makes a scope when a request begins, and a cycle when its head is complete

    @property
    def _is_in_head(self) -> bool:
        """Whether a head is incomplete."""
        return self.scope is not None and (self.cycle is None or self.cycle.scope is not self.scope)

    @property
    def _is_between_requests(self) -> bool:
        """Whether no byte of the next request has been read; never after an upgrade."""
        if self.scope is None or self._is_in_head:
            return self.scope is None
        return not self.cycle.more_body and not self.parser.should_upgrade()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._active_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def write_response(self, response: Response) -> bool:
        """Write the response to the running request; see `server.responses.ResponseWriter`.

        uvicorn checks and joins the headers one by one, which takes a fifth of the time of a
        cached answer. Returns False for a large body, and while the client does not read.
        """
        cycle, body = self._active_cycle, response.body
        if self.flow.write_paused or not isinstance(body, bytes):
            return False
        if cycle.disconnected:
            return True
        end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        lines = self._common_lines() + response.header_lines
        # in one call, and so in one packet: a second one costs as much as the rest of a response
        self.transport.writelines((STATUS_LINE[response.status], lines, end, body))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()
        return True

    def is_disconnected(self) -> bool:
        """Return whether the client of the running request is gone."""
        cycle = self._active_cycle
        cycle.disconnected = cycle.disconnected or self.transport.is_closing()
        disconnected: bool = cycle.disconnected
        return disconnected

    def _common_lines(self) -> bytes:
        """Return the header lines of every response, such as the date."""
        headers = self.server_state.default_headers  # another list each second
        if headers is not LimitedProtocol._encoded_headers[0]:
            LimitedProtocol._encoded_headers = (headers, encode_headers(headers))
        return LimitedProtocol._encoded_headers[1]

    def resume_writing(self) -> None:
        """Record that the client has read what was buffered."""
        self._drain_count += 1
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - one text for every parse error
        """Send an error envelope for a refused head or data that is not HTTP, and close."""
        self._send_error(
            self._refusal
            or invalid_request(
                "request: not HTTP/1.1.",
                "Send HTTP/1.1, as RFC 9112 has it; TLS ends in a proxy before this server.",
            )
        )

    def _check_progress(self) -> None:
        """Close the connection if it waits for its client and nothing has changed."""
        size = self.transport.get_write_buffer_size()
        request, drain_count, last_size = self._last_progress
        is_same = request is self.scope and drain_count == self._drain_count
        if is_same and last_size - MIN_WRITE_PROGRESS < size <= last_size:
            self._stalled_checks += 1
        else:
            self._last_progress = (self.scope, self._drain_count, size)
            self._stalled_checks = 0
        if size and self._stalled_checks >= _MAX_STALLED_CHECKS:
            self.transport.abort()  # the client does not read
        elif self._stalled_checks and not size and self._waits_for_client():
            self._end_stalled()
        self._check_task = self.loop.call_later(self.check_interval, self._check_progress)

    def _waits_for_client(self) -> bool:
        """Return whether the connection waits for the first request or for the rest of one.

        Also after bytes that the parser ignores, such as those after a trailer that ends the
        connection: uvicorn then closes it no more.
        """
        is_waiting = (
            self.scope is None
            or not self._is_between_requests
            or (self.cycle.response_complete and self.timeout_keep_alive_task is None)
        )
        return is_waiting and not self.flow.read_paused

    def _end_stalled(self) -> None:
        """Close a stalled connection.

        The client gets a 408 if the head is incomplete, and nothing if the body is.
        """
        if self._is_in_head:
            self._send_error(
                ErrorDetail(
                    408,
                    "request_timeout",
                    "head: not complete in time.",
                    "Send a request in one go.",
                )
            )
        else:
            self.transport.close()

    def _can_respond(self) -> bool:
        """Return whether a response can be written now.

        It cannot while another response is partly sent or has to be sent before it.
        """
        running = self._active_cycle
        is_first = (
            running is None
            or running.response_complete
            or (running is self.cycle and not running.response_started)
        )
        return is_first and not self.flow.write_paused

    def _send_error(self, error: ErrorDetail) -> None:
        """Close the connection, with an error response if one can be written."""
        if self._can_respond():
            if self._active_cycle is not None:
                self._active_cycle.disconnected = True  # drop its response
            context = ResponseContext(assign_request_id(None), b"")
            response = make_error_response([error], context, _CLOSE_HEADER)
            head = STATUS_LINE[response.status] + self._common_lines() + response.header_lines
            self.transport.write(b"\r\n".join((head, join_body(response.body))))
        self.transport.close()


def _head_too_large() -> ErrorDetail:
    return ErrorDetail(
        431,
        "head_too_large",
        f"head: more than {MAX_HEAD_SIZE // 1024} KiB, {MAX_HEADER_COUNT} headers, or "
        f"{MAX_FIELD_SIZE // 1024} KiB in one.",
        "Send fewer and shorter headers.",
    )


def _cut_path(url: bytes) -> bytes:
    """Return a URL with at most so much of its path that it stays too long for any page or tool.

    Percent-decoding 60 KB takes up to 25 ms.
    """
    path, mark, query = url.partition(b"?")
    return url if len(path) <= _MAX_PATH_SIZE else path[:_MAX_PATH_SIZE] + mark + query
