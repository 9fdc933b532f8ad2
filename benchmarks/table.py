"""Results to tables, and a table to lines for a terminal or for Markdown. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.paths import OPERATIONS, Operation
from benchmarks.results import Results

TARGET_SIZE = 20_000  # tools, or files: targets are for this size
P99_TARGET = 3.0  # times the ceiling's p99, for get
# times yaml.load twice, seconds twice
INDEX_TARGET, SITE_TARGET, UNCHANGED_TARGET, CHANGED_TARGET = 0.5, 1.2, 0.4, 1.0
MOST_FILES, PEAK_TARGET = 1_000_000, 2_000  # MB, for so many files
PEER_TARGETS = {"datasette": 15, "fastapi": 30}  # times our processor time
PEERS = {"datasette": "Datasette", "fastapi": "FastAPI + SQLAlchemy"}
COLD_KINDS = ("first page", "deep page", "page by name", "query")  # see `benchmarks.cold`
_NONE = "–"

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, the names of the columns, and rows of text. The first column is for words, the
    others for figures.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table for a document."""
        rule = ["---", *["---:"] * (len(self.header) - 1)]
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.header, rule, *self.rows))

    def terminal(self) -> str:
        """The table for a terminal, with its heading."""
        widths = [
            max(len(row[column]) for row in (self.header, *self.rows))
            for column in range(len(self.header))
        ]
        lines = [
            "  ".join(
                f"{cell:{'<' if not column else '>'}{widths[column]}}"
                for column, cell in enumerate(row)
            )
            for row in self.rows
        ]
        head = "  ".join(
            f"{cell:{'<' if not column else '>'}{widths[column]}}"
            for column, cell in enumerate(self.header)
        )
        return "\n".join(line.rstrip() for line in (self.title, head, *lines))


def make_tables(results: Results) -> list[Table]:
    """All tables: over HTTP by size, then what is compared between sizes."""
    over_http = [
        _http_table(tools, found["http"]) for tools, found in results.items() if "http" in found
    ]
    whole = [make(results) for make in (_size_table, _build_table, _peer_table)]
    return [table for table in (*over_http, *whole) if table.rows]


def _http_table(tools: int, http_results: Figures) -> Table:
    peers = [f"{title}: rps · ours faster · by CPU" for title in PEERS.values()]
    header = [
        "operation",
        "ours, rps",
        "ceiling, rps",
        "ratio",
        "target",
        "by CPU",
        "p50, ms",
        "p99, ms",
        "ceiling's p99, ms",
        *peers,
    ]
    figures = http_results["operations"]
    rows = [
        _operation_row(operation, figures[operation.name], tools)
        for operation in OPERATIONS
        if operation.name in figures
    ]
    return Table(f"Over HTTP, {tools:,} tools", header, rows)


def _operation_row(operation: Operation, figures: Figures, tools: int) -> list[str]:
    ours, ceiling = figures["ours"], figures["ceiling"]
    ratio = ours["rps"] / ceiling["rps"]
    target = (
        _NONE
        if operation.target is None
        else format_target(ratio >= operation.target, f"≥ {operation.target:.2f}", tools)
    )
    if figures["faults"]:
        target = f"INVALID: {figures['faults']} wrong answers"
    shares = [f"{ratio:.2f}", target, f"{ceiling['cpu'] / ours['cpu']:.2f}"]
    delays = [format_number(value) for value in (ours["p50"], ours["p99"], ceiling["p99"])]
    return [
        operation.title,
        format_number(ours["rps"]),
        format_number(ceiling["rps"]),
        *shares,
        *delays,
        *(_format_ratio(ours, figures.get(name), PEER_TARGETS[name], tools) for name in PEERS),
    ]


def _format_ratio(ours: Figures, peer: Figures | None, target: float, tools: int) -> str:
    if not peer or not peer["rps"]:
        return _NONE
    times = peer["cpu"] / ours["cpu"]
    missed = " MISSED" if times < target and tools == TARGET_SIZE else ""
    return f"{format_number(peer['rps'])} · {format_number(ours['rps'] / peer['rps'])}× · {format_number(times)}×{missed}"


def format_target(is_met: bool, target: str, size: int, of: int = TARGET_SIZE) -> str:
    """A target, and whether it is met; other sizes than the one that it is for (`of`) have none."""
    return f"{target} {'met' if is_met else 'MISSED'}" if size == of else _NONE


def _size_table(results: Results) -> Table:
    """What the number of tools does to a server, the sizes side by side."""
    sizes = [tools for tools, found in results.items() if "inside" in found or "http" in found]
    rows = [
        [title, *(_format_cell(results[tools], place) for tools in sizes)]
        for title, place in _compared_paths()
    ]
    return Table(
        "By number of tools",
        ["", *(f"{tools:,}" for tools in sizes)],
        [row for row in rows if {*row[1:]} - {_NONE}],
    )


def _compared_paths() -> Iterator[tuple[str, Sequence[str]]]:
    """What is compared between sizes, and where the results have it."""
    yield "opening a build, ms", ("inside", "open")
    yield "from start to first answer, ms", ("inside", "start")
    yield "memory of its own, MB", ("inside", "private")
    yield "memory with its share of mapped files (PSS), MB", ("inside", "pss")
    for kind in COLD_KINDS:
        yield f"{kind} right after a start, KB read", ("inside", "cold", kind, "kb")
        yield f"{kind} right after a start, ms", ("inside", "cold", kind, "ms")
    for where, title in (("store", "in the store"), ("application", "without a socket")):
        for name in ("get", "filter", "first page", "deep page", "query", "sentence"):
            yield f"{name} {title}, µs", ("inside", where, name)
    for operation in OPERATIONS:
        yield (
            f"{operation.title}, requests per second",
            ("http", "operations", operation.name, "ours", "rps"),
        )


def _format_cell(figures: Figures, keys: Sequence[str]) -> str:
    value: Any = figures
    for name in keys:
        value = value.get(name) if value else None
    return _NONE if value is None else format_number(value)


def _build_table(results: Results) -> Table:
    header = [
        "files",
        "indexes only, s",
        "× yaml.load",
        "target",
        "with site, s",
        "× yaml.load",
        "target",
        "nothing changed, s",
        "target",
    ]
    header += [
        "one file changed, indexes only, s",
        "target",
        "with site, s",
        "target",
        "pages written",
    ]
    header += ["peak of indexes, MB", "peak with site, MB", "peak of a change, MB", "target"]
    rows = [_build_row(found["building"]) for found in results.values() if "building" in found]
    return Table("Building", header, rows)


def _build_row(figures: Figures) -> list[str]:
    index, site, unchanged, one = (
        figures[name] for name in ("index", "site", "unchanged", "one changed")
    )
    cells = [f"{figures['files']:,}"]
    for figure, target in ((index, INDEX_TARGET), (site, SITE_TARGET)):
        ratio = figure["seconds"] / figures["yaml.load"]
        cells += [
            format_number(figure["seconds"]),
            f"{ratio:.2f}",
            format_target(ratio <= target, f"≤ {target}", figures["files"]),
        ]
    alone = figures.get("one changed, indexes only")  # not measured in the first runs
    for again, target in (
        (unchanged, UNCHANGED_TARGET),
        (alone, CHANGED_TARGET),
        (one, CHANGED_TARGET),
    ):
        cells += (
            [
                format_number(again["seconds"]),
                format_target(again["seconds"] <= target, f"≤ {target:g}", figures["files"]),
            ]
            if again
            else [_NONE, _NONE]
        )
    peaks = [index["peak"], site["peak"], max(figure["peak"] for figure in (one, alone) if figure)]
    is_held = format_target(
        max(peaks) <= PEAK_TARGET, f"≤ {PEAK_TARGET:,}", figures["files"], of=MOST_FILES
    )
    return [
        *cells,
        f"{one['pages']:,} of {figures['pages']:,}",
        *map(format_number, peaks),
        is_held,
    ]


def _peer_table(results: Results) -> Table:
    header = [
        "server",
        "tools",
        "start, s",
        "memory of its own, MB",
        "PSS, MB",
        "filling its database, s",
    ]
    return Table("The servers after the load", header, [*_server_rows(results)])


def _server_rows(results: Results) -> Iterator[list[str]]:
    for tools, found in results.items():
        for name, figures in found.get("http", {}).get("servers", {}).items():
            cells = [
                format_number(figures[what]) if what in figures else _NONE
                for what in ("start", "private", "pss", "load")
            ]
            yield [PEERS.get(name, "toolcatalog"), f"{tools:,}", *cells]


def format_number(value: float) -> str:
    """A figure with as many digits as mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
