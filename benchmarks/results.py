"""The results: `benchmarks/results/<tools>.json`, one file for each size.

Tables and plots are made from them. A part of a file is what one part of the benchmark measured:

    machine    the machine, for each part
    clients    real clients that list all tools: wall time and server CPU
    http       rows (each server's medians and rounds; `faults` makes a row invalid) and servers
               (start, memory, load)
    workers    requests per second of two workers and of one, or the reason why there are none
    process    opening, starting, memory, microseconds of operations without a socket
    build      seconds and peak memory of builds, and of `yaml.load`

Each part has `busy`, the share of the machine that others used just before.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BUSY_THRESHOLD = 0.1  # share of the machine that others use; above it, figures are unreliable
RESULTS_FOLDER = Path(__file__).with_name("results")
PARTS = ("clients", "http", "workers", "process", "build")

Results = Mapping[int, Mapping[str, Any]]


def load_results(folder: Path = RESULTS_FOLDER) -> Results:
    """Load all results, by number of tools, in ascending order."""
    loaded = {int(path.stem): json.loads(path.read_text()) for path in folder.glob("*.json")}
    return dict(sorted(loaded.items()))


def save_part(
    tools: int,
    part: str,
    figures: Mapping[str, Any],
    machine: Mapping[str, str],
    folder: Path = RESULTS_FOLDER,
) -> None:
    """Save one part of one size; the other parts do not change."""
    path = folder / f"{tools}.json"
    parts = json.loads(path.read_text()) if path.exists() else {"machine": {}}
    parts[part] = figures
    parts["machine"][part] = dict(machine)
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps(parts, indent=1, sort_keys=True) + "\n")
