"""Two workers against one: requests per second of `toolcatalog serve --workers 2`.

It needs two cores for the workers and two for the load. If they share cores, the result shows the
load generator; therefore nothing is measured then.
"""

import os
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from benchmarks import datasets, machine, servers, urls, workload, wrk
from benchmarks.http_load import Bench
from benchmarks.profiles import MAIN
from benchmarks.servers import Server

_ROUNDS = 3
_SECONDS = 3.0
_CONNECTIONS = 32
_SERVER_CORES, _CLIENT_CORES = (0, 1), (2, 3)
_REASON = "not measurable on {cores} cores: the workers need two, and the load needs two others"


def measure(build: Path, folder: Path, report_progress: Callable[[str], None]) -> dict[str, Any]:
    """Measure the speedup of get; return a reason instead if the machine has too few cores."""
    cores = os.cpu_count() or 1
    if cores < len(_SERVER_CORES) + len(_CLIENT_CORES):
        return {"reason": _REASON.format(cores=cores)}
    report_progress("two workers against one ...")
    return measure_speedup(build, folder, _SERVER_CORES, _CLIENT_CORES)


def measure_speedup(
    build: Path, folder: Path, server_cores: Sequence[int], client_cores: Sequence[int]
) -> dict[str, Any]:
    """Load one worker and two workers in turns, with get and the headers of httpx."""
    key = datasets.prepare(build, folder)
    rates: dict[int, list[float]] = {1: [], 2: []}
    with machine.keep_cores_awake([*server_cores, *client_cores]), ExitStack() as stack:
        running = {
            str(count): stack.enter_context(_start(build, folder, count, server_cores))
            for count in rates
        }
        _write_requests(Bench(running, key, folder))
        for _ in range(_ROUNDS):
            for name, server in running.items():
                rates[int(name)].append(_load(server, _requests(folder, name), client_cores))
    speedup = statistics.median(two / one for one, two in zip(rates[1], rates[2], strict=True))
    medians = {count: round(statistics.median(rounds), 1) for count, rounds in rates.items()}
    return {"one": medians[1], "two": medians[2], "speedup": round(speedup, 2)}


def _start(
    build: Path, folder: Path, count: int, cores: Sequence[int]
) -> AbstractContextManager[Server]:
    command = servers.server_command(build, folder / datasets.KEYS_FILE, count)
    return servers.start_server(command, folder / f"workers-{count}.log", cores)


def _write_requests(bench: Bench) -> None:
    sample = workload.load_sample(bench.folder / datasets.ROWS)
    queries = workload.draw_queries(workload.OPERATIONS[0], sample, workload.REPEATED)
    lines = [wrk.RequestLine(urls.to_api_path(query), {}) for query in queries]
    for name in bench.servers:
        wrk.write_requests(_requests(bench.folder, name), bench.headers(name, MAIN), lines)


def _requests(folder: Path, name: str) -> Path:
    return folder / f"workers-{name}.txt"


def _load(server: Server, requests: Path, cores: Sequence[int]) -> float:
    run = wrk.run_wrk(server.url, server.pid, requests, _CONNECTIONS, _SECONDS, cores=cores)
    if run.errors:
        raise RuntimeError(f"{run.errors} requests of the workers benchmark failed")
    return run.rps
