"""wrk, the load generator: one run of requests from a file, and its figures."""

import json
import math
import subprocess
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine

_SCRIPT = Path(__file__).with_name("requests.lua")
_TIMEOUT = 60  # seconds for one response
_TOKEN_LENGTH = 20  # hexadecimal digits of a request id that one run shares


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRun:
    """The figures of one run.

    `rps` is requests per second, `p50` and `p99` are milliseconds, `bytes` is the mean size of a
    response with its headers, and `cpu` is the server's microseconds per request.
    """

    rps: float
    p50: float
    p99: float
    bytes: float
    cpu: float
    requests: int
    errors: int

    def to_result(self) -> dict[str, Any]:
        """Return the figures with three or four digits."""
        return {name: round(value, 3 if value < 100 else 1) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class RequestLine:
    """One request: its path, and the headers that no other request of the file has."""

    path: str
    headers: Mapping[str, str]


def write_requests(file: Path, shared: Mapping[str, str], lines: Iterable[RequestLine]) -> None:
    """Write a file of requests for `run_wrk`; `shared` are the headers of every request."""
    rows = [_join_headers(shared)]
    rows += ["\t".join([line.path, *filter(None, [_join_headers(line.headers)])]) for line in lines]
    file.write_text("\n".join(rows) + "\n")


def _join_headers(headers: Mapping[str, str]) -> str:
    return "\t".join(f"{name}: {value}" for name, value in headers.items())


def run_wrk(
    url: str,
    pid: int,
    requests: Path,
    connections: int,
    seconds: float,
    first: int | None = None,
    cores: Sequence[int] = (machine.CLIENT_CORE,),
) -> LoadRun:
    """Send requests from the client's cores to the server of process `pid`, and measure.

    Requests are drawn at random, or sent in the order of the file, starting at the index `first`.
    Returns when the server is idle again. Each response that is not 2xx or 304, and each fault of
    a connection, is an error.
    """
    options = [
        f"-t{len(cores)}",
        f"-c{connections}",
        f"-d{math.ceil(seconds)}",
        f"--timeout={_TIMEOUT}",
        f"--script={_SCRIPT}",
    ]
    order = "random" if first is None else str(first)
    arguments = ["--", str(requests), order, uuid.uuid4().hex[:_TOKEN_LENGTH]]
    before = machine.cpu_seconds(pid)
    output = subprocess.run(
        machine.pin_command(cores, ["wrk", *options, url, *arguments]),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    machine.wait_until_idle(pid)
    return _parse_output(output, machine.cpu_seconds(pid) - before, connections)


def _parse_output(output: str, cpu_seconds: float, connections: int) -> LoadRun:
    """Parse the last line of wrk's output. The server also answers what was open at the end."""
    figures = json.loads(output.splitlines()[-1])
    count = figures["requests"]
    return LoadRun(
        rps=count / (figures["duration"] / 1e6),
        p50=figures["p50"] / 1000,
        p99=figures["p99"] / 1000,
        bytes=figures["bytes"] / max(count, 1),
        cpu=cpu_seconds * 1e6 / max(count + connections, 1),
        requests=count,
        errors=sum(figures[kind] for kind in ("connect", "read", "write", "status", "timeout")),
    )
