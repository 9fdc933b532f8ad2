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

from benchmarks import machine, paths, servers
from benchmarks.asking import Client
from benchmarks.paths import Question, Sample
from toolcatalog.keys import KeyRing
from toolcatalog.opening import open_build
from toolcatalog.server import create_app
from toolcatalog.server.live import Live
from toolcatalog.store import Filters, Pins, Store

_TIMES = 1_000
_ENOUGH = 2.0  # seconds spent on one operation
_OPENINGS = 3
_PAGE = 20


def measure(build: Path, folder: Path) -> dict[str, Any]:
    """All figures of one build: times of single operations in microseconds, of opening and starting
    in milliseconds, memory in MB.
    """
    os.sync()  # a page of a file that has not reached the disk counts as one of the process's own
    command = machine.pinned(
        machine.SERVER_CORE, [sys.executable, "-m", "benchmarks.inside", str(build), str(folder)]
    )
    with machine.awake():
        opened = [json.loads(_run([*command, "open"])) for _ in range(_OPENINGS)]
        started = [_first_answer(build, folder) for _ in range(_OPENINGS)]
        costs = json.loads(_run(command))
    return {
        "open": statistics.median(one["open"] for one in opened),
        "start": statistics.median(one["start"] for one in started),
        "private": started[-1]["private"],
        "pss": started[-1]["pss"],
        **costs,
    }


def _run(command: Sequence[str]) -> str:
    return subprocess.run(
        command, env=servers.environment(), capture_output=True, text=True, check=True
    ).stdout


def _first_answer(build: Path, folder: Path) -> dict[str, float]:
    """Start the server; milliseconds until it has answered for the first time, and its memory then."""
    begin = machine.now()
    with servers.running(servers.ours(build, folder / "keys.json"), folder / "start.log") as server:
        client = Client(server.url, {"x-api-key": (folder / "key").read_text()})
        answer = client.get("/api/v3/tools?limit=1")
        assert answer.status == 200, answer
        return {"start": round((machine.now() - begin) * 1000, 1), **machine.memory(server.pid)}


def operations(store: Store) -> Mapping[str, Callable[[Question], object]]:
    """What the store does for each operation, without a question's text or an answer's headers.
    Follows the store's own doors.
    """

    def get(asked: Question) -> object:
        entry = store.tool(asked.slug)
        assert entry is not None
        return store.document(entry.number(entry.versions[-1]))

    def page(asked: Question) -> object:
        filters = Filters(
            toolkits=[asked.toolkit] if asked.toolkit else None,
            tags=asked.tags,
            deprecated=not asked.toolkit,
        )
        found = store.matching(filters, Pins())
        return len(found.numbers), store.documents(
            store.page(found, "slug", False, (asked.page - 1) * asked.size, asked.size)
        )

    def query(asked: Question) -> object:
        found = store.matching(Filters(query=asked.query), Pins())
        return len(found.numbers), store.documents(store.page(found, "relevance", True, 0, _PAGE))

    return {
        "get": get,
        "filter": page,
        "first page": page,
        "deep page": page,
        "query": query,
        "sentence": query,
    }


def costs(build: Path, folder: Path) -> dict[str, Any]:
    """Median microseconds of each operation in the store, and of the same question through the
    whole application without a socket.
    """
    sample, store = paths.sample(folder / "rows.jsonl"), open_build(build)
    asked = _questions(sample)
    app = create_app(Live(KeyRing(folder / "keys.json"), store), None)
    key = (folder / "key").read_text()
    through = {
        name: asyncio.run(_through(app, key, questions)) for name, questions in asked.items()
    }
    return {
        "store": {name: _median(act, asked[name]) for name, act in operations(store).items()},
        "application": through,
    }


def _questions(of: Sample) -> dict[str, list[Question]]:
    named = {
        operation.name: paths.questions(operation, of)[:_TIMES] for operation in paths.OPERATIONS
    }
    pages = {"first page": 1, "deep page": max(1, len(of.slugs) // _PAGE)}
    chosen = {name: named[name] for name in ("get", "filter", "query", "sentence")}
    return chosen | {
        name: [paths.page(of, _PAGE, number)] * _TIMES for name, number in pages.items()
    }


def _median(act: Callable[[Question], object], questions: Iterable[Question]) -> float:
    """Median time of one act, in microseconds; stops early where acts are slow."""
    times: list[int] = []
    end = time.perf_counter() + _ENOUGH
    for question in questions:
        begin = time.perf_counter_ns()
        act(question)
        times.append(time.perf_counter_ns() - begin)
        if time.perf_counter() > end:
            break
    return round(statistics.median(times) / 1000, 2)


async def _through(app: Any, key: str, questions: Sequence[Question]) -> float:
    times: list[int] = []
    end = time.perf_counter() + _ENOUGH
    for question in questions:
        begin = time.perf_counter_ns()
        status = await _call(app, key, paths.for_api(question))
        times.append(time.perf_counter_ns() - begin)
        assert status == 200, question
        if time.perf_counter() > end:
            break
    return round(statistics.median(times) / 1000, 2)


async def _call(app: Any, key: str, path: str) -> int:
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
        print(json.dumps(costs(Path(build), Path(folder))))


if __name__ == "__main__":
    main()
