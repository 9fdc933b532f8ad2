"""Inside the process: how long opening takes, what a server holds in memory, and what an operation
costs without HTTP.

Each size is measured in a fresh process (`python -m benchmarks.inside BUILD FOLDER`, one line of
JSON), so that nothing is left over from another. `FOLDER` has the rows and the keys of the HTTP
benchmark.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import cold, machine, paths, servers
from benchmarks.asking import Client
from benchmarks.paths import BenchmarkQuery, CatalogSample
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
    """All figures of one build: times of single operations in microseconds, of opening and starting
    in milliseconds, memory in MB.
    """
    os.sync()  # a page of a file that has not reached the disk counts as one of the process's own
    command = machine.pin_command(
        machine.SERVER_CORE, [sys.executable, "-m", "benchmarks.inside", str(build), str(folder)]
    )
    with machine.keep_cores_awake():
        opened = [json.loads(_run([*command, "open"])) for _ in range(_OPENINGS)]
        started = [_first_answer(build, folder) for _ in range(_OPENINGS)]
        costs = json.loads(_run(command))
        cold_pages = {kind: _measure_cold(build, kind) for kind in cold.KINDS}
    return {
        "cold": cold_pages,
        "open": statistics.median(one["open"] for one in opened),
        "start": statistics.median(one["start"] for one in started),
        "private": started[-1]["private"],
        "pss": started[-1]["pss"],
        **costs,
    }


def _run(command: Sequence[str]) -> str:
    return subprocess.run(
        command, env=servers.subprocess_environment(), capture_output=True, text=True, check=True
    ).stdout


def _measure_cold(build: Path, kind: str) -> dict[str, float]:
    """Kilobytes and milliseconds of a first page; the time is a median."""
    command = [sys.executable, "-m", "benchmarks.cold", str(build), kind]
    pages = [json.loads(_run(command)) for _ in range(_OPENINGS)]
    return {unit: statistics.median(page[unit] for page in pages) for unit in ("kb", "ms")}


def _first_answer(build: Path, folder: Path) -> dict[str, float]:
    """Start the server; milliseconds until it has answered for the first time, and its memory then."""
    begin = machine.clock()
    with servers.start_server(
        servers.server_command(build, folder / "keys.json"), folder / "start.log"
    ) as server:
        client = Client(server.url, {"x-api-key": (folder / "key").read_text()})
        answer = client.get("/api/v3/tools?limit=1")
        assert answer.status == 200, answer
        return {
            "start": round((machine.clock() - begin) * 1000, 1),
            **machine.measure_memory(server.pid),
        }


def store_operations(store: Store) -> Mapping[str, Callable[[BenchmarkQuery], object]]:
    """What the store does for each operation, without a question's text or an answer's headers.
    Follows the store's own doors.
    """

    def get(asked: BenchmarkQuery) -> object:
        entry = store.get_tool(asked.slug)
        assert entry is not None
        return store.read_document(entry.tool_id(entry.versions[-1]))

    def page(asked: BenchmarkQuery) -> object:
        filters = Filters(
            toolkits=[asked.toolkit] if asked.toolkit else None,
            tags=asked.tags,
            include_deprecated=not asked.toolkit,
        )
        found = store.search(filters, VersionPins())
        return len(found.tool_ids), store.read_documents(
            store.select_page(found, "slug", False, (asked.page - 1) * asked.size, asked.size)
        )

    def query(asked: BenchmarkQuery) -> object:
        found = store.search(Filters(query=asked.query), VersionPins())
        return len(found.tool_ids), store.read_documents(
            store.select_page(found, "relevance", True, 0, _PAGE)
        )

    return {
        "get": get,
        "filter": page,
        "first page": page,
        "deep page": page,
        "query": query,
        "sentence": query,
    }


def measure_operations(build: Path, folder: Path) -> dict[str, Any]:
    """Median microseconds of each operation in the store, and of the same question through the
    whole application without a socket.
    """
    sample, store = paths.load_sample(folder / "rows.jsonl"), open_build(build)
    asked = _questions(sample)
    app = create_app(AppState(KeyRing(folder / "keys.json"), store), None)
    key = (folder / "key").read_text()
    through = {
        name: asyncio.run(_measure_application(app, key, questions))
        for name, questions in asked.items()
    }
    return {
        "store": {
            name: _median_time(act, asked[name]) for name, act in store_operations(store).items()
        },
        "application": through,
    }


def _questions(of: CatalogSample) -> dict[str, list[BenchmarkQuery]]:
    named = {
        operation.name: paths.draw_queries(operation, of)[:_REPETITIONS]
        for operation in paths.OPERATIONS
    }
    pages = {"first page": 1, "deep page": max(1, len(of.slugs) // _PAGE)}
    chosen = {name: named[name] for name in ("get", "filter", "query", "sentence")}
    return chosen | {
        name: [paths.page_query(of, _PAGE, number)] * _REPETITIONS for name, number in pages.items()
    }


def _median_time(
    act: Callable[[BenchmarkQuery], object], questions: Iterable[BenchmarkQuery]
) -> float:
    """Median time of one act, in microseconds; stops early where acts are slow."""
    times: list[int] = []
    end = time.perf_counter() + _MAX_SECONDS
    for question in questions:
        begin = time.perf_counter_ns()
        act(question)
        times.append(time.perf_counter_ns() - begin)
        if time.perf_counter() > end:
            break
    return round(statistics.median(times) / 1000, 2)


async def _measure_application(app: Any, key: str, questions: Sequence[BenchmarkQuery]) -> float:
    times: list[int] = []
    end = time.perf_counter() + _MAX_SECONDS
    for question in questions:
        begin = time.perf_counter_ns()
        status = await _call_application(app, key, paths.to_api_path(question))
        times.append(time.perf_counter_ns() - begin)
        assert status == 200, question
        if time.perf_counter() > end:
            break
    return round(statistics.median(times) / 1000, 2)


async def _call_application(app: Any, key: str, path: str) -> int:
    """One request as the server would hand it over; the status of the answer."""
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
    """The command line: opens once (`open`), or measures all operations."""
    build, folder, *only_open = sys.argv[1:]
    if only_open:
        begin = time.perf_counter()
        open_build(Path(build))
        print(json.dumps({"open": round((time.perf_counter() - begin) * 1000, 2)}))
    else:
        print(json.dumps(measure_operations(Path(build), Path(folder))))


if __name__ == "__main__":
    main()
