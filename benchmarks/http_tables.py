"""Tables of everything over HTTP: real clients, load by header profile, and its targets. Pure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import profiles, workload
from benchmarks.results import Results
from benchmarks.table import NONE, TARGET_SIZE, Table, format_number, format_target
from benchmarks.workload import LoadCase

PEERS = {"datasette": "Datasette", "fastapi": "FastAPI + SQLAlchemy"}
_PEER_TARGETS = {"datasette": 15, "fastapi": 30}  # times as many requests, or as little CPU
_QUERY_PEER_TARGET = 10  # for queries by words
_P99_TARGET = 3.0  # times the ceiling's p99, for get
_LARGEST = 1_000_000  # tools
_START_TARGET, _PRIVATE_TARGET = 600, 100  # milliseconds, MB; for the largest size
_SPEEDUP_TARGET = 1.8  # of two workers

Figures = Mapping[str, Any]


def make_http_tables(results: Results) -> list[Table]:
    """Make all tables: the real clients of each size, then load by size, then other targets."""
    clients = [_client_table(tools, parts["clients"]) for tools, parts in _with(results, "clients")]
    http = [(tools, rows_by_case(parts["http"])) for tools, parts in _with(results, "http")]
    load = [_load_table(tools, rows) for tools, rows in http]
    by_profile = [_profile_table(tools, rows) for tools, rows in http]
    other = Table("Other targets", ["", "figure", "target"], [*_other_targets(results)])
    return [table for table in (*clients, *load, *by_profile, other) if table.rows]


def _with(results: Results, part: str) -> list[tuple[int, Figures]]:
    return [(tools, parts) for tools, parts in results.items() if part in parts]


def rows_by_case(http: Figures) -> dict[str, Figures]:
    """Return the rows of the results by the name of their case."""
    return {f"{row['profile']}-{row['operation']}-{row['queries']}": row for row in http["rows"]}


def _client_table(tools: int, figures: Figures) -> Table:
    header = ["client", "tools by page", "ours, s", "server CPU, s"]
    header += [f"{PEERS['fastapi']}, s", "server CPU, s", "× wall time", "× server CPU"]
    rows = [_client_row(row) for row in figures["rows"]]
    return Table(f"Real clients, {tools:,} tools", header, rows)


def _client_row(row: Figures) -> list[str]:
    ours, theirs = row["servers"]["ours"], row["servers"]["fastapi"]
    cells = [f"{row['tools']:,} by {row['page']:,}"]
    if row["faults"]:
        return [row["client"], *cells, "INVALID: the lists differ", *[NONE] * 5]
    cells += [
        format_number(server[name]) for server in (ours, theirs) for name in ("seconds", "cpu")
    ]
    ratios = [theirs[name] / max(ours[name], 0.01) for name in ("seconds", "cpu")]
    return [row["client"], *cells, *(f"{format_number(ratio)}×" for ratio in ratios)]


def _load_table(tools: int, rows: Mapping[str, Figures]) -> Table:
    header = ["operation", "queries", "rps", "share by requests", "by CPU", "target"]
    header += ["p50, ms", "p99, ms", "ceiling's p99, ms", "body, bytes"]
    header += [f"× {title}: by requests · by CPU" for title in PEERS.values()]
    cases = [case for case in workload.load_cases() if case.profile == profiles.MAIN]
    title = f"Load with the headers of httpx, {tools:,} tools"
    return Table(
        title,
        header,
        [_load_row(case, rows[case.name], tools) for case in cases if case.name in rows],
    )


def _load_row(case: LoadCase, row: Figures, tools: int) -> list[str]:
    ours, ceiling = row["servers"]["ours"], row["servers"]["ceiling"]
    shares = speed_ratios(ours, ceiling)
    delays = [format_number(value) for value in (ours["p50"], ours["p99"], ceiling["p99"])]
    return [
        case.operation.title,
        f"{case.queries}, {row['distinct']:,}",
        format_number(ours["rps"]),
        *(f"{share:.2f}" for share in shares),
        _format_share_target(case, row, tools),
        *delays,
        f"{row['size']:,}",
        *(_format_peer(case, row, name, tools) for name in PEERS),
    ]


def speed_ratios(ours: Figures, other: Figures) -> tuple[float, float]:
    """Return how much faster ours is, by requests and by CPU: medians of the rounds' ratios."""
    pairs = zip(ours["rounds"]["rps"], other["rounds"]["rps"], strict=False)
    cpu_pairs = zip(ours["rounds"]["cpu"], other["rounds"]["cpu"], strict=False)
    by_requests = statistics.median(mine / max(theirs, 0.01) for mine, theirs in pairs)
    return by_requests, statistics.median(theirs / max(mine, 0.01) for mine, theirs in cpu_pairs)


def _format_share_target(case: LoadCase, row: Figures, tools: int) -> str:
    if row["faults"]:
        return f"INVALID: {row['faults']} wrong responses"
    if case.target is None:
        return NONE
    best = max(speed_ratios(row["servers"]["ours"], row["servers"]["ceiling"]))
    return format_target(best >= case.target, f"≥ {case.target:.2f}", tools)


def _format_peer(case: LoadCase, row: Figures, name: str, tools: int) -> str:
    if name not in row["servers"]:
        return NONE
    ratios = speed_ratios(row["servers"]["ours"], row["servers"][name])
    target = _QUERY_PEER_TARGET if case.operation.name == "query" else _PEER_TARGETS[name]
    text = " · ".join(f"{format_number(ratio)}×" for ratio in ratios)
    verdict = format_target(max(ratios) >= target, f"≥ {target}", tools)
    return text if verdict == NONE else f"{text} ({verdict})"


def _profile_table(tools: int, rows: Mapping[str, Figures]) -> Table:
    """Make the table of shares by header profile; a cell has both shares and the target."""
    header = ["operation", "queries", *(profile.title for profile in profiles.PROFILES.values())]
    lines = []
    for operation in workload.OPERATIONS:
        for queries in operation.targets:
            cases = [LoadCase(operation, profile, queries) for profile in profiles.PROFILES]
            cells = [_format_share(case, rows.get(case.name), tools) for case in cases]
            if {*cells} - {NONE}:
                lines.append([operation.title, queries, *cells])
    return Table(f"Load by client, {tools:,} tools", header, lines)


def _format_share(case: LoadCase, row: Figures | None, tools: int) -> str:
    if row is None:
        return NONE
    shares = speed_ratios(row["servers"]["ours"], row["servers"]["ceiling"])
    text = " · ".join(f"{share:.2f}" for share in shares)
    target = _format_share_target(case, row, tools)
    return text if target == NONE else f"{text} ({target})"


def _other_targets(results: Results) -> Iterator[Sequence[str]]:
    """Yield what has a target and no other table."""
    if row := rows_by_case(_part(results, TARGET_SIZE, "http")).get(
        f"{profiles.MAIN}-get-repeated"
    ):
        rounds = (row["servers"][name]["rounds"]["p99"] for name in ("ours", "ceiling"))
        ratio = statistics.median(ours / ceiling for ours, ceiling in zip(*rounds, strict=True))
        target = format_target(ratio <= _P99_TARGET, f"≤ {_P99_TARGET:g}", TARGET_SIZE)
        yield f"p99 of get, {TARGET_SIZE:,} tools, × the ceiling's", f"{ratio:.1f}", target
    process = _part(results, _LARGEST, "process")
    for name, title, most in (
        ("start", "first response after start, ms", _START_TARGET),
        ("private", "private memory after start, MB", _PRIVATE_TARGET),
    ):
        if name in process:
            target = format_target(process[name] <= most, f"≤ {most}", _LARGEST, _LARGEST)
            yield f"{title}, {_LARGEST:,} tools", format_number(process[name]), target
    for tools, parts in _with(results, "workers"):
        yield _workers_row(tools, parts["workers"])


def _part(results: Results, tools: int, name: str) -> Figures:
    """Return one part of the results of a size; empty if it was not measured."""
    part: Figures = results.get(tools, {}).get(name, {"rows": []})
    return part


def _workers_row(tools: int, figures: Figures) -> Sequence[str]:
    title = f"two workers, {tools:,} tools, × the requests of one"
    if reason := figures.get("reason"):
        return title, NONE, reason
    speedup = figures["speedup"]
    target = format_target(speedup >= _SPEEDUP_TARGET, f"≥ {_SPEEDUP_TARGET}", tools)
    return title, f"{speedup:.2f}", target
