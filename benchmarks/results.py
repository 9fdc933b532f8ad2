"""The figures as they are kept: `benchmarks/results/<tools>.json`, one file for each size, from
which tables and plots are made.

    machine    what it ran on, for each part
    http       operations (each server's medians; `faults`: the operation does not count) and servers (start, memory, load)
    inside     opening, starting, memory, microseconds of operations without a socket
    building   seconds and peak memory of builds, and of the yardstick

Each part has `busy`, the share of the machine that others used just before.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BUSY_THRESHOLD = 0.1  # of the machine, used by others: from there the figures are not worth much
RESULTS_FOLDER = Path(__file__).with_name("results")
PARTS = ("http", "inside", "building")

Results = Mapping[int, Mapping[str, Any]]


def load_results(folder: Path = RESULTS_FOLDER) -> Results:
    """All results that are kept, by number of tools, the smallest first."""
    found = {int(path.stem): json.loads(path.read_text()) for path in folder.glob("*.json")}
    return dict(sorted(found.items()))


def save_part(
    tools: int,
    part: str,
    figures: Mapping[str, Any],
    machine: Mapping[str, str],
    folder: Path = RESULTS_FOLDER,
) -> None:
    """Keep one part of one size; the other parts stay as they were."""
    path = folder / f"{tools}.json"
    kept = json.loads(path.read_text()) if path.exists() else {"machine": {}}
    kept[part] = figures
    kept["machine"][part] = dict(machine)
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
