"""The HTTP protocol: uvicorn's, with limits on slow and oversized clients and the fast path.

The task, the event and the messages that ASGI needs for each request cost more than an answer of
the short way does. What `FastPath` answers is written at once, with the very bytes that uvicorn would
write; all else goes on as if this were not here: HTTP/1.0, a connection that is to close, an
upgrade, a second request in the same packet, or a client that reads too slowly. A packet whose head
is known (`heads`) is not even parsed: it goes past the parser, which stands between two requests
before and after. It leans on the insides of uvicorn's HttpToolsProtocol, whose version is pinned;
without this room (`http=Bounded`) a server answers the same, more slowly.
"""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from toolcatalog.server.answers import BodyChunk, RawResponse, encode_headers
from toolcatalog.server.bounded import BoundedProtocol
from toolcatalog.server.heads import RequestHead, learn_head

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
