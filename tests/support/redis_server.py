"""A real Redis server on a free loopback port, which can be killed and restarted."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from support.server import TIMEOUT, wait_until

REDIS_SERVER = shutil.which("redis-server")
needs_redis = pytest.mark.skipif(
    REDIS_SERVER is None,
    reason="there is no redis-server here (Debian: apt-get install redis-server)",
)


class RedisServer:
    """One server; it writes each change down, as it should where keys are kept in it."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.options = options
        self.folder = folder
        self.url = f"redis://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert REDIS_SERVER
        location = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command = [
            REDIS_SERVER,
            *location,
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--save",
            "",
            *self.options,
        ]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(self._is_answering)

    def kill(self) -> None:
        """End it as a power failure would."""
        if self._process:
            self._process.kill()
            self._process.wait(timeout=TIMEOUT)
            self._process = None

    def suspend(self) -> None:
        """Let it take connections and answer nothing."""
        assert self._process
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """End `hang`."""
        assert self._process
        os.kill(self._process.pid, signal.SIGCONT)

    def command(self, *words: object, user: str = "") -> Any:
        """What it answers to one command."""
        with Redis.from_url(self.url.replace("//", f"//{user}@") if user else self.url) as client:
            return client.execute_command(*words)

    def _is_answering(self) -> bool:
        try:
            return bool(self.command("PING"))
        except Exception:
            return False


@contextmanager
def start_sentinel(folder: Path, primary: RedisServer, service: str) -> Iterator[int]:
    """A Sentinel that knows one primary by a name: its port."""
    assert REDIS_SERVER
    port = free_port()
    file = folder / "sentinel.conf"
    file.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\n"
        f"sentinel monitor {service} 127.0.0.1 {primary.port} 1\n"
    )
    with subprocess.Popen(
        [REDIS_SERVER, str(file), "--sentinel"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_until(lambda: _is_sentinel_ready(port, service))
            yield port
        finally:
            process.kill()


def _is_sentinel_ready(port: int, service: str) -> bool:
    try:
        with Redis(port=port) as client:
            return bool(client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service))
    except Exception:
        return False


@contextmanager
def start_cluster(folder: Path) -> Iterator[RedisServer]:
    """A cluster of one node, which has all slots."""
    # without --cluster-port it is the other port plus 10,000, which may be above 65,535
    server = RedisServer(folder, "--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    try:
        server.start()
        server.command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: b"cluster_state:ok" in server.command("CLUSTER", "INFO"))
        yield server
    finally:
        server.kill()


def free_port() -> int:
    """Return a port that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A running server of its own for a test."""
    server = RedisServer(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.kill()
