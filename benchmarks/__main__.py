"""`python -m benchmarks`: measures what is asked for, keeps the results, and makes the page and the
plots.

What it needs for that is made below `.bench/` and used again the next time: catalogs, builds, the
peers' databases.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import building, http, inside, machine, report, results, servers, synthetic

CACHE = servers.ROOT / ".bench"
_BUILDS = CACHE / "building"  # what is built to see how long that takes
_GENERATOR_FILES = ("words.py", "shapes.py", "synthetic.py")


def main() -> int:
    """Measure; 2 where the machine cannot, 1 where something failed or answers were wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure, and make docs/performance.md."
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000], metavar="TOOLS")
    parser.add_argument("--parts", nargs="+", default=[*results.PARTS], choices=results.PARTS)
    arguments = parser.parse_args()
    if lack := _missing_requirements(arguments.parts):
        report_progress(lack)
        return 2
    asked = [(tools, part) for tools in arguments.sizes for part in arguments.parts]
    shutil.rmtree(_BUILDS, ignore_errors=True)
    faults = sum(_measure_part(tools, part) for tools, part in asked)
    shutil.rmtree(_BUILDS, ignore_errors=True)
    report.main()
    if faults:
        report_progress(
            f"{faults} faults: parts that failed have no new figures, and operations marked "
            "INVALID do not count"
        )
    return 1 if faults else 0


def _measure_part(tools: int, part: str) -> int:
    """Measure one part and keep its figures; how many faults there were. A part that fails does not
    keep the others from being measured.
    """
    busy = machine.measure_other_load()
    if busy > results.BUSY_THRESHOLD:
        report_progress(
            f"the machine is busy: others use {busy:.0%} of it, and the figures will show that"
        )
    try:
        figures = {**_measure(tools, part), "busy": busy}
    except (RuntimeError, TimeoutError, subprocess.CalledProcessError) as error:
        report_progress(f"{part} of {tools:,} tools failed: {error}")
        return 1
    results.save_part(tools, part, figures, machine.describe_machine(servers.PEERS_PYTHON))
    if tools > building.LARGE:
        shutil.rmtree(_BUILDS / str(tools), ignore_errors=True)  # there is no room for two of these
    return sum(one["faults"] for one in figures.get("operations", {}).values())


def _missing_requirements(parts: list[str]) -> str:
    """What the machine lacks, in one line; empty where it can measure."""
    if not Path("/proc/self/smaps_rollup").exists():
        return "make bench needs Linux: it reads processor time and memory from /proc"
    if "building" not in parts or len(parts) > 1:
        if (os.cpu_count() or 1) < 2:
            return "make bench needs two cores: one for the server, one for the load"
        if missing := next((name for name in ("wrk", "taskset") if not shutil.which(name)), ""):
            return f"make bench needs {missing}: apt-get install {'wrk' if missing == 'wrk' else 'util-linux'}"
    return ""


def _measure(tools: int, part: str) -> dict[str, Any]:
    if part == "building":
        return building.measure(
            _make_catalog(tools, files_only=True), _BUILDS / str(tools), report_progress
        )
    build, folder = cached_build(tools)
    if part == "http":
        return http.measure(build, folder, report_progress)
    http.prepare(build, folder)
    report_progress(f"{tools:,} tools, inside the process ...")
    return inside.measure(build, folder)


def _make_catalog(tools: int, files_only: bool) -> Path:
    """The synthetic catalog of this size; made anew where what makes it has changed."""
    made_by = hashlib.sha256(
        b"".join((servers.ROOT / "benchmarks" / name).read_bytes() for name in _GENERATOR_FILES)
    ).hexdigest()[:8]
    kind = f"files-{tools}" if files_only else f"tools-{tools}"
    catalog = CACHE / "catalogs" / f"{kind}-{made_by}"
    if not catalog.exists():
        _remove_others(catalog, f"{kind}-*")
        report_progress(f"writing a synthetic catalog, {kind} ...")
        synthetic.write_catalog(catalog, tools, files_only=files_only)
    return catalog


def cached_build(tools: int) -> tuple[Path, Path]:
    """The build of this size, and a folder for what is made from it, which another build's takes
    the place of.
    """
    build, catalog = CACHE / "builds" / str(tools), _make_catalog(tools, files_only=False)
    report_progress(f"building {tools:,} tools ...")
    command = [
        sys.executable,
        "-m",
        "toolcatalog",
        "build",
        "--catalog",
        str(catalog),
        "--out",
        str(build),
        "--no-site",
    ]
    digest = subprocess.run(
        command, env=servers.subprocess_environment(), stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    folder = CACHE / "http" / f"{tools}-{digest[:12]}"
    if not folder.exists():
        _remove_others(folder, f"{tools}-*")
    return build, folder


def _remove_others(folder: Path, pattern: str) -> None:
    for other in folder.parent.glob(pattern):
        shutil.rmtree(other)


def report_progress(line: str) -> None:
    """Tell how far it is."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
