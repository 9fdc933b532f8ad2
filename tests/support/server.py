"""Start real servers on a loopback port, and wait for them."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support import command


@dataclass(frozen=True)
class Server:
    """A running server: where it answers, and with which key; `log` grows while it runs."""

    url: str
    key: str
    keys_file: Path
    process: "subprocess.Popen[str]"
    log: Path


TIMEOUT = 60.0  # seconds: a worker has to import everything first, and machines are slow


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def worker_pids(server: Server) -> set[int]:
    """The process ids of a server's workers that are there now."""
    children = (
        Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    )
    return {int(child) for child in children if b"spawn_main" in _command_line(child)}


def is_running(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        # nobody may be there to bury it
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _command_line(process: str) -> bytes:
    """What it was started with; nothing where it has just gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def create_key(keys_file: Path, *arguments: str) -> str:
    """A new key of project `default`, or as the arguments say."""
    project = () if "--project" in arguments else ("--project", "default")
    return command.run_successfully(
        "keys", "create", *project, *arguments, "--keys", keys_file
    ).strip()


@contextmanager
def start_server(
    source: Path | str,
    folder: Path,
    *arguments: object,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Iterator[Server]:
    """A real server of this build, or of an object store's URL, on a free loopback port; its keys
    and log in `folder`.
    """
    keys_file, log = folder / "keys.json", folder / "server.log"
    key = create_key(keys_file)
    origin = ("--build" if isinstance(source, Path) else "--from", str(source))
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "serve",
        *origin,
        "--port",
        "0",
        "--keys",
        str(keys_file),
        *map(str, arguments),
    ]
    with (
        log.open("w") as sink,
        subprocess.Popen(
            command, stderr=sink, text=True, env={**os.environ, **(env or {})}, cwd=cwd
        ) as process,
    ):
        try:
            yield Server(_wait_for_url(log, process), key, keys_file, process, log)
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            finally:
                process.kill()


def _wait_for_url(log: Path, process: "subprocess.Popen[str]") -> str:
    """Where the server says that it listens; it says so as soon as it does."""
    while process.poll() is None:
        if match := re.search(r"http://[0-9.]+:[0-9]+", log.read_text()):
            return match[0]
        time.sleep(0.01)
    raise AssertionError(f"the server did not start: {log.read_text()}")
