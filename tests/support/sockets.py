"""Raw HTTP on a socket: connections, requests and their answers."""

import re
import socket
from collections.abc import Iterator

from support.server import Server

TOOL = "/api/v3/tools/GITHUB_CREATE_ISSUE"
LIST = "/api/v3/tools"
TARGETS = [
    TOOL,
    f"{TOOL}?version=latest",
    f"{TOOL}?version=nope",
    f"{TOOL}?",
    f"{TOOL}?a=1?b=2",
    f"{TOOL}?x=1#part",
    f"{TOOL}#part",
    f"{LIST}/NOPE",
    f"{LIST}/nope",
    f"http://elsewhere.example{TOOL}?version=latest",
    f"{LIST}/%41",
    f"{LIST}//",
    f"/{TOOL}",
    LIST,
    f"{LIST}?limit=2&tags=important",
    f"{LIST}?limit=0",
    f"{LIST}?query=issue",
    f"{LIST}?toolkit_slug=nope",
    f"{LIST}/",
    "/healthz",
    "/api/v3.1/tools?limit=1",
    "/nothing",
    "/",
]


def connected(server: Server) -> socket.socket:
    """A connection of its own."""
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def request(
    server: Server, target: str, *headers: str, method: str = "GET", version: str = "1.1"
) -> bytes:
    """A request as bytes, with the server's key unless the headers name another."""
    key = (
        ()
        if any(header.startswith("x-api-key") for header in headers)
        else (f"x-api-key: {server.key}",)
    )
    return "\r\n".join(
        [
            f"{method} {target} HTTP/{version}",
            "Host: a",
            "X-Request-Id: same",
            *key,
            *headers,
            "",
            "",
        ]
    ).encode()


def answers(connection: socket.socket, *methods: str) -> Iterator[tuple[bytes, bytes]]:
    """The heads and bodies of as many answers as there are methods, in their order."""
    with connection.makefile("rb") as stream:
        for method in methods:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = stream.readline()
                assert line, head
                head = (
                    b"" if (head + line).strip() in (b"HTTP/1.1 100 Continue", b"") else head + line
                )
            length = re.search(rb"content-length: ([0-9]+)", head)
            yield undated(head), stream.read(int(length[1])) if length and method != "HEAD" else b""


def undated(head: bytes) -> bytes:
    """The head without its date and what only the last answer of a connection says."""
    return re.sub(rb"(date: [^\r]*|connection: close)\r\n", b"", head)
