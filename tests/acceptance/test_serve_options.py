"""Options of `serve`: sockets, proxies, the server log and traces."""

import base64
import gzip
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.command import run_toolcatalog
from support.server import Server, create_key, start_server, wait_until

TOOLS = "/api/v3/tools"


@contextmanager
def serve(
    build: Path, folder: Path, *arguments: object, descriptors: tuple[int, ...] = ()
) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """Start a server that does not listen on an address; yield the process and its key."""
    key = create_key(folder / "keys.json")
    command = [sys.executable, "-m", "toolcatalog", "serve", "--build", build]
    options = ["--keys", folder / "keys.json", *arguments]
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(
            [*map(str, command), *map(str, options)], stderr=log, pass_fds=descriptors
        ) as process,
    ):
        try:
            yield process, key
        finally:
            process.terminate()
            process.wait(timeout=20)


def unix_client(path: Path, key: str = "") -> httpx.Client:
    transport = httpx.HTTPTransport(uds=str(path))
    return httpx.Client(transport=transport, base_url="http://catalog", headers={"x-api-key": key})


@pytest.fixture
def unix_path() -> Iterator[Path]:
    """A path that is short enough for a Unix domain socket."""
    folder = Path(f"/tmp/toolcatalog-{os.getpid()}")  # noqa: S108 - only for this process
    folder.mkdir()
    yield folder / "server.sock"
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


@pytest.mark.parametrize("workers", [1, 2])
def test_unix_socket(shipped_build: Path, tmp_path: Path, unix_path: Path, workers: int) -> None:
    """The server listens there, and removes the socket on exit."""
    with serve(shipped_build, tmp_path, "--uds", unix_path, "--workers", workers) as (_, key):
        wait_until(lambda: is_listening(unix_path))
        with unix_client(unix_path, key) as client:
            assert client.get(TOOLS).json()["total_items"] > 100
            assert client.get("/metrics").status_code == 404
        log = (tmp_path / "server.log").read_text()
        assert f"at unix:{unix_path} from" in log
    assert not unix_path.exists()


def test_stale_socket_is_replaced(shipped_build: Path, tmp_path: Path, unix_path: Path) -> None:
    """A killed server leaves its socket."""
    with socket.socket(socket.AF_UNIX) as unused:
        unused.bind(str(unix_path))
    with (
        serve(shipped_build, tmp_path, "--uds", unix_path),
        unix_client(unix_path) as client,
    ):
        wait_until(lambda: is_listening(unix_path))
        assert client.get("/healthz").status_code == 200


def is_listening(path: Path) -> bool:
    """Whether a process listens on a Unix domain socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def test_used_socket_is_an_error(shipped_build: Path, unix_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as used:
        used.bind(str(unix_path))
        used.listen()
        result = run_toolcatalog("serve", "--build", shipped_build, "--uds", unix_path)
        assert (result.returncode, result.stdout) == (2, "")
        assert f"error: Cannot listen on {unix_path} (a server uses it" in result.stderr
        assert unix_path.is_socket()


def test_file_is_not_replaced_by_a_socket(shipped_build: Path, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("important")
    result = run_toolcatalog("serve", "--build", shipped_build, "--uds", file)
    assert (result.returncode, file.read_text()) == (2, "important")
    assert "--uds" in result.stderr


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_inherited_socket(
    family: socket.AddressFamily, shipped_build: Path, tmp_path: Path, unix_path: Path
) -> None:
    """As from a socket unit of systemd."""
    with socket.socket(family) as listener:
        listener.bind(("127.0.0.1", 0) if family == socket.AF_INET else str(unix_path))
        listener.listen()
        number = listener.fileno()
        with serve(shipped_build, tmp_path, "--fd", number, descriptors=(number,)) as (_, key):
            if family == socket.AF_UNIX:
                client = unix_client(unix_path, key)
            else:
                url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                client = httpx.Client(base_url=url, headers={"x-api-key": key}, timeout=30)
            with client:
                assert client.get(TOOLS).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fd", "77"], "File descriptor 77 is not a socket"),
        (["--uds", "s.sock", "--port", "9"], "A server listens on one socket"),
        (["--uds", "s.sock", "--fd", "3"], "A server listens on one socket"),
        (["--uds", "no/such/folder/s.sock"], "choose another path with --uds"),
        (["--root-path", "catalog"], "'catalog' is not a root path"),
        (["--root-path", "/a/../b?c"], "is not a root path"),
        (["--log-level", "loud"], "'loud' is not one of"),
    ],
)
def test_invalid_options(
    arguments: list[str], message: str, shipped_build: Path, tmp_path: Path
) -> None:
    result = run_toolcatalog("serve", "--build", shipped_build, *arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr


def test_inherited_socket_must_listen(shipped_build: Path) -> None:
    with socket.socket() as idle:
        number = str(idle.fileno())
        command = [sys.executable, "-m", "toolcatalog", "serve", "--build", str(shipped_build)]
        result = subprocess.run(
            [*command, "--fd", number],
            pass_fds=[idle.fileno()],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert result.returncode == 2
    assert "is a socket that does not listen" in result.stderr


def test_root_path(shipped_build: Path, tmp_path: Path) -> None:
    """The proxy removes it; the OpenAPI document and redirects contain it."""
    with (
        start_server(
            shipped_build,
            tmp_path,
            "--root-path",
            "/catalog/",
            "--site",
            shipped_build.parent / "site",
        ) as server,
        httpx.Client(base_url=server.url, headers={"x-api-key": server.key}) as client,
    ):
        assert client.get(f"{TOOLS}/GITHUB_CREATE_ISSUE").status_code == 200
        assert client.get("/openapi.json").json()["servers"] == [{"url": "/catalog"}]
        assert client.get("/").status_code == 200
        redirect = client.get("/tools")
        assert redirect.headers["location"].endswith("/catalog/tools/")
        assert client.get("/api/v3/nothing").status_code == 404


@pytest.mark.parametrize(
    ("trusted", "client"),
    [(None, "127.0.0.1"), ("127.0.0.1", "203.0.113.7"), ("10.0.0.0/8", "127.0.0.1")],
)
def test_forwarded_addresses(
    trusted: str | None, client: str, shipped_build: Path, tmp_path: Path
) -> None:
    """The access log has the client's address if the proxy is trusted."""
    log = tmp_path / "access.log"
    options = [] if trusted is None else ["--forwarded-allow-ips", trusted]
    with start_server(shipped_build, tmp_path, "--access-log", log, *options) as server:
        headers = {"x-api-key": server.key, "x-forwarded-for": "203.0.113.7"}
        httpx.get(f"{server.url}{TOOLS}", headers=headers)
    [line] = log.read_text().splitlines()
    assert json.loads(line)["client"] == client


def has_logged_keys(server: Server) -> bool:
    """Send a request, before which the server checks its keys; whether the log mentions them."""
    httpx.get(f"{server.url}{TOOLS}", headers={"x-api-key": server.key})
    return '"message"' in server.log.read_text() and "keys.json" in server.log.read_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_json_log(shipped_build: Path, tmp_path: Path, workers: int) -> None:
    """One JSON object per record, in every process."""
    options = ["--log-format", "json", "--log-level", "debug", "--workers", workers]
    with start_server(shipped_build, tmp_path, *options) as server:
        httpx.get(f"{server.url}/healthz")
        (tmp_path / "keys.json").write_text("broken")
        wait_until(lambda: has_logged_keys(server))
    lines = [line for line in server.log.read_text().splitlines() if line.startswith("{")]
    records = [json.loads(line) for line in lines]
    assert records
    assert all({"time", "level", "logger", "message"} <= {*record} for record in records)
    assert any("keys.json" in record["message"] for record in records)
    assert not re.search("Traceback", server.log.read_text())


def test_log_level(shipped_build: Path, tmp_path: Path) -> None:
    with start_server(shipped_build, tmp_path, "--log-level", "error", "--workers", "2") as server:
        httpx.get(f"{server.url}/healthz")
    assert not re.search("INFO|WARNING", server.log.read_text())


def test_site_must_be_named_with_an_object_store(shipped_build: Path, tmp_path: Path) -> None:
    """./site may belong to another catalog."""
    (tmp_path / "site").symlink_to(shipped_build.parent / "site")
    published = run_toolcatalog(
        "publish", f"file://{tmp_path}/store", "--build", shipped_build, cwd=tmp_path
    )
    assert published.returncode == 0, published.stderr
    for options, status in (([], 404), (["--site", str(tmp_path / "site")], 200)):
        with start_server(
            f"file://{tmp_path}/store",
            tmp_path,
            "--cache",
            tmp_path / "cache",
            *options,
            cwd=tmp_path,
        ) as server:
            assert httpx.get(f"{server.url}/").status_code == status


class Collector(BaseHTTPRequestHandler):
    """An OTLP endpoint that keeps the spans it receives."""

    spans: list[Any]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                type(self).spans.extend(scope.spans)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def test_traces(shipped_build: Path, tmp_path: Path) -> None:
    """A span has the route and continues the client's trace; keys in URLs and headers are
    redacted.
    """
    spans: list[Any] = []
    with HTTPServer(("127.0.0.1", 0), type("Handler", (Collector,), {"spans": spans})) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
            "OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SERVER_REQUEST": ".*",
            "OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SERVER_RESPONSE": ".*",
        }
        with start_server(shipped_build, tmp_path, "--otel", env=environment) as server:
            headers = {
                "authorization": f"Bearer {server.key}",
                "referer": f"http://localhost/{server.key}",
                "x-request-id": server.key,
                "x-api-key": server.key,
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            }
            httpx.get(f"{server.url}{TOOLS}/GITHUB_CREATE_ISSUE", headers=headers)
            agent = {"user-agent": f"agent {server.key}"}
            httpx.get(f"{server.url}{TOOLS}?query={server.key}", headers={**headers, **agent})
            secret = server.key
        wait_until(lambda: len(spans) == 2)
        collector.shutdown()
    get, search = spans
    assert get.name == "GET /api/v3/tools/{slug}"
    assert get.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert search.name == "GET /api/v3/tools"
    assert secret not in str(spans)
    assert headers["x-api-key"][:12] not in str(search)


def test_traces_with_captured_headers_have_no_key(shipped_build: Path, tmp_path: Path) -> None:
    """Wherever the client wrote it: in headers of any name, in the name of a header, in the trace
    state, or in a header that the server repeats. Other values stay.
    """
    spans: list[Any] = []
    with HTTPServer(("127.0.0.1", 0), type("Handler", (Collector,), {"spans": spans})) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
            "OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SERVER_REQUEST": ".*",
            "OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SERVER_RESPONSE": ".*",
            "OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SANITIZE_FIELDS": "x-own",
        }
        with start_server(shipped_build, tmp_path, "--otel", env=environment) as server:
            encoded = base64.b64encode(f"user:{server.key}".encode()).decode()
            headers = [
                ("x-api-key", server.key),
                ("authorization", f"Basic {encoded}"),
                ("x-more", "plain"),
                ("x-more", f"key {server.key}"),
                ("x-own", "hidden"),
                ("x-request-id", server.key),
                (server.key, "1"),
                ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                ("tracestate", f"a={server.key},b=kept"),
            ]
            httpx.get(f"{server.url}{TOOLS}/GITHUB_CREATE_ISSUE", headers=headers)
            secret = server.key
        wait_until(lambda: len(spans) == 1)
        collector.shutdown()
    text = str(spans[0])
    for part in (secret, secret.lower(), encoded, "hidden"):
        assert part not in text
    assert spans[0].trace_state == "b=kept"
    attributes = {one.key: one.value for one in spans[0].attributes}
    assert [
        one.string_value for one in attributes["http.request.header.x_more"].array_value.values
    ] == [
        "plain",
        "key tc_[redacted]",
    ]
    assert "http.response.header.x_catalog_snapshot" in attributes
