"""The benchmark's figures for people: tables, plots and the page come from the results alone."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from benchmarks import asking, paths, report, results, searching
from benchmarks.plots import render_plots
from benchmarks.table import Table, make_tables
from support.paths import ROOT
from toolcatalog.store.open import open_build

RUN = {
    "rps": 1000.0,
    "p50": 1.5,
    "p99": 4.0,
    "bytes": 3500.0,
    "cpu": 100.0,
    "alone": 0.5,
    "connections": 16,
    "rounds": [1000.0],
}
CEILING = RUN | {"rps": 2000.0, "p99": 2.0, "cpu": 50.0}
PEER = RUN | {"rps": 50.0, "cpu": 2500.0, "alone": 20.0}
BUILT = {"seconds": 6.0, "peak": 150}
FIGURES: dict[str, Any] = {
    "machine": {part: {"cores": "2", "date": "2026-01-31"} for part in results.PARTS},
    "http": {
        "operations": {
            "get": {
                "faults": 0,
                "body": 3500,
                "ours": RUN,
                "ceiling": CEILING,
                "datasette": PEER,
                "fastapi": PEER,
            },
            "query": {
                "faults": 3,
                "body": 70000,
                "ours": RUN | {"rps": 1200.0},
                "ceiling": CEILING,
            },
        },
        "servers": {
            "ours": {"start": 0.3, "private": 40.0, "pss": 60.0},
            "datasette": {"start": 0.7, "private": 70.0, "pss": 75.0, "load": 2.0},
        },
    },
    "inside": {
        "open": 0.25,
        "start": 310.0,
        "private": 30.0,
        "pss": 55.0,
        "store": {"get": 1.53},
        "application": {"get": 21.04},
    },
    "building": {
        "files": 20000,
        "pages": 20103,
        "yaml.load": 12.0,
        "index": BUILT,
        "site": BUILT | {"seconds": 18.0, "peak": 210},
        "unchanged": BUILT | {"seconds": 0.31},
        "one changed": BUILT | {"seconds": 1.02, "pages": 3},
        "one changed, indexes only": BUILT | {"seconds": 0.52},
    },
}


@pytest.fixture
def kept(tmp_path: Path) -> results.Results:
    """Results of two sizes, kept and read again."""
    for tools in (20_000, 1_000):
        for part in results.PARTS:
            results.save_part(tools, part, FIGURES[part], FIGURES["machine"][part], tmp_path)
    return results.load_results(tmp_path)


def named(kept: results.Results, title: str) -> Table:
    """The table of this title."""
    return next(table for table in make_tables(kept) if table.title == title)


def test_results_come_back_as_they_were_kept(kept: results.Results) -> None:
    """Part by part, the smallest size first."""
    assert ([*kept], kept[1_000]) == ([1_000, 20_000], FIGURES)


def test_the_http_table_holds_ours_against_ceiling_targets_and_peers(kept: results.Results) -> None:
    """Half of the ceiling misses 0.90; 25 times a peer's processor time is enough for one peer and
    not for the other.
    """
    row = dict(
        zip(
            named(kept, "Over HTTP, 20,000 tools").header,
            named(kept, "Over HTTP, 20,000 tools").rows[0],
            strict=True,
        )
    )
    assert row == {
        "operation": "get a tool",
        "ours, rps": "1,000",
        "ceiling, rps": "2,000",
        "ratio": "0.50",
        "target": "≥ 0.90 MISSED",
        "by CPU": "0.50",
        "p50, ms": "1.50",
        "p99, ms": "4.00",
        "ceiling's p99, ms": "2.00",
        "Datasette: rps · ours faster · by CPU": "50.0 · 20.0× · 25.0×",
        "FastAPI + SQLAlchemy: rps · ours faster · by CPU": "50.0 · 20.0× · 25.0× MISSED",
    }


def test_wrong_answers_are_told(kept: results.Results) -> None:
    """An operation with faults is marked, whatever its figures; one that a peer lacks has a dash
    there.
    """
    row = named(kept, "Over HTTP, 20,000 tools").rows[1]
    assert row[0] == "query of 1 to 3 words"
    assert row[4:] == ["INVALID: 3 wrong answers", "0.50", "1.50", "4.00", "2.00", "–", "–"]


def test_targets_are_for_one_size(kept: results.Results) -> None:
    """1,000 tools are held against no target."""
    assert named(kept, "Over HTTP, 1,000 tools").rows[0][4] == "–"


def test_the_build_table_has_ratios_to_the_yardstick(kept: results.Results) -> None:
    """6 s are half of 12 s and 18 s one and a half."""
    assert named(kept, "Building").rows[1] == [
        *(
            "20,000",
            "6.00",
            "0.50",
            "≤ 0.5 met",
            "18.0",
            "1.50",
            "≤ 1.2 MISSED",
            "0.31",
            "≤ 0.4 met",
        ),
        *("0.52", "≤ 1 met", "1.02", "≤ 1 MISSED"),
        *("3 of 20,103", "150", "210", "150", "–"),
    ]


@pytest.mark.parametrize(("peak", "told"), [(2_000, "≤ 2,000 met"), (2_001, "≤ 2,000 MISSED")])
def test_memory_has_a_target_for_a_million_files(peak: int, told: str) -> None:
    """Of all builds the largest one counts."""
    building = FIGURES["building"] | {"files": 1_000_000, "site": BUILT | {"peak": peak}}
    (table,) = make_tables({1_000_000: {"machine": {}, "building": building}})
    assert table.rows[0][-4:] == ["150", f"{peak:,}", "150", told]


def test_sizes_stand_side_by_side(kept: results.Results) -> None:
    """A row for each figure that there is, a column for each size; what was not measured has no
    row.
    """
    table = named(kept, "By number of tools")
    assert table.header == ["", "1,000", "20,000"]
    assert ["get in the store, µs", "1.53", "1.53"] in table.rows
    assert not [row for row in table.rows if row[0].startswith("sentence in the store")]


def test_every_table_has_a_form_for_each_reader(kept: results.Results) -> None:
    """Markdown has as many bars in each line; on a terminal, figures end below one another."""
    for table in make_tables(kept):
        assert len({line.count("|") for line in table.markdown().splitlines()}) == 1
        assert len({len(line) for line in table.terminal().splitlines()[1:]}) == 1


def test_plots_are_pictures_for_light_and_dark(kept: results.Results) -> None:
    """Each is an SVG that can be parsed, with a point for each size, a name for each line, and
    colours for both grounds.
    """
    drawn = render_plots(kept)
    assert [*drawn] == ["latency.svg", "memory.svg", "build.svg"]
    for text in drawn.values():
        assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own text
        assert "prefers-color-scheme: dark" in text
    assert ">toolcatalog<" in drawn["memory.svg"]
    # two sizes in two panels, and the legend
    assert drawn["memory.svg"].count("<circle") == 2 * 2 + 1


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    """Where only builds were measured there is no other plot; where nothing was, there is none."""
    results.save_part(1_000, "building", FIGURES["building"], {}, tmp_path)
    assert [*render_plots(results.load_results(tmp_path))] == ["build.svg"]
    assert render_plots({}) == {}


def test_the_page_has_every_table_and_plot(kept: results.Results, tmp_path: Path) -> None:
    """All that was measured, and on what; every picture that it shows is there."""
    report.write_report(kept, tmp_path)
    page = (tmp_path / "performance.md").read_text()
    assert [table.title for table in make_tables(kept) if f"## {table.title}\n" not in page] == []
    assert all(
        (tmp_path / "plots" / name).is_file() and f"(plots/{name})" in page
        for name in render_plots(kept)
    )
    assert "p99 of get is 2.0 times the ceiling's (≤ 3 met)" in page
    assert "- cores: 2" in page


def test_a_busy_machine_is_told(kept: results.Results) -> None:
    """Figures that were taken while others used more than a tenth of the machine are named; others
    are not.
    """
    told = report.render_page(
        {
            1_000: {
                **kept[1_000],
                "http": {**FIGURES["http"], "busy": 0.4},
                "inside": {**FIGURES["inside"], "busy": 0.02},
            }
        }
    )
    assert [line for line in told.splitlines() if "busy" in line] == [
        "**The machine was busy** when http of 1,000 tools was measured: others used 40% of it.",
    ]


def test_the_documents_are_made_from_the_results_that_are_kept() -> None:
    """docs/performance.md and docs/plots/ are what `python -m benchmarks.report` makes, to the
    byte.
    """
    found = results.load_results()
    assert (ROOT / "docs" / "performance.md").read_text() == report.render_page(found)
    assert {
        path.name: path.read_text() for path in (ROOT / "docs" / "plots").glob("*")
    } == render_plots(found)


def test_a_machine_that_lacks_something_is_told_in_one_line() -> None:
    """Without the programs that it needs, the benchmark ends with 2 before it makes anything."""
    command = [sys.executable, "-m", "benchmarks", "--sizes", "1000"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith("make bench needs ")


def test_questions_are_the_same_for_everybody(tmp_path: Path) -> None:
    """Drawn from the rows by a seed, and spelled for each server: here a filter, a page and a query
    at two of them.
    """
    rows = tmp_path / "rows.jsonl"
    tool = {
        "name": "List users",
        "description": "Every one.",
        "toolkit": {"slug": "ab"},
        "tags": ["users"],
    }
    rows.write_text(
        "".join(
            json.dumps({"slug": f"AB_{number:02}", **tool}, separators=(",", ":")) + "\n"
            for number in range(50)
        )
    )
    sample = paths.load_sample(rows)
    for operation in paths.OPERATIONS:
        assert paths.draw_queries(operation, sample) == paths.draw_queries(operation, sample)
    assert (
        paths.to_api_path(paths.page_query(sample, 20, 2))
        == "/api/v3/tools?limit=20&cursor=MjoyMA%3D%3D"
    )
    assert paths.to_datasette_path(paths.page_query(sample, 20, 2)).endswith("&_next=AB_19")
    asked = paths.BenchmarkQuery(toolkit="ab", tags=("users", "news"))
    assert (
        paths.to_api_path(asked)
        == "/api/v3/tools?limit=20&toolkit_slug=ab&tags=users%2Cnews&include_deprecated=false"
    )
    assert "toolkit=ab&is_deprecated=0&_where=exists" in paths.to_datasette_path(asked)
    assert paths.to_datasette_path(paths.BenchmarkQuery(query="list users")).endswith(
        "q=%22list%22%20OR%20%22users%22"
    )


@pytest.mark.parametrize(
    "body",
    ['{"slug": "A"}', '{"items": [{"slug": "A"}]}', '[{"slug": "A"}]', '{"rows": [{"slug": "A"}]}'],
)
def test_tools_are_found_in_every_servers_answer(body: str) -> None:
    """A tool, a page, rows, and rows in an object."""
    assert asking.extract_slugs(body.encode()) == ["A"]


def test_without_the_sets_of_queries_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make search-bench` needs what lies beside the repository, and touches nothing without it."""
    monkeypatch.setattr(searching, "SETS", ROOT.parent / "shared" / "nowhere")
    monkeypatch.setattr(searching, "PAGE", tmp_path / "search.md")
    monkeypatch.setattr(sys, "argv", ["searching"])
    assert searching.main() == 2
    assert (
        capsys.readouterr().err
        == "make search-bench needs the sets of queries in shared/nowhere, beside this repository\n"
    )
    assert [*tmp_path.iterdir()] == []


def test_figures_go_between_their_marks(tmp_path: Path) -> None:
    """All else of the page stays."""
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- /x -->\nb <!-- y -->\n<!-- /y -->\n")
    searching.replace_section(page, "x", "new")
    assert page.read_text() == "a\n<!-- x -->\nnew\n<!-- /x -->\nb <!-- y -->\n<!-- /y -->\n"


@pytest.mark.deep
def test_a_store_is_timed(shipped_build: Path) -> None:
    """Each kind of query has a median, and a 95th percentile that is no smaller."""
    found = searching.measure_speeds(open_build(shipped_build))
    assert all(0 < median <= most for median, most in found.values())
