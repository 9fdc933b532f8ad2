"""HTTP load: our server, a constant body of the same size, and the other services, in turns.

All get the same queries with the headers of a real client. One server at a time is under load: it
runs on one core, and the load comes from another. Figures are medians of rounds. A wrong response
makes a row invalid.
"""

import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import datasets, machine, profiles, servers, urls, workload, wrk
from benchmarks.http_client import HttpClient, Response, extract_slugs
from benchmarks.servers import Server
from benchmarks.workload import LoadCase, ToolQuery
from benchmarks.wrk import LoadRun, RequestLine

ROUNDS, SHORT_ROUNDS, PEER_ROUNDS = 5, 3, 2
_SECONDS = 2.0
_SAMPLE, _PEER_SAMPLE = 200, 10  # responses that are checked
_SLOW, _VERY_SLOW = 0.05, 0.5  # seconds of a response: fewer connections and fewer rounds


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """A server, and how to load it: its file of requests, connections, rounds, and seconds."""

    name: str
    server: Server
    requests: Path
    connections: int
    rounds: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SampleResponses:
    """The responses of one server to a sample of queries."""

    server: str
    responses: Sequence[Response]


@dataclass(frozen=True, slots=True)
class Bench:
    """The running servers, the API key that they accept, and a folder for files of requests."""

    servers: Mapping[str, Server]
    key: str
    folder: Path

    def headers(self, name: str, profile: str) -> dict[str, str]:
        """Return the headers that a client of a profile sends to a server with each request."""
        host = {"Host": urlsplit(self.servers[name].url).netloc}
        return host | dict(profiles.PROFILES[profile].headers) | {"x-api-key": self.key}

    def client(self, name: str, profile: str) -> HttpClient:
        """Connect to a server with the headers of a profile."""
        headers = self.headers(name, profile)
        del headers["Host"]  # http.client sends it
        return HttpClient(self.servers[name].url, headers)


def measure(build: Path, folder: Path, report_progress: Callable[[str], None]) -> dict[str, Any]:
    """Measure all rows with one build; `folder` has the data that runs share."""
    key = datasets.prepare(build, folder)
    load_seconds = {name: datasets.load_peer(name, folder, key) for name in servers.PEERS}
    with machine.keep_cores_awake(), ExitStack() as stack:
        running = {
            name: stack.enter_context(servers.start_server(command, folder / f"{name}.log"))
            for name, command in _commands(build, folder).items()
        }
        rows = _measure_rows(Bench(running, key, folder), report_progress)
        about = {name: _describe(server) for name, server in running.items()}
    for name, seconds in load_seconds.items():
        about[name]["load"] = seconds
    return {"rows": rows, "servers": about}


def _commands(build: Path, folder: Path) -> dict[str, list[str]]:
    ours = servers.server_command(build, folder / datasets.KEYS_FILE)
    return {"ours": ours} | {
        name: datasets.serve_peer_command(name, folder) for name in servers.PEERS
    }


def _describe(server: Server) -> dict[str, float]:
    return {"start": round(server.seconds, 3), **machine.measure_memory(server.pid)}


def _measure_rows(bench: Bench, report_progress: Callable[[str], None]) -> list[dict[str, Any]]:
    sample = workload.load_sample(bench.folder / datasets.ROWS)
    rows = []
    for operation in workload.OPERATIONS:
        for kind in operation.targets:
            queries = workload.draw_queries(operation, sample, kind)
            for case in workload.load_cases():
                if (case.operation, case.queries) == (operation, kind):
                    report_progress(f"{len(sample.slugs):,} tools over HTTP: {case.name} ...")
                    rows.append(_measure_case(case, queries, bench))
    return rows


def _measure_case(case: LoadCase, queries: Sequence[ToolQuery], bench: Bench) -> dict[str, Any]:
    """Check sample responses of all servers, then load the servers and the ceiling in turns."""
    names = [*bench.servers] if case.has_peers else ["ours"]
    prepared = [_prepare_target(case, queries, name, bench) for name in names]
    samples = [sample for _, sample in prepared]
    size = round(statistics.mean(response.size for response in samples[0].responses))
    command = servers.ceiling_command(size, case.operation.status)
    with servers.start_server(command, bench.folder / "constant.log") as server:
        ours, *peers = [target for target, _ in prepared]
        ceiling = replace(ours, name="ceiling", server=server)
        figures, errors = _load_targets([ours, ceiling, *peers], case.queries == workload.NEW)
    return {
        "operation": case.operation.name,
        "profile": case.profile,
        "queries": case.queries,
        "distinct": len({*queries}),
        "size": size,
        "faults": errors + _count_wrong_responses(case, queries, samples, bench),
        "servers": figures,
    }


def _prepare_target(
    case: LoadCase, queries: Sequence[ToolQuery], name: str, bench: Bench
) -> tuple[LoadTarget, SampleResponses]:
    """Write the file of requests of a server, and request a sample of them."""
    lines = _request_lines(case, queries, name, bench)
    file = bench.folder / f"{case.name}.{name}.txt"
    wrk.write_requests(file, bench.headers(name, case.profile), lines)
    sample = _request_sample(case, lines, name, bench)
    return _make_target(case, name, bench.servers[name], file, sample.responses), sample


def _request_lines(
    case: LoadCase, queries: Iterable[ToolQuery], name: str, bench: Bench
) -> list[RequestLine]:
    """Return the requests for a server; for a 304, with the ETag that this profile gets."""
    paths = [urls.PATH_FORMATTERS[name](query) for query in queries]
    if case.operation.status != 304:
        return [RequestLine(path, {}) for path in paths]
    client = bench.client(name, case.profile)
    return [RequestLine(path, {"If-None-Match": client.get(path).etag}) for path in paths]


def _sample_indexes(count: int) -> list[int]:
    return random.Random(1).sample(range(count), min(count, _SAMPLE))


def _request_sample(
    case: LoadCase, lines: Sequence[RequestLine], name: str, bench: Bench
) -> SampleResponses:
    indexes = _sample_indexes(len(lines))[: _SAMPLE if name == "ours" else _PEER_SAMPLE]
    client = bench.client(name, case.profile)
    responses = [client.get(lines[index].path, lines[index].headers) for index in indexes]
    return SampleResponses(name, responses)


def _count_wrong_responses(
    case: LoadCase,
    queries: Sequence[ToolQuery],
    samples: Sequence[SampleResponses],
    bench: Bench,
) -> int:
    """Count wrong statuses, decoded bodies that differ from the plain ones, and wrong tools."""
    ours = samples[0].responses
    wrong = sum(
        response.status != case.operation.status
        for sample in samples
        for response in sample.responses
    )
    if wrong or case.operation.status == 304:
        return wrong
    sampled = [queries[index] for index in _sample_indexes(len(queries))]
    plain_client = bench.client("ours", "plain")
    for query, response in zip(sampled, ours, strict=True):
        wrong += plain_client.get(urls.to_api_path(query)).body != response.body
    for peer in samples[1:]:
        for query, ours_response, response in zip(sampled, ours, peer.responses, strict=False):
            wrong += not has_same_tools(query, ours_response.body, response.body)
    return wrong


def has_same_tools(query: ToolQuery, ours: bytes, theirs: bytes) -> bool:
    """Return whether two bodies contain the same tools.

    Each server ranks in its own way: for words, both must find some or none on the first page.
    """
    slugs, other_slugs = extract_slugs(ours), extract_slugs(theirs)
    if query.words:
        return query.page > 1 or bool(slugs) == bool(other_slugs)
    return sorted(slugs) == sorted(other_slugs)


def _make_target(
    case: LoadCase, name: str, server: Server, requests: Path, responses: Sequence[Response]
) -> LoadTarget:
    """Choose the load of a server: a slow one gets fewer connections, so that no queue forms."""
    latency = statistics.median(response.seconds for response in responses)
    connections = case.operation.connections
    if name == "ours":
        rounds = ROUNDS if case.profile == profiles.MAIN else SHORT_ROUNDS
        return LoadTarget(name, server, requests, connections, rounds, _SECONDS)
    if latency < _SLOW:
        return LoadTarget(name, server, requests, connections, PEER_ROUNDS, _SECONDS)
    most, rounds = (4, PEER_ROUNDS) if latency < _VERY_SLOW else (1, 1)
    seconds = max(_SECONDS, 12 * latency)
    return LoadTarget(name, server, requests, min(connections, most), rounds, seconds)


def _load_targets(targets: Sequence[LoadTarget], in_order: bool) -> tuple[dict[str, Any], int]:
    """Load the servers in turns; return their figures, and the number of errors.

    The first run has one connection: it measures the latency, and it warms the server up.
    """
    alone, runs = {}, {}
    for target in targets:
        alone[target.name] = _run(
            replace(target, connections=1, seconds=1), 0 if in_order else None
        )
        runs[target.name] = list[LoadRun]()
    for number in range(targets[0].rounds):
        for target in targets:
            if number < target.rounds:
                done = sum(run.requests for run in (alone[target.name], *runs[target.name]))
                runs[target.name].append(_run(target, done if in_order else None))
    errors = sum(run.errors for target in runs.values() for run in target)
    figures = {
        target.name: summarize(alone[target.name], runs[target.name], target.connections)
        for target in targets
    }
    return figures, errors + sum(run.errors for run in alone.values())


def _run(target: LoadTarget, first: int | None) -> LoadRun:
    server = target.server
    return wrk.run_wrk(
        server.url, server.pid, target.requests, target.connections, target.seconds, first
    )


def summarize(alone: LoadRun, runs: Sequence[LoadRun], connections: int) -> dict[str, Any]:
    """Return the medians of all figures, and each round's figures, which ratios are taken from."""
    rounds = [run.to_result() for run in runs]
    medians = {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}
    series = {name: [figures[name] for figures in rounds] for name in ("rps", "cpu", "p99")}
    return {
        **medians,
        "alone": round(alone.p50, 3),
        "connections": connections,
        "rounds": series,
    }
