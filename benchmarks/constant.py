"""The ceiling: the smallest ASGI application, which answers every request with the same bytes.

It runs with the uvicorn settings of `toolcatalog serve`, so it shows the most that this server can
do with a body of this size. `python -m benchmarks.constant --size N [--status 304]`; prints its
address to standard error.
"""

import argparse
import socket
import sys
from typing import Any

import uvicorn

Scope = dict[str, Any]


class ConstantApp:
    """Answers every request with one status and one body."""

    def __init__(self, size: int, status: int) -> None:
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(size).encode()),
        ]
        self.start = {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"etag", b'W/"constant"')] if status == 304 else headers,
        }
        self.body = {"type": "http.response.body", "body": b"" if status == 304 else b"x" * size}

    async def __call__(self, _: Scope, __: Any, send: Any) -> None:
        """Answer one request."""
        await send(self.start)
        await send(self.body)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constant", description=__doc__)
    parser.add_argument("--size", type=int, default=0, help="bytes of the body")
    parser.add_argument("--status", type=int, default=200)
    arguments = parser.parse_args()
    serve(ConstantApp(arguments.size, arguments.status))


def serve(app: Any, **settings: Any) -> None:
    """Serve an application on a free loopback port, as `toolcatalog serve` does.

    The other services use this function too.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
    defaults = {
        "http": "httptools",
        "loop": "auto",
        "lifespan": "off",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
    }
    config = uvicorn.Config(app, **{**defaults, **settings})
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
