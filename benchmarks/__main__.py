"""`python -m benchmarks`: measures, saves the results, and writes the page and the plots.

Catalogs, builds, and databases stay below `.bench/`; the next run uses them again.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import (
    builds,
    clients,
    datasets,
    http_load,
    in_process,
    machine,
    report,
    results,
    servers,
    synthetic,
    workers,
)

CACHE = servers.ROOT / ".bench"
_BUILDS = CACHE / "build-times"  # builds whose duration is measured
_GENERATOR_FILES = ("vocabulary.py", "parameters.py", "synthetic.py")
_PACKAGES = {"wrk": "wrk", "taskset": "util-linux"}

Measure = Callable[[Path, Path, Callable[[str], None]], dict[str, Any]]


def main() -> int:
    """Measure; return 2 if the machine lacks something, and 1 after a failure."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure, and write docs/explanation/performance.md.",
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000], metavar="TOOLS")
    parser.add_argument("--parts", nargs="+", default=[*results.PARTS], choices=results.PARTS)
    arguments = parser.parse_args()
    if problem := _find_missing_requirement(arguments.parts):
        report_progress(problem)
        return 2
    shutil.rmtree(_BUILDS, ignore_errors=True)
    faults = sum(
        _measure_part(tools, part) for tools in arguments.sizes for part in arguments.parts
    )
    shutil.rmtree(_BUILDS, ignore_errors=True)
    report.main()
    if faults:
        report_progress(
            f"{faults} faults: a part that failed has no new figures, and a row with INVALID does "
            "not count"
        )
    return 1 if faults else 0


def _measure_part(tools: int, part: str) -> int:
    """Measure one part and save its figures; return the number of faults.

    The other parts are measured even if this one fails.
    """
    busy = machine.measure_other_load()
    if busy > results.BUSY_THRESHOLD:
        report_progress(f"the machine is busy: others use {busy:.0%} of it, so figures are worse")
    try:
        figures = {**_MEASURES[part](tools), "busy": busy}
    except (RuntimeError, TimeoutError, ValueError, subprocess.CalledProcessError) as error:
        report_progress(f"{part} of {tools:,} tools failed: {error}")
        return 1
    results.save_part(tools, part, figures, machine.describe_machine(servers.PEERS_PYTHON))
    if tools > builds.LARGE:
        shutil.rmtree(_BUILDS / str(tools), ignore_errors=True)  # the disk has no room for two
    return count_faults(figures)


def count_faults(figures: Mapping[str, Any]) -> int:
    """Return the number of faults in the rows of a part."""
    return sum(row["faults"] for row in figures.get("rows", []))


def _find_missing_requirement(parts: Sequence[str]) -> str:
    """Return what the machine lacks, in one line; empty if it lacks nothing."""
    if not Path("/proc/self/smaps_rollup").exists():
        return "make bench needs Linux: it reads processor time and memory from /proc"
    if [*parts] == ["build"]:
        return ""
    if (os.cpu_count() or 1) < 2:
        return "make bench needs two cores: one for the server, one for the load"
    missing = next((name for name in _PACKAGES if not shutil.which(name)), "")
    return f"make bench needs {missing}: apt-get install {_PACKAGES[missing]}" if missing else ""


def _measure_with_build(measure: Measure) -> Callable[[int], dict[str, Any]]:
    def measure_size(tools: int) -> dict[str, Any]:
        build, folder = cached_build(tools)
        return measure(build, folder, report_progress)

    return measure_size


def _measure_build(tools: int) -> dict[str, Any]:
    catalog = _make_catalog(tools, files_only=True)
    return builds.measure(catalog, _BUILDS / str(tools), report_progress)


def _measure_process(build: Path, folder: Path, progress: Callable[[str], None]) -> dict[str, Any]:
    datasets.prepare(build, folder)
    progress("operations in the process ...")
    return in_process.measure(build, folder)


_MEASURES: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "clients": _measure_with_build(clients.measure),
    "http": _measure_with_build(http_load.measure),
    "workers": _measure_with_build(workers.measure),
    "process": _measure_with_build(_measure_process),
    "build": _measure_build,
}


def _make_catalog(tools: int, files_only: bool) -> Path:
    """Return the synthetic catalog of this size; write it again if its generator has changed."""
    generator = hashlib.sha256(
        b"".join((servers.ROOT / "benchmarks" / name).read_bytes() for name in _GENERATOR_FILES)
    ).hexdigest()[:8]
    kind = f"files-{tools}" if files_only else f"tools-{tools}"
    catalog = CACHE / "catalogs" / f"{kind}-{generator}"
    if not catalog.exists():
        _remove_others(catalog, f"{kind}-*")
        report_progress(f"writing a synthetic catalog, {kind} ...")
        synthetic.write_catalog(catalog, tools, files_only=files_only)
    return catalog


def cached_build(tools: int) -> tuple[Path, Path]:
    """Return the build of this size, and a folder for data that is made from it."""
    build, catalog = CACHE / "builds" / str(tools), _make_catalog(tools, files_only=False)
    report_progress(f"building {tools:,} tools ...")
    command = [sys.executable, "-m", "toolcatalog", "build", "--catalog", str(catalog)]
    digest = subprocess.run(
        [*command, "--out", str(build), "--no-site"],
        env=servers.subprocess_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    folder = CACHE / "http" / f"{tools}-{digest[:12]}"
    if not folder.exists():
        _remove_others(folder, f"{tools}-*")
    return build, folder


def _remove_others(folder: Path, pattern: str) -> None:
    for other in folder.parent.glob(pattern):
        shutil.rmtree(other)


def report_progress(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
