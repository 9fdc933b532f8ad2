"""Tests of `server.limits.protocol`: limits on slow, idle and large clients, with real sockets."""

import asyncio
import re
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from support.command import run_successfully
from support.server import TIMEOUT, Server, create_key, start_server, wait_until
from support.sockets import answers, connected, request
from toolcatalog.keys import api_keys
from toolcatalog.keys.api_keys import KeyRing
from toolcatalog.server.app import create_app
from toolcatalog.server.limits.connection_limit import ConnectionLimit
from toolcatalog.server.limits.protocol import LimitedProtocol
from toolcatalog.server.state import AppState
from toolcatalog.store.open import open_build

SESSION = "/api/v3/tool_router/session/trs_playground/tools"
LONG = "/api/v3/tools?limit=1000"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class FrequentChecks(LimitedProtocol):
    """A protocol that checks its timeouts often."""

    check_interval = 0.2


@asynccontextmanager
async def checking_server(
    build: Path, server: Server
) -> AsyncIterator[tuple[Callable[[], Awaitable[Stream]], ServerState]]:
    """A server in this process that checks timeouts often; returns a connect function and its
    connections.
    """
    live = AppState(KeyRing(server.keys_file), open_build(build))
    config = uvicorn.Config(
        create_app(live, None),
        interface="asgi3",
        lifespan="off",
        ws="none",
        log_config=None,
        proxy_headers=False,
    )
    config.load()
    state = ServerState()
    listening = await asyncio.get_running_loop().create_server(
        lambda: FrequentChecks(config, state, {}), "127.0.0.1", 0
    )
    address = listening.sockets[0].getsockname()
    yield (lambda: asyncio.open_connection(*address)), state
    listening.close()


def read_until_closed(
    build: Path, server: Server, data_sent: bytes, repeated: bytes = b""
) -> bytes:
    """Send data, then `repeated` every tenth of a second, and return what arrives until the server
    closes.
    """

    async def client() -> bytes:
        async with checking_server(build, server) as (connect, state):
            reader, writer = await connect()
            writer.write(data_sent)
            sending = asyncio.create_task(_trickle(writer, repeated))
            result = await asyncio.wait_for(reader.read(), 30)
            sending.cancel()
            writer.close()
            await _wait_until(lambda: not state.connections and not state.tasks)
            return result

    return asyncio.run(client())


def send_forever(connection: socket.socket, part: bytes) -> None:
    """Send data again and again."""
    for _ in range(100_000):
        connection.sendall(part)


async def _trickle(writer: asyncio.StreamWriter, repeated: bytes) -> None:
    while repeated:
        await asyncio.sleep(0.1)
        writer.write(repeated)


async def _wait_until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("repeated", [b"", b"a"])
def test_slow_request_head_is_refused(
    shipped: Server, shipped_build: Path, repeated: bytes
) -> None:
    """A head that stops, or arrives byte by byte, gets an error response, and the connection
    closes.
    """
    result = read_until_closed(
        shipped_build, shipped, b"GET /healthz HTTP/1.1\r\nHost: a", repeated
    )
    assert result.startswith(b"HTTP/1.1 408 ")
    assert b'"slug":"request_timeout"' in result


def test_connection_that_a_trailer_ended_is_closed(shipped: Server, shipped_build: Path) -> None:
    """The parser ignores what follows, and the bytes that follow stop uvicorn's own timer."""
    head = request(shipped, "/healthz", "Transfer-Encoding: chunked")
    result = read_until_closed(
        shipped_build,
        shipped,
        head + b"0\r\nConnection: close\r\n\r\n",
        request(shipped, "/healthz"),
    )
    assert result.count(b"HTTP/1.1 200 ") == 1


def test_excess_connection_is_refused(
    shipped: Server, shipped_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an error response; when another one closes, there is room again."""
    monkeypatch.setattr(FrequentChecks, "check_interval", 60.0)
    monkeypatch.setattr(FrequentChecks, "connection_limit", ConnectionLimit(2))

    async def client() -> tuple[bytes, bytes]:
        async with checking_server(shipped_build, shipped) as (connect, state):
            streams = [await connect() for _ in range(3)]
            rejected = await streams[2][0].read()
            streams[0][1].close()
            await _wait_until(lambda: len(state.connections) == 1)
            streams.append(await connect())
            streams[3][1].write(request(shipped, "/healthz"))
            answered = await streams[3][0].readline()
            for _, writer in streams:
                writer.close()
            await _wait_until(lambda: not state.connections)
            return rejected, answered

    rejected, answered = asyncio.run(client())
    assert rejected.startswith(b"HTTP/1.1 503 ")
    assert b'"slug":"too_many_connections"' in rejected
    assert answered.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("path", ["", "large.bin"])
@pytest.mark.parametrize("workers", [1, 2])
def test_key_file_is_readable_with_all_descriptors_used(
    workers: int, path: str, shipped_build: Path, tmp_path: Path
) -> None:
    """The server reserves descriptors, so that a revoked key does not stay valid."""
    keys_file, site = tmp_path / "keys.json", tmp_path / "site"
    key = create_key(keys_file)
    site.mkdir()
    (site / "index.html").write_text("")
    with (site / "large.bin").open("wb") as large:
        # more than systems take from a server on behalf of a client that reads nothing
        large.truncate(64_000_000)
    options = (
        f"--build {shipped_build} --site {site} --keys {keys_file} --port 0 --workers {workers}"
    )
    command = f"{sys.executable} -m toolcatalog serve {options}"
    limited = ["sh", "-c", f"ulimit -n 160 && exec {command}"]
    with (
        subprocess.Popen(limited, stderr=subprocess.PIPE, text=True) as server,
        ExitStack() as stored,
    ):
        stored.callback(server.kill)
        assert server.stderr
        url = next(
            match[0] for line in server.stderr if (match := re.search("http://[0-9.:]+", line))
        )
        host, port = url.removeprefix("http://").split(":")
        client = stored.enter_context(httpx.Client(headers={"x-api-key": key}, timeout=TIMEOUT))
        assert client.get(f"{url}{SESSION}").status_code == 200
        others = [
            stored.enter_context(socket.create_connection((host, int(port)), TIMEOUT))
            for _ in range(400)
        ]
        for other in others if path else ():
            with suppress(OSError):
                other.sendall(f"GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        run_successfully(
            "keys",
            "revoke",
            run_successfully("keys", "list", "--keys", keys_file).splitlines()[1].split()[0],
            "--keys",
            keys_file,
        )

        def is_refused() -> bool:
            for other in others:
                with suppress(OSError):
                    other.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            return client.get(f"{url}{SESSION}").status_code == 401

        wait_until(is_refused)


def test_server_needs_a_minimum_of_descriptors(shipped_build: Path, tmp_path: Path) -> None:
    """It does not start, and says how to raise the limit."""
    command = (
        f"{sys.executable} -m toolcatalog serve --build {shipped_build} --keys {tmp_path}/keys.json"
        " --port 0"
    )
    result = subprocess.run(
        ["sh", "-c", f"ulimit -n 40 && exec {command}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    invalid = "This process may have 40 files open, and a server needs 64 for itself"
    assert (result.returncode, result.stderr) == (
        2,
        f"error: {invalid}: allow more (`ulimit -n`, in a systemd unit `LimitNOFILE`).\n",
    )


def test_silent_connection_is_closed(shipped: Server, shipped_build: Path) -> None:
    assert read_until_closed(shipped_build, shipped, b"") == b""


@pytest.mark.parametrize("repeated", [b"", b" "])
def test_slow_body_is_refused(shipped: Server, shipped_build: Path, repeated: bytes) -> None:
    assert (
        read_until_closed(
            shipped_build, shipped, request(shipped, SESSION, "Content-Length: 9000"), repeated
        )
        == b""
    )


@pytest.mark.parametrize("repeated", [b"", b"1\r\na\r\n"])
def test_missing_body_closes_the_connection_after_the_response(
    shipped: Server, shipped_build: Path, repeated: bytes
) -> None:
    result = read_until_closed(
        shipped_build, shipped, request(shipped, "/healthz", "Transfer-Encoding: chunked"), repeated
    )
    assert result.startswith(b"HTTP/1.1 200 ")


def test_client_that_reads_nothing_is_disconnected(shipped: Server, shipped_build: Path) -> None:
    """The server drops the unsent response."""

    async def client() -> None:
        async with checking_server(shipped_build, shipped) as (connect, state):
            reader, writer = await connect()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(request(shipped, LONG) * 40)
            await _wait_until(
                lambda: any(
                    connection.transport.get_write_buffer_size() for connection in state.connections
                )
            )
            await _wait_until(lambda: not state.connections and not state.tasks)
            writer.close()
            assert reader

    asyncio.run(client())


def test_slow_reader_gets_all_bytes(shipped: Server, shipped_build: Path) -> None:
    """Also of several responses."""

    async def client() -> bytes:
        async with checking_server(shipped_build, shipped) as (connect, _):
            reader, writer = await connect()
            writer.write(
                request(shipped, LONG) * 20 + request(shipped, "/healthz", "Connection: close")
            )
            result = b""
            while part := await asyncio.wait_for(reader.read(100_000), 30):
                result += part
                await asyncio.sleep(0.02)
            writer.close()
            return result

    result = asyncio.run(client())
    assert len(re.findall(rb"HTTP/1.1 200 OK\r\n", result)) == 21
    assert result.endswith(b'{"status":"ok"}')


def test_busy_connections_are_not_closed(shipped: Server, shipped_build: Path) -> None:

    async def client() -> None:
        async with checking_server(shipped_build, shipped) as (connect, _):
            reader, writer = await connect()
            for number in range(20):
                writer.write(
                    request(shipped, "/api/v3/tools?limit=1")
                    if number % 2
                    else b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
                )
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
                length = re.search(rb"content-length: ([0-9]+)", head)
                assert length
                await reader.readexactly(int(length[1]))
                await asyncio.sleep(0.05)
            writer.close()

    asyncio.run(client())


@pytest.mark.parametrize("part", [b"x: " + b"a" * 8000 + b"\r\n", b"a" * 8000], ids=["many", "one"])
def test_large_request_head_is_refused(shipped: Server, part: bytes) -> None:
    """Many headers or one long one, without reading the rest."""
    with connected(shipped) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nx: ")
        with pytest.raises(OSError, match=r"reset|pipe"):
            send_forever(connection, part)


def test_client_can_read_the_error_for_a_large_head(shipped: Server) -> None:
    with connected(shipped) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        for _ in range(1000):
            connection.sendall(b"x: " + b"a" * 1000 + b"\r\n")
            if select.select([connection], [], [], 0.01)[0]:
                break
        result = connection.recv(100_000)
    assert result.startswith(b"HTTP/1.1 431 ")
    assert b'"slug":"head_too_large"' in result


@pytest.mark.parametrize(
    "lines",
    [
        [f"x{number}: a" for number in range(101)],
        [f"x{number}: {'a' * 14_000}" for number in range(5)],
        ["x: " + "a" * 17_000],
    ],
    ids=["101 headers", "68 KiB in one packet", "a header of 17 KiB"],
)
def test_complete_large_head_is_refused(shipped: Server, lines: list[str]) -> None:
    with connected(shipped) as connection:
        connection.sendall(request(shipped, "/healthz", *lines))
        result = connection.recv(100_000)
    assert result.startswith(b"HTTP/1.1 431 ")
    assert b'"slug":"head_too_large"' in result


@pytest.mark.parametrize("rest", [2, 65_000])
def test_large_head_in_two_packets_is_refused(shipped: Server, rest: int) -> None:
    """Also if the first one has nearly all of it, or less than is allowed."""
    head = request(shipped, "/healthz", f"x: {'a' * 100_000}")
    with connected(shipped) as connection:
        connection.sendall(head[:-rest])
        time.sleep(0.2)
        connection.sendall(head[-rest:])
        assert connection.recv(100_000).startswith(b"HTTP/1.1 431 ")


def test_number_of_waiting_requests_is_limited(shipped: Server) -> None:
    """Each takes memory while the client reads nothing: a few are answered, many are not."""
    for count, is_answered in ((50, True), (5_000, False)):
        requests = request(shipped, "/healthz") * (count - 1)
        last = request(shipped, "/healthz", "Connection: close")
        with connected(shipped) as connection, suppress(OSError):
            connection.sendall(requests + last)
            result = b"".join(iter(lambda: connection.recv(100_000), b""))
            assert (result.count(b"HTTP/1.1 200 ") == count) == is_answered


@pytest.mark.parametrize(("size", "is_answered"), [(1_000, True), (60_000, False)])
def test_size_of_waiting_requests_is_limited(shipped: Server, size: int, is_answered: bool) -> None:
    """They wait for long responses, of which the client reads nothing."""
    page = "/api/v3/tools?limit=1000"
    with connected(shipped) as connection, suppress(OSError):
        connection.sendall(request(shipped, page) * 50)
        time.sleep(1)
        connection.sendall(request(shipped, "/healthz", f"X-Padding: {'x' * size}") * 8)
        connection.sendall(request(shipped, "/healthz", "Connection: close"))
        result = b"".join(iter(lambda: connection.recv(100_000), b""))
        assert (result.count(b"HTTP/1.1 200 ") == 59) == is_answered


def test_key_that_is_revoked_while_the_body_arrives(shipped_build: Path, tmp_path: Path) -> None:
    path = "/api/v3/tool_router/session/trs_playground/tools"
    with start_server(shipped_build, tmp_path) as server, connected(server) as connection:
        connection.sendall(request(server, path, "Content-Length: 2") + b"{")
        time.sleep(0.2)
        (key,) = api_keys.load_keys(server.keys_file)
        api_keys.revoke(server.keys_file, key.id)
        time.sleep(1.5)
        connection.sendall(b"}")
        assert connection.recv(100_000).startswith(b"HTTP/1.1 401 ")


def test_unread_body_is_discarded_up_to_a_limit(shipped: Server) -> None:
    with connected(shipped) as connection:
        connection.sendall(request(shipped, "/healthz", "Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b"a" * 65536 + b"\r\n"
        with pytest.raises(OSError, match=r"reset|pipe"):
            send_forever(connection, chunk)


@pytest.mark.parametrize("packets", [1, 2])
def test_trailers_are_ignored(shipped: Server, packets: int) -> None:
    """They are no headers: no limit of the head applies to them, and no proxy replaces them."""
    body = b"0\r\n"
    headers = "x-api-key-is-missing: 1", "Transfer-Encoding: chunked"
    head = request(shipped, "/api/v3/tools", *headers)
    trailers = f"X-API-Key: {shipped.key}\r\nX-Request-Id: from-a-trailer\r\n".encode()
    trailers += b"".join(b"x%d:\r\n" % number for number in range(90))
    with connected(shipped) as connection:
        if packets == 2:
            connection.sendall(head + body)
            connection.sendall(trailers + b"\r\n")
        else:
            connection.sendall(head + body + trailers + b"\r\n")
        ((result, _),) = answers(connection, "GET")
    assert result.startswith(b"HTTP/1.1 401 ")
    assert b"from-a-trailer" not in result


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"1\r\na\r\n" * 20_000 + b"0\r\n\r\n", id="chunks"),
        pytest.param(b"0\r\n" + b"a:\r\n" * 20_000 + b"\r\n", id="trailers"),
    ],
)
def test_number_of_chunks_and_trailers_is_limited(shipped: Server, rest: bytes) -> None:
    """Each takes as much time as a header. A request of usual size is answered."""
    for body, status in (
        (b"a\r\n0123456789\r\n" * 50 + b"0\r\na: b\r\n\r\n", b"200"),
        (rest, b"400"),
    ):
        head = request(shipped, "/healthz", "Transfer-Encoding: chunked", "Connection: close")
        with connected(shipped) as connection:
            connection.sendall(head + body)
            result = b"".join(iter(lambda: connection.recv(100_000), b""))
        assert result.startswith(b"HTTP/1.1 " + status)


def test_pieces_of_pipelined_requests_are_counted_together(shipped: Server) -> None:
    """Each request alone has fewer than are allowed."""
    head = request(shipped, "/healthz", "Transfer-Encoding: chunked")
    with connected(shipped) as connection, suppress(OSError):
        connection.sendall((head + b"1\r\na\r\n" * 3000 + b"0\r\n\r\n") * 20)
        connection.sendall(request(shipped, "/healthz", "Connection: close"))
        result = b"".join(iter(lambda: connection.recv(100_000), b""))
        assert result.count(b"HTTP/1.1 200 ") < 21


def test_size_of_waiting_bodies_is_limited(shipped: Server) -> None:
    """Also if each response lets the next packet in."""
    small = request(shipped, "/healthz") * 90
    large = request(shipped, "/healthz", f"Content-Length: {200 * 1024}") + b"a" * 200 * 1024
    for count, is_answered in ((1, True), (8, False)):
        with connected(shipped) as connection, suppress(OSError):
            connection.sendall(request(shipped, "/api/v3/tools?limit=1000") * 50 + large * count)
            connection.sendall(small[: len(small) // 9])
            connection.sendall(request(shipped, "/healthz", "Connection: close"))
            result = b"".join(iter(lambda: connection.recv(1 << 20), b""))
        assert (result.count(b"HTTP/1.1 200 ") == 50 + count + 11) == is_answered


def test_requests_of_disconnected_clients_are_not_answered(shipped: Server) -> None:
    """A list of toolkits waits for few of four hundred long queries whose clients are gone."""
    leave_requests(shipped)


def test_traced_requests_of_disconnected_clients_are_not_answered(
    shipped_build: Path, tmp_path: Path
) -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with start_server(shipped_build, tmp_path, "--otel", env=environment) as server:
        leave_requests(server)


def leave_requests(server: Server) -> None:
    words = "+".join(f"word{number}" for number in range(400))
    start = time.monotonic()
    for number in range(10):
        with connected(server) as connection:
            connection.sendall(
                request(server, f"/api/v3/tools?query={words}x{number}", "Connection: close")
            )
            assert b"".join(iter(lambda: connection.recv(1 << 20), b"")).startswith(b"HTTP/1.1 200")
    seconds = (time.monotonic() - start) / 10
    for number in range(400):
        with connected(server) as connection:
            connection.sendall(request(server, f"/api/v3/tools?query={words}y{number}"))
    start, status = time.monotonic(), b"503"
    while status == b"503":
        with connected(server) as connection:
            connection.sendall(request(server, "/api/v3/toolkits?limit=3", "Connection: close"))
            status = b"".join(iter(lambda: connection.recv(1 << 20), b""))[9:12]
    assert status == b"200"
    assert time.monotonic() - start < 0.5 + 100 * seconds
    assert "without starting response" not in server.log.read_text()


def test_invalid_http_gets_an_error_response(shipped: Server) -> None:
    with connected(shipped) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01")
        result = connection.recv(100_000)
    assert result.startswith(b"HTTP/1.1 400 ")
    assert b'"slug":"invalid_request"' in result


def test_client_disconnect_logs_no_error(shipped: Server) -> None:
    for _ in range(5):
        with connected(shipped) as connection:
            connection.sendall(request(shipped, LONG) * 20)
            connection.recv(1)
            # leave at once, with a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with connected(shipped) as connection:
        connection.sendall(request(shipped, LONG, "Connection: close"))
        while connection.recv(1 << 20):
            pass
    assert "Traceback" not in shipped.log.read_text()
