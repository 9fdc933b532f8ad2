"""Send a request to an ASGI application."""

import asyncio
from typing import Any
from urllib.parse import unquote

Answer = tuple[int, list[tuple[bytes, bytes]], bytes]
Headers = tuple[tuple[str, str], ...]


async def sent_by(app: Any, target: str, headers: Headers = (), method: str = "GET") -> Answer:
    """The answer of an ASGI application to one request: status, headers and body."""
    path, _, query = target.partition("?")
    request: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "root_path": "",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 5000),
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [
            (b"host", b"a"),
            *((name.encode(), value.encode("latin-1")) for name, value in headers),
        ],
        "state": {},
    }

    body = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not body:
            await asyncio.Event().wait()  # the client stays
        return body.pop()

    async def send(message: dict[str, Any]) -> None:
        request.append(message)

    await app(scope, receive, send)
    assert request[0]["type"] == "http.response.start"
    return (
        request[0]["status"],
        [*request[0]["headers"]],
        b"".join(message["body"] for message in request[1:]),
    )
