"""The processes under test: our server, the ceiling, and the other services.

Each runs on the server's core until the benchmark stops it.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import machine
from benchmarks.http_client import HttpClient

ROOT = Path(__file__).resolve().parent.parent
PEERS_PYTHON = ROOT / ".venv" / "bench" / "bin" / "python"
CLIENT_PACKAGES = ROOT / ".venv" / "client-1.43"
PEERS = {"datasette": "benchmarks.peers.tables", "fastapi": "benchmarks.peers.service"}
# seconds until a server must print its address: it may read a million tools first
_START_TIMEOUT = 900


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its address, its process, and the seconds until its first response."""

    url: str
    pid: int
    seconds: float


def server_command(build: Path, keys_file: Path, workers: int = 1) -> list[str]:
    """Return the command of our server."""
    command = [sys.executable, "-m", "toolcatalog", "serve", "--build", str(build), "--port", "0"]
    return [*command, "--keys", str(keys_file), "--workers", str(workers)]


def ceiling_command(size: int, status: int = 200) -> list[str]:
    """Return the command of the ceiling."""
    command = [sys.executable, "-m", "benchmarks.constant"]
    return [*command, "--size", str(size), "--status", str(status)]


def peer_command(name: str, *arguments: str | Path) -> list[str]:
    """Return a command of another service."""
    return [str(PEERS_PYTHON), "-m", PEERS[name], *map(str, arguments)]


def create_key(keys_file: Path) -> str:
    """Create an API key for our server; the plain service gets the same one."""
    command = [sys.executable, "-m", "toolcatalog", "keys", "create", "--project", "default"]
    return subprocess.run(
        [*command, "--keys", str(keys_file)], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


@contextlib.contextmanager
def start_server(
    command: Sequence[str], log: Path, cores: Sequence[int] = (machine.SERVER_CORE,)
) -> Iterator[Server]:
    """Run a server on the given cores; it prints its address to standard error, which is `log`."""
    start = time.monotonic()
    with (
        log.open("w") as sink,
        subprocess.Popen(
            machine.pin_command(cores, command),
            stderr=sink,
            env=subprocess_environment(),
        ) as process,
    ):
        try:
            url = _wait_for_url(log, process, start + _START_TIMEOUT)
            # some servers print their address before they listen; any response will do
            HttpClient(url, {}).get("/")
            yield Server(url, process.pid, time.monotonic() - start)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=15)
            process.kill()


def subprocess_environment(**more: str) -> dict[str, str]:
    """Return the environment of a process that imports `benchmarks` and the package."""
    folders = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders)), **more}


def _wait_for_url(log: Path, process: "subprocess.Popen[bytes]", end: float) -> str:
    while process.poll() is None and time.monotonic() < end:
        if match := re.search(r"http://[0-9.]+:[0-9]+", log.read_text()):
            return match[0]
        time.sleep(0.005)
    raise RuntimeError(f"the server did not start: {log.read_text()}")
