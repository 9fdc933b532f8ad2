"""Server processes: replacement, reload, signals and shutdown."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.command import run_toolcatalog
from support.server import (
    TIMEOUT,
    Server,
    create_key,
    is_running,
    start_server,
    wait_until,
    worker_pids,
)
from toolcatalog.keys import api_keys

SESSION = "/api/v3/tool_router/session/trs_playground/tools"


@pytest.fixture
def server(shipped_build: Path, tmp_path: Path) -> Iterator[Server]:
    """A server with two workers."""
    with start_server(shipped_build, tmp_path, "--workers", "2") as server:
        yield server


def series(server: Server) -> set[str]:
    """The first halves of the request ids of twenty connections at once: one for each process that
    took some of them.
    """
    host, port = server.url.removeprefix("http://").split(":")
    connections = [socket.create_connection((host, int(port)), timeout=TIMEOUT) for _ in range(20)]
    for connection in connections:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    return {answer(connection).partition("x-request-id: ")[2][:16] for connection in connections}


def answer(connection: socket.socket) -> str:
    """All that comes until the server closes; nothing where the process died that had taken the
    connection.
    """
    with connection:
        try:
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        except ConnectionError:
            return ""


def wait_for_workers(server: Server, expected: int, old: set[str] | None = None) -> set[str]:
    """Return the request id prefixes of at least `expected` new processes; each has a prefix of its
    own.
    """
    results: set[str] = set()

    def all_there() -> bool:
        results.update(series(server) - (old or set()) - {""})
        return len(results) >= expected

    wait_until(all_there)
    return results


def test_dead_worker_is_replaced(server: Server) -> None:
    """The other one answers meanwhile; request ids are unique across workers."""
    previous = wait_for_workers(server, 2)
    assert len(previous) == 2
    pids = worker_pids(server)
    assert len(pids) == 2
    os.kill(victim := min(pids), signal.SIGKILL)
    wait_until(lambda: len(worker_pids(server) - {victim}) == 2)
    assert len(wait_for_workers(server, 1, previous)) == 1
    assert "died" in server.log.read_text()


@pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="only Linux lets one limit a process that runs"
)
def test_failed_fork_is_retried(server: Server) -> None:
    """Existing workers answer, and stay if all were to be replaced."""
    wait_for_workers(server, 2)
    pids, pid = worker_pids(server), server.process.pid
    previous = resource.prlimit(
        pid, resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    os.kill(victim := min(pids), signal.SIGKILL)
    wait_until(lambda: "A worker cannot be started" in server.log.read_text())
    server.process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert healthy(server)
    assert server.process.poll() is None
    resource.prlimit(pid, resource.RLIMIT_NOFILE, previous)
    wait_until(lambda: len(worker_pids(server) - {victim}) == 2)


def test_key_changes_reach_every_worker(server: Server) -> None:
    wait_for_workers(server, 2)
    secret, _ = api_keys.create(server.keys_file, "default", None, None)
    time.sleep(1)
    for _ in range(20):
        assert (
            httpx.get(
                f"{server.url}/api/v3/tools?limit=1", headers={"x-api-key": secret}
            ).status_code
            == 200
        )


def test_sighup_replaces_workers_in_turn(server: Server) -> None:
    """They open the newest build; a client needs at most one retry."""
    previous, pids = wait_for_workers(server, 2), worker_pids(server)
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: healthy(server) and not worker_pids(server) & pids)
    current = wait_for_workers(server, 2, previous)
    assert (len(current), len(worker_pids(server))) == (2, 2)


def healthy(server: Server) -> bool:
    """Whether it answers; a worker that leaves closes a connection that it has taken and not yet
    read, so one more try is fair.
    """
    try:
        return httpx.get(f"{server.url}/healthz").status_code == 200
    except httpx.TransportError:
        return httpx.get(f"{server.url}/healthz").status_code == 200


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_workers_stop_like_one_process(server: Server, number: signal.Signals, code: int) -> None:
    """They finish running requests, accept no more, and exit with the same code."""
    wait_for_workers(server, 2)
    pids, (host, port) = worker_pids(server), server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=TIMEOUT) as connection:
        headers = f"Host: a\r\nx-api-key: {server.key}\r\nContent-Length: 2\r\nExpect: 100-continue"
        connection.sendall(f"GET {SESSION} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        # the operation waits for its body
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        server.process.send_signal(number)
        wait_until(lambda: not takes_connections(host, int(port)))
        assert server.process.poll() is None
        connection.sendall(b"{}")
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
        while connection.recv(65536):
            pass
    assert server.process.wait(timeout=TIMEOUT) == code
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert "Traceback" not in server.log.read_text()


def takes_connections(host: str, port: int) -> bool:
    """Whether anybody listens there."""
    with socket.socket() as another:
        return another.connect_ex((host, port)) == 0


def test_workers_end_with_their_supervisor(server: Server) -> None:
    """Otherwise they would block the port."""
    wait_for_workers(server, 2)
    pids, (host, port) = worker_pids(server), server.url.removeprefix("http://").split(":")
    server.process.kill()
    wait_until(lambda: not takes_connections(host, int(port)))
    wait_until(lambda: not any(map(is_running, pids)))
    assert "Traceback" not in server.log.read_text()


def test_unusable_build_or_keys_stop_the_start(shipped_build: Path, tmp_path: Path) -> None:
    """One sentence and 2, before any worker starts."""
    (tmp_path / "bad.json").write_text("{")
    for arguments in (
        ["--build", tmp_path],
        ["--build", shipped_build, "--keys", tmp_path / "bad.json"],
    ):
        result = run_toolcatalog("serve", *arguments, "--workers", "2", "--port", "0")
        assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)


def test_failing_worker_is_logged_and_retried(shipped_build: Path, tmp_path: Path) -> None:
    """A damaged key file stops a new worker while the other one answers."""
    with start_server(shipped_build, tmp_path, "--workers", "2") as server:
        previous = wait_for_workers(server, 2)
        document = server.keys_file.read_bytes()
        server.keys_file.write_bytes(b"{")
        os.kill(min(worker_pids(server)), signal.SIGKILL)
        wait_until(lambda: server.log.read_text().count("A worker cannot start: The key file") >= 2)
        assert (
            httpx.get(
                f"{server.url}/api/v3/tools?limit=1", headers={"x-api-key": server.key}
            ).status_code
            == 200
        )
        server.keys_file.write_bytes(document)
        wait_for_workers(server, 1, previous)
        assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("delay", [0, 0.03, 0.1])
def test_sigterm_stops_a_starting_server(
    shipped_build: Path, tmp_path: Path, workers: int, delay: float
) -> None:
    """Exit code 0 and no traceback, at any moment."""
    with start_server(shipped_build, tmp_path, "--workers", str(workers)) as server:
        time.sleep(delay)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=TIMEOUT) == 0
        assert "Traceback" not in server.log.read_text()


def test_workers_import_nothing_from_the_working_directory(
    shipped_build: Path, tmp_path: Path
) -> None:
    """Python starts a worker with `-c`, which adds it to the module path."""
    mark = tmp_path / "mark"
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "multiprocessing.py").write_text(f"open({str(mark)!r}, 'w')\n")
    keys = tmp_path / "keys.json"
    secret = create_key(keys)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = Path(sys.executable).with_name("toolcatalog")
    options = ["--keys", str(keys), "--build", str(shipped_build), "--port", str(port)]
    command = [str(program), "serve", "--workers", "2", *options]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
                wait_until(lambda: answers(client))
                assert client.get("/api/v3/tools", headers={"x-api-key": secret}).status_code == 200
        finally:
            process.terminate()
    assert not mark.exists()


def answers(client: httpx.Client) -> bool:
    """Whether the server is ready."""
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False
