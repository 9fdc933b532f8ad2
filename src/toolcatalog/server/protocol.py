"""The HTTP protocol: uvicorn's, with limits on slow and oversized clients and the fast path.

uvicorn reads a head of any length, waits for the rest of a request without a limit, and keeps a
response until the client reads it. A few clients could therefore use all memory or all file
descriptors. `BoundedProtocol` bounds sizes (`MAX_HEAD_SIZE`, `MAX_REQUEST_SIZE`) and checks each
connection every `check_interval` seconds, which costs almost nothing per request. It closes a
connection whose request is still incomplete and unchanged at the second check, and one whose client
has read nothing of its response for six checks. It rejects a connection for which there is no file
descriptor (`server.connection_limit`).

The task, the event and the messages that ASGI needs for each request cost more than a response of
the fast path. `FastProtocol` writes what `FastPath` answers at once, with the same bytes that
uvicorn would write. Everything else takes the ASGI path: HTTP/1.0, a connection that is to be
closed, an upgrade, a second request in the same packet, or a client that reads too slowly. A packet
whose head is known (`server.fast_path`) is not parsed at all; this is possible because the parser
is between two requests before and after it.

This module depends on internals of uvicorn's HttpToolsProtocol, whose version is pinned. Without it
the server gives the same responses, but more slowly.
"""

import asyncio
from asyncio import Transport
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from toolcatalog.server.connection_limit import CLIENT_LIMIT
from toolcatalog.server.error_responses import ErrorDetail, invalid_request, too_many_connections
from toolcatalog.server.fast_path import RequestHead, learn_head
from toolcatalog.server.middleware import assign_request_id
from toolcatalog.server.responses import (
    BodyChunk,
    Header,
    RawResponse,
    ResponseContext,
    encode_headers,
    make_error_response,
)

MAX_HEAD_SIZE = 64 * 1024  # bytes, not counting the packet in which it begins
# bytes of a request with its body; no operation needs a body of more than 64 KiB
MAX_REQUEST_SIZE = 8 * 1024 * 1024
# bytes of a path: more than the 1,024 characters of a page, encoded in nine bytes each
_MAX_PATH_SIZE = 10_000
# bytes of a response that a client must read to count as progress: the system reports free buffer
# space in large steps only
MIN_WRITE_PROGRESS = 64 * 1024
_MAX_STALLED_CHECKS = 6  # checks during which a client may read nothing
_CLOSE_HEADER: Header = (b"connection", b"close")


class BoundedProtocol(HttpToolsProtocol):
    """One connection with limits on its time and sizes."""

    check_interval = 10.0  # seconds between two checks
    connection_limit = CLIENT_LIMIT

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_between_requests = True  # no byte of the next request has been read
        self._is_in_head = False  # a head is incomplete
        self._request_size = 0  # bytes of the current request, without its first packet
        # grows with each request that begins, and each time a client has read what was buffered
        self._progress = 0
        # `_progress`, and bytes still buffered, at the last change
        self._last_progress = (-1, 0)
        self._stalled_checks = 0  # checks since the last change
        self._check_task: Any = None
        self._active_cycle: Any = None  # the running request; `cycle` is the newest one

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
        self._request_size += len(data)
        super().data_received(data)
        if self._is_between_requests or self.transport.is_closing():
            return
        if self._is_in_head and self._request_size > MAX_HEAD_SIZE:
            self._send_error(
                ErrorDetail(
                    431,
                    "head_too_large",
                    f"head: more than {MAX_HEAD_SIZE // 1024} KiB.",
                    "Send fewer and shorter headers.",
                )
            )
        elif self._request_size > MAX_REQUEST_SIZE:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Record that a request begins."""
        self._is_between_requests, self._is_in_head, self._request_size = False, True, 0
        self._progress += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Record that the head is complete."""
        self._is_in_head = False
        self.url = _cut_path(self.url)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Record that the request is complete; after an upgrade it never is."""
        self._is_between_requests = not self.parser.should_upgrade()
        super().on_message_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._active_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def resume_writing(self) -> None:
        """Record that the client has read what was buffered."""
        self._progress += 1
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - one text for every parse error
        """Send an error envelope for data that is not HTTP, and close."""
        self._send_error(
            invalid_request(
                "request: not HTTP/1.1.",
                "Send HTTP/1.1, as RFC 9112 has it; TLS ends in a proxy before this server.",
            )
        )

    def _check_progress(self) -> None:
        """Close the connection if it waits for its client and nothing has changed."""
        steps, left = self._progress, self.transport.get_write_buffer_size()
        if (
            steps == self._last_progress[0]
            and self._last_progress[1] - MIN_WRITE_PROGRESS < left <= self._last_progress[1]
        ):
            self._stalled_checks += 1
        else:
            self._last_progress, self._stalled_checks = (steps, left), 0
        if left and self._stalled_checks >= _MAX_STALLED_CHECKS:
            self.transport.abort()  # the client does not read
        elif (
            self._stalled_checks
            and not left
            and not self.flow.read_paused
            and (not self._is_between_requests or not steps)
        ):
            self._end_stalled()
        self._check_task = self.loop.call_later(self.check_interval, self._check_progress)

    def _end_stalled(self) -> None:
        """Close a stalled connection.

        The client gets a 408 if the head is incomplete, and nothing if the body is.
        """
        if self._is_in_head:
            self._send_error(
                ErrorDetail(
                    408, "request_timeout", "head: not whole in time.", "Send a request in one go."
                )
            )
        else:
            self.transport.close()

    def _is_idle(self) -> bool:
        """Return whether nothing has to be sent before a new response."""
        cycle = self.cycle
        return (cycle is None or cycle.response_complete) and not self.flow.write_paused

    def _current_digest(self) -> bytes:
        """Return the digest that responses name as their snapshot; unknown (empty) here."""
        return b""

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
            status, headers, body = make_error_response(
                [error],
                ResponseContext(assign_request_id(None), self._current_digest()),
                _CLOSE_HEADER,
            )
            self.transport.write(
                b"%b%b%b\r\n%b"
                % (
                    STATUS_LINE[status],
                    encode_headers(self.server_state.default_headers),
                    encode_headers(headers),
                    body,
                )
            )
        self.transport.close()


def _cut_path(url: bytes) -> bytes:
    """Return a URL with at most so much of its path that it stays too long for any page or tool.

    Percent-decoding 60 KB takes up to 25 ms.
    """
    path, mark, query = url.partition(b"?")
    return url if len(path) <= _MAX_PATH_SIZE else path[:_MAX_PATH_SIZE] + mark + query


# replaces the ASGI cycle of a request that was answered here
_COMPLETED_CYCLE: Any = SimpleNamespace(response_complete=True, message_event=asyncio.Event())
# chunks of a body; more than this are joined first, which is faster than passing each to the system
_MAX_WRITELINES = 4


class FastProtocol(BoundedProtocol):
    """One connection that answers plain requests without ASGI."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fast_path: Any = (
            self.app.app if isinstance(self.app, ProxyHeadersMiddleware) else self.app
        )
        self._requests_in_packet = 0  # requests in the current packet
        self._was_answered = False  # whether the last one was answered here with 200 or 304
        self._known_head: RequestHead | None = None  # that of the last request answered here
        self._last_replay = 0.0  # when `_replay` last answered
        # the default headers of the server, and their encoded lines
        self._default_headers: tuple[Any, bytes] = (None, b"")

    def data_received(self, data: bytes) -> None:
        """Replay a request whose head is known; else parse it.

        Remembers the head of a request that was parsed and answered here.
        """
        if (
            self._known_head is not None
            and self._is_between_requests
            and self._is_idle()
            and self._replay(data, self._known_head)
        ):
            return
        was_between, self._requests_in_packet, self._was_answered = (
            self._is_between_requests,
            0,
            False,
        )
        super().data_received(data)
        if (
            was_between
            and self._was_answered
            and self._requests_in_packet == 1
            and self._is_between_requests
            and self._starts_with_request_line(data)
        ):
            self._known_head = learn_head(data.partition(b"\r")[2], self.headers)

    def _current_digest(self) -> bytes:
        snapshot: bytes = self._fast_path.state.digest
        return snapshot

    def _starts_with_request_line(self, data: bytes) -> bool:
        """Return whether a packet begins with the request line.

        The parser skips an empty line before it.
        """
        return data.startswith(
            b"%b %b HTTP/1.1\r\n" % (self.scope["method"].encode("ascii"), self.url)
        )

    def _replay(self, data: bytes, head: RequestHead) -> bool:
        found = self._fast_path.replay(data, head, self.client)
        if found is None:
            return False
        self._send_response(*found)
        self._progress += 1
        self.server_state.total_requests += 1
        self._last_replay = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_handler()
        return True

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle for the keep-alive timeout.

        `_replay` only records the time, which is cheaper than a new timer.
        """
        left = self._last_replay + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(
                left, self.timeout_keep_alive_handler
            )
        else:
            super().timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        """Count the requests of the packet."""
        self._requests_in_packet += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Answer from the fast path, or leave the request to ASGI."""
        found = self._respond() if self._can_answer_now() else None
        if found is None:
            super().on_headers_complete()
            return
        self._is_in_head = False
        status, headers, body = found
        self._send_response(
            status, encode_headers(headers), [] if self.scope["method"] == "HEAD" else [body]
        )
        self._was_answered = status in (200, 304)
        self.cycle = _COMPLETED_CYCLE
        self.on_response_complete()

    def _can_answer_now(self) -> bool:
        """Return whether this request can be answered without ASGI.

        Nothing may be pending before it, and the connection must stay an HTTP/1.1 connection after
        it.
        """
        # the timer was started after this packet came: another request of it was just answered
        if self.timeout_keep_alive_task is not None:
            return False
        parser = self.parser
        return (
            self._is_idle()
            and parser.should_keep_alive()
            and not parser.should_upgrade()
            and parser.get_http_version() == "1.1"
        )

    def _respond(self) -> RawResponse | None:
        path, _, query = self.url.partition(b"?")
        if b"%" in path or b"#" in self.url or not path.isascii():
            return None
        scope: Any = self.scope
        scope["method"], scope["path"], scope["query_string"] = (
            self.parser.get_method().decode("ascii"),
            path.decode("ascii"),
            query,
        )
        found: RawResponse | None = self._fast_path.respond(scope)
        return found

    def _send_response(self, status: int, headers: bytes, body: Sequence[BodyChunk]) -> None:
        head = b"%b%b%b\r\n" % (STATUS_LINE[status], self._encode_default_headers(), headers)
        if len(body) <= _MAX_WRITELINES:
            self.transport.writelines((head, *body))
        else:
            self.transport.write(b"".join((head, *body)))

    def _encode_default_headers(self) -> bytes:
        headers = self.server_state.default_headers  # a new list each second, for `date`
        if headers is not self._default_headers[0]:
            self._default_headers = (headers, encode_headers(headers))
        return self._default_headers[1]
