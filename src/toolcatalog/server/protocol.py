"""The HTTP protocol: uvicorn's, with limits on slow and oversized clients and the fast path.

uvicorn reads a head of any length, waits for the rest of a request for ever, and keeps an answer
until somebody takes it; so a few lines of somebody's script would hold all memory or all
descriptors. Time is bounded by a look at each connection every so often, which costs a request next
to nothing. A request that is still the same one, and not whole, at the second look ends its
connection, and so does a client that has taken nothing of its answer for six. A connection for
which there is no descriptor (`server.connection_limit`) is refused.

The task, the event and the messages that ASGI needs for each request cost more than an answer of
the short way does. What `FastPath` answers is written at once, with the very bytes that uvicorn would
write; all else goes on as if this were not here: HTTP/1.0, a connection that is to close, an
upgrade, a second request in the same packet, or a client that reads too slowly. A packet whose head
is known (`server.fast_path`) is not even parsed: it goes past the parser, which stands between two requests
before and after. It leans on the insides of uvicorn's HttpToolsProtocol, whose version is pinned;
without this room (`http=Bounded`) a server answers the same, more slowly.
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

MAX_HEAD_SIZE = 64 * 1024  # bytes, beside the packet in which it begins
# bytes of a request with its body, of which nobody here needs more than 64 KiB
MAX_REQUEST_SIZE = 8 * 1024 * 1024
# bytes of an answer whose taking counts: systems tell in lumps that there is room again
MIN_WRITE_PROGRESS = 64 * 1024
_MAX_STALLED_CHECKS = 6  # for which a client may take nothing
_CLOSE_HEADER: Header = (b"connection", b"close")


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    check_interval = 10.0  # seconds between two looks
    connection_limit = CLIENT_LIMIT

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_between_requests = True  # requests: nothing of a next one has been read
        self._is_in_head = False  # of a request
        self._request_size = 0  # bytes of the request at hand, beside the packet in which it began
        # grows with each request that begins, and each time that a client has taken what there was
        self._progress = 0
        # steps, and bytes still to be taken, when something had last changed
        self._last_progress = (-1, 0)
        self._stalled_checks = 0  # looks since
        self._check_task: Any = None
        self._active_cycle: Any = None  # what answers just now; `cycle` is what came last

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as the library has it
        """Begin to look, where there is room."""
        super().connection_made(transport)
        self._check_task = self.loop.call_later(self.check_interval, self._check_progress)
        if not self.connection_limit.acquire():
            self._send_error(too_many_connections())

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more; and tell what answers, which uvicorn does only where nothing came after it."""
        self.connection_limit.release()
        self._check_task.cancel()
        if self._active_cycle is not None and not self._active_cycle.response_complete:
            self._active_cycle.disconnected = True
            self._active_cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, and end what is too large."""
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
        """Note it."""
        self._is_between_requests, self._is_in_head, self._request_size = False, True, 0
        self._progress += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note it."""
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note it; after an upgrade nothing is as before."""
        self._is_between_requests = not self.parser.should_upgrade()
        super().on_message_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._active_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def resume_writing(self) -> None:
        """Note that the client has taken what there was."""
        self._progress += 1
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the same text for all that is no HTTP
        """Refuse what is no HTTP in the envelope of all errors, and close."""
        self._send_error(
            invalid_request(
                "request: not HTTP/1.1.",
                "Send HTTP/1.1, as RFC 9112 has it; TLS ends in a proxy before this server.",
            )
        )

    def _check_progress(self) -> None:
        """End the connection where it waits for its client, and nothing has changed."""
        steps, left = self._progress, self.transport.get_write_buffer_size()
        if (
            steps == self._last_progress[0]
            and self._last_progress[1] - MIN_WRITE_PROGRESS < left <= self._last_progress[1]
        ):
            self._stalled_checks += 1
        else:
            self._last_progress, self._stalled_checks = (steps, left), 0
        if left and self._stalled_checks >= _MAX_STALLED_CHECKS:
            self.transport.abort()  # what is left has nobody to take it
        elif (
            self._stalled_checks
            and not left
            and not self.flow.read_paused
            and (not self._is_between_requests or not steps)
        ):
            self._end_stalled()
        self._check_task = self.loop.call_later(self.check_interval, self._check_progress)

    def _end_stalled(self) -> None:
        """Tell a client that it took too long for a head, and close; others know what they were
        about.
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
        """Tell whether nothing is to be sent before an answer."""
        cycle = self.cycle
        return (cycle is None or cycle.response_complete) and not self.flow.write_paused

    def _current_digest(self) -> bytes:
        """What an answer names as its snapshot; nothing is known of that here."""
        return b""

    def _can_respond(self) -> bool:
        """Tell whether an answer would stand alone: nothing of another has been sent, and none
        comes before it.
        """
        running = self._active_cycle
        is_first = (
            running is None
            or running.response_complete
            or (running is self.cycle and not running.response_started)
        )
        return is_first and not self.flow.write_paused

    def _send_error(self, error: ErrorDetail) -> None:
        """Close, with a last answer where it would stand alone."""
        if self._can_respond():
            if self._active_cycle is not None:
                self._active_cycle.disconnected = True  # whatever it was about to say
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


# stands for a request that has been answered
_COMPLETED_CYCLE: Any = SimpleNamespace(response_complete=True, message_event=asyncio.Event())
# pieces of a body: more are put together first, which is quicker than to hand each to the system
_MAX_WRITELINES = 4


class FastProtocol(BoundedProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fast_path: Any = (
            self.app.app if isinstance(self.app, ProxyHeadersMiddleware) else self.app
        )
        self._requests_in_packet = 0  # requests in the packet at hand
        self._was_answered = False  # whether the last one was answered here, and well
        self._known_head: RequestHead | None = None  # of the last one that was
        self._last_replay = 0.0  # when `_again` answered last
        # the headers that the server gives to all, and their lines
        self._default_headers: tuple[Any, bytes] = (None, b"")

    def data_received(self, data: bytes) -> None:
        """Answer a request whose head is known without parsing it; remember the head of one that
        was parsed and answered here.
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
        """Tell whether a packet begins with the line of the request: an empty line before it is
        passed over by the parser.
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
        """Close a connection that has been idle for so long. `_again` only notes the time, which is
        cheaper than a new timer.
        """
        left = self._last_replay + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(
                left, self.timeout_keep_alive_handler
            )
        else:
            super().timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        """Note it."""
        self._requests_in_packet += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Answer, or leave it to ASGI."""
        found = self._respond() if self._can_answer_now() else None
        if found is None:
            super().on_headers_complete()
            return
        self._in_head = False
        status, headers, body = found
        self._send_response(
            status, encode_headers(headers), [] if self.scope["method"] == "HEAD" else [body]
        )
        self._was_answered = status in (200, 304)
        self.cycle = _COMPLETED_CYCLE
        self.on_response_complete()

    def _can_answer_now(self) -> bool:
        """Tell whether nothing stands before this request, and nothing special comes after it."""
        # not since this packet came: another request of it has just been answered
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
        headers = self.server_state.default_headers  # another list each second, for its date
        if headers is not self._default_headers[0]:
            self._default_headers = (headers, encode_headers(headers))
        return self._default_headers[1]
