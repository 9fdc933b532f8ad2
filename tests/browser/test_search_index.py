"""The index of the site's search, run by node: sentences, synonyms and typing errors."""

import csv
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.paths import DATA, ROOT
from support.site_pages import require

RUNNER = Path(__file__).with_name("search-index.cjs")
SCRIPT = ROOT / "src" / "toolcatalog" / "site" / "scripts" / "search-index.js"
RELEVANT = "3"  # the highest grade of `queries.tsv`


def run_search(request: dict[str, Any], site: Path = ROOT) -> list[list[str]]:
    """Return the result of `search-index.cjs`: for each query or word, what it stands for."""
    node = shutil.which("node")
    require(node is not None, "node is not installed")
    result = subprocess.run(
        [str(node), RUNNER, SCRIPT, site],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    results: list[list[str]] = json.loads(result.stdout)
    return results


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("isue", ["issue"]),
        ("issue", ["issue"]),
        ("refnud", ["refund"]),
        ("back", []),  # not `hack`: the first letter is never a typing error
        ("rhannel", []),
        ("pge", []),  # short words have no typing errors
        ("form", ["format"]),  # not `from`: the catalog knows a word that begins like this
        ("channels", ["channel"]),
    ],
)
def test_typing_errors(word: str, expected: list[str]) -> None:
    """One wrong letter, but not the first, in words of four letters that the catalog lacks."""
    vocabulary = sorted(["issue", "refund", "hack", "channel", "page", "format", "from"])
    assert run_search({"words": [word], "vocabulary": vocabulary}) == [expected]


def test_queries_of_people_find_their_tools(shipped_build: Path) -> None:
    """Most graded queries of the shipped catalog have a best tool first, nearly all among five."""
    with (DATA / "search" / "queries.tsv").open(newline="") as file:
        rows = [(row[1], row[2:]) for row in csv.reader(file, delimiter="\t")]
    results = run_search({"queries": [query for query, _ in rows]}, shipped_build.parent / "site")
    best = [
        {slug for slug, _, grade in (one.partition("=") for one in grades) if grade == RELEVANT}
        for _, grades in rows
    ]
    first = sum(
        slugs[:1] != [] and slugs[0] in right for slugs, right in zip(results, best, strict=True)
    )
    among_five = sum(bool(right & {*slugs[:5]}) for slugs, right in zip(results, best, strict=True))
    assert len(rows) >= 120
    assert first >= 0.65 * len(rows)
    assert among_five >= 0.85 * len(rows)
