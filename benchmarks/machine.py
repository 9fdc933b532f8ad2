"""The machine: what it is, which core does what, and what a process has used. Linux only: it reads
/proc.
"""

import contextlib
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

SERVER_CORE, CLIENT_CORE = 0, 1
_TICK = os.sysconf("SC_CLK_TCK")
_IDLE_SECONDS = 0.3  # seconds without any work after which a server counts as idle
_LIBRARIES = (
    "toolcatalog",
    "uvicorn",
    "uvloop",
    "httptools",
    "starlette",
    "orjson",
    "numpy",
    "pyroaring",
    "pyyaml",
)
_PEERS = ("datasette", "fastapi", "sqlalchemy", "pydantic", "uvicorn")
_VERSIONS = """
import sys, sqlite3
from importlib.metadata import version
print(", ".join([f"{name} {version(name)}" for name in sys.argv[1:]] + [f"SQLite {sqlite3.sqlite_version}"]))
"""
_SPINNER = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


def describe_machine(peers: Path) -> dict[str, str]:
    """Cores, processor, kernel, Python, libraries and the day, for people; `peers` is the peers'
    Python.
    """
    processor = next(
        (
            line.partition(":")[2].strip()
            for line in _read_lines("/proc/cpuinfo")
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = int(
        next(
            line.split()[1] for line in _read_lines("/proc/meminfo") if line.startswith("MemTotal")
        )
    )
    return {
        "cores": str(os.cpu_count()),
        "processor": processor,
        "memory": f"{memory / 2**20:.0f} GiB",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "libraries": _library_versions(sys.executable, _LIBRARIES),
        "peers": _library_versions(str(peers), _PEERS) if peers.exists() else "not installed",
        "date": datetime.now(UTC).date().isoformat(),
    }


def _library_versions(python: str, names: Sequence[str]) -> str:
    return subprocess.run(
        [python, "-c", _VERSIONS, *names], capture_output=True, text=True, check=True
    ).stdout.strip()


@contextlib.contextmanager
def keep_cores_awake(cores: Sequence[int] = (SERVER_CORE, CLIENT_CORE)) -> Iterator[None]:
    """Keep these cores from going idle, by a loop of idle priority on each.

    A virtual core that has gone idle wakes up late: throughput then has two values, far apart, and
    the slow requests only show the machine. The loop gives way to everything else; it costs all
    servers alike a little.
    """
    with contextlib.ExitStack() as stack:
        for core in cores:
            process = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", _SPINNER, str(core)])
            )
            stack.callback(process.kill)
        yield


def pin_command(core: int, command: Sequence[str]) -> list[str]:
    """The command, to run on one core only."""
    return ["taskset", "--cpu-list", str(core), *command]


def process_tree(pid: int) -> list[int]:
    """A process and all that descend from it, as far as they are still there."""
    found = [pid]
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [
                one
                for child in (thread / "children").read_text().split()
                for one in process_tree(int(child))
            ]
    return found


def cpu_seconds(pid: int) -> float:
    """Processor time that a process and its descendants have used so far, in seconds."""
    total = 0
    for one in process_tree(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(field) for field in fields[11:13])
    return total / _TICK


def wait_until_idle(pid: int, patience: float = 120) -> None:
    """Return when the process has nothing left to work off: a slow server still answers requests
    that nobody waits for any more.
    """
    before, since, end = -1.0, time.monotonic(), time.monotonic() + patience
    while time.monotonic() - since < _IDLE_SECONDS:
        if time.monotonic() > end:
            raise TimeoutError(f"process {pid} is still busy after {patience:.0f} seconds")
        now = cpu_seconds(pid)
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(0.05)


def measure_memory(pid: int) -> dict[str, float]:
    """What a process and its descendants hold, in MB: `private` (their own, not pages of a file)
    and `pss` (shared pages by share).
    """
    found = _read_memory(pid)
    return {
        name: round(found[row] / 1024, 1)
        for name, row in (("private", "Private_Dirty"), ("pss", "Pss"))
    }


def resident_bytes(pid: int) -> int:
    """Bytes that a process and its descendants hold together; a page that they share counts once."""
    return _read_memory(pid)["Pss"] * 1024


def _read_memory(pid: int) -> Counter[str]:
    """What the kernel tells of a process and its descendants, added up, in KB; one that is just
    ending holds nothing.
    """
    found = Counter[str]()
    for one in process_tree(pid):
        with contextlib.suppress(OSError):
            rows = (line.split() for line in _read_lines(f"/proc/{one}/smaps_rollup")[1:])
            found.update({name.rstrip(":"): int(size) for name, size, *_ in rows})
    return found


def measure_other_load(seconds: float = 2) -> float:
    """The share of all cores that others use, from 0 to 1, seen while we do nothing for so many
    seconds.
    """
    before = _read_ticks()
    time.sleep(seconds)
    idle, total = (after - then for after, then in zip(_read_ticks(), before, strict=True))
    return round(1 - idle / total, 2) if total else 0.0


def _read_ticks() -> tuple[int, int]:
    """Ticks that all cores have been idle, and all their ticks."""
    ticks = [int(field) for field in _read_lines("/proc/stat")[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def _read_lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def clock() -> float:
    """Seconds on a clock that only goes forward."""
    return time.monotonic()
