"""HTTP on a socket: keep-alive, pipelined and split requests."""

import itertools
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from support import sockets
from support.server import Server
from toolcatalog.keys.api_keys import KeyRing
from toolcatalog.server.app import create_app
from toolcatalog.server.limits.protocol import LimitedProtocol, select_protocol
from toolcatalog.server.state import AppState
from toolcatalog.store.open import open_build

HEADERS = [
    (),
    ("If-None-Match: *",),
    ("Accept-Encoding: gzip",),
    ("Origin: https://somewhere.example",),
    ("x-api-key: tc_no",),
    ("x-api-key:",),
    ("Expect: 100-continue",),
    ("X-FORWARDED-PROTO: https",),
]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("target", sockets.TARGETS)
def test_pipelined_requests_get_the_same_bytes(shipped: Server, target: str, method: str) -> None:
    """Also the second request of a packet, and one that closes the connection."""
    for headers in HEADERS:
        item = sockets.request(shipped, target, *headers, method=method)
        with sockets.connected(shipped) as connection:
            connection.sendall(item + item)
            first, second = sockets.answers(connection, method, method)
        assert first == second, headers
        with sockets.connected(shipped) as connection:
            connection.sendall(
                sockets.request(shipped, target, *headers, "Connection: close", method=method)
            )
            (last,) = sockets.answers(connection, method)
            assert connection.recv(1) == b""
        assert first == last, headers


def test_keep_alive_serves_different_requests(shipped: Server) -> None:
    """Errors, HEAD and long lists among them."""
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


def test_pipelined_requests_are_answered_in_order(shipped: Server) -> None:
    with sockets.connected(shipped) as connection:
        connection.sendall(
            b"".join(
                sockets.request(shipped, f"{sockets.LIST}?limit={number}")
                for number in range(1, 41)
            )
        )
        results = [
            body.count(b'"slug":"GITHUB') + body.count(b'"available_versions"')
            for _, body in sockets.answers(connection, *["GET"] * 40)
        ]
    assert results == sorted(results)
    assert results[0] < results[-1]


def test_late_reader_gets_all_bytes_in_order(shipped: Server) -> None:
    with sockets.connected(shipped) as connection:
        for number in range(60):
            connection.sendall(
                sockets.request(shipped, f"{sockets.LIST}?limit={1000 if number % 2 else 1}")
            )
        results = [body for _, body in sockets.answers(connection, *["GET"] * 60)]
    assert results == [results[0], results[1]] * 30
    assert len(results[0]) < len(results[1])


def test_split_request_is_reassembled(shipped: Server) -> None:
    """For any split into packets."""
    document = sockets.request(shipped, f"{sockets.LIST}?limit=1")
    with sockets.connected(shipped) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(document)
        (expected,) = sockets.answers(connection, "GET")
        for index in range(1, len(document), 7):
            connection.sendall(document[:index])
            connection.sendall(document[index:])
            assert [*sockets.answers(connection, "GET")] == [expected]


@pytest.mark.parametrize("body", [b"hello", b"GET / HTTP/1.1\r\n\r\n"])
def test_get_body_is_ignored(shipped: Server, body: bytes) -> None:
    """Also if it arrives late and looks like a request."""
    document = sockets.request(shipped, sockets.TOOL, f"Content-Length: {len(body)}")
    with sockets.connected(shipped) as connection:
        connection.sendall(document)
        first = [*sockets.answers(connection, "GET")]
        connection.sendall(body + document + body + document + body)
        assert [*sockets.answers(connection, "GET", "GET")] == first * 2
        connection.sendall(sockets.request(shipped, "/healthz"))
        ((_, body),) = sockets.answers(connection, "GET")
        assert body == b'{"status":"ok"}'


def test_http_1_0_connection_is_closed(shipped: Server) -> None:
    with sockets.connected(shipped) as connection:
        connection.sendall(sockets.request(shipped, sockets.TOOL, version="1.0"))
        ((head, body),) = sockets.answers(connection, "GET")
        assert connection.recv(1) == b""
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert body.startswith(b"{")


def test_upgrade_request_is_answered_as_http(shipped: Server) -> None:
    with sockets.connected(shipped) as connection:
        connection.sendall(
            sockets.request(shipped, sockets.TOOL, "Connection: Upgrade", "Upgrade: h2c")
        )
        ((head, _),) = sockets.answers(connection, "GET")
    assert head.startswith(b"HTTP/1.1 200 OK")


@contextmanager
def serve_with(protocol: Any, build: Path, server: Server) -> Iterator[socket.socket]:
    """Serve a build in a thread with this protocol class; yield a connection."""
    app = create_app(AppState(KeyRing(server.keys_file), open_build(build)), None)
    config = uvicorn.Config(
        app, http=protocol, lifespan="off", ws="none", log_config=None, server_header=False
    )
    listener = socket.create_server(("127.0.0.1", 0))
    process = uvicorn.Server(config)
    thread = Thread(target=process.run, args=([listener],))
    thread.start()
    try:
        with socket.create_connection(listener.getsockname()) as connection:
            yield connection
    finally:
        process.should_exit = True
        thread.join()


def test_uvicorns_own_protocol_gives_the_same_responses(
    shipped: Server, shipped_build: Path
) -> None:
    """Except for the date."""
    results = []
    for protocol in (HttpToolsProtocol, LimitedProtocol):
        responses: list[tuple[bytes, bytes]] = []
        with serve_with(protocol, shipped_build, shipped) as connection:
            for target, method, extra in itertools.product(
                (*sockets.TARGETS, f"{sockets.LIST}?limit=1000"), ("GET", "HEAD", "POST"), HEADERS
            ):
                connection.sendall(sockets.request(shipped, target, *extra, method=method))
                responses += sockets.answers(connection, method)
        results.append(responses)
    assert results[0] == results[1]
    assert {head.split()[1] for head, _ in results[0]} >= {b"200", b"304", b"400", b"401", b"405"}


def test_untested_uvicorn_version_is_used_without_limits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The server starts with uvicorn's own protocol and logs one line."""
    assert select_protocol("0.54.0") is LimitedProtocol
    assert not caplog.records
    assert select_protocol("99.1.0") == "auto"
    assert ["99.1.0" in record.getMessage() for record in caplog.records] == [True]


def test_installed_uvicorn_version_was_tested() -> None:
    """Otherwise this test run has no client limits."""
    assert select_protocol() is LimitedProtocol


def test_invalid_http_is_refused(shipped: Server) -> None:
    """By uvicorn; other requests still work."""
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
