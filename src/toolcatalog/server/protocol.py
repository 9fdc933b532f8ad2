"""The short way before ASGI: uvicorn's HTTP protocol, which answers a plain request as soon as its headers are read.

The task, the event and the messages that ASGI needs for each request cost more than an answer of the short way does. What `Front` answers
is written at once, with the very bytes that uvicorn would write; all else goes on as if this were not here: HTTP/1.0, a connection that is
to close, an upgrade, a second request in the same packet, or a client that reads too slowly. It leans on the insides of uvicorn's
HttpToolsProtocol, whose version is pinned; without this room (`http="httptools"`) a server answers the same, more slowly.
"""

import asyncio
from types import SimpleNamespace
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from toolcatalog.server.answers import Answer, Header

_DONE: Any = SimpleNamespace(response_complete=True, message_event=asyncio.Event())  # stands for a request that has been answered
_SMALL = 64 * 1024  # bytes of a body that are copied, to be written in one piece: that is quicker than two


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._front: Any = self.app.app if isinstance(self.app, ProxyHeadersMiddleware) else self.app

    def on_headers_complete(self) -> None:
        """Answer, or leave it to ASGI."""
        found = self._answer() if self._is_free() else None
        if found is None:
            super().on_headers_complete()
            return
        self._write(*found)
        self.cycle = _DONE
        self.on_response_complete()

    def _is_free(self) -> bool:
        """Tell whether nothing stands before this request, and nothing special comes after it."""
        if self.timeout_keep_alive_task is not None:  # not since this packet came: another request of it has just been answered
            return False
        parser, cycle = self.parser, self.cycle
        idle = (cycle is None or cycle.response_complete) and not self.flow.write_paused
        return idle and parser.should_keep_alive() and not parser.should_upgrade() and parser.get_http_version() == "1.1"

    def _answer(self) -> Answer | None:
        path, _, query = self.url.partition(b"?")
        if b"%" in path or b"#" in self.url or not path.isascii():
            return None
        scope: Any = self.scope
        scope["method"], scope["path"], scope["query_string"] = self.parser.get_method().decode("ascii"), path.decode("ascii"), query
        found: Answer | None = self._front.answer(scope)
        return found

    def _write(self, status: int, headers: list[Header], body: bytes) -> None:
        parts = [STATUS_LINE[status]]
        for name, value in (*self.server_state.default_headers, *headers):
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"\r\n")
        if self.scope["method"] == "HEAD":
            self.transport.write(b"".join(parts))
        elif len(body) <= _SMALL:
            self.transport.write(b"".join((*parts, body)))
        else:
            self.transport.writelines((b"".join(parts), body))
