"""Build times: a first build, a rebuild without changes, and a rebuild with one changed file.

Builds run as commands. They are compared with a baseline: `python -m benchmarks.builds FOLDER`
reads all tool files of a catalog with `yaml.load` and its C loader, in one process, and prints
their number and the seconds.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from benchmarks import machine, servers

# files that the baseline reads; the time of a larger catalog is scaled
_MAX_YAML_FILES = 20_000
LARGE = 50_000  # files; a larger catalog has only one round
_ROUNDS = 3
_SAMPLE_INTERVAL = 0.05  # seconds between two samples of the memory
_INTERVAL_FACTOR = 50  # times the duration of a sample: sampling must not slow the build down


@dataclass(frozen=True, slots=True)
class BuildRun:
    """One run of `toolcatalog build`: seconds, and peak bytes of all its processes together."""

    seconds: float
    peak: int


def measure(catalog: Path, folder: Path, report_progress: Callable[[str], None]) -> dict[str, Any]:
    """Measure one catalog: seconds, and peak memory in MB.

    Each build has a new folder, and nothing is removed before the last one: ext4 without a journal
    creates files slowly for minutes after many were removed. The caller removes `folder`.
    """
    files = sum(1 for _ in tool_files(catalog))
    rounds = 1 if files > LARGE else _ROUNDS
    baseline, index_builds, index_changes, site_builds = [], [], [], []
    for number in range(rounds):
        report_progress(f"building {files:,} files, round {number + 1} of {rounds} ...")
        place = folder / str(number)
        index, both = (
            ["--out", str(place / "index"), "--no-site"],
            ["--out", str(place / "out"), "--site", str(place / "site")],
        )
        baseline.append(_measure_yaml(catalog) * files)
        index_builds.append(_run_build(catalog, index))
        if number == rounds - 1:
            index_changes = _measure_changes(catalog, index, place, rounds)
        if files > LARGE:
            # a disk of 70 GB has no room for the index and a million pages
            shutil.rmtree(place / "index")
        site_builds.append(_run_build(catalog, both))
    # The rebuilds continue from the last build.
    unchanged = [_run_build(catalog, both) for _ in range(rounds)]
    changed = _measure_changes(catalog, both, place, rounds)
    return {
        "files": files,
        "yaml.load": _median(baseline),
        "index": _summary(index_builds),
        "site": _summary(site_builds),
        "unchanged": _summary(unchanged),
        "one changed": {
            **_summary([run for run, _ in changed]),
            "pages": max(count for _, count in changed),
        },
        "one changed, indexes only": _summary([run for run, _ in index_changes]),
        "pages": _count_written_pages(place),
    }


def tool_files(catalog: Path) -> Iterator[Path]:
    """Return the files of a catalog's tools."""
    return (catalog / "toolkits").glob("*/*/*.yaml")


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 3)


def _summary(runs: Sequence[BuildRun]) -> dict[str, float]:
    return {
        "seconds": _median([run.seconds for run in runs]),
        "peak": round(max(run.peak for run in runs) / 1e6),
    }


def _measure_yaml(catalog: Path) -> float:
    """Return the baseline's seconds for one file."""
    command = [sys.executable, "-m", "benchmarks.builds", str(catalog)]
    os.sync()  # as before a build
    output = subprocess.run(
        command, env=servers.subprocess_environment(), capture_output=True, text=True, check=True
    ).stdout
    figures = json.loads(output)
    return float(figures["seconds"] / figures["files"])


def _run_build(catalog: Path, options: Sequence[str]) -> BuildRun:
    """Run one build; the output of the one before is written to the disk first."""
    command = [sys.executable, "-m", "toolcatalog", "build", "--catalog", str(catalog), *options]
    os.sync()
    start, stop, samples = machine.clock(), threading.Event(), [0]
    with subprocess.Popen(
        command,
        env=servers.subprocess_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        sampler = threading.Thread(target=_sample_memory, args=(process.pid, stop, samples))
        sampler.start()
        errors = process.communicate()[1]
        seconds = machine.clock() - start
        stop.set()
        sampler.join()
    if process.returncode:
        raise RuntimeError(f"toolcatalog build ended with {process.returncode}: {errors[-2000:]}")
    return BuildRun(seconds, max(samples))


def _sample_memory(pid: int, stop: threading.Event, samples: list[int]) -> None:
    """Append the memory of a process and its children to `samples`, until `stop` is set."""
    interval = _SAMPLE_INTERVAL
    while not stop.wait(interval):
        start = machine.clock()
        samples.append(machine.resident_bytes(pid))
        interval = max(_SAMPLE_INTERVAL, _INTERVAL_FACTOR * (machine.clock() - start))


def _measure_changes(
    catalog: Path, options: Sequence[str], site: Path, rounds: int
) -> list[tuple[BuildRun, int]]:
    """Change one file after another, and build after each; return the builds and pages written.

    The files are restored at the end, because that is a change too. Each call changes others: a
    snapshot that exists would only be verified.
    """
    _run_build(catalog, options)  # it contains files that were restored before
    rng = random.Random(" ".join(options))
    files = rng.sample(sorted(islice(tool_files(catalog), 1000)), rounds)
    texts = {file: file.read_text() for file in files}
    try:
        return [
            _measure_change(file, text, lambda: _run_build(catalog, options), site)
            for file, text in texts.items()
        ]
    finally:
        for file, text in texts.items():
            file.write_text(text)


def _measure_change(
    file: Path, text: str, build: Callable[[], BuildRun], site: Path
) -> tuple[BuildRun, int]:
    """Add a sentence to a tool's description, and build."""
    marker = site / ".benchmark"
    marker.write_text("")
    time.sleep(2 * _SAMPLE_INTERVAL)
    file.write_text(text.replace("\nscopes:", " Changed, and nothing else.\nscopes:", 1))
    run = build()
    return run, _count_written_pages(site, since=marker.stat().st_mtime_ns)


def _count_written_pages(site: Path, since: int = 0) -> int:
    """Count the pages of a site that were written later than `since` (nanoseconds)."""
    return sum(page.stat().st_mtime_ns > since for page in site.rglob("*.html"))


def main() -> None:
    """Run the baseline."""
    texts = (file.read_bytes() for file in islice(tool_files(Path(sys.argv[1])), _MAX_YAML_FILES))
    start, files = time.perf_counter(), 0
    for text in texts:
        yaml.load(text, Loader=yaml.CSafeLoader)
        files += 1
    print(json.dumps({"files": files, "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
