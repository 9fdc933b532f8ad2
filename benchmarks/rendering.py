"""`python -m benchmarks.rendering CATALOG`: how long the pages of a site take to make, and how long
to be written, by two processes.

The same files are made twice: once and thrown away, once and written into a new folder, by the very
groups that a build makes. What writing costs is the file system's; what making costs is ours.
Prints one line of JSON.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from toolcatalog import guarding, making, site
from toolcatalog.build import build
from toolcatalog.crew import Crew
from toolcatalog.groups import Group
from toolcatalog.memory import SiteMemory

_JOBS = 2


def main() -> int:
    """Measure one catalog."""
    found: dict[str, float] = {}

    def stage(folder: Path, groups: Sequence[Group], *__: Any) -> site.Staged:
        found["files"], found["made in s"] = _timed(_make, groups)
        (folder / guarding.STAGED).mkdir(parents=True)
        found["made and written in s"] = _timed(partial(_write, folder), groups)[1]
        return site.Staged(
            site=folder,
            left=SiteMemory(),
            groups={},
            stale={},
            gone=set(),
            is_more=False,
            kept=0,
        )

    making.site.stage = stage  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory(dir=".") as folder:
        build(Path(sys.argv[1]), Path(folder) / "build", Path(folder) / "site", jobs=_JOBS)
    print(json.dumps({name: round(value, 1) for name, value in found.items()}))
    return 0


def _timed(work: Callable[[Group], int], groups: Sequence[Group]) -> tuple[int, float]:
    with Crew(_JOBS) as crew:
        started = time.perf_counter()
        return sum(crew.each(work, groups)), time.perf_counter() - started


def _make(group: Group) -> int:
    return sum(1 for file in group.files() if file.make())


def _write(folder: Path, group: Group) -> int:
    site._stage(folder, {}, group)
    return len(group.paths)


if __name__ == "__main__":
    sys.exit(main())
