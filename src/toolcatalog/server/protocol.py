"""The short way before ASGI: uvicorn's HTTP protocol, which answers a plain request as soon as its headers are read.

The task, the event and the messages that ASGI needs for each request cost more than an answer of the short way does. What `Front` answers
is written at once, with the very bytes that uvicorn would write; all else goes on as if this were not here: HTTP/1.0, a connection that is
to close, an upgrade, a second request in the same packet, or a client that reads too slowly. It leans on the insides of uvicorn's
HttpToolsProtocol, whose version is pinned; without this room (`http="httptools"`) a server answers the same, more slowly.
"""

import asyncio
from types import SimpleNamespace
from typing import Any

import httptools
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from toolcatalog.server.answers import Answer

_DONE: Any = SimpleNamespace(response_complete=True, message_event=asyncio.Event())  # stands for a request that has been answered


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._front: Any = self.app.app if isinstance(self.app, ProxyHeadersMiddleware) else self.app
        self._fresh = False

    def data_received(self, data: bytes) -> None:
        """Read a packet. One request of it may be answered at once: others are waiting for their turn."""
        self._fresh = True
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Answer, or leave it to ASGI."""
        found = self._answer() if self._fresh and self._may_answer() else None
        if found is None:
            super().on_headers_complete()
        else:
            self._write(found)

    def _may_answer(self) -> bool:
        """Tell whether nothing stands before this request and nothing special comes after it."""
        parser, cycle = self.parser, self.cycle
        idle = (cycle is None or cycle.response_complete) and not self.flow.write_paused
        return idle and parser.should_keep_alive() and not parser.should_upgrade() and parser.get_http_version() == "1.1"

    def _answer(self) -> Answer | None:
        url = httptools.parse_url(self.url)
        path = url.path
        if b"%" in path or not path.isascii():
            return None
        scope: Any = self.scope
        scope["method"], scope["path"] = self.parser.get_method().decode("ascii"), path.decode("ascii")
        scope["query_string"] = url.query or b""
        found: Answer | None = self._front.answer(scope)
        return found

    def _write(self, answer: Answer) -> None:
        status, headers, body = answer
        content = [STATUS_LINE[status]]
        for name, value in (*self.server_state.default_headers, *headers):
            content += (name, b": ", value, b"\r\n")
        content.append(b"\r\n")
        self.transport.writelines((b"".join(content), b"" if self.scope["method"] == "HEAD" else body))
        self._fresh, self.cycle = False, _DONE
        self.on_response_complete()
