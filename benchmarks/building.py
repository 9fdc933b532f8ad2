"""Building: from nothing, with nothing changed and with one file changed, beside the time that a
YAML library needs to read the files.

Only the command line is used, as people use it. `python -m benchmarks.building FOLDER` is the
yardstick: it reads all tool files of a catalog with `yaml.load` and its C loader, in one process,
and prints how many and how many seconds.
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

# files that the yardstick reads; with more files in the catalog its time is scaled
_MAX_YAML_FILES = 20_000
LARGE = 50_000  # files from which everything is done once
_ROUNDS = 3
_SAMPLE_INTERVAL = 0.05  # seconds between two looks at the memory
# times that a look takes: of much memory it is told slowly, and the build is to have the processor
_SAMPLES_PER_SCAN = 50


@dataclass(frozen=True, slots=True)
class BuildRun:
    """One run of `toolcatalog build`: seconds, and the most bytes that it and its children held at
    once.
    """

    seconds: float
    peak: int


def measure(catalog: Path, folder: Path, report_progress: Callable[[str], None]) -> dict[str, Any]:
    """All figures for one catalog: seconds; ratios are taken from them later. Nothing is built
    where something was.

    Nor is anything removed before the last build, unless there is very much of it: ext4 without a
    journal does not use the inode of a removed file again for minutes, and looks past each of those
    whenever a file is made. What is left in `folder` is the caller's to remove when all has been
    measured.
    """
    files = sum(1 for _ in tool_files(catalog))
    rounds = 1 if files > LARGE else _ROUNDS
    yardstick, cold, alone, whole = [], [], [], []
    for number in range(rounds):
        report_progress(f"building {files:,} files, round {number + 1} of {rounds} ...")
        place = folder / str(number)
        index, both = (
            ["--out", str(place / "index"), "--no-site"],
            ["--out", str(place / "out"), "--site", str(place / "site")],
        )
        yardstick.append(_measure_yaml(catalog) * files)
        cold.append(_run_build(catalog, index))
        if number == rounds - 1:
            alone = _measure_changes(catalog, index, place, rounds)
        if files > LARGE:
            # a disk of 70 GB has no room for it beside a million pages
            shutil.rmtree(place / "index")
        whole.append(_run_build(catalog, both))
    # What follows goes on from the last one.
    unchanged = [_run_build(catalog, both) for _ in range(rounds)]
    changed = _measure_changes(catalog, both, place, rounds)
    return {
        "files": files,
        "yaml.load": _median(yardstick),
        "index": _summary(cold),
        "site": _summary(whole),
        "unchanged": _summary(unchanged),
        "one changed": {
            **_summary([built for built, _ in changed]),
            "pages": max(count for _, count in changed),
        },
        "one changed, indexes only": _summary([built for built, _ in alone]),
        "pages": _count_written_pages(place),
    }


def tool_files(catalog: Path) -> Iterator[Path]:
    """The files of a catalog's tools."""
    return (catalog / "toolkits").glob("*/*/*.yaml")


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 3)


def _summary(runs: Sequence[BuildRun]) -> dict[str, float]:
    return {
        "seconds": _median([run.seconds for run in runs]),
        "peak": round(max(run.peak for run in runs) / 1e6),
    }


def _measure_yaml(catalog: Path) -> float:
    """Seconds that the yardstick takes for one file."""
    command = [sys.executable, "-m", "benchmarks.building", str(catalog)]
    os.sync()  # as before a build
    done = subprocess.run(
        command, env=servers.subprocess_environment(), capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    return float(told["seconds"] / told["files"])


def _run_build(catalog: Path, where: Sequence[str]) -> BuildRun:
    command = [sys.executable, "-m", "toolcatalog", "build", "--catalog", str(catalog), *where]
    # what was written before is on the disk: builds follow one another closely nowhere but here
    os.sync()
    begin, over, held = machine.clock(), threading.Event(), [0]
    with subprocess.Popen(
        command,
        env=servers.subprocess_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        watch = threading.Thread(target=_sample_memory, args=(process.pid, over, held))
        watch.start()
        complaint = process.communicate()[1]  # beside the watch, so that its naps are not counted
        seconds = machine.clock() - begin
        over.set()
        watch.join()
    if process.returncode:
        raise RuntimeError(
            f"toolcatalog build ended with {process.returncode}: {complaint[-2000:]}"
        )
    return BuildRun(seconds, max(held))


def _sample_memory(pid: int, over: threading.Event, samples: list[int]) -> None:
    """Note what a process and its children hold, until it is over."""
    nap = _SAMPLE_INTERVAL
    while not over.wait(nap):
        looked = machine.clock()
        samples.append(machine.resident_bytes(pid))
        nap = max(_SAMPLE_INTERVAL, _SAMPLES_PER_SCAN * (machine.clock() - looked))


def _measure_changes(
    catalog: Path, where: Sequence[str], site: Path, rounds: int
) -> list[tuple[BuildRun, int]]:
    """Change one file after another, and build after each; how many pages were written. They get
    their old texts back in the end.
    """
    _run_build(catalog, where)  # what was given back before has changed too
    # others each time: of what was built before there is a snapshot, which would be verified
    draw = random.Random(" ".join(where))
    some = draw.sample(sorted(islice(tool_files(catalog), 1000)), rounds)
    before = {file: file.read_text() for file in some}
    try:
        return [
            _measure_one_change(file, text, lambda: _run_build(catalog, where), site)
            for file, text in before.items()
        ]
    finally:  # not sooner: to give one back is a change too
        for file, text in before.items():
            file.write_text(text)


def _measure_one_change(
    file: Path, text: str, build: Callable[[], BuildRun], site: Path
) -> tuple[BuildRun, int]:
    """Add a sentence to a tool's description and build."""
    mark = site / ".benchmark"
    mark.write_text("")
    time.sleep(2 * _SAMPLE_INTERVAL)
    file.write_text(text.replace("\nscopes:", " Changed, and nothing else.\nscopes:", 1))
    built = build()
    return built, _count_written_pages(site, since=mark.stat().st_mtime_ns)


def _count_written_pages(site: Path, since: int = 0) -> int:
    """How many pages of a site below were written later than that (nanoseconds)."""
    return sum(page.stat().st_mtime_ns > since for page in site.rglob("*.html"))


def main() -> None:
    """The yardstick."""
    texts = (file.read_bytes() for file in islice(tool_files(Path(sys.argv[1])), _MAX_YAML_FILES))
    begin, files = time.perf_counter(), 0
    for text in texts:
        yaml.load(text, Loader=yaml.CSafeLoader)
        files += 1
    print(json.dumps({"files": files, "seconds": time.perf_counter() - begin}))


if __name__ == "__main__":
    main()
