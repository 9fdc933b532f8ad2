"""In the process: opening and starting, memory, and the cost of operations without HTTP.

Each size has a process of its own (`python -m benchmarks.in_process BUILD FOLDER`, one line of
JSON). FOLDER contains the rows and the keys of the HTTP benchmark.
"""

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import cold, datasets, machine, servers, urls, workload
from benchmarks.http_client import HttpClient
from benchmarks.workload import CatalogSample, ToolQuery
from toolcatalog.keys.api_keys import KeyRing
from toolcatalog.server.app import create_app
from toolcatalog.server.state import AppState
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Filters, Store, VersionPins

_REPETITIONS = 1_000
_MAX_SECONDS = 2.0  # seconds spent on one operation
_OPENINGS = 3
_PAGE = 20


def measure(build: Path, folder: Path) -> dict[str, Any]:
    """Measure one build.

    Operations take microseconds, opening and starting milliseconds; memory is in MB.
    """
    os.sync()  # a page of a file that is not yet on the disk counts as memory of the process
    module = [sys.executable, "-m", "benchmarks.in_process", str(build), str(folder)]
    command = machine.pin_command([machine.SERVER_CORE], module)
    with machine.keep_cores_awake():
        openings = [json.loads(_run([*command, "open"])) for _ in range(_OPENINGS)]
        starts = [_measure_start(build, folder) for _ in range(_OPENINGS)]
        costs = json.loads(_run(command))
        cold_pages = {kind: _measure_cold(build, kind) for kind in cold.KINDS}
    return {
        "cold": cold_pages,
        "open": statistics.median(opening["open"] for opening in openings),
        "start": statistics.median(start["start"] for start in starts),
        "private": starts[-1]["private"],
        "pss": starts[-1]["pss"],
        **costs,
    }


def _run(command: Sequence[str]) -> str:
    return subprocess.run(
        command, env=servers.subprocess_environment(), capture_output=True, text=True, check=True
    ).stdout


def _measure_cold(build: Path, kind: str) -> dict[str, float]:
    """Return kilobytes read and milliseconds of a first page, as medians."""
    command = [sys.executable, "-m", "benchmarks.cold", str(build), kind]
    pages = [json.loads(_run(command)) for _ in range(_OPENINGS)]
    return {unit: statistics.median(page[unit] for page in pages) for unit in ("kb", "ms")}


def _measure_start(build: Path, folder: Path) -> dict[str, float]:
    """Start the server; return milliseconds until its first response, and its memory then."""
    start = machine.clock()
    with servers.start_server(
        servers.server_command(build, folder / datasets.KEYS_FILE), folder / "start.log"
    ) as server:
        client = HttpClient(server.url, {"x-api-key": (folder / "key").read_text()})
        response = client.get("/api/v3/tools?limit=1")
        assert response.status == 200, response
        return {
            "start": round((machine.clock() - start) * 1000, 1),
            **machine.measure_memory(server.pid),
        }


def store_operations(store: Store) -> Mapping[str, Callable[[ToolQuery], object]]:
    """Return the store's part of each operation, without parameters and headers."""

    def get(query: ToolQuery) -> object:
        entry = store.get_tool(query.slug)
        assert entry is not None
        return store.read_document(entry.tool_id(entry.versions[-1]))

    def page(query: ToolQuery) -> object:
        filters = Filters(
            toolkits=query.toolkits or None,
            tags=query.tags,
            include_deprecated=not query.exclude_deprecated,
        )
        matches = store.search(filters, VersionPins())
        return matches.total, store.read_documents(
            store.select_page(matches, "slug", False, (query.page - 1) * query.size, query.size)
        )

    def search(query: ToolQuery) -> object:
        matches = store.search(Filters(query=query.words), VersionPins())
        return matches.total, store.read_documents(
            store.select_page(matches, "relevance", True, 0, _PAGE)
        )

    return {
        "get": get,
        "filter": page,
        "first page": page,
        "deep page": page,
        "query": search,
        "sentence": search,
    }


def measure_operations(build: Path, folder: Path) -> dict[str, Any]:
    """Return the median microseconds of each operation.

    `store` is the store alone; `application` is the whole application without a socket.
    """
    sample, store = workload.load_sample(folder / datasets.ROWS), open_build(build)
    queries = _draw_queries(sample)
    app = create_app(AppState(KeyRing(folder / datasets.KEYS_FILE), store), None)
    key = (folder / "key").read_text()
    application = {
        name: asyncio.run(_measure_application(app, key, drawn)) for name, drawn in queries.items()
    }
    return {
        "store": {
            name: _median_time(operation, queries[name])
            for name, operation in store_operations(store).items()
        },
        "application": application,
    }


def _draw_queries(sample: CatalogSample) -> dict[str, list[ToolQuery]]:
    rng = random.Random(1)
    draws = {
        "get": workload.draw_tool,
        "filter": workload.draw_filter,
        "query": workload.draw_words,
        "sentence": workload.draw_sentence,
    }
    pages = {"first page": 1, "deep page": max(1, len(sample.slugs) // _PAGE)}
    drawn = {
        name: [draw(rng, sample, workload.NEW) for _ in range(_REPETITIONS)]
        for name, draw in draws.items()
    }
    return drawn | {
        name: [workload.page_query(sample.slugs, number, _PAGE)] * _REPETITIONS
        for name, number in pages.items()
    }


def _median_time(operation: Callable[[ToolQuery], object], queries: Iterable[ToolQuery]) -> float:
    """Return the median microseconds of an operation; stop early if it is slow."""
    times: list[int] = []
    end = time.perf_counter() + _MAX_SECONDS
    for query in queries:
        start = time.perf_counter_ns()
        operation(query)
        times.append(time.perf_counter_ns() - start)
        if time.perf_counter() > end:
            break
    return round(statistics.median(times) / 1000, 2)


async def _measure_application(app: Any, key: str, queries: Sequence[ToolQuery]) -> float:
    times: list[int] = []
    end = time.perf_counter() + _MAX_SECONDS
    for query in queries:
        start = time.perf_counter_ns()
        status = await _call_application(app, key, urls.to_api_path(query))
        times.append(time.perf_counter_ns() - start)
        assert status == 200, query
        if time.perf_counter() > end:
            break
    return round(statistics.median(times) / 1000, 2)


async def _call_application(app: Any, key: str, path: str) -> int:
    """Call the application with one request; return the status of the response."""
    plain, _, query = path.partition("?")
    headers = [(b"host", b"127.0.0.1"), (b"x-api-key", key.encode())]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": plain,
        "raw_path": plain.encode(),
    }
    scope |= {
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    await app({**scope, "asgi": {"version": "3.0"}}, receive, send)
    return status


def main() -> None:
    """Run the command line: open once (`open`), or measure all operations."""
    build, folder, *only_open = sys.argv[1:]
    if only_open:
        start = time.perf_counter()
        open_build(Path(build))
        print(json.dumps({"open": round((time.perf_counter() - start) * 1000, 2)}))
    else:
        print(json.dumps(measure_operations(Path(build), Path(folder))))


if __name__ == "__main__":
    main()
