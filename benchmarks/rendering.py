"""`python -m benchmarks.rendering CATALOG`: how long the pages of a site take to make, and how long to be written, by two processes.

The same files are made twice: once and thrown away, once and written into a new folder, by the very groups that a build makes. What writing
costs is the file system's; what making costs is ours. Prints one line of JSON.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from toolcatalog import making, site
from toolcatalog.build import build
from toolcatalog.crew import Crew
from toolcatalog.groups import Group

_JOBS = 2


def main() -> int:
    """Measure one catalog."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        found = groups(Path(sys.argv[1]), Path(folder))
        files, made = _timed(_make, found)
        _, both = _timed(partial(_write, Path(folder) / "written"), found)
    print(json.dumps({"files": files, "made in s": round(made, 1), "made and written in s": round(both, 1)}))
    return 0


def groups(catalog: Path, folder: Path) -> list[Group]:
    """The groups of pages of a catalog, built into a folder: the build hands them over where it would make them."""
    found: list[Group] = []

    def take(_: Path, groups: Sequence[Group], *__: Any) -> dict[str, Any]:
        found.extend(groups)
        return {}

    making.site.update = take  # type: ignore[attr-defined]
    build(catalog, folder / "build", folder / "site", jobs=_JOBS)
    return found


def _timed(work: Callable[[Group], int], found: Sequence[Group]) -> tuple[int, float]:
    with Crew(_JOBS) as crew:
        started = time.perf_counter()
        return sum(crew.each(work, found)), time.perf_counter() - started


def _make(group: Group) -> int:
    return sum(1 for _ in group.render())


def _write(folder: Path, group: Group) -> int:
    return len(site._write(folder, group))


if __name__ == "__main__":
    sys.exit(main())
