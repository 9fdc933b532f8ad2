"""The data of one size: an API key, the rows of all tools, and the other services' databases.

All is made once in a folder, and used again by the next run.
"""

import subprocess
from pathlib import Path

from benchmarks import machine, servers
from benchmarks.http_client import HttpClient, export_tools

ROWS = "rows.jsonl"
KEYS_FILE = "keys.json"


def prepare(build: Path, folder: Path) -> str:
    """Create an API key, and export all tools of a build; return the key."""
    folder.mkdir(parents=True, exist_ok=True)
    key, rows = _load_key(folder), folder / ROWS
    if not rows.exists():
        command = servers.server_command(build, folder / KEYS_FILE)
        with servers.start_server(command, folder / "ours.log") as server:
            export_tools(HttpClient(server.url, {"x-api-key": key}), rows)
    return key


def _load_key(folder: Path) -> str:
    """Return the key of the first run: the plain service has it in its database."""
    file = folder / "key"
    if not file.exists():
        file.touch(0o600)
        file.write_text(servers.create_key(folder / KEYS_FILE))
    return file.read_text()


def load_peer(name: str, folder: Path, key: str) -> float:
    """Fill the database of another service, if necessary; return how many seconds it took."""
    place, duration = folder / name, folder / name / "seconds"
    if not duration.exists():
        place.mkdir(exist_ok=True)
        (place / "tables.db").unlink(missing_ok=True)
        start = machine.clock()
        subprocess.run(
            servers.peer_command(name, "load", place / "tables.db", folder / ROWS),
            env=servers.subprocess_environment(BENCH_KEY=key),
            check=True,
        )
        duration.write_text(f"{machine.clock() - start:.2f}")
    return float(duration.read_text())


def serve_peer_command(name: str, folder: Path) -> list[str]:
    """Return the command that serves the database of another service."""
    return servers.peer_command(name, "serve", folder / name / "tables.db")
