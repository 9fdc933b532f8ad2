"""The HTTP client: servers that never end, and proxies."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from toolcatalog.cli import http_client
from toolcatalog.errors import UsageError


@contextmanager
def serving(answer: Callable[[socket.socket, bytes], None]) -> Iterator[str]:
    """The address of a server that reads each request and passes it on to `answer`."""

    def run() -> None:
        with suppress(OSError):  # until the listener is closed
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    answer(connection, connection.recv(1 << 16))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=run, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 200 OK\r\nX-Header: ",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
    ],
)
def test_slow_server_is_left_after_the_timeout(
    start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time, and the answer does not end."""
    monkeypatch.setattr(http_client, "_TIMEOUT", 0.5)

    def drip(connection: socket.socket, _: bytes) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(b"0")
            time.sleep(0.05)

    with serving(drip) as url:
        begin = time.monotonic()
        for fetch in (
            lambda: http_client.download(url, 1 << 20),
            lambda: http_client.open_server_source(url, "")("A_DO", "20250101_00"),
        ):
            with pytest.raises(UsageError, match=r"too slowly|timed out"):
                fetch()
        assert time.monotonic() - begin < 20


def test_proxy_gets_no_request_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would get the API key, unencrypted."""
    requests: list[bytes] = []

    def answer(connection: socket.socket, request: bytes) -> None:
        requests.append(request)
        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    with serving(answer) as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        for host in ("127.0.0.1", "localhost", "[::1]"):
            get_document = http_client.open_server_source(f"http://{host}:9", "key")
            with pytest.raises(UsageError, match="does not answer"):
                get_document("A_DO", "20250101_00")
            with pytest.raises(UsageError, match="does not answer"):
                http_client.download(f"http://{host}:9/x", 100)
    assert requests == []
