"""`python -m benchmarks.site_pages CATALOG`: the time to render and to write the pages of a site.

Two processes render the same pages twice, in the groups of a build: the first time without writing
them, the second time into a new folder. The difference is the cost of the file system. Prints one
line of JSON.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from toolcatalog.build import rebuild, site_writer
from toolcatalog.build.pipeline import build
from toolcatalog.build.site_pages import PageGroup
from toolcatalog.build.state import SiteState
from toolcatalog.snapshot import locks
from toolcatalog.system.processes import WorkerPool

_JOBS = 2


def main() -> int:
    """Measure one catalog."""
    figures: dict[str, float] = {}

    def stage(plan: site_writer.SitePlan, *__: Any) -> site_writer.StagedSite:
        groups = [*plan.groups.values()]
        figures["files"], figures["rendered in s"] = _measure(_render_group, groups)
        (plan.site / locks.STAGED).mkdir(parents=True)
        figures["rendered and written in s"] = _measure(partial(_write_group, plan.site), groups)[1]
        empty = replace(plan, state=SiteState(), groups={}, has_new_paths=False)
        return site_writer.StagedSite(plan=empty, groups={})

    rebuild.site_writer.stage_site = stage  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory(dir=".") as folder:
        build(Path(sys.argv[1]), Path(folder) / "build", Path(folder) / "site", jobs=_JOBS)
    print(json.dumps({name: round(value, 1) for name, value in figures.items()}))
    return 0


def _measure(work: Callable[[PageGroup], int], groups: Sequence[PageGroup]) -> tuple[int, float]:
    with WorkerPool(_JOBS) as pool:
        started = time.perf_counter()
        return sum(pool.map(work, groups)), time.perf_counter() - started


def _render_group(group: PageGroup) -> int:
    return sum(1 for file in group.files() if file.render())


def _write_group(folder: Path, group: PageGroup) -> int:
    site_writer._stage_group(folder, {}, 1 << 40, group)
    return len(group.paths)


if __name__ == "__main__":
    sys.exit(main())
