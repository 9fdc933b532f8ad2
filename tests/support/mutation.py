"""Mutants: the source changed in one place at a time, and which of those changes no test notices.

    make mutants                    # or: scripts/mutants filters cursors

A room here is what decides one thing, in whichever modules that stands. mutmut works on a copy of
the project, `mutants/`, and knows which test calls which function; what a process of its own does
it cannot see, so the tests are those that answer in this one. What is answered in
docs/evidence/mutants.md is not told again: the exit code is 1 where something else survives.
"""

import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MUTATED_AREAS = {
    "resolution": [
        "versions.*",
        "catalog.resolve.*",
        "catalog.sessions.x_in_force__*",
        "store.store.x*Entry*",
        "store.store.x*Pins*",
        "store.store.x*_in_force__*",
        "store.store.x*_at__*",
        "server.operations.x*View*_version__*",
        "server.operations.x*Viewǁtool__*",
        "server.query_params.x*version__*",
        "server.query_params.x*pins__*",
    ],
    "filters": [
        "catalog.sessions.*",
        "search.topk.*",
        "store.store.x*matching__*",
        "store.store.x*page__*",
        "store.store.x*named__*",
        "store.store.x__union__*",
        "store.store.x__by_relevance__*",
        "server.operations.x*tools__*",
        "server.operations.x*_hidden__*",
        "server.query_params.x_tools__*",
        "server.query_params.x*words__*",
    ],
    "keys": ["keys.api_keys.*", "keys.api_keys.*"],
    "cursors": [
        "server.query_params.x_cursor__*",
        "server.query_params.x*cursor__*",
        "server.query_params.x*page__*",
        "server.query_params.x*limit__*",
        "server.operations.x_page_of__*",
        "server.operations.x__paged__*",
    ],
}
# exit codes of mutmut's trials; of the others, 0 has survived
KILLED, TIMEOUT, SURVIVED = (1, 3), (24, 36, -24, 152, 255), 33


def documented_mutants() -> set[str]:
    """The mutants that docs/evidence/mutants.md lists: each is equivalent, or does no harm."""
    return {
        *re.findall(
            r"^\| `([^`]+)`", (ROOT / "docs" / "evidence" / "mutants.md").read_text(), re.MULTILINE
        )
    }


def load_verdicts(patterns: list[str]) -> dict[str, int | None]:
    """What became of each mutant of a room, by its name without `toolcatalog.`; None where it was
    not tried.
    """
    results = {}
    for meta in (ROOT / "mutants" / "src" / "toolcatalog").rglob("*.meta"):
        for name, code in json.loads(meta.read_text())["exit_code_by_key"].items():
            shortened = name.removeprefix("toolcatalog.")
            if any(fnmatchcase(shortened, pattern) for pattern in patterns):
                results[shortened] = code
    return dict(sorted(results.items()))


def run_area(area: str) -> list[str]:
    """Try the mutants of a room, say how many there are and what became of them, and show those
    that survive without an answer.
    """
    names = [f"toolcatalog.{pattern}" for pattern in MUTATED_AREAS[area]]
    jobs = ["--max-children", os.environ["JOBS"]] if "JOBS" in os.environ else []
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", "run", *jobs, *names],
        cwd=ROOT,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(
            f"{done.stdout[-2000:]}\nmutmut could not begin: the tests must pass as the source"
            " stands (above: the last that it said)"
        )
    all_values, existing = load_verdicts(MUTATED_AREAS[area]), documented_mutants()
    killed = [name for name, code in all_values.items() if code in (*KILLED, *TIMEOUT)]
    alive = [name for name, code in all_values.items() if name not in killed]
    print(
        f"{area}: {len(all_values)} mutants, {len(killed)} killed, {len({*alive} & existing)}"
        f" answered, {len({*alive} - existing)} not"
    )
    return [name for name in alive if name not in existing]


def main(areas: list[str]) -> int:
    """Try rooms: 1 where something survives that is not answered, 2 where a name is none."""
    if unknown := {*areas} - {*MUTATED_AREAS}:
        print(
            f"no room: {', '.join(sorted(unknown))}; there are {', '.join(MUTATED_AREAS)}",
            file=sys.stderr,
        )
        return 2
    alive = [name for available in areas or MUTATED_AREAS for name in run_area(available)]
    for name in dict.fromkeys(alive):
        subprocess.run(
            [sys.executable, "-m", "mutmut", "show", f"toolcatalog.{name}"], cwd=ROOT, check=False
        )
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
