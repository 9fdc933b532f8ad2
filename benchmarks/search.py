"""`python -m benchmarks.search` writes search quality and speed to docs/explanation/search.md.

The sets of queries are next to this repository, not in it. Their own converter writes each as a
catalog, and their own evaluator scores the server over HTTP. Speed is measured in the process, with
the synthetic catalogs of `make bench`.
"""

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from benchmarks import machine, relevance, servers, vector_search
from benchmarks.__main__ import cached_build, report_progress
from benchmarks.table import NONE, format_target
from toolcatalog.search import analysis
from toolcatalog.search.embeddings import encoder
from toolcatalog.search.embeddings.encoder import Vectors
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Filters, Store, VersionPins

SETS = servers.ROOT.parent / "shared" / "searchbench"
PAGE = servers.ROOT / "docs" / "explanation" / "search.md"
_OWN = ("azuremcp", "livemcp", "metatool", "sealtools", "bfcl", "apibank-kw")
_QUERY_COUNT = 400
_VECTOR_QUERIES = 200
_COMMON_TERMS = 60  # words, the commonest of a catalog
_PAGE = 20
_ROUNDS = 7
_LONGEST_QUERY = 4000  # characters, as the interface says
SENTENCE, SHORT = "15 consecutive words of a tool's text", "2 words without stop words"
SPEED_TARGETS = {  # milliseconds, by number of tools and kind of query
    (20_000, SENTENCE): 0.35,
    (20_000, SHORT): 0.12,
    (1_000_000, SENTENCE): 5.0,
    (1_000_000, SHORT): 1.5,
}


def main() -> int:
    """Measure; return 2 if the sets are missing."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search",
        description="Measure search, and fill in docs/explanation/search.md.",
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="*",
        default=[20_000],
        metavar="TOOLS",
        help="Catalogs to measure the speed with.",
    )
    sizes = parser.parse_args().sizes
    if not (SETS / "evaluate.py").exists():
        report_progress(
            "make search-bench needs the sets of queries in "
            f"{SETS.relative_to(servers.ROOT.parent)}, next to this repository"
        )
        return 2
    with tempfile.TemporaryDirectory() as folder:
        own = [_evaluate_set(Path(folder), name, "own", [name]) for name in _OWN]
        merged = _evaluate_set(Path(folder), "merged", "merged", _OWN)
        replace_section(PAGE, "figures", _quality_table(own, merged))
        times = _measure_overhead(Path(folder) / "merged-words", Path(folder) / "merged-meaning")
        replace_section(PAGE, "meaning", _overhead_table(times))
        if sizes:
            tools, queries = _read_vectors(Path(folder) / "merged-meaning")
            figures = {size: vector_search.measure_vectors(tools, queries, size) for size in sizes}
            replace_section(PAGE, "vectors", vector_table(figures))
        shipped = _measure_shipped(Path(folder))
        replace_section(PAGE, "shipped", _shipped_table(shipped))
        replace_section(PAGE, "targets", _targets_table(_find_figures(own, merged, times, shipped)))
    if sizes:
        replace_section(
            PAGE,
            "speed",
            speed_table(
                {tools: measure_speeds(open_build(cached_build(tools)[0])) for tools in sizes}
            ),
        )
    for mark in ("figures", "shipped", "meaning", "vectors", "speed", "targets"):
        print(_read_section(PAGE, mark))
    return 0


Rows = dict[str, list[str]]


class _ShippedRow(NamedTuple):
    """The relevance for the graded queries of some parts: how many, nDCG@10, right tool first."""

    parts: str
    size: int
    ndcg: relevance.Mean
    first: relevance.Mean


class Target(NamedTuple):
    """What a figure should be at least, or at most if it is a time."""

    name: str
    value: float
    is_time: bool = False

    def is_met(self, figure: float) -> bool:
        """Return whether the figure, as it is printed, is good enough."""
        return round(figure, 1) <= self.value if self.is_time else round(figure, 1) >= self.value


TARGETS = (
    Target("average of the five, own tools", 73.0),
    Target("average of the five, merged", 64.5),
    Target("apibank-kw, own tools", 80.0),
    Target("average of the five, own tools, with meaning", 76.5),
    Target("average of the five, merged, with meaning", 66.5),
    Target("shipped catalog, nDCG@10", 90.0),
    Target("shipped catalog, right tool first, %", 80.0),
    Target("what meaning adds, median, ms", 8.0, is_time=True),
)


def _evaluate_set(folder: Path, name: str, setting: str, sets: Sequence[str]) -> tuple[Rows, Rows]:
    """Return the evaluator's rows for one set of tools, by words and by words and meaning.

    Rows have the name of their set of queries, and numbers as the evaluator prints them.
    """
    catalog = folder / name
    _run(SETS / "to_catalog.py", name, catalog)
    words, meaning = (
        _evaluate(catalog, folder / f"{name}-{how}", how, setting, sets)
        for how in ("words", "meaning")
    )
    return words, meaning


def _evaluate(catalog: Path, build: Path, how: str, setting: str, sets: Sequence[str]) -> Rows:
    report_progress(f"{catalog.name}, by {how}: build, serve, evaluate ...")
    _run(
        "-m",
        "toolcatalog",
        "build",
        "--catalog",
        catalog,
        "--out",
        build,
        "--no-site",
        *(["--semantic"] if how == "meaning" else []),
    )
    keys = build.with_name(f"{build.name}-keys.json")
    key = servers.create_key(keys)
    with servers.start_server(
        servers.server_command(build, keys), build.with_name(f"{build.name}-log")
    ) as server:
        options = (
            "--endpoint",
            server.url,
            "--api-key",
            key,
            "--setting",
            setting,
            "--sets",
            ",".join(sets),
        )
        table = _run(SETS / "evaluate.py", *options)
    rows = (re.sub(r"[\[\],]", " ", line).split() for line in table.splitlines())
    return {row[0]: row[1:] for row in rows if len(row) > 8}


def _run(*command: str | Path) -> str:
    arguments = [sys.executable, *map(str, command)]
    return subprocess.run(
        arguments,
        env=servers.subprocess_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def _quality_table(own: Sequence[tuple[Rows, Rows]], merged: tuple[Rows, Rows]) -> str:
    """Render the table of quality.

    The evaluator's columns are queries, nDCG@10 and its interval, and the same for recall and MRR.
    """
    rows = []
    for name, tables in zip(_OWN, own, strict=True):
        cells = [_ndcg(table[name]) for table in (*tables, *merged)]
        rows.append(f"| {name} | {tables[0][name][0]} | {' | '.join(cells)} |")
    wholes = [*map(_whole, merged)]
    cells = [
        *(
            _average([tables[how][name] for name, tables in zip(_OWN[:-1], own, strict=False)])
            for how in (0, 1)
        ),
        *map(_ndcg, wholes),
    ]
    rows.insert(
        5,
        (
            f"| **average of the five** | {wholes[0][0]} | "
            f"{' | '.join(f'**{cell}**' for cell in cells)} |"
        ),
    )
    head = (
        "| set | queries | own tools | with meaning | merged, 6,904 tools | with meaning |\n"
        "|---|---|---|---|---|---|"
    )
    return "\n".join([f"`make search-bench`, {_today()}:", "", head, *rows])


def _find_figures(
    own: Sequence[tuple[Rows, Rows]],
    merged: tuple[Rows, Rows],
    times: Mapping[str, Sequence[float]],
    shipped: Sequence[_ShippedRow],
) -> list[float]:
    """Return the figure of each of the TARGETS."""
    averages = [
        (
            _mean_ndcg([tables[how][name] for name, tables in zip(_OWN[:-1], own, strict=False)]),
            float(_whole(merged[how])[1]),
        )
        for how in (0, 1)
    ]
    keywords = float(own[-1][0][_OWN[-1]][1])
    return [
        *averages[0],
        keywords,
        *averages[1],
        shipped[-1].ndcg.value,
        shipped[-1].first.value,
        float(np.median(times["what meaning adds"])),
    ]


def _targets_table(figures: Sequence[float]) -> str:
    """Render the table of targets."""
    rows = [
        f"| {target.name} | {'≤' if target.is_time else '≥'} {target.value:.1f} | {figure:.1f} | "
        f"{'met' if target.is_met(figure) else 'MISSED'} |"
        for target, figure in zip(TARGETS, figures, strict=True)
    ]
    head = "| figure | target | measured | |\n|---|---|---|---|"
    return "\n".join([f"`make search-bench`, {_today()}:", "", head, *rows])


def _measure_shipped(folder: Path) -> list[_ShippedRow]:
    """Return the relevance for each part of the graded queries, and for those with targets."""
    _run("-m", "toolcatalog", "build", "--out", folder / "shipped", "--no-site")
    store, queries = open_build(folder / "shipped"), relevance.load_queries()
    rows = []
    for parts in (*((part,) for part in relevance.PARTS), relevance.TARGET_PARTS):
        chosen = [query for query in queries if query.part in parts]
        result = relevance.measure_relevance(store, chosen)
        ndcg, first = map(relevance.bootstrap_mean, (result.ndcg, result.is_first_right))
        rows.append(_ShippedRow(" and ".join(parts), len(chosen), ndcg, first))
    return rows


def _shipped_table(shipped: Sequence[_ShippedRow]) -> str:
    """Render the table of the graded queries for the shipped catalog."""
    rows = [f"| {row.parts} | {row.size} | {row.ndcg} | {row.first} |" for row in shipped]
    head = "| queries | number | nDCG@10 | right tool first, % |\n|---|---|---|---|"
    return "\n".join([f"`make search-bench`, {_today()}:", "", head, *rows])


def _average(rows: Sequence[Sequence[str]]) -> str:
    spread = np.sqrt(sum((float(row[3]) - float(row[2])) ** 2 for row in rows)) / len(rows) / 2
    return f"{_mean_ndcg(rows):.1f} ± {spread:.1f}"


def _mean_ndcg(rows: Sequence[Sequence[str]]) -> float:
    return float(np.mean([float(row[1]) for row in rows]))


def _whole(table: Rows) -> list[str]:
    """Return the row of the average over all sets."""
    return next(row for name, row in table.items() if name.startswith("MACRO"))


def _measure_overhead(words: Path, meaning: Path) -> dict[str, list[float]]:
    """Return the time of each query without and with meaning, and the difference, in ms.

    Each query runs for the first time.
    """
    lines = (SETS / "merged" / "queries.dev.tsv").read_text().splitlines()
    queries = [text for line in lines if len(text := line.split("\t")[1]) <= _LONGEST_QUERY]
    with machine.keep_cores_awake():
        without, both = (
            [_time_query(store, Filters(query=query)) for query in queries]
            for store in map(open_build, (words, meaning))
        )
    added = np.subtract(both, without).tolist()
    return {"words": without, "words and meaning": both, "what meaning adds": added}


def _overhead_table(times: Mapping[str, Sequence[float]]) -> str:
    """Render the table of what meaning adds to the time of a new query."""
    head = "| each query for the first time | median | 95th percentile |\n|---|---|---|"
    cells = "\n".join(
        f"| {name} | {np.percentile(column, 50):.1f} | {np.percentile(column, 95):.1f} |"
        for name, column in times.items()
    )
    about = f"milliseconds in the server, {len(times['words']):,} queries, 6,904 tools"
    return f"`make search-bench`, {_today()}: {about}.\n\n{head}\n{cells}"


def _read_vectors(meaning: Path) -> tuple[Vectors, list[Vectors]]:
    """Return the vectors of the tools of a build, and the mean vectors of some queries."""
    count = open_build(meaning).version_count
    tools = vector_search.read_tools(meaning / "current" / snapshot_format.VECTORS, count)
    lines = (SETS / "merged" / "queries.dev.tsv").read_text().splitlines()
    chosen = lines[:: max(1, len(lines) // _VECTOR_QUERIES)][:_VECTOR_QUERIES]
    texts = [line.split("\t")[1] for line in chosen]
    encode = encoder.load_encoder().encode_query
    return tools, [encode(text[:_LONGEST_QUERY])[-1:] for text in texts]


def vector_table(figures: Mapping[int, vector_search.VectorFigures]) -> str:
    """Render the table of vector search, with the targets."""
    recall_target, time_target = vector_search.RECALL_TARGET, vector_search.TIME_TARGET
    rows = [
        f"| {size:,} | {row.recall:.3f} | "
        f"{format_target(row.recall >= recall_target, f'≥ {recall_target:g}', size, size)} | "
        f"{row.median:.2f} / {row.high:.2f} | "
        f"{format_target(row.median <= time_target, f'≤ {time_target:g}', size, size)} |"
        for size, row in figures.items()
    ]
    command = f'`make search-bench SIZES="{" ".join(map(str, figures))}"`'
    about = (
        f"{command}, {_today()}: mixtures of the vectors of the 6,904 tools,\n"
        f"and {_VECTOR_QUERIES} of the queries; milliseconds in the process, "
        "median / 95th percentile."
    )
    head = "| vectors | recall@100 | target | milliseconds | target |\n|---|---|---|---|---|"
    return "\n".join([about, "", head, *rows])


def _ndcg(row: Sequence[str]) -> str:
    return f"{float(row[1]):.1f} ± {_interval_half_width(row):.1f}"


def _interval_half_width(row: Sequence[str]) -> float:
    return (float(row[3]) - float(row[2])) / 2


def measure_speeds(store: Store) -> dict[str, tuple[float, float]]:
    """Return the median and the 95th percentile of each kind of query, in milliseconds.

    A query is to match, to rank, and to select a page of 20. It runs several times, and its
    fastest time counts.
    """
    draw = random.Random(1)
    numbers = [int(number) for number in store.search(Filters(), VersionPins()).tool_ids]
    tools = [
        orjson.loads(store.read_document(draw.choice(numbers))[0]) for _ in range(_QUERY_COUNT)
    ]
    texts = [f"{tool['name']}. {tool['description']}" for tool in tools]
    words = [word.spelling for text in texts for word in analysis.extract_words(text)]
    common = [word for word, _ in Counter(words).most_common(_COMMON_TERMS)]
    toolkit = Filters(toolkits=(tools[0]["toolkit"]["slug"],))
    queries_by_kind = {
        SENTENCE: [_draw_phrase(draw, text, 15) for text in texts],
        f"15 of the {_COMMON_TERMS} most common words without stop words": [
            " ".join(draw.sample(common, 15)) for _ in range(_QUERY_COUNT)
        ],
        SHORT: [" ".join(draw.sample(words, 2)) for _ in range(_QUERY_COUNT)],
    }
    kinds = [(kind, Filters(), queries) for kind, queries in queries_by_kind.items()]
    kinds.insert(1, ("the same, in one toolkit", toolkit, next(iter(queries_by_kind.values()))))
    speeds = {}
    with machine.keep_cores_awake():
        for kind, filters, queries in kinds:
            times = np.min(
                [
                    [_time_query(store, filters._replace(query=query)) for query in queries]
                    for _ in range(_ROUNDS)
                ],
                0,
            )
            speeds[kind] = (float(np.percentile(times, 50)), float(np.percentile(times, 95)))
    return speeds


def _draw_phrase(draw: random.Random, text: str, count: int) -> str:
    """Draw `count` consecutive words of a text; all of them if it has fewer."""
    words = text.split()
    first = draw.randrange(max(1, len(words) - count))
    return " ".join(words[first : first + count])


def _time_query(store: Store, filters: Filters) -> float:
    start = time.perf_counter()
    store.select_page(store.search(filters, VersionPins()), "relevance", True, 0, _PAGE)
    return 1000 * (time.perf_counter() - start)


def speed_table(sizes: Mapping[int, Mapping[str, tuple[float, float]]]) -> str:
    """Render the table of speed, with a column of times and one of targets for each size."""
    head = "".join(f" {tools:,} tools | target |" for tools in sizes)
    rows = [
        f"| {kind} |"
        + "".join(
            f" {speeds[kind][0]:.2f} / {speeds[kind][1]:.2f} |"
            f" {_format_speed_target(tools, kind, speeds[kind][0])} |"
            for tools, speeds in sizes.items()
        )
        for kind in next(iter(sizes.values()))
    ]
    command = f'`make search-bench SIZES="{" ".join(map(str, sizes))}"`'
    about = (
        f"{command}, {_today()}: milliseconds in the server, median / 95th percentile. Each "
        f"query runs {_ROUNDS} times, and its fastest time counts. Targets are for the median."
    )
    return f"{about}\n\n| query |{head}\n|---|{'---|---|' * len(sizes)}\n" + "\n".join(rows)


def _format_speed_target(tools: int, kind: str, median: float) -> str:
    target = SPEED_TARGETS.get((tools, kind))
    return (
        NONE if target is None else format_target(median <= target, f"≤ {target:g}", tools, tools)
    )


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def _read_section(page: Path, mark: str) -> str:
    return page.read_text().partition(f"<!-- {mark} -->")[2].partition(f"<!-- /{mark} -->")[0]


def replace_section(page: Path, mark: str, text: str) -> None:
    """Replace the text between the two comments that mark a section of a page."""
    before, after = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    head, _, rest = page.read_text().partition(before)
    page.write_text(f"{head}{before}\n{text}\n{after}{rest.partition(after)[2]}")


if __name__ == "__main__":
    sys.exit(main())
