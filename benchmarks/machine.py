"""The machine: its description, its cores, and the CPU time and memory of processes.

Linux only: it reads /proc.
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
versions = [f"{name} {version(name)}" for name in sys.argv[1:]]
print(", ".join([*versions, f"SQLite {sqlite3.sqlite_version}"]))
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
    """Describe cores, processor, kernel, Python, libraries, and the date.

    `peers` is the Python of the other services.
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
    """Keep these cores from going idle, with a loop of idle priority on each.

    A virtual core that is idle wakes up late. Throughput would then have two values, far apart, and
    the slowest requests would only show the machine. The loop costs all servers a little alike.
    """
    with contextlib.ExitStack() as stack:
        for core in cores:
            process = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", _SPINNER, str(core)])
            )
            stack.callback(process.kill)
        yield


def pin_command(cores: Sequence[int], command: Sequence[str]) -> list[str]:
    """Return the command, limited to these cores."""
    return ["taskset", "--cpu-list", ",".join(map(str, cores)), *command]


def process_tree(pid: int) -> list[int]:
    """Return the ids of a process and its descendants, as far as they still run."""
    pids = [pid]
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                pids += process_tree(int(child))
    return pids


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its descendants so far, in seconds."""
    total = 0
    for process in process_tree(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(field) for field in fields[11:13])
    return total / _TICK


def wait_until_idle(pid: int, patience: float = 120) -> None:
    """Return when the process is idle: a slow server still answers requests of closed connections.

    Raises TimeoutError after `patience` seconds.
    """
    before, since, end = -1.0, time.monotonic(), time.monotonic() + patience
    while time.monotonic() - since < _IDLE_SECONDS:
        if time.monotonic() > end:
            raise TimeoutError(f"process {pid} is still busy after {patience:.0f} seconds")
        used = cpu_seconds(pid)
        if used != before:
            before, since = used, time.monotonic()
        time.sleep(0.05)


def measure_memory(pid: int) -> dict[str, float]:
    """Return the memory of a process and its descendants in MB.

    `private` is their own memory, without pages of files; `pss` contains shared pages by share.
    """
    memory = _read_memory(pid)
    return {
        name: round(memory[row] / 1024, 1)
        for name, row in (("private", "Private_Dirty"), ("pss", "Pss"))
    }


def resident_bytes(pid: int) -> int:
    """Return the memory of a process and its descendants in bytes; shared pages count once."""
    return _read_memory(pid)["Pss"] * 1024


def _read_memory(pid: int) -> Counter[str]:
    """Add up the kernel's figures of a process and its descendants, in KB."""
    memory = Counter[str]()
    for process in process_tree(pid):
        with contextlib.suppress(OSError):  # it has just ended
            rows = (line.split() for line in _read_lines(f"/proc/{process}/smaps_rollup")[1:])
            memory.update({name.rstrip(":"): int(size) for name, size, *_ in rows})
    return memory


def measure_other_load(seconds: float = 2) -> float:
    """Return the share of all cores that others use, from 0 to 1; sleeps meanwhile."""
    start = _read_ticks()
    time.sleep(seconds)
    idle, total = (after - before for after, before in zip(_read_ticks(), start, strict=True))
    return round(1 - idle / total, 2) if total else 0.0


def _read_ticks() -> tuple[int, int]:
    """Return the idle ticks of all cores, and all their ticks."""
    ticks = [int(field) for field in _read_lines("/proc/stat")[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def _read_lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def clock() -> float:
    """Return seconds of a monotonic clock."""
    return time.monotonic()
