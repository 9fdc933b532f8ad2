"""A server among clients of every kind, good, slow and hostile, for some minutes: what the good
ones see meanwhile, and what is left afterwards.

    PYTHONPATH=tests python -m support.soak [MINUTES]   the figures of docs/guides/monitor.md

All clients are tasks of one event loop, so a latency has this process's own waiting in it.
"""

import asyncio
import itertools
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from support.command import run_successfully
from support.paths import SHIPPED_CATALOG
from support.server import Server, start_server

LISTS, TOOL = "/api/v3/tools", "/api/v3/tools/GITHUB_CREATE_ISSUE"
REQUEST_KINDS = (  # path, a line of headers, whether the key is good, status
    (TOOL, "", True, 200),
    (f"{LISTS}?limit=20", "", True, 200),
    (f"{LISTS}?query=create+an+issue&limit=5", "", True, 200),
    (f"{LISTS}?toolkit_slug=slack&limit=1000", "Accept-Encoding: gzip\r\n", True, 200),
    ("/api/v3/tool_router/session/trs_playground/tools", "", True, 200),
    (f"{LISTS}?limit=0", "", True, 400),
    (TOOL, "", False, 401),
    (f"{LISTS}/NO_SUCH_TOOL", "Origin: https://a.example\r\n", True, 404),
    ("/readyz", "", False, 200),
    ("/nothing", "", False, 404),
)
TIMEOUT = 60.0  # seconds for an answer


@dataclass(frozen=True)
class Plan:
    """For how many seconds, and how many clients of each kind there are at a time."""

    seconds: float
    ordinary: int = 4
    idle: int = 500
    slow: int = 20


@dataclass
class SoakResult:
    """What was seen: seconds of each ordinary answer, statuses of all, what went wrong for ordinary
    clients, how the others ended, megabytes over time.
    """

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    connection_ends: Counter[str] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)
    descriptor_counts: tuple[int, int, int] = (
        0,
        0,
        0,
    )  # descriptors before, at the most, and after
    exit_code: int | None = None
    drain_seconds: float = 0.0  # seconds from SIGTERM to the end

    @property
    def memory_thirds(self) -> tuple[float, float]:
        """Megabytes in the first and in the last third, the first quarter of a minute (when all is
        being read for the first time) left out: means.
        """
        result = self.memory[len(self.memory) // 10 :]
        third = max(1, len(result) // 3)
        return sum(result[:third]) / third, sum(result[-third:]) / third

    def summary(self) -> str:
        """The same in some lines."""
        times = sorted(self.seconds)
        parts = ", ".join(
            f"p{part:g} {1000 * times[int(len(times) * part / 100)]:.1f} ms"
            for part in (50, 90, 99, 99.9)
        )
        return (
            f"{len(times):,} ordinary requests: {parts}, longest {1000 * times[-1]:.0f} ms; wrong:"
            f" {dict(self.failures)}\nstatuses of all:"
            f" {dict(sorted(self.statuses.items()))}\nothers:"
            f" {dict(sorted(self.connection_ends.items()))}\nmemory (PSS)"
            f" {self.memory_thirds[0]:.1f} MB in the first third, {self.memory_thirds[1]:.1f} MB in"
            f" the last; descriptors before, at most, after: {self.descriptor_counts}\nended with"
            f" {self.exit_code} {self.drain_seconds:.1f} s after SIGTERM"
        )


class SoakClients:
    """All clients of one server."""

    def __init__(self, server: Server, plan: Plan) -> None:
        self.server, self.plan, self.result = server, plan, SoakResult()
        self._host, _, port = server.url.removeprefix("http://").partition(":")
        self._port, self._tasks = int(port), list[asyncio.Task[None]]()

    async def run(self) -> SoakResult:
        """Begin, wait, end, and look what is left."""
        await self._pipelining_client(0)  # what is opened with the first requests stays open
        self.result.connection_ends.clear()
        await asyncio.sleep(0.5)
        previous = self._count_descriptors()
        maximum = await self._start_clients()
        end = time.monotonic() + 30
        while (current := self._count_descriptors()) > previous and time.monotonic() < end:
            await asyncio.sleep(0.2)
        self.result.descriptor_counts = previous, maximum, current
        await self._drain()
        return self.result

    async def _start_clients(self) -> int:
        slow = self.plan.slow
        kinds: list[tuple[Callable[[int], Awaitable[None]], int]] = [
            (self._ordinary_client, self.plan.ordinary),
            (self._idle_client, self.plan.idle),
        ]
        kinds += [
            (self._slow_head_client, slow),
            (self._half_request_client, slow),
            (self._slow_reader_client, slow // 4),
            (self._non_reading_client, slow // 4),
        ]
        kinds += [
            (self._large_head_client, 1),
            (self._pipelining_client, 1),
            (self._invalid_http_client, 1),
        ]
        for client, times in kinds:
            self._tasks += [
                asyncio.create_task(self._repeat(client, number)) for number in range(times)
            ]
        maximum, end = 0, time.monotonic() + self.plan.seconds
        while time.monotonic() < end:
            self.result.memory.append(memory_megabytes(self.server.process.pid))
            maximum = max(maximum, self._count_descriptors())
            await asyncio.sleep(min(1.0, self.plan.seconds / 30))
        remaining = set(self._tasks)
        while remaining:  # Python 3.11's wait_for can lose a cancellation
            for task in remaining:
                task.cancel()
            _, remaining = await asyncio.wait(remaining, timeout=1)
        return maximum

    async def _repeat(self, client: Callable[[int], Awaitable[None]], number: int) -> None:
        """A client of a kind after another; the server may end each of the bad ones as it likes."""
        is_ordinary = client == self._ordinary_client
        while True:
            try:
                await client(number)
            except (OSError, EOFError, TimeoutError) as error:
                (self.result.failures if is_ordinary else self.result.connection_ends)[
                    f"{client.__name__} {type(error).__name__}"
                ] += 1
            await asyncio.sleep(0.05)

    async def _drain(self) -> None:
        """SIGTERM among requests under way, whose bodies are still to come: each is answered."""
        connected = [await self._connect() for _ in range(20)]
        head = self._encode_request(
            "/api/v3/tool_router/session/trs_playground/tools",
            "Content-Length: 2\r\nExpect: 100-continue\r\n",
        )
        for reader, writer in connected:
            writer.write(head)
            await asyncio.wait_for(reader.readuntil(b"100 Continue\r\n\r\n"), TIMEOUT)
        began = time.monotonic()
        self.server.process.terminate()
        await asyncio.sleep(0.5)
        for reader, writer in connected:
            writer.write(b"{}")
            status, _ = await self._read_answer(reader)
            self.result.failures["at the end"] += status != 200
            writer.close()
        while self.server.process.poll() is None and time.monotonic() < began + 30:
            await asyncio.sleep(0.05)
        self.result.exit_code, self.result.drain_seconds = (
            self.server.process.poll(),
            time.monotonic() - began,
        )

    # The kinds

    async def _ordinary_client(self, number: int) -> None:
        """Asks for all kinds of things on one connection, as fast as it is answered."""
        reader, writer = await self._connect()
        try:
            for path, headers, is_good, expected in itertools.islice(
                itertools.cycle(REQUEST_KINDS), number, number + 1000
            ):
                began = time.perf_counter()
                writer.write(self._encode_request(path, headers, is_good=is_good))
                status, _ = await self._read_answer(reader)
                self.result.seconds.append(time.perf_counter() - began)
                if status != expected:
                    self.result.failures[f"{status} for {path}"] += 1
        finally:
            writer.close()

    async def _idle_client(self, number: int) -> None:
        """Says nothing, or nothing after one request, until the server closes."""
        await self._until_closed(
            "idle", b"" if number % 2 else self._encode_request("/healthz", is_good=False)
        )

    async def _half_request_client(self, number: int) -> None:
        """Sends half a head or half a body, and perhaps closes its own side."""
        part = self._encode_request(
            "/api/v3/tool_router/session/trs_playground/tools", "Content-Length: 100\r\n"
        )
        await self._until_closed("half", part if number % 3 else part[:50], closes=number % 2 == 0)

    async def _until_closed(self, kind: str, request: bytes, *, closes: bool = False) -> None:
        reader, writer = await self._connect()
        try:
            writer.write(request)
            if closes:
                writer.write_eof()
            while await reader.read(65536):
                pass
            self.result.connection_ends[f"{kind}: closed by the server"] += 1
        finally:
            writer.close()

    async def _slow_head_client(self, number: int) -> None:  # noqa: ARG002 - one kind of all
        """Slowloris: a byte now and then."""
        reader, writer = await self._connect()
        ended = asyncio.create_task(reader.read())
        try:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nx: ")
            while not ended.done():
                writer.write(b"a")
                await asyncio.sleep(0.5)
            self.result.connection_ends[
                f"slow head: {(await ended)[9:12].decode() or 'closed'}"
            ] += 1
        finally:
            ended.cancel()
            writer.close()

    async def _slow_reader_client(self, number: int) -> None:  # noqa: ARG002
        """Takes a page of 1,000 tools in small steps."""
        reader, writer = await self._connect()
        try:
            writer.write(self._encode_request(f"{LISTS}?limit=1000"))
            status, _ = await self._read_answer(reader, step=16_384, delay=0.1)
            self.result.connection_ends[f"slow reader: whole {status}"] += 1
        finally:
            writer.close()

    async def _non_reading_client(self, number: int) -> None:  # noqa: ARG002
        """Asks for much, and takes nothing of it."""
        _, writer = await self._connect()
        try:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(self._encode_request(f"{LISTS}?limit=1000") * 20)
            await asyncio.sleep(5)
            self.result.connection_ends["deaf: went away"] += 1
        finally:
            writer.transport.abort()

    async def _large_head_client(self, number: int) -> None:  # noqa: ARG002
        """Sends a head without end."""
        _, writer = await self._connect()
        try:
            writer.write(b"GET /healthz HTTP/1.1\r\nx: ")
            while not writer.transport.is_closing():
                writer.write(b"a" * 65536)
                await writer.drain()
            self.result.connection_ends["too large: closed by the server"] += 1
        finally:
            writer.transport.abort()

    async def _pipelining_client(self, number: int) -> None:  # noqa: ARG002
        """Sends 50 requests in one packet."""
        reader, writer = await self._connect()
        try:
            request = list(itertools.islice(itertools.cycle(REQUEST_KINDS), 50))
            writer.write(
                b"".join(
                    self._encode_request(path, headers, is_good=is_good)
                    for path, headers, is_good, _ in request
                )
            )
            results = [(await self._read_answer(reader))[0] for _ in request]
            self.result.connection_ends[
                f"pipelining: {'right' if results == [item[3] for item in request] else 'wrong'}"
            ] += 1
        finally:
            writer.close()

    async def _invalid_http_client(self, number: int) -> None:  # noqa: ARG002
        """Sends what is no HTTP."""
        reader, writer = await self._connect()
        try:
            writer.write(os.urandom(200))
            self.result.connection_ends[f"nonsense: {(await reader.read())[9:12].decode()}"] += 1
        finally:
            writer.close()

    # What they share

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.wait_for(asyncio.open_connection(self._host, self._port), TIMEOUT)

    def _encode_request(self, path: str, headers: str = "", *, is_good: bool = True) -> bytes:
        key = self.server.key if is_good else "tc_nobody"
        return f"GET {path} HTTP/1.1\r\nHost: a\r\nx-api-key: {key}\r\n{headers}\r\n".encode()

    async def _read_answer(
        self, reader: asyncio.StreamReader, step: int = 1 << 20, delay: float = 0
    ) -> tuple[int, bytes]:
        """The status and the body of the next answer."""
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), TIMEOUT)
        length = re.search(rb"content-length: ([0-9]+)", head)
        remaining, body = int(length[1]) if length else 0, b""
        while remaining > len(body):
            part = await asyncio.wait_for(reader.read(min(step, remaining - len(body))), TIMEOUT)
            if not part:
                raise EOFError(head)
            body += part
            if delay:
                await asyncio.sleep(delay)
        status = int(head.split()[1])
        self.result.statuses[status] += 1
        return status, body

    def _count_descriptors(self) -> int:
        """How many descriptors the server has open."""
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))  # noqa: PTH208


def memory_megabytes(process: int) -> float:
    """The memory of a process, its part of what is shared (PSS)."""
    match = re.search(r"Pss: +([0-9]+)", Path(f"/proc/{process}/smaps_rollup").read_text())
    assert match
    return int(match[1]) / 1024


def run_soak(build: Path, folder: Path, plan: Plan) -> tuple[SoakResult, str]:
    """What was seen with a server of this build, and its log."""
    with start_server(build, folder) as server:
        seen = asyncio.run(SoakClients(server, plan).run())
        return seen, server.log.read_text()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, suppress(KeyboardInterrupt):
        run_successfully(
            "build", "--catalog", SHIPPED_CATALOG, "--out", Path(place) / "build", "--no-site"
        )
        print(
            run_soak(
                Path(place) / "build",
                Path(place),
                Plan(60 * float(sys.argv[1] if len(sys.argv) > 1 else 10), idle=4000, slow=100),
            )[0].summary()
        )
