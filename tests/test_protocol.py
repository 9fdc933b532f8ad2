"""The room `server.protocol`: what is answered before ASGI is what ASGI answers. Bytes on a socket
of a real server, with and without keep-alive, pipelined or torn.
"""

import asyncio
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from running import Server
from toolcatalog.keys.api_keys import KeyRing
from toolcatalog.server.fast_path import FastPath
from toolcatalog.server.protocol import FastProtocol
from toolcatalog.server.state import AppState
from toolcatalog.store.open import open_build

TOOL = "/api/v3/tools/GITHUB_CREATE_ISSUE"
LIST = "/api/v3/tools"
TARGETS = [
    TOOL, f"{TOOL}?version=latest", f"{TOOL}?version=nope", f"{TOOL}?", f"{TOOL}?a=1?b=2", f"{TOOL}?x=1#part", f"{TOOL}#part", f"{LIST}/NOPE", f"{LIST}/nope",
    f"http://elsewhere.example{TOOL}?version=latest", f"{LIST}/%41", f"{LIST}//", f"/{TOOL}", LIST, f"{LIST}?limit=2&tags=important", f"{LIST}?limit=0",
    f"{LIST}?query=issue", f"{LIST}?toolkit_slug=nope", f"{LIST}/", "/healthz", "/api/v3.1/tools?limit=1", "/nothing", "/",
]  # fmt: skip
HEADERS = [
    (), ("If-None-Match: *",), ("Accept-Encoding: gzip",), ("Origin: https://somewhere.example",), ("x-api-key: tc_no",), ("x-api-key:",),
 ("Expect: 100-continue",), ("X-FORWARDED-PROTO: https",),
]  # fmt: skip


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


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("target", TARGETS)
def test_the_same_bytes_as_by_asgi(shipped: Server, target: str, method: str) -> None:
    """A second request of a packet, and one that closes, go to ASGI: head and body are those of the
    first, in the same order.
    """
    for headers in HEADERS:
        one = request(shipped, target, *headers, method=method)
        with connected(shipped) as connection:
            connection.sendall(one + one)
            first, second = answers(connection, method, method)
        assert first == second, headers
        with connected(shipped) as connection:
            connection.sendall(
                request(shipped, target, *headers, "Connection: close", method=method)
            )
            (last,) = answers(connection, method)
            assert connection.recv(1) == b""
        assert first == last, headers


def test_a_connection_goes_on(shipped: Server) -> None:
    """Requests one after another on one connection, refusals, HEAD and long lists among them, each
    get their own answer.
    """
    kinds = [
        (TOOL, "GET", b"200"),
        (f"{LIST}?limit=1000", "GET", b"200"),
        (TOOL, "HEAD", b"200"),
        (f"{LIST}?limit=0", "GET", b"400"),
        ("/healthz", "GET", b"200"),
    ]
    with connected(shipped) as connection:
        for target, method, status in kinds * 5:
            connection.sendall(request(shipped, target, method=method))
            ((head, body),) = answers(connection, method)
            assert head.startswith(b"HTTP/1.1 " + status)
            assert bool(body) == (method == "GET")


def test_a_packet_of_many_requests_is_answered_in_order(shipped: Server) -> None:
    """Pipelined requests for different things, of which the first is answered at once and the
    others in turn.
    """
    with connected(shipped) as connection:
        connection.sendall(
            b"".join(request(shipped, f"{LIST}?limit={number}") for number in range(1, 41))
        )
        found = [
            body.count(b'"slug":"GITHUB') + body.count(b'"available_versions"')
            for _, body in answers(connection, *["GET"] * 40)
        ]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_a_client_that_reads_late_gets_everything(shipped: Server) -> None:
    """Long answers wait until they can be sent; none is lost, torn or out of order."""
    with connected(shipped) as connection:
        for number in range(60):
            connection.sendall(request(shipped, f"{LIST}?limit={1000 if number % 2 else 1}"))
        found = [body for _, body in answers(connection, *["GET"] * 60)]
    assert found == [found[0], found[1]] * 30
    assert len(found[0]) < len(found[1])


def test_a_torn_request_is_put_together(shipped: Server) -> None:
    """However a request is cut into packets, its answer is the same."""
    whole = request(shipped, f"{LIST}?limit=1")
    with connected(shipped) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(whole)
        (expected,) = answers(connection, "GET")
        for at in range(1, len(whole), 7):
            connection.sendall(whole[:at])
            connection.sendall(whole[at:])
            assert [*answers(connection, "GET")] == [expected]


@pytest.mark.parametrize("body", [b"hello", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_body_is_no_request(shipped: Server, body: bytes) -> None:
    """What a get brings along is passed over, also where it comes after the answer and looks like a
    request.
    """
    whole = request(shipped, TOOL, f"Content-Length: {len(body)}")
    with connected(shipped) as connection:
        connection.sendall(whole)
        first = [*answers(connection, "GET")]
        connection.sendall(body + whole + body + whole + body)
        assert [*answers(connection, "GET", "GET")] == first * 2
        connection.sendall(request(shipped, "/healthz"))
        ((_, body),) = answers(connection, "GET")
        assert body == b'{"status":"ok"}'


def test_an_old_client_is_answered_and_left(shipped: Server) -> None:
    """HTTP/1.0 has no keep-alive here."""
    with connected(shipped) as connection:
        connection.sendall(request(shipped, TOOL, version="1.0"))
        ((head, body),) = answers(connection, "GET")
        assert connection.recv(1) == b""
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert body.startswith(b"{")


def test_an_upgrade_is_left_to_uvicorn(shipped: Server) -> None:
    """A client that would speak another protocol is answered in this one."""
    with connected(shipped) as connection:
        connection.sendall(request(shipped, TOOL, "Connection: Upgrade", "Upgrade: h2c"))
        ((head, _),) = answers(connection, "GET")
    assert head.startswith(b"HTTP/1.1 200 OK")


async def nowhere(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - an application
    """An application that answers nobody."""
    raise AssertionError(scope["path"])


class Deaf(FastPath):
    """A front that answers nobody through ASGI."""

    __call__ = staticmethod(nowhere)


async def statuses(app: Deaf, data: bytes, count: int) -> list[bytes]:
    """The statuses that this application gives to these bytes under uvicorn's protocol with the
    short way in it.
    """
    config = uvicorn.Config(
        app, interface="asgi3", lifespan="off", log_config=None, proxy_headers=False
    )
    config.load()
    server = await asyncio.get_running_loop().create_server(
        lambda: FastProtocol(config, ServerState(), {}), "127.0.0.1", 0
    )
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(data)
    answer = b""
    found: list[bytes] = []
    while len(found) < count:
        answer += await asyncio.wait_for(reader.read(65536), 10)
        found = re.findall(rb"HTTP/1.1 ([0-9]{3})", answer)
    writer.close()
    await writer.wait_closed()
    server.close()
    return found


def test_the_first_of_a_packet_does_without_asgi(shipped: Server, shipped_build: Path) -> None:
    """A plain request is answered before there is any ASGI; the next one of the packet has to wait
    its turn there.
    """
    app = Deaf(AppState(KeyRing(shipped.keys_file), open_build(shipped_build)), nowhere)
    for target in (TOOL, LIST, f"{LIST}?limit=0"):
        one = request(shipped, target)
        first, second = asyncio.run(statuses(app, one + one, 2))
        assert first in (b"200", b"400")
        assert second == b"500"


def test_nonsense_does_not_reach_the_short_way(shipped: Server) -> None:
    """What is no HTTP, or no path, is refused by uvicorn as ever, and others are answered."""
    for data in (
        b"\x16\x03\x01\x02\x00\x01",
        b"GET /api/v3/tools/\xc3\x84 HTTP/1.1\r\n\r\n",
        b"GET /api/v3/tools HTTP/9.9\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
    ):
        with connected(shipped) as connection:
            connection.sendall(data)
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
    log: Any = shipped.log.read_text()
    assert "Traceback" not in log
