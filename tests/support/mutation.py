"""Mutation tests: change the source in one place at a time and report what no test detects.

    make mutants                    # or: scripts/mutants filters cursors

An area is one decision of the program, with the functions that make it. mutmut works on a copy of
the project, `mutants/`, and runs the tests that call the changed function in the same process.
`docs/evidence/mutants.md` justifies the mutants that survive; the exit code is 1 if another one
does.
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
        "catalog.sessions.x_select_versions__*",
        "store.store.x*ToolEntry*",
        "store.store.x*VersionPins*",
        "store.store.x*_effective*__*",
        "store.store.x*_pins__*",
        "api.catalog_view.*",
        "api.query_params.x*version*__*",
        "api.query_params.x*pins__*",
    ],
    "filters": [
        "catalog.sessions.*",
        "search.topk.*",
        "store.store.x*search__*",
        "store.store.x*page__*",
        "store.store.x*slugs__*",
        "store.store.x*_visible_newest__*",
        "store.store.x__read_members__*",
        "store.store.x__union__*",
        "store.store.x__page_by_relevance__*",
        "api.operations.x*list_tools__*",
        "api.query_params.x*_list_params__*",
        "api.query_params.x*read_list__*",
        "api.query_params.x*read_choice__*",
    ],
    "keys": ["keys.api_keys.*"],
    "cursors": [
        "api.query_params.x*Page*",
        "api.query_params.x*cursor__*",
        "api.query_params.x*read_page__*",
        "api.query_params.x*limit__*",
        "api.operations.x_render_list_page__*",
        "api.operations.x__render_*",
    ],
}
# exit codes of mutmut; 0 is a mutant that survived
KILLED, TIMEOUT, NOT_REACHED = (1, 3), (24, 36, -24, 152, 255), 33


def documented_mutants() -> set[str]:
    """The mutants that docs/evidence/mutants.md lists: each is equivalent, or does no harm."""
    return {
        *re.findall(
            r"^\| `([^`]+)`", (ROOT / "docs" / "evidence" / "mutants.md").read_text(), re.MULTILINE
        )
    }


def load_verdicts(patterns: list[str]) -> dict[str, int | None]:
    """Return the exit code of each mutant of an area, by its name without `toolcatalog.`; None for
    one that did not run.
    """
    results = {}
    for meta in (ROOT / "mutants" / "src" / "toolcatalog").rglob("*.meta"):
        for name, code in json.loads(meta.read_text())["exit_code_by_key"].items():
            shortened = name.removeprefix("toolcatalog.")
            if any(fnmatchcase(shortened, pattern) for pattern in patterns):
                results[shortened] = code
    return dict(sorted(results.items()))


def run_area(area: str) -> list[str]:
    """Run the mutants of an area, print their numbers, and return the names of those that survive
    without a justification.
    """
    names = [f"toolcatalog.{pattern}" for pattern in MUTATED_AREAS[area]]
    jobs = ["--max-children", os.environ["JOBS"]] if "JOBS" in os.environ else []
    result = subprocess.run(
        [sys.executable, "-m", "mutmut", "run", *jobs, *names],
        cwd=ROOT,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if result.returncode:
        sys.exit(
            f"{result.stdout[-2000:]}\nmutmut did not start: the tests must pass before the source"
            " changes (above: the end of its output)"
        )
    all_values, existing = load_verdicts(MUTATED_AREAS[area]), documented_mutants()
    killed = [name for name, code in all_values.items() if code in (*KILLED, *TIMEOUT)]
    alive = [name for name, code in all_values.items() if name not in killed]
    not_reached = [name for name in alive if all_values[name] == NOT_REACHED]
    survived = {*alive} - {*not_reached}
    print(
        f"{area}: {len(all_values)} mutants, {len(killed)} killed, {len(not_reached)} not reached, "
        f"{len(survived - existing)} survived, {len(survived & existing)} justified",
        flush=True,
    )
    return [name for name in alive if name not in existing]


def main(areas: list[str]) -> int:
    """Run areas. Return 1 if a mutant survives without a justification, 2 for an unknown name."""
    if unknown := {*areas} - {*MUTATED_AREAS}:
        print(
            f"unknown area: {', '.join(sorted(unknown))}; use {', '.join(MUTATED_AREAS)}",
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
