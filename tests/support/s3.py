"""A real S3 server in a process of its own, and a proxy that injects faults."""

import contextlib
import http.client
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from uuid import uuid4

_TIMEOUT = 30.0  # seconds for an answer of the store
_SERVER = """
import sys, threading
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def start_s3_server() -> Iterator[str]:
    """An S3 server (moto's) on a free loopback port: its URL. It ends when this process does,
    however that ends.
    """
    command = [sys.executable, "-c", _SERVER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        try:
            port = process.stdout.readline().strip()
            assert re.fullmatch("[0-9]+", port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


class ProxiedRequest(NamedTuple):
    """A request that went through the proxy: the bytes of its body and of its answer's."""

    method: str
    path: str
    sent: int
    received: int


class StoreAnswer(NamedTuple):
    """What a store has answered."""

    status: int
    headers: dict[str, str]
    data: bytes


@dataclass
class ProxyFaults:
    """What the proxy does to the requests whose path has `where` in it, `times` times at most: the
    rest go through as they are.

    `slow`: waits before each. `cut`: the connection ends in the middle of the body. `short`: half
    of the body, with a length that says so. `long`: more than the body, with a length that says so.
    `wrong`: one byte of the body is another. A number: that status.
    """

    kind: str | int = ""
    where: str = "/objects/"
    method: str = "GET"
    times: int = 1 << 30
    pause: float = 0.05  # seconds, for `slow`


@dataclass
class FaultyProxy:
    """A proxy before a store: on bad days with `faults`, and sometimes away."""

    upstream: str
    faults: ProxyFaults = field(default_factory=ProxyFaults)
    requests: list[ProxiedRequest] = field(default_factory=list)
    port: int = 0
    busy: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    _server: ThreadingHTTPServer | None = None

    @property
    def env(self) -> dict[str, str]:
        """What tells a program that the store is here."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._server = _Listener(("127.0.0.1", self.port), _Handler)
        self._server.proxy = self  # type: ignore[attr-defined]
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Listen no longer, and end what is open."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            for connection in self._server.open:  # type: ignore[attr-defined]
                with contextlib.suppress(OSError):
                    connection.shutdown(2)
            self._server = None

    def requests_of(self, method: str, part: str = "") -> list[ProxiedRequest]:
        """The requests of this method that have gone through, with `part` in their path."""
        return [
            request
            for request in self.requests
            if request.method == method and part in request.path
        ]

    def is_idle(self) -> bool:
        """Tell whether no request is under way."""
        return self.busy == 0

    def fault_for(self, method: str, path: str) -> str | int:
        """What is done to this request."""
        faults = self.faults
        if (
            not faults.kind
            or faults.where not in path
            or faults.method != method
            or faults.times <= 0
        ):
            return ""
        faults.times -= 1
        return faults.kind


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, *arguments: object) -> None:
        self.open: list[object] = []
        super().__init__(*arguments)  # type: ignore[arg-type]

    def process_request(self, request: object, client_address: object) -> None:
        self.open.append(request)
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed, or a connection that was ended, is what these tests do."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def _handle(self) -> None:
        proxy: FaultyProxy = self.server.proxy  # type: ignore[attr-defined]
        with proxy.lock:
            proxy.busy += 1
        try:
            self._forward(proxy)
        finally:
            with proxy.lock:
                proxy.busy -= 1

    def _forward(self, proxy: FaultyProxy) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        fault = proxy.fault_for(self.command, self.path)
        if fault == "slow":
            time.sleep(proxy.faults.pause)
        if isinstance(fault, int):
            return self._answer(fault, {}, b"<Error><Code>SlowDown</Code></Error>")
        status, headers, data = _request_upstream(
            proxy.upstream, self.command, self.path, dict(self.headers), body
        )
        data = _corrupt(data, fault)
        size = 2 * len(data) if fault == "cut" else len(data)
        proxy.requests.append(ProxiedRequest(self.command, self.path, len(body), len(data)))
        return self._answer(status, headers, data, size)

    def _answer(
        self, status: int, headers: Mapping[str, str], data: bytes, size: int | None = None
    ) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(name, value)
        length = (
            headers.get("content-length", "0")
            if self.command == "HEAD"
            else str(len(data) if size is None else size)
        )
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        self.close_connection = size is not None and size != len(data)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _handle  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _corrupt(data: bytes, fault: str | int) -> bytes:
    match fault:
        case "cut" | "short":
            return data[: len(data) // 2]
        case "long":
            return data + bytes(1000)
        case "wrong":
            return data[:-1] + bytes([data[-1] ^ 1])
    return data


def _request_upstream(
    upstream: str, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> StoreAnswer:
    connection = http.client.HTTPConnection(upstream.removeprefix("http://"), timeout=_TIMEOUT)
    try:
        connection.request(method, path, body or None, dict(headers))
        answer = connection.getresponse()
        return StoreAnswer(
            answer.status,
            {name.lower(): value for name, value in answer.headers.items()},
            answer.read(),
        )
    finally:
        connection.close()


CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


def create_bucket(server: str) -> str:
    """The name of a new bucket."""
    name = f"tools-{uuid4().hex[:12]}"
    assert _request_upstream(server, "PUT", f"/{name}", _S3_HEADERS, b"").status == 200
    return name


def put_object(server: str, path: str, data: bytes) -> None:
    """Put an object past everybody: `path` is `bucket/key`."""
    assert _request_upstream(server, "PUT", f"/{path}", _S3_HEADERS, data).status == 200


def remove_object(server: str, path: str) -> None:
    """Remove an object past everybody."""
    assert _request_upstream(server, "DELETE", f"/{path}", _S3_HEADERS, b"").status == 204


def get_object(server: str, path: str) -> StoreAnswer:
    """An object as the store has it."""
    return _request_upstream(server, "GET", f"/{path}", _S3_HEADERS, b"")


# How the server of moto tells that S3 is asked; it looks at no signature.
_S3_HEADERS = {
    "authorization": (
        "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host,"
        " Signature=0"
    )
}
