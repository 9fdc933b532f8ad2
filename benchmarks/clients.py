"""Real clients: `composio-client` (Python) and `@composio/client` (Node) list all tools.

Each lists the tools of our server and of the plain service, by pages of 20 and of 1000. Wall time
contains the client's own work; server CPU does not.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import datasets, machine, servers
from benchmarks.servers import ROOT, Server

PAGE_SIZES = (20, 1000)
MOST_TOOLS = 20_000  # tools that a client lists; a larger catalog is not listed to its end
_ROUNDS = {"ours": 3, "fastapi": 1}
_DRIVERS = Path(__file__).with_name("drivers")
_NODE_FOLDER = ROOT / "tests" / "data" / "clients"


@dataclass(frozen=True, slots=True)
class ListRun:
    """One listing: the client, tools, wall seconds, the slugs' digest, and server CPU seconds."""

    client: str
    tools: int
    seconds: float
    digest: str
    cpu: float


def available_clients() -> dict[str, list[str]]:
    """Return the commands of the clients that are installed, by language."""
    commands = {
        "python": [sys.executable, str(_DRIVERS / "list_tools.py")],
        "node": ["node", str(_DRIVERS / "list_tools.mjs")],
    }
    if not servers.CLIENT_PACKAGES.exists():
        del commands["python"]
    if not shutil.which("node") or not (_NODE_FOLDER / "node_modules" / "@composio").exists():
        del commands["node"]
    return commands


def measure(build: Path, folder: Path, report_progress: Callable[[str], None]) -> dict[str, Any]:
    """Measure each client and page size with both servers, in turns."""
    key = datasets.prepare(build, folder)
    datasets.load_peer("fastapi", folder, key)
    commands = {
        "ours": servers.server_command(build, folder / datasets.KEYS_FILE),
        "fastapi": datasets.serve_peer_command("fastapi", folder),
    }
    rows = []
    with machine.keep_cores_awake(), ExitStack() as stack:
        running = {
            name: stack.enter_context(servers.start_server(command, folder / f"{name}.log"))
            for name, command in commands.items()
        }
        for language, command in available_clients().items():
            for size in PAGE_SIZES:
                report_progress(f"real clients: {language}, pages of {size} ...")
                runs = _list_in_turns(command, running, key, size)
                rows.append({"language": language, "page": size, **summarize(runs)})
    return {"rows": rows}


def _list_in_turns(
    command: Sequence[str], running: dict[str, Server], key: str, size: int
) -> dict[str, list[ListRun]]:
    runs: dict[str, list[ListRun]] = {name: [] for name in running}
    for number in range(max(_ROUNDS.values())):
        for name, server in running.items():
            if number < _ROUNDS[name]:
                runs[name].append(_list_tools(command, server, key, size))
    return runs


def _list_tools(command: Sequence[str], server: Server, key: str, size: int) -> ListRun:
    arguments = [server.url, key, str(size), str(MOST_TOOLS), str(_NODE_FOLDER)]
    if command[0] != "node":
        arguments.pop()
    before = machine.cpu_seconds(server.pid)
    output = subprocess.run(
        machine.pin_command([machine.CLIENT_CORE], [*command, *arguments]),
        env={**_environment(), "PYTHONPATH": str(servers.CLIENT_PACKAGES)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    machine.wait_until_idle(server.pid)
    return ListRun(**json.loads(output), cpu=machine.cpu_seconds(server.pid) - before)


def _environment() -> dict[str, str]:
    """Return the environment without settings that the clients read, and without a proxy."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COMPOSIO_")}
    return {**kept, "NO_PROXY": "*"}


def summarize(runs: dict[str, list[ListRun]]) -> dict[str, Any]:
    """Return the medians of each server; listings that differ are faults."""
    every = [run for server in runs.values() for run in server]
    return {
        "client": every[0].client,
        "tools": every[0].tools,
        "faults": len({(run.tools, run.digest) for run in every}) - 1,
        "servers": {
            name: {
                "seconds": round(statistics.median(run.seconds for run in server), 3),
                "cpu": round(statistics.median(run.cpu for run in server), 3),
            }
            for name, server in runs.items()
        },
    }
