"""Over HTTP: our server beside a constant body of the same size and beside the peers, in turns, on
the same questions.

One server at a time is under load, pinned to one core, and the load comes from another. The figures
of an operation are medians of its rounds. An answer that is not the one expected makes the
operation invalid, and it says so.
"""

import random
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import asking, machine, paths, servers, wrk
from benchmarks.asking import Client
from benchmarks.paths import BenchmarkQuery, Operation
from benchmarks.servers import Server

ROUNDS, PEER_ROUNDS = 5, 2
_SECONDS = 3.0
_PROBE_COUNT = 100
_SLOW, _VERY_SLOW = 0.05, 0.5  # seconds an answer: fewer connections and fewer rounds from there


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """A server as the load sees it: the file of requests for the operation at hand, and how many,
    how often and how long.
    """

    name: str
    server: Server
    requests: Path
    connections: int
    rounds: int
    seconds: float


def measure(build: Path, folder: Path, report_progress: Callable[[str], None]) -> dict[str, Any]:
    """All operations on one build; `folder` keeps what can be used again: rows, databases, lists of
    requests.
    """
    key = prepare(build, folder)
    rows = folder / "rows.jsonl"
    loaded = {name: _load_peer(name, folder, rows, key) for name in servers.PEERS}
    sample = paths.load_sample(rows)
    commands = {"ours": servers.server_command(build, folder / "keys.json")}
    commands |= {
        name: servers.peer_command(name, "serve", folder / name / "tables.db")
        for name in servers.PEERS
    }
    operations = {}
    with machine.keep_cores_awake(), ExitStack() as stack:
        started = {
            name: stack.enter_context(servers.start_server(command, folder / f"{name}.log"))
            for name, command in commands.items()
        }
        for operation in paths.OPERATIONS:
            report_progress(f"{len(sample.slugs):,} tools over HTTP: {operation.title} ...")
            operations[operation.name] = _measure_operation(
                operation, paths.draw_queries(operation, sample), started, key, folder
            )
        about = {
            name: {"start": round(server.seconds, 3), **machine.measure_memory(server.pid)}
            for name, server in started.items()
        }
    for name, seconds in loaded.items():
        about[name]["load"] = seconds
    return {"operations": operations, "servers": about}


def prepare(build: Path, folder: Path) -> str:
    """A key, and the rows of all tools as our server answers them; made once, for peers and for
    questions.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key, rows = _key(folder), folder / "rows.jsonl"
    if not rows.exists():
        with servers.start_server(
            servers.server_command(build, folder / "keys.json"), folder / "ours.log"
        ) as server:
            asking.export_tools(Client(server.url, {"x-api-key": key}), rows)
    return key


def _key(folder: Path) -> str:
    """The key made at the first run; the plain service has it in its database."""
    kept = folder / "key"
    if not kept.exists():
        kept.touch(0o600)
        kept.write_text(servers.create_key(folder / "keys.json"))
    return kept.read_text()


def _load_peer(name: str, folder: Path, rows: Path, key: str) -> float:
    """Fill a peer's database, unless that is done already; how long it took, in seconds."""
    place, kept = folder / name, folder / name / "seconds"
    if not kept.exists():
        place.mkdir(exist_ok=True)
        (place / "tables.db").unlink(missing_ok=True)
        begin = machine.clock()
        subprocess.run(
            servers.peer_command(name, "load", place / "tables.db", rows),
            env=servers.subprocess_environment(BENCH_KEY=key),
            check=True,
        )
        kept.write_text(f"{machine.clock() - begin:.2f}")
    return float(kept.read_text())


def _measure_operation(
    operation: Operation,
    questions: Sequence[BenchmarkQuery],
    started: Mapping[str, Server],
    key: str,
    folder: Path,
) -> dict[str, Any]:
    """Hold the answers against one another, then drive the servers, with a constant body as large
    as our mean answer among them.
    """
    asked = random.Random(1).sample(range(len(questions)), _PROBE_COUNT)
    targets, told = [], {}
    for name, server in started.items():
        if operation.status == 304 and name != "ours":
            continue  # the peers have no such answer
        client = Client(server.url, {"x-api-key": key})
        lines = [
            _request_line(client, paths.PATH_FORMATTERS[name](question), key, operation.status)
            for question in questions
        ]
        told[name] = [
            _send_probe(client, lines[number])
            for number in (asked if name == "ours" else asked[: _PROBE_COUNT // 10])
        ]
        requests = folder / f"{operation.name}.{name}.txt"
        requests.write_text("\n".join(lines) + "\n")
        targets.append(
            _make_target(
                name,
                server,
                requests,
                operation,
                statistics.median(answer.seconds for answer in told[name]),
            )
        )
    size = round(statistics.mean(len(answer.body) for answer in told["ours"]))
    figures, errors = _measure_targets(
        targets, servers.ceiling_command(size, operation.status), folder / "constant.log"
    )
    faults = errors + sum(
        _count_wrong_answers(operation, told["ours"], theirs) for theirs in told.values()
    )
    return {"faults": faults, "body": size, **figures}


def _measure_targets(
    targets: Sequence[LoadTarget], constant: Sequence[str], log: Path
) -> tuple[dict[str, Any], int]:
    """The figures of all servers and of the ceiling, and how many errors there were."""
    ours, *peers = targets
    with servers.start_server(constant, log) as server:
        every = [ours, replace(ours, name="ceiling", server=server), *peers]
        # it warms them up, too
        alone = {target.name: _run_load(target, 1, target.seconds / _SECONDS) for target in every}
        runs = _run_rounds(every)
    errors = sum(run.errors for some in (alone.values(), *runs.values()) for run in some)
    return {
        target.name: _summary(alone[target.name], runs[target.name], target.connections)
        for target in every
    }, errors


def _count_wrong_answers(
    operation: Operation, ours: Sequence[asking.Answer], theirs: Sequence[asking.Answer]
) -> int:
    """How many answers are not what was asked for: a wrong status, or other tools than ours (where
    words are asked for: none at all).
    """
    wrong = sum(answer.status != operation.status for answer in theirs)
    if wrong or operation.status == 304:
        return wrong
    pairs = [
        (asking.extract_slugs(one.body), asking.extract_slugs(other.body))
        for one, other in zip(ours, theirs, strict=False)
    ]
    if operation.ranked:
        return sum(bool(one) != bool(other) for one, other in pairs)
    return sum(sorted(one) != sorted(other) for one, other in pairs)


def _request_line(client: Client, path: str, key: str, status: int) -> str:
    if status != 304:
        return f"{path}\tx-api-key: {key}"
    return f"{path}\tx-api-key: {key}\tIf-None-Match: {client.get(path).etag}"


def _send_probe(client: Client, line: str) -> asking.Answer:
    path, *headers = line.split("\t")
    return client.get(path, **dict(header.split(": ", 1) for header in headers))


def _make_target(
    name: str, server: Server, requests: Path, operation: Operation, latency: float
) -> LoadTarget:
    """How to drive a server whose answers take so long: one that is slow gets fewer connections, so
    that its queue is not the figure.
    """
    if latency < _SLOW or name == "ours":
        return LoadTarget(
            name,
            server,
            requests,
            operation.connections,
            ROUNDS if name == "ours" else PEER_ROUNDS,
            _SECONDS,
        )
    connections, rounds = (4, PEER_ROUNDS) if latency < _VERY_SLOW else (1, 1)
    return LoadTarget(
        name,
        server,
        requests,
        min(connections, operation.connections),
        rounds,
        max(_SECONDS, 12 * latency),
    )


def _run_rounds(targets: Sequence[LoadTarget]) -> dict[str, list[wrk.LoadRun]]:
    """The servers in turns."""
    runs: dict[str, list[wrk.LoadRun]] = {target.name: [] for target in targets}
    for number in range(ROUNDS):
        for target in targets:
            if number < target.rounds:
                runs[target.name].append(_run_load(target, target.connections, target.seconds))
    return runs


def _run_load(target: LoadTarget, connections: int, seconds: float) -> wrk.LoadRun:
    return wrk.run_wrk(target.server.url, target.server.pid, target.requests, connections, seconds)


def _summary(alone: wrk.LoadRun, runs: Sequence[wrk.LoadRun], connections: int) -> dict[str, Any]:
    rounds = [run.to_result() for run in runs]
    middle = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    return {
        **middle,
        "alone": round(alone.p50, 3),
        "connections": connections,
        "rounds": [one["rps"] for one in rounds],
    }
