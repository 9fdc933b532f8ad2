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
from benchmarks.paths import Operation, Question
from benchmarks.servers import Server

ROUNDS, PEER_ROUNDS = 5, 2
_SECONDS = 3.0
_PROBES = 100
_SLOW, _VERY_SLOW = 0.05, 0.5  # seconds an answer: fewer connections and fewer rounds from there


@dataclass(frozen=True, slots=True)
class Target:
    """A server as the load sees it: the file of requests for the operation at hand, and how many,
    how often and how long.
    """

    name: str
    server: Server
    requests: Path
    connections: int
    rounds: int
    seconds: float


def measure(build: Path, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All operations on one build; `folder` keeps what can be used again: rows, databases, lists of
    requests.
    """
    key = prepare(build, folder)
    rows = folder / "rows.jsonl"
    loaded = {name: _load(name, folder, rows, key) for name in servers.PEERS}
    sample = paths.sample(rows)
    commands = {"ours": servers.ours(build, folder / "keys.json")}
    commands |= {
        name: servers.peer(name, "serve", folder / name / "tables.db") for name in servers.PEERS
    }
    operations = {}
    with machine.awake(), ExitStack() as stack:
        started = {
            name: stack.enter_context(servers.running(command, folder / f"{name}.log"))
            for name, command in commands.items()
        }
        for operation in paths.OPERATIONS:
            say(f"{len(sample.slugs):,} tools over HTTP: {operation.title} ...")
            operations[operation.name] = _operation(
                operation, paths.questions(operation, sample), started, key, folder
            )
        about = {
            name: {"start": round(server.seconds, 3), **machine.memory(server.pid)}
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
        with servers.running(
            servers.ours(build, folder / "keys.json"), folder / "ours.log"
        ) as server:
            asking.export(Client(server.url, {"x-api-key": key}), rows)
    return key


def _key(folder: Path) -> str:
    """The key made at the first run; the plain service has it in its database."""
    kept = folder / "key"
    if not kept.exists():
        kept.touch(0o600)
        kept.write_text(servers.new_key(folder / "keys.json"))
    return kept.read_text()


def _load(name: str, folder: Path, rows: Path, key: str) -> float:
    """Fill a peer's database, unless that is done already; how long it took, in seconds."""
    place, kept = folder / name, folder / name / "seconds"
    if not kept.exists():
        place.mkdir(exist_ok=True)
        (place / "tables.db").unlink(missing_ok=True)
        begin = machine.now()
        subprocess.run(
            servers.peer(name, "load", place / "tables.db", rows),
            env=servers.environment(BENCH_KEY=key),
            check=True,
        )
        kept.write_text(f"{machine.now() - begin:.2f}")
    return float(kept.read_text())


def _operation(
    operation: Operation,
    questions: Sequence[Question],
    started: Mapping[str, Server],
    key: str,
    folder: Path,
) -> dict[str, Any]:
    """Hold the answers against one another, then drive the servers, with a constant body as large
    as our mean answer among them.
    """
    asked = random.Random(1).sample(range(len(questions)), _PROBES)
    targets, told = [], {}
    for name, server in started.items():
        if operation.status == 304 and name != "ours":
            continue  # the peers have no such answer
        client = Client(server.url, {"x-api-key": key})
        lines = [
            _line(client, paths.SPELLINGS[name](question), key, operation.status)
            for question in questions
        ]
        told[name] = [
            _probe(client, lines[number])
            for number in (asked if name == "ours" else asked[: _PROBES // 10])
        ]
        requests = folder / f"{operation.name}.{name}.txt"
        requests.write_text("\n".join(lines) + "\n")
        targets.append(
            _target(
                name,
                server,
                requests,
                operation,
                statistics.median(answer.seconds for answer in told[name]),
            )
        )
    size = round(statistics.mean(len(answer.body) for answer in told["ours"]))
    figures, errors = _driven(
        targets, servers.constant(size, operation.status), folder / "constant.log"
    )
    faults = errors + sum(_faults(operation, told["ours"], theirs) for theirs in told.values())
    return {"faults": faults, "body": size, **figures}


def _driven(
    targets: Sequence[Target], constant: Sequence[str], log: Path
) -> tuple[dict[str, Any], int]:
    """The figures of all servers and of the ceiling, and how many errors there were."""
    ours, *peers = targets
    with servers.running(constant, log) as server:
        every = [ours, replace(ours, name="ceiling", server=server), *peers]
        # it warms them up, too
        alone = {target.name: _drive(target, 1, target.seconds / _SECONDS) for target in every}
        runs = _rounds(every)
    errors = sum(run.errors for some in (alone.values(), *runs.values()) for run in some)
    return {
        target.name: _summary(alone[target.name], runs[target.name], target.connections)
        for target in every
    }, errors


def _faults(
    operation: Operation, ours: Sequence[asking.Answer], theirs: Sequence[asking.Answer]
) -> int:
    """How many answers are not what was asked for: a wrong status, or other tools than ours (where
    words are asked for: none at all).
    """
    wrong = sum(answer.status != operation.status for answer in theirs)
    if wrong or operation.status == 304:
        return wrong
    pairs = [
        (asking.slugs(one.body), asking.slugs(other.body))
        for one, other in zip(ours, theirs, strict=False)
    ]
    if operation.ranked:
        return sum(bool(one) != bool(other) for one, other in pairs)
    return sum(sorted(one) != sorted(other) for one, other in pairs)


def _line(client: Client, path: str, key: str, status: int) -> str:
    if status != 304:
        return f"{path}\tx-api-key: {key}"
    return f"{path}\tx-api-key: {key}\tIf-None-Match: {client.get(path).etag}"


def _probe(client: Client, line: str) -> asking.Answer:
    path, *headers = line.split("\t")
    return client.get(path, **dict(header.split(": ", 1) for header in headers))


def _target(
    name: str, server: Server, requests: Path, operation: Operation, latency: float
) -> Target:
    """How to drive a server whose answers take so long: one that is slow gets fewer connections, so
    that its queue is not the figure.
    """
    if latency < _SLOW or name == "ours":
        return Target(
            name,
            server,
            requests,
            operation.connections,
            ROUNDS if name == "ours" else PEER_ROUNDS,
            _SECONDS,
        )
    connections, rounds = (4, PEER_ROUNDS) if latency < _VERY_SLOW else (1, 1)
    return Target(
        name,
        server,
        requests,
        min(connections, operation.connections),
        rounds,
        max(_SECONDS, 12 * latency),
    )


def _rounds(targets: Sequence[Target]) -> dict[str, list[wrk.Run]]:
    """The servers in turns."""
    runs: dict[str, list[wrk.Run]] = {target.name: [] for target in targets}
    for number in range(ROUNDS):
        for target in targets:
            if number < target.rounds:
                runs[target.name].append(_drive(target, target.connections, target.seconds))
    return runs


def _drive(target: Target, connections: int, seconds: float) -> wrk.Run:
    return wrk.drive(target.server.url, target.server.pid, target.requests, connections, seconds)


def _summary(alone: wrk.Run, runs: Sequence[wrk.Run], connections: int) -> dict[str, Any]:
    rounds = [run.kept() for run in runs]
    middle = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    return {
        **middle,
        "alone": round(alone.p50, 3),
        "connections": connections,
        "rounds": [one["rps"] for one in rounds],
    }
