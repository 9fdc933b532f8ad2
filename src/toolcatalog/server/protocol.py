"""The short way before ASGI: uvicorn's HTTP protocol, which answers a plain request as soon as its
headers are read.

The task, the event and the messages that ASGI needs for each request cost more than an answer of
the short way does. What `Front` answers is written at once, with the very bytes that uvicorn would
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

from toolcatalog.server.answers import Answer, Piece, lines
from toolcatalog.server.bounded import Bounded
from toolcatalog.server.heads import Head, learn

# stands for a request that has been answered
_DONE: Any = SimpleNamespace(response_complete=True, message_event=asyncio.Event())
# pieces of a body: more are put together first, which is quicker than to hand each to the system
_FEW = 4


class Protocol(Bounded):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._front: Any = (
            self.app.app if isinstance(self.app, ProxyHeadersMiddleware) else self.app
        )
        self._begun = 0  # requests in the packet at hand
        self._good = False  # whether the last one was answered here, and well
        self._head: Head | None = None  # of the last one that was
        self._asked = 0.0  # when `_again` answered last
        # the headers that the server gives to all, and their lines
        self._usual: tuple[Any, bytes] = (None, b"")

    def data_received(self, data: bytes) -> None:
        """Answer a request whose head is known without parsing it; remember the head of one that
        was parsed and answered here.
        """
        if (
            self._head is not None
            and self._between
            and self._is_idle()
            and self._again(data, self._head)
        ):
            return
        was_between, self._begun, self._good = self._between, 0, False
        super().data_received(data)
        if was_between and self._good and self._begun == 1 and self._between and self._starts(data):
            self._head = learn(data.partition(b"\r")[2], self.headers)

    def _snapshot(self) -> bytes:
        snapshot: bytes = self._front.live.snapshot
        return snapshot

    def _starts(self, data: bytes) -> bool:
        """Tell whether a packet begins with the line of the request: an empty line before it is
        passed over by the parser.
        """
        return data.startswith(
            b"%b %b HTTP/1.1\r\n" % (self.scope["method"].encode("ascii"), self.url)
        )

    def _again(self, data: bytes, head: Head) -> bool:
        found = self._front.again(data, head, self.client)
        if found is None:
            return False
        self._send(*found)
        self._steps += 1
        self.server_state.total_requests += 1
        self._asked = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_handler()
        return True

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle for so long. `_again` only notes the time, which is
        cheaper than a new timer.
        """
        left = self._asked + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(
                left, self.timeout_keep_alive_handler
            )
        else:
            super().timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        """Note it."""
        self._begun += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Answer, or leave it to ASGI."""
        found = self._answer() if self._is_free() else None
        if found is None:
            super().on_headers_complete()
            return
        self._in_head = False
        status, headers, body = found
        self._send(status, lines(headers), [] if self.scope["method"] == "HEAD" else [body])
        self._good = status in (200, 304)
        self.cycle = _DONE
        self.on_response_complete()

    def _is_free(self) -> bool:
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

    def _answer(self) -> Answer | None:
        path, _, query = self.url.partition(b"?")
        if b"%" in path or b"#" in self.url or not path.isascii():
            return None
        scope: Any = self.scope
        scope["method"], scope["path"], scope["query_string"] = (
            self.parser.get_method().decode("ascii"),
            path.decode("ascii"),
            query,
        )
        found: Answer | None = self._front.answer(scope)
        return found

    def _send(self, status: int, headers: bytes, body: Sequence[Piece]) -> None:
        head = b"%b%b%b\r\n" % (STATUS_LINE[status], self._usual_lines(), headers)
        if len(body) <= _FEW:
            self.transport.writelines((head, *body))
        else:
            self.transport.write(b"".join((head, *body)))

    def _usual_lines(self) -> bytes:
        headers = self.server_state.default_headers  # another list each second, for its date
        if headers is not self._usual[0]:
            self._usual = (headers, lines(headers))
        return self._usual[1]
