"""The servers under test: ours, the ceiling and the peers, each started on the server's core and
ended again.
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

from benchmarks import asking, machine

ROOT = Path(__file__).resolve().parent.parent
PEERS_PYTHON = ROOT / ".venv" / "bench" / "bin" / "python"
PEERS = {"datasette": "benchmarks.peers.tables", "fastapi": "benchmarks.peers.service"}
# seconds that a server may take to say where it listens: a million tools may have to be read
_START_TIMEOUT = 900


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: where it answers, its process, and how long it took until it did, in
    seconds.
    """

    url: str
    pid: int
    seconds: float


def server_command(build: Path, keys_file: Path) -> list[str]:
    """The command of our server."""
    return [
        sys.executable,
        "-m",
        "toolcatalog",
        "serve",
        "--build",
        str(build),
        "--port",
        "0",
        "--keys",
        str(keys_file),
    ]


def ceiling_command(size: int, status: int = 200) -> list[str]:
    """The command of the ceiling."""
    return [
        sys.executable,
        "-m",
        "benchmarks.constant",
        "--size",
        str(size),
        "--status",
        str(status),
    ]


def peer_command(name: str, *arguments: str | Path) -> list[str]:
    """A command of a peer."""
    return [str(PEERS_PYTHON), "-m", PEERS[name], *map(str, arguments)]


def create_key(keys_file: Path) -> str:
    """A key for our server, which is also that of the plain service."""
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "keys",
        "create",
        "--project",
        "default",
        "--keys",
        str(keys_file),
    ]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


@contextlib.contextmanager
def start_server(command: Sequence[str], log: Path) -> Iterator[Server]:
    """A server that says on standard error where it listens, pinned to the server's core; what it
    says goes to `log`.
    """
    begin = time.monotonic()
    with (
        log.open("w") as sink,
        subprocess.Popen(
            machine.pin_command(machine.SERVER_CORE, command),
            stderr=sink,
            env=subprocess_environment(),
        ) as process,
    ):
        try:
            url = _wait_for_url(log, process, begin + _START_TIMEOUT)
            # some servers say that they listen before they do; any answer will do
            asking.Client(url, {}).get("/")
            yield Server(url, process.pid, time.monotonic() - begin)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=15)
            process.kill()


def subprocess_environment(**more: str) -> dict[str, str]:
    """What a process of ours needs around it, to find this folder and the package."""
    folders = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders)), **more}


def _wait_for_url(log: Path, process: "subprocess.Popen[bytes]", end: float) -> str:
    while process.poll() is None and time.monotonic() < end:
        if found := re.search(r"http://[0-9.]+:[0-9]+", log.read_text()):
            return found[0]
        time.sleep(0.005)
    raise RuntimeError(f"the server did not start: {log.read_text()}")
