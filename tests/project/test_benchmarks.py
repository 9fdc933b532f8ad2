"""The benchmark's figures for people: tables, plots and the page come from the results alone."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import http_tables, report, results, search, vector_search
from benchmarks.plots import render_plots
from benchmarks.table import Table
from benchmarks.tables import make_tables
from support.paths import ROOT
from toolcatalog.store.open import open_build


def run(rps: float, cpu: float, p99: float = 4.0, rounds: int = 3) -> dict[str, Any]:
    """The figures of a server whose rounds are all alike."""
    return {
        "rps": rps,
        "p50": 1.5,
        "p99": p99,
        "bytes": 3500.0,
        "cpu": cpu,
        "alone": 0.5,
        "connections": 16,
        "rounds": {"rps": [rps] * rounds, "cpu": [cpu] * rounds, "p99": [p99] * rounds},
    }


OURS, CEILING = run(1000.0, 100.0), run(2000.0, 80.0, p99=2.0)
PEER = run(50.0, 2500.0, rounds=2)


def row(operation: str, profile: str, queries: str, **changes: Any) -> dict[str, Any]:
    """A row of the HTTP benchmark."""
    return {
        "operation": operation,
        "profile": profile,
        "queries": queries,
        "distinct": 2000,
        "size": 1234,
        "faults": 0,
        "servers": {"ours": OURS, "ceiling": CEILING},
        **changes,
    }


WITH_PEERS = {"ours": OURS, "ceiling": CEILING, "datasette": PEER, "fastapi": PEER}
BUILT = {"seconds": 6.0, "peak": 150}
FIGURES: dict[str, Any] = {
    "machine": {part: {"cores": "2", "date": "2026-01-31"} for part in results.PARTS},
    "clients": {
        "rows": [
            {
                "client": "composio-client 1.43.0",
                "language": "python",
                "page": 20,
                "tools": 20_000,
                "faults": 0,
                "servers": {
                    "ours": {"seconds": 4.0, "cpu": 0.5},
                    "fastapi": {"seconds": 30.0, "cpu": 25.0},
                },
            }
        ]
    },
    "http": {
        "rows": [
            row("get", "httpx", "repeated", servers=WITH_PEERS),
            row("get", "plain", "repeated"),
            row("get", "browser", "repeated"),
            row("query", "httpx", "repeated", faults=3),
            row("query", "httpx", "new", servers=WITH_PEERS),
        ],
        "servers": {
            "ours": {"start": 0.3, "private": 40.0, "pss": 60.0},
            "datasette": {"start": 0.7, "private": 70.0, "pss": 75.0, "load": 2.0},
        },
    },
    "workers": {"reason": "not measurable on 2 cores"},
    "process": {
        "open": 0.25,
        "start": 310.0,
        "private": 30.0,
        "pss": 55.0,
        "store": {"get": 1.53},
        "application": {"get": 21.04},
    },
    "build": {
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
def saved_results(tmp_path: Path) -> results.Results:
    """Results of two sizes, saved and loaded."""
    for tools in (20_000, 1_000):
        for part in results.PARTS:
            results.save_part(tools, part, FIGURES[part], FIGURES["machine"][part], tmp_path)
    return results.load_results(tmp_path)


def named(loaded: results.Results, title: str) -> Table:
    """The table of this title."""
    return next(table for table in make_tables(loaded) if table.title == title)


def test_results_round_trip(saved_results: results.Results) -> None:
    """In parts, sorted by size."""
    assert ([*saved_results], saved_results[1_000]) == ([1_000, 20_000], FIGURES)


def test_real_clients_come_first(saved_results: results.Results) -> None:
    """In the first table, with ratios of wall time and server CPU."""
    table = make_tables(saved_results)[0]
    assert table.title == "Real clients, 1,000 tools"
    assert table.rows == [
        ["composio-client 1.43.0", "20,000 by 20", "4.00", "0.50", "30.0", "25.0", "7.50×", "50.0×"]
    ]


def test_different_listings_are_invalid(saved_results: results.Results) -> None:
    client = FIGURES["clients"]["rows"][0] | {"faults": 1}
    table = make_tables({1_000: {**saved_results[1_000], "clients": {"rows": [client]}}})[0]
    assert table.rows[0][2:] == ["INVALID: the lists differ", *["–"] * 5]


def test_load_table_compares_with_ceiling_targets_and_peers(saved_results: results.Results) -> None:
    """.80 of the ceiling by CPU meets .75, even with .50 by requests; 25 times a peer is enough for
    one peer and not for the other.
    """
    table = named(saved_results, "Load with the headers of httpx, 20,000 tools")
    assert dict(zip(table.header, table.rows[0], strict=True)) == {
        "operation": "get a tool",
        "queries": "repeated, 2,000",
        "rps": "1,000",
        "share by requests": "0.50",
        "by CPU": "0.80",
        "target": "≥ 0.75 met",
        "p50, ms": "1.50",
        "p99, ms": "4.00",
        "ceiling's p99, ms": "2.00",
        "body, bytes": "1,234",
        "× Datasette: by requests · by CPU": "20.0× · 25.0× (≥ 15 met)",
        "× FastAPI + SQLAlchemy: by requests · by CPU": "20.0× · 25.0× (≥ 30 MISSED)",
    }


def test_word_queries_have_their_own_peer_target(saved_results: results.Results) -> None:
    new = named(saved_results, "Load with the headers of httpx, 20,000 tools").rows[2]
    assert (new[:2], new[5]) == (["query of 1 to 4 words", "new, 2,000"], "≥ 0.15 met")
    assert new[-2:] == ["20.0× · 25.0× (≥ 10 met)"] * 2


def test_wrong_responses_invalidate_a_row(saved_results: results.Results) -> None:
    """A row with errors is marked; a service that was not measured has a dash."""
    repeated = named(saved_results, "Load with the headers of httpx, 20,000 tools").rows[1]
    assert repeated[5] == "INVALID: 3 wrong responses"
    assert repeated[-2:] == ["–", "–"]


def test_shares_are_medians_of_round_ratios() -> None:
    """Compared pair by pair, so that a disturbed round does not count."""
    ours = OURS | {"rounds": {"rps": [100.0, 900.0, 30.0], "cpu": [10.0, 20.0, 500.0]}}
    ceiling = CEILING | {"rounds": {"rps": [200.0, 1000.0, 1000.0], "cpu": [5.0, 10.0, 10.0]}}
    assert http_tables.speed_ratios(ours, ceiling) == (0.5, 0.5)


def test_each_client_has_a_column(saved_results: results.Results) -> None:
    """Without compression the target is .05 lower; a browser has none."""
    get, query, new = named(saved_results, "Load by client, 20,000 tools").rows
    share = "0.50 · 0.80"
    assert get[2:] == [f"{share} (≥ 0.75 met)", "–", share, f"{share} (≥ 0.70 met)"]
    assert query[2:] == [f"{share} (INVALID: 3 wrong responses)", "–", "–", "–"]
    assert new[1] == "new"


def test_targets_belong_to_one_size(saved_results: results.Results) -> None:
    first = named(saved_results, "Load with the headers of httpx, 1,000 tools").rows[0]
    assert (first[5], first[-1]) == ("–", "20.0× · 25.0×")


def test_other_targets(saved_results: results.Results) -> None:
    """p99 of get, start and memory of a million tools, and two workers."""
    million = {"machine": {}, "process": FIGURES["process"] | {"private": 100.5}}
    measured = {"machine": {}, "workers": {"one": 10.0, "two": 19.0, "speedup": 1.9}}
    table = named(
        {**saved_results, 1_000_000: million, 20_000: {**saved_results[20_000], **measured}}, OTHER
    )
    assert table.rows == [
        ("p99 of get, 20,000 tools, × the ceiling's", "2.0", "≤ 3 met"),
        ("first response after start, ms, 1,000,000 tools", "310", "≤ 600 met"),
        ("private memory after start, MB, 1,000,000 tools", "100", "≤ 100 MISSED"),
        ("two workers, 1,000 tools, × the requests of one", "–", "not measurable on 2 cores"),
        ("two workers, 20,000 tools, × the requests of one", "1.90", "≥ 1.8 met"),
    ]


OTHER = "Other targets"


def test_build_table_has_ratios_to_the_baseline(saved_results: results.Results) -> None:
    assert named(saved_results, "Builds").rows[1] == [
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


@pytest.mark.parametrize(("peak", "target"), [(2_000, "≤ 2,000 met"), (2_001, "≤ 2,000 MISSED")])
def test_memory_has_a_target_for_a_million_files(peak: int, target: str) -> None:
    """The largest of all builds counts."""
    building = FIGURES["build"] | {"files": 1_000_000, "site": BUILT | {"peak": peak}}
    (table,) = make_tables({1_000_000: {"machine": {}, "build": building}})
    assert table.rows[0][-4:] == ["150", f"{peak:,}", "150", target]


def test_sizes_are_columns(saved_results: results.Results) -> None:
    """A row for each measured figure."""
    table = named(saved_results, "By number of tools")
    assert table.header == ["", "1,000", "20,000"]
    assert ["get in the store, µs", "1.53", "1.53"] in table.rows
    assert not [row for row in table.rows if row[0].startswith("sentence in the store")]


def test_tables_are_aligned(saved_results: results.Results) -> None:
    """As Markdown and at a terminal."""
    for table in make_tables(saved_results):
        assert len({line.count("|") for line in table.markdown().splitlines()}) == 1
        assert len({len(line) for line in table.terminal().splitlines()[1:]}) == 1


def test_plots_are_svg_for_light_and_dark(saved_results: results.Results) -> None:
    """With a point per size and a name per line."""
    drawn = render_plots(saved_results)
    assert [*drawn] == ["clients.svg", "latency.svg", "memory.svg", "build.svg"]
    for text in drawn.values():
        assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own text
        assert "prefers-color-scheme: dark" in text
    assert ">toolcatalog<" in drawn["memory.svg"]
    # two sizes in two panels, and the legend
    assert drawn["memory.svg"].count("<circle") == 2 * 2 + 1


def test_missing_results_are_not_drawn(tmp_path: Path) -> None:
    results.save_part(1_000, "build", FIGURES["build"], {}, tmp_path)
    assert [*render_plots(results.load_results(tmp_path))] == ["build.svg"]
    assert render_plots({}) == {}


def test_page_has_every_table_and_plot(saved_results: results.Results, tmp_path: Path) -> None:
    report.write_report(saved_results, tmp_path)
    page = (tmp_path / "performance.md").read_text()
    assert [
        table.title for table in make_tables(saved_results) if f"## {table.title}\n" not in page
    ] == []
    assert all(
        (tmp_path / "plots" / name).is_file() and f"(plots/{name})" in page
        for name in render_plots(saved_results)
    )
    assert "- cores: 2" in page


def test_busy_machine_is_reported(saved_results: results.Results) -> None:
    """If other processes used more than a tenth of it."""
    page = report.render_page(
        {
            1_000: {
                **saved_results[1_000],
                "http": {**FIGURES["http"], "busy": 0.4},
                "process": {**FIGURES["process"], "busy": 0.02},
            }
        }
    )
    assert [line for line in page.splitlines() if "busy" in line] == [
        "**The machine was busy** when http of 1,000 tools was measured: others used 40% of it.",
    ]


def test_committed_documents_match_the_results() -> None:
    """`python -m benchmarks.report` writes the same."""
    loaded = results.load_results()
    assert (ROOT / "docs" / "explanation" / "performance.md").read_text() == report.render_page(
        loaded
    )
    assert {
        path.name: path.read_text() for path in (ROOT / "docs" / "explanation" / "plots").glob("*")
    } == render_plots(loaded)


def test_missing_requirement_is_reported() -> None:
    """Exit code 2 before anything is generated."""
    command = [sys.executable, "-m", "benchmarks", "--sizes", "1000"]
    result = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1), (
        result.stderr
    )
    assert result.stderr.startswith("make bench needs ")


def test_missing_query_sets_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By `make search-bench`, which writes nothing then."""
    monkeypatch.setattr(search, "SETS", ROOT.parent / "shared" / "nowhere")
    monkeypatch.setattr(search, "PAGE", tmp_path / "search.md")
    monkeypatch.setattr(sys, "argv", ["search"])
    assert search.main() == 2
    assert (
        capsys.readouterr().err
        == "make search-bench needs the sets of queries in shared/nowhere, next to "
        "this repository\n"
    )
    assert [*tmp_path.iterdir()] == []


def test_figures_are_replaced_between_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- /x -->\nb <!-- y -->\n<!-- /y -->\n")
    search.replace_section(page, "x", "new")
    assert page.read_text() == "a\n<!-- x -->\nnew\n<!-- /x -->\nb <!-- y -->\n<!-- /y -->\n"


@pytest.mark.deep
def test_store_timings(shipped_build: Path) -> None:
    """A median per kind of query, and a 95th percentile that is not smaller."""
    speeds = search.measure_speeds(open_build(shipped_build))
    assert all(0 < median <= most for median, most in speeds.values())


def test_vector_search_is_compared_with_an_exact_one() -> None:
    draw = np.random.default_rng(1)
    tools = draw.normal(size=(300, 384)).astype(np.float32)
    tools /= np.linalg.norm(tools, axis=1, keepdims=True)
    figures = vector_search.measure_vectors(tools, [tools[:1], tools[5:6]], 2_000)
    assert figures.recall > 0.9
    assert 0 < figures.median <= figures.high
    row = search.vector_table({2_000: figures._replace(recall=0.9, median=1)}).splitlines()[-1]
    assert row.startswith("| 2,000 | 0.900 | ≥ 0.98 MISSED | 1.00 / ")
    assert row.endswith(" | ≤ 3 met |")
