"""The room `server.protocol`: what is answered before ASGI is what ASGI answers. Bytes on a socket
of a real server, with and without keep-alive, pipelined or torn.
"""

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from support import sockets
from support.server import Server
from toolcatalog.keys.api_keys import KeyRing
from toolcatalog.server.fast_path import FastPath
from toolcatalog.server.protocol import FastProtocol
from toolcatalog.server.state import AppState
from toolcatalog.store.open import open_build

HEADERS = [
    (), ("If-None-Match: *",), ("Accept-Encoding: gzip",), ("Origin: https://somewhere.example",), ("x-api-key: tc_no",), ("x-api-key:",),
 ("Expect: 100-continue",), ("X-FORWARDED-PROTO: https",),
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("target", sockets.TARGETS)
def test_the_same_bytes_as_by_asgi(shipped: Server, target: str, method: str) -> None:
    """A second request of a packet, and one that closes, go to ASGI: head and body are those of the
    first, in the same order.
    """
    for headers in HEADERS:
        one = sockets.request(shipped, target, *headers, method=method)
        with sockets.connected(shipped) as connection:
            connection.sendall(one + one)
            first, second = sockets.answers(connection, method, method)
        assert first == second, headers
        with sockets.connected(shipped) as connection:
            connection.sendall(
                sockets.request(shipped, target, *headers, "Connection: close", method=method)
            )
            (last,) = sockets.answers(connection, method)
            assert connection.recv(1) == b""
        assert first == last, headers


def test_a_connection_goes_on(shipped: Server) -> None:
    """Requests one after another on one connection, refusals, HEAD and long lists among them, each
    get their own answer.
    """
    kinds = [
        (sockets.TOOL, "GET", b"200"),
        (f"{sockets.LIST}?limit=1000", "GET", b"200"),
        (sockets.TOOL, "HEAD", b"200"),
        (f"{sockets.LIST}?limit=0", "GET", b"400"),
        ("/healthz", "GET", b"200"),
    ]
    with sockets.connected(shipped) as connection:
        for target, method, status in kinds * 5:
            connection.sendall(sockets.request(shipped, target, method=method))
            ((head, body),) = sockets.answers(connection, method)
            assert head.startswith(b"HTTP/1.1 " + status)
            assert bool(body) == (method == "GET")


def test_a_packet_of_many_requests_is_answered_in_order(shipped: Server) -> None:
    """Pipelined requests for different things, of which the first is answered at once and the
    others in turn.
    """
    with sockets.connected(shipped) as connection:
        connection.sendall(
            b"".join(
                sockets.request(shipped, f"{sockets.LIST}?limit={number}")
                for number in range(1, 41)
            )
        )
        found = [
            body.count(b'"slug":"GITHUB') + body.count(b'"available_versions"')
            for _, body in sockets.answers(connection, *["GET"] * 40)
        ]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_a_client_that_reads_late_gets_everything(shipped: Server) -> None:
    """Long answers wait until they can be sent; none is lost, torn or out of order."""
    with sockets.connected(shipped) as connection:
        for number in range(60):
            connection.sendall(
                sockets.request(shipped, f"{sockets.LIST}?limit={1000 if number % 2 else 1}")
            )
        found = [body for _, body in sockets.answers(connection, *["GET"] * 60)]
    assert found == [found[0], found[1]] * 30
    assert len(found[0]) < len(found[1])


def test_a_torn_request_is_put_together(shipped: Server) -> None:
    """However a request is cut into packets, its answer is the same."""
    whole = sockets.request(shipped, f"{sockets.LIST}?limit=1")
    with sockets.connected(shipped) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(whole)
        (expected,) = sockets.answers(connection, "GET")
        for at in range(1, len(whole), 7):
            connection.sendall(whole[:at])
            connection.sendall(whole[at:])
            assert [*sockets.answers(connection, "GET")] == [expected]


@pytest.mark.parametrize("body", [b"hello", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_body_is_no_request(shipped: Server, body: bytes) -> None:
    """What a get brings along is passed over, also where it comes after the answer and looks like a
    request.
    """
    whole = sockets.request(shipped, sockets.TOOL, f"Content-Length: {len(body)}")
    with sockets.connected(shipped) as connection:
        connection.sendall(whole)
        first = [*sockets.answers(connection, "GET")]
        connection.sendall(body + whole + body + whole + body)
        assert [*sockets.answers(connection, "GET", "GET")] == first * 2
        connection.sendall(sockets.request(shipped, "/healthz"))
        ((_, body),) = sockets.answers(connection, "GET")
        assert body == b'{"status":"ok"}'


def test_an_old_client_is_answered_and_left(shipped: Server) -> None:
    """HTTP/1.0 has no keep-alive here."""
    with sockets.connected(shipped) as connection:
        connection.sendall(sockets.request(shipped, sockets.TOOL, version="1.0"))
        ((head, body),) = sockets.answers(connection, "GET")
        assert connection.recv(1) == b""
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert body.startswith(b"{")


def test_an_upgrade_is_left_to_uvicorn(shipped: Server) -> None:
    """A client that would speak another protocol is answered in this one."""
    with sockets.connected(shipped) as connection:
        connection.sendall(
            sockets.request(shipped, sockets.TOOL, "Connection: Upgrade", "Upgrade: h2c")
        )
        ((head, _),) = sockets.answers(connection, "GET")
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
    for target in (sockets.TOOL, sockets.LIST, f"{sockets.LIST}?limit=0"):
        one = sockets.request(shipped, target)
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
        with sockets.connected(shipped) as connection:
            connection.sendall(data)
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
    log: Any = shipped.log.read_text()
    assert "Traceback" not in log
