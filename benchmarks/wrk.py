"""wrk, the load generator: a run with requests drawn from a list, and what came of it."""

import json
import math
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine

_SCRIPT = Path(__file__).with_name("requests.lua")
_TIMEOUT = 60  # seconds that one answer may take


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRun:
    """One run: requests per second, latency in milliseconds, bytes of an answer, server CPU in
    microseconds per request; faults.
    """

    rps: float
    p50: float
    p99: float
    bytes: float
    cpu: float
    requests: int
    errors: int

    def to_result(self) -> dict[str, Any]:
        """As the results keep it: three or four digits say all that there is to say."""
        return {name: round(value, 3 if value < 100 else 1) for name, value in asdict(self).items()}


def run_wrk(url: str, pid: int, requests: Path, connections: int, seconds: float) -> LoadRun:
    """Drive the server of process `pid` from the client's core, and wait until it has worked
    everything off.

    `requests` has a request on each line: the path, and then headers, each after a tab. Every
    answer that is not 2xx or 304, and every fault of a connection, counts as an error.
    """
    before = machine.cpu_seconds(pid)
    options = [
        "-t1",
        f"-c{connections}",
        f"-d{math.ceil(seconds)}",
        f"--timeout={_TIMEOUT}",
        f"--script={_SCRIPT}",
    ]
    command = machine.pin_command(machine.CLIENT_CORE, ["wrk", *options, url, "--", str(requests)])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    machine.wait_until_idle(pid)
    used = machine.cpu_seconds(pid) - before
    found = json.loads(done.stdout.rpartition("\n{")[2].join(("{", "")))
    count = found["requests"]
    return LoadRun(
        rps=count / (found["duration"] / 1e6),
        p50=found["p50"] / 1000,
        p99=found["p99"] / 1000,
        bytes=found["bytes"] / max(count, 1),
        # those under way when wrk ends are worked off too
        cpu=used * 1e6 / max(count + connections, 1),
        requests=count,
        errors=sum(found[kind] for kind in ("connect", "read", "write", "status", "timeout")),
    )
