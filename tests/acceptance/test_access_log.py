"""The access log: the fields and the form of lines, rotation, and write errors."""

import asyncio
import errno
import json
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from support.command import run_toolcatalog
from support.metrics import TOOL, sample, scrape, where
from support.server import TIMEOUT, Server, start_server, wait_until, worker_pids
from toolcatalog.keys.api_keys import KeyRing, generate_secret
from toolcatalog.server.dispatcher import Dispatcher
from toolcatalog.server.logs.access_log import (
    MAX_QUEUED_PATH,
    AccessLog,
    AccessLogEntry,
    format_line,
)
from toolcatalog.server.metrics.counters import LOG_LINES_DROPPED, Counters
from toolcatalog.server.request_context import validate_traceparent
from toolcatalog.server.state import AppState

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ENTRY = AccessLogEntry(
    1.5,
    0.25,
    b"id",
    "GET",
    b"/a",
    "/a",
    200,
    12,
    "key_1",
    "default",
    b"0123456789abcdef",
    None,
    "127.0.0.1",
)


def lines(file: Path) -> list[dict[str, Any]]:
    """All lines; each of them must be an object by itself."""
    return [json.loads(item) for item in file.read_bytes().split(b"\n")[:-1]]


def send_bytes(server: Server, *requests: bytes) -> bytes:
    """Send bytes on a new connection, and read until the server closes it."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=TIMEOUT) as connection:
        connection.sendall(b"".join(requests))
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_line_has_project_and_request_but_no_key(shipped_build: Path, tmp_path: Path) -> None:
    """All code paths of the server log a request, and a shutdown flushes every line."""
    file = tmp_path / "access.log"
    arguments = ("--site", str(shipped_build.parent / "site"), "--access-log", str(file))
    with start_server(shipped_build, tmp_path, *arguments) as server:
        plain = {"x-api-key": server.key, "accept-encoding": "identity"}
        started = time.time()
        with httpx.Client(base_url=server.url) as remaining:
            answers = [remaining.get(TOOL, headers=plain) for _ in range(3)]
            answers.append(
                remaining.get(
                    f"{TOOL}?version=latest",
                    headers={**plain, "x-request-id": "mine", "traceparent": TRACE},
                )
            )
            answers.append(
                remaining.get(
                    "/api/v3/tools", headers={"x-api-key": server.key, "traceparent": TRACE}
                )
            )
            answers.append(remaining.head(TOOL, headers=plain))
            answers.append(remaining.get(TOOL, headers={**plain, "x-api-key": f"{server.key}x"}))
            answers.append(
                remaining.get(
                    "/", headers={"authorization": f"Bearer {server.key}", "cookie": server.key}
                )
            )
            answers.append(
                remaining.get(f"/nowhere?x={TOOL}", headers={"traceparent": TRACE.upper()})
            )
        server.process.terminate()
        assert server.process.wait(timeout=TIMEOUT) == 0
        result = lines(file)
    assert [item["request_id"] for item in result] == [
        answer.headers["x-request-id"] for answer in answers
    ]
    assert [item["status"] for item in result] == [answer.status_code for answer in answers]
    assert [item["bytes"] for item in result] == [gzip_body(answer) for answer in answers]
    assert [item["path"] for item in result] == [
        answer.request.url.raw_path.decode() for answer in answers
    ]
    assert (
        [item.get("traceparent") for item in result]
        == [answer.headers.get("traceparent") for answer in answers]
        == [None] * 3 + [TRACE] * 2 + [None] * 4
    )
    assert [item["method"] for item in result] == ["GET"] * 5 + ["HEAD"] + ["GET"] * 3
    assert [item["route"] for item in result] == ["/api/v3/tools/{slug}"] * 4 + [
        "/api/v3/tools"
    ] + ["/api/v3/tools/{slug}"] * 2 + [
        "site",
        "none",
    ]
    existing = json.loads(server.keys_file.read_bytes())["keys"][0]["id"]
    assert [item["key"] for item in result] == [existing] * 6 + [None] * 3
    assert [item["project"] for item in result] == ["default"] * 6 + [None] * 3
    assert {item["snapshot"] for item in result} == {answers[0].headers["x-catalog-snapshot"][:12]}
    assert {item["client"] for item in result} == {"127.0.0.1"}
    for item in result:
        assert started - 1 < datetime.fromisoformat(item["time"]).timestamp() < time.time() + 1
        assert 0 < item["milliseconds"] < TIMEOUT * 1000
    text = file.read_text() + server.log.read_text()
    assert server.key not in text
    assert server.key[3:20] not in text
    assert file.stat().st_mode & 0o007 == 0


def gzip_body(answer: httpx.Response) -> int:
    """Bytes of a body as it came."""
    return 0 if answer.request.method == "HEAD" else answer.num_bytes_downloaded


def test_log_lines_never_contain_a_key(shipped_build: Path, tmp_path: Path) -> None:
    """Even if a client writes its key into the path, the query, percent-encoded, or into the
    request id.
    """
    file = tmp_path / "access.log"
    with start_server(shipped_build, tmp_path, "--access-log", str(file)) as server:
        key = server.key
        encoded = "".join(f"%{ord(letter):02x}" for letter in key)
        targets = [
            f"{TOOL}?api_key={key}",
            f"/api/v3/tools/{key}",
            f"/api/v3/tools?x={encoded}&y={key}",
            f"/{encoded.replace('%', '%25')}",
            f"{TOOL}?{'x' * (2048 - len(TOOL) - 20)}{key}",
            f"{TOOL}?{'x' * (256 - len(TOOL) - 20)}{key}{'x' * 8000}",
        ]
        with httpx.Client(base_url=server.url) as remaining:
            for target in targets:
                for headers in ({}, {"accept-encoding": "identity"}, {"x-request-id": key}):
                    remaining.get(target, headers={"x-api-key": key, **headers})
        server.process.terminate()
        assert server.process.wait(timeout=TIMEOUT) == 0
    text = file.read_text()
    assert len(text.splitlines()) == 3 * len(targets)
    for content in (text, unquote(unquote(text)), server.log.read_text()):
        assert key[3:12] not in content
    assert f"{TOOL}?api_key=tc_[redacted]" in text
    assert '"request_id":"tc_[redacted]"' in text


def test_server_log_never_contains_a_key() -> None:
    """Neither library messages nor tracebacks."""
    key = generate_secret()
    program = (
        "import logging, sys\n"
        "from toolcatalog.server.logs.server_log import configure_logging\n"
        "configure_logging()\n"
        "log = logging.getLogger('uvicorn.error')\n"
        "log.error('GET /%s', sys.argv[1])\n"
        "try:\n"
        "    raise ValueError(sys.argv[1])\n"
        "except ValueError:\n"
        "    log.exception('failed')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, key], capture_output=True, text=True, check=True
    )
    assert result.stderr.count("tc_[redacted]") == 2
    assert key[3:12] not in result.stderr


def test_no_message_forges_a_line_of_the_server_log() -> None:
    """Names in a snapshot and messages of Redis are logged, in either format."""
    forged = "x\n2026-01-01 00:00:00,000 INFO toolcatalog.server: forged\x1b[2J\x9b"
    program = (
        "import logging, sys\n"
        "from toolcatalog.server.logs.server_log import LogSettings, configure_logging\n"
        "configure_logging(LogSettings(format=sys.argv[2]))\n"
        "log = logging.getLogger('toolcatalog.following')\n"
        "log.warning('%s', sys.argv[1])\n"
        "try:\n"
        "    raise ValueError(sys.argv[1])\n"
        "except ValueError:\n"
        "    log.exception('failed')\n"
    )
    for output_format in ("text", "json"):
        command = [sys.executable, "-c", program, forged, output_format]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]|^2026-01-01", done.stderr, re.MULTILINE)
        assert "forged" in done.stderr


def test_each_request_has_exactly_one_line(shipped_build: Path, tmp_path: Path) -> None:
    """Quotes, escapes, invalid UTF-8 and encoded line breaks stay on one line; long paths
    are cut.
    """
    file = tmp_path / "access.log"
    targets = [
        rb'/a"}{"key":"x',
        rb"/a\n\u000a%0a%0d",
        b"/\xff\xfe\xc3\x28",
        b"/api/v3/tools/A%0A%22?x=%0A",
        b"/" + b'"' * 9000,
        b"/api/v3/tools/A?" + b"\xff" * 9000,
        "/\u2028\u0085".encode(),
        b"/%00%1b[31m",
    ]
    with start_server(shipped_build, tmp_path, "--access-log", str(file)) as server:
        head = (
            f" HTTP/1.1\r\nHost: a\r\nx-api-key: {server.key}\r\nConnection: close\r\n\r\n".encode()
        )
        answers = [send_bytes(server, b"GET " + target + head) for target in targets]
        assert all(answer.startswith(b"HTTP/1.1 ") for answer in answers)
        # which is no request
        names = [answer for answer in answers if b"not HTTP/1.1" not in answer]
        assert len(names) >= 5
        wait_until(lambda: len(file.read_bytes().splitlines()) >= len(names))
    result = lines(file)
    assert len(result) == len(names)
    assert len(file.read_bytes().split(b"\n")) == len(result) + 1
    paths = [item["path"].encode("latin-1") for item in result]
    assert all(any(target.startswith(path) for target in targets) for path in paths)
    assert [path for path in paths if len(path) > 2048] == []
    assert rb'/a"}{"key":"x' in paths
    assert max(map(len, file.read_bytes().splitlines())) < 4096


def test_log_is_reopened_after_rotation(shipped_build: Path, tmp_path: Path) -> None:
    """Under load, with several processes, rotation loses no line and cuts none."""
    file, old = tmp_path / "access.log", tmp_path / "access.log.1"
    arguments = ("--workers", "2", "--access-log", str(file), "--metrics", "127.0.0.1:0")
    with start_server(shipped_build, tmp_path, *arguments) as server:
        wait_until(lambda: scrape(where(server))[sample("processes")] == 2)
        request = 0
        for moves in (False, True, False):
            if moves:
                file.rename(old)
            for _ in range(6):
                with httpx.Client(
                    base_url=server.url,
                    headers={"x-api-key": server.key, "accept-encoding": "identity"},
                ) as remaining:
                    request += sum(
                        remaining.get(f"{TOOL}?{'x' * 200}={index}").status_code == 200
                        for index in range(20)
                    )
        wait_until(lambda: len(lines(file)) + len(lines(old)) >= request)
        assert len(worker_pids(server)) == 2
    all_values = [*lines(file), *lines(old)]
    assert (
        (len(all_values), len({all_value["request_id"] for all_value in all_values}))
        == (request, request)
        == (360, 360)
    )
    assert lines(file)
    assert lines(old)


def test_standard_output_has_only_log_lines(shipped_build: Path, tmp_path: Path) -> None:
    """If nobody reads it any more, the server still answers, drops and counts lines, and logs that
    once.
    """
    with standard_output(shipped_build, tmp_path) as (server, output):
        headers = {"x-api-key": server.key}
        for _ in range(3):
            assert httpx.get(server.url + TOOL, headers=headers).status_code == 200
        assert [json.loads(output.readline())["status"] for _ in range(3)] == [200] * 3
        output.close()
        for _ in range(30):
            assert httpx.get(server.url + TOOL, headers=headers).status_code == 200
        wait_until(lambda: scrape(where(server))[sample("access_log_dropped_total")] == 30)
        assert server.log.read_text().count("lines of the access log are dropped") == 1
        assert "Traceback" not in server.log.read_text()


@contextmanager
def standard_output(build: Path, folder: Path) -> Iterator[tuple[Server, IO[bytes]]]:
    """A server whose standard output is a pipe, and the end of it to read."""
    content, write = os.pipe()
    own = os.dup(1)
    os.dup2(write, 1)  # what is started now has it as its standard output
    os.close(write)
    try:
        with (
            os.fdopen(content, "rb") as output,
            start_server(build, folder, "--access-log", "-", "--metrics", "127.0.0.1:0") as server,
        ):
            os.dup2(own, 1)
            yield server, output
    finally:
        os.dup2(own, 1)
        os.close(own)


@pytest.mark.parametrize(
    "make", [lambda folder: folder / "no" / "access.log", lambda folder: folder]
)
def test_unwritable_log_file_stops_the_start(
    shipped_build: Path, tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    """Exit code 2 and one sentence."""
    result = run_toolcatalog(
        "serve",
        "--build",
        shipped_build,
        "--port",
        "0",
        "--workers",
        "2",
        "--access-log",
        make(tmp_path),
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "Serving" not in result.stderr
    assert "--access-log" in result.stderr


def test_full_disk_drops_lines_and_recovers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`/dev/full` rejects every byte. When the file is writable again, lines are complete."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    file, tallies = tmp_path / "access.log", Counters()
    file.symlink_to("/dev/full")
    caplog.set_level("INFO")
    log = AccessLog(file, tallies)
    log.enqueue(ENTRY)
    log.enqueue(ENTRY)
    wait_until(lambda: tallies.get_values().events[LOG_LINES_DROPPED] == 2)
    file.unlink()
    log.enqueue(ENTRY)
    wait_until(lambda: "is written again" in caplog.text)
    log.close()
    assert os.strerror(errno.ENOSPC) in caplog.text
    assert lines(file) == [json.loads(format_line(ENTRY))]
    assert tallies.get_values().events[LOG_LINES_DROPPED] == 2


def test_partial_write_damages_no_other_line(tmp_path: Path) -> None:
    """The disk is full after one and a half lines; later lines are complete."""
    file, tallies = tmp_path / "access.log", Counters()
    size = len(format_line(ENTRY))
    previous = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size * 3 // 2, previous[1]))
    try:
        log = AccessLog(file, tallies)
        for _ in range(3):
            log.enqueue(ENTRY)
        wait_until(lambda: tallies.get_values().events[LOG_LINES_DROPPED])
        assert file.stat().st_size == size * 3 // 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, previous)
    log.enqueue(ENTRY)
    log.close()
    first, torn, last = file.read_bytes().splitlines()
    assert json.loads(first) == json.loads(last) == json.loads(format_line(ENTRY))
    assert format_line(ENTRY).startswith(torn)


def test_slow_disk_queues_a_limited_number_of_lines(tmp_path: Path) -> None:
    """Logging never waits, drops the excess, and shutdown still works.

    A pipe without a reader stands for the disk.
    """
    content, write = os.pipe()
    file, tallies = tmp_path / "pipe", Counters()
    file.symlink_to(f"/proc/self/fd/{write}")
    log = AccessLog(file, tallies)
    began = time.monotonic()
    for _ in range(40_000):
        log.enqueue(ENTRY)
    log.close()
    assert time.monotonic() - began < TIMEOUT
    assert tallies.get_values().events[LOG_LINES_DROPPED] > 40_000 - 3 * 16_384
    os.close(content)
    os.close(write)


def test_overflow_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    content, write = os.pipe()
    file = tmp_path / "pipe"
    file.symlink_to(f"/proc/self/fd/{write}")
    log = AccessLog(file, Counters())
    for _ in range(60_000):
        log.enqueue(ENTRY)
    assert [record.getMessage() for record in caplog.records].count(
        "lines of the access log are dropped, and counted: too many wait"
    ) == 1
    log.close()
    os.close(content)
    os.close(write)


def test_long_path_is_cut_without_a_part_of_a_key() -> None:
    """It is cut before it waits to be written, so its end may be the beginning of a key."""
    key = generate_secret()
    for length in range(MAX_QUEUED_PATH - 60, MAX_QUEUED_PATH + 10):
        for head in (
            "a" * (length - len(key)),
            f"{key}/" * ((length - len(key)) // (len(key) + 1)),
        ):
            target = f"{head}{key}".encode()[:MAX_QUEUED_PATH]
            line = json.loads(format_line(ENTRY._replace(path=target)))
            assert key[:12] not in line["path"]


def test_line_length_is_at_most_one_pipe_write() -> None:
    """For any path and project name."""
    for path in (b"\xff" * 5000, b'"' * 5000, b"\\" * 5000, b"\x01" * 5000):
        result = format_line(
            ENTRY._replace(
                path=path, project='"' * 5000, request_id=b"/" * 128, traceparent=TRACE.encode()
            )
        )
        assert len(result) <= 4096
        assert (
            json.loads(result)["path"].encode("latin-1") == path[: len(json.loads(result)["path"])]
        )


def test_line_has_no_control_characters() -> None:
    """A terminal that shows the log may interpret those above ASCII too."""
    path = bytes(range(256))
    line = format_line(ENTRY._replace(path=path))
    assert not re.search("[\x00-\x1f\x7f-\x9f]", line.decode().removesuffix("\n"))
    assert json.loads(line)["path"].encode("latin-1") == path


@pytest.mark.parametrize("client", ["", "A" * 50_000, "unknown", "127.0.0.1:80", "tc_key"])
def test_client_is_an_ip_address(client: str) -> None:
    """Anything else in `X-Forwarded-For` is ignored."""
    assert json.loads(format_line(ENTRY._replace(client=client)))["client"] is None
    assert json.loads(format_line(ENTRY._replace(client="2001:DB8::1")))["client"] == "2001:db8::1"


@pytest.mark.parametrize(
    ("given", "is_sane"),
    [
        (TRACE, True),
        (f"01{TRACE[2:]}", True),
        (TRACE.upper(), False),
        (f"ff{TRACE[2:]}", False),
        (f"{TRACE}-x", False),
        (f"{TRACE}\n", False),
        (f" {TRACE}", False),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", False),
        (f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01", False),
        ("", False),
        (TRACE[:-1], False),
    ],
)
def test_only_valid_traceparent_is_passed_on(given: str, is_sane: bool) -> None:
    """The W3C format, exactly."""
    assert validate_traceparent(given.encode()) == (given.encode() if is_sane else None)


def test_trace_id_belongs_to_one_request(shipped_build: Path, tmp_path: Path) -> None:
    """Also for requests on one connection that differ only in that header."""
    with start_server(shipped_build, tmp_path) as server:
        headers = {"x-api-key": server.key, "accept-encoding": "identity"}
        with httpx.Client(base_url=server.url, headers=headers) as remaining:
            results = [
                remaining.get(TOOL, headers={"traceparent": trace} if trace else {}).headers.get(
                    "traceparent"
                )
                for trace in ("", "", TRACE, TRACE, "", "x", "")
            ]
            assert results == [None, None, TRACE, TRACE, None, None, None]


def test_trace_id_is_logged_with_errors(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In the log next to the request id and in the response; an invalid one appears nowhere."""

    async def fails(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
        raise RuntimeError("on purpose")

    live = AppState(KeyRing(tmp_path / "keys.json"), None)

    async def query(trace: str) -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=Dispatcher(live, fails)), base_url="http://a"
        ) as client:
            return await client.get(
                "/x", headers={"x-request-id": f"of-{trace[:4]}", "traceparent": trace}
            )

    assert asyncio.run(query(TRACE)).headers["traceparent"] == TRACE
    assert "traceparent" not in asyncio.run(query("evil\x7f")).headers
    output = [record.getMessage() for record in caplog.records]
    assert output == [
        f"request of-00-4: GET '/x' failed (traceparent {TRACE})",
        "request of-evil: GET '/x' failed",
    ]
    assert live.get_counts().requests.keys() == {"500 none"}
