"""All tables: over HTTP, by number of tools, builds, and the servers' memory. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import cold
from benchmarks.http_tables import PEERS, make_http_tables, rows_by_case
from benchmarks.profiles import MAIN
from benchmarks.results import Results
from benchmarks.table import NONE, Table, format_number, format_target
from benchmarks.workload import load_cases

_INDEX_TARGET, _SITE_TARGET = 0.5, 1.2  # times yaml.load
_UNCHANGED_TARGET, _CHANGED_TARGET = 0.4, 1.0  # seconds
_MOST_FILES, _PEAK_TARGET = 1_000_000, 2_000  # MB, for this number of files

Figures = Mapping[str, Any]


def make_tables(results: Results) -> list[Table]:
    """Make all tables for which there are figures."""
    tables = [_size_table(results), _build_table(results), _server_table(results)]
    return [*make_http_tables(results), *(table for table in tables if table.rows)]


def _size_table(results: Results) -> Table:
    """Make the table of a server by number of tools; a column is a size."""
    sizes = [tools for tools, parts in results.items() if "process" in parts or "http" in parts]
    rows = [
        [title, *(_format_cell(_flatten(results[tools]), path) for tools in sizes)]
        for title, path in _compared_paths()
    ]
    return Table(
        "By number of tools",
        ["", *(f"{tools:,}" for tools in sizes)],
        [row for row in rows if {*row[1:]} - {NONE}],
    )


def _compared_paths() -> Iterator[tuple[str, Sequence[str]]]:
    """Yield what is compared between sizes, and the path of its figure in the results."""
    yield "open a build, ms", ("process", "open")
    yield "from start to first response, ms", ("process", "start")
    yield "private memory, MB", ("process", "private")
    yield "memory with a share of mapped files (PSS), MB", ("process", "pss")
    for kind in cold.KINDS:
        yield f"{kind} right after a start, KB read", ("process", "cold", kind, "kb")
        yield f"{kind} right after a start, ms", ("process", "cold", kind, "ms")
    for layer, title in (("store", "in the store"), ("application", "without a socket")):
        for name in ("get", "filter", "first page", "deep page", "query", "sentence"):
            yield f"{name} {title}, µs", ("process", layer, name)
    for case in load_cases():
        if case.profile == MAIN:
            title = f"{case.operation.title}, {case.queries}, requests per second"
            yield title, ("http", case.name, "servers", "ours", "rps")


def _flatten(parts: Figures) -> Figures:
    """Return the parts of a size, with the rows of `http` by the names of their cases."""
    return {**parts, "http": rows_by_case(parts.get("http", {"rows": []}))}


def _format_cell(figures: Figures, keys: Sequence[str]) -> str:
    value: Any = figures
    for name in keys:
        value = value.get(name) if value else None
    return NONE if value is None else format_number(value)


def _build_table(results: Results) -> Table:
    """Make the table of builds; a row is a size."""
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
    rows = [_build_row(parts["build"]) for parts in results.values() if "build" in parts]
    return Table("Builds", header, rows)


def _build_row(figures: Figures) -> list[str]:
    index, site, unchanged, changed, changed_index = (
        figures[name]
        for name in ("index", "site", "unchanged", "one changed", "one changed, indexes only")
    )
    cells = [f"{figures['files']:,}"]
    for figure, target in ((index, _INDEX_TARGET), (site, _SITE_TARGET)):
        ratio = figure["seconds"] / figures["yaml.load"]
        cells += [
            format_number(figure["seconds"]),
            f"{ratio:.2f}",
            format_target(ratio <= target, f"≤ {target}", figures["files"]),
        ]
    for rebuild, target in (
        (unchanged, _UNCHANGED_TARGET),
        (changed_index, _CHANGED_TARGET),
        (changed, _CHANGED_TARGET),
    ):
        is_met = rebuild["seconds"] <= target
        cells += [
            format_number(rebuild["seconds"]),
            format_target(is_met, f"≤ {target:g}", figures["files"]),
        ]
    peaks = [index["peak"], site["peak"], max(changed["peak"], changed_index["peak"])]
    return [
        *cells,
        f"{changed['pages']:,} of {figures['pages']:,}",
        *map(format_number, peaks),
        _format_peak_target(max(peaks), figures["files"]),
    ]


def _format_peak_target(peak: float, files: int) -> str:
    return format_target(peak <= _PEAK_TARGET, f"≤ {_PEAK_TARGET:,}", files, _MOST_FILES)


def _server_table(results: Results) -> Table:
    header = [
        "server",
        "tools",
        "start, s",
        "private memory, MB",
        "PSS, MB",
        "load the database, s",
    ]
    return Table("The servers after the load", header, [*_server_rows(results)])


def _server_rows(results: Results) -> Iterator[list[str]]:
    for tools, parts in results.items():
        for name, figures in parts.get("http", {}).get("servers", {}).items():
            cells = [
                format_number(figures[field]) if field in figures else NONE
                for field in ("start", "private", "pss", "load")
            ]
            yield [PEERS.get(name, "toolcatalog"), f"{tools:,}", *cells]
