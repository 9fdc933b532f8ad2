"""Years of operating in a minute: steady load from several clients while builds come and go,
workers are killed and the store is away.

    PYTHONPATH=tests python -m support.endurance            the figures of docs/guides/monitor.md

Two servers are asked. One serves a build: `current` is moved back and forth as builds do,
`toolcatalog snapshots use` rolls back, workers are killed. One follows an object store (moto's S3
server, through a proxy that can be away): snapshots are published to it.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx

from support.command import run_successfully
from support.paths import SHIPPED_CATALOG
from support.s3 import FaultyProxy, create_bucket, start_s3_server
from support.server import TIMEOUT, Server, start_server, wait_until, worker_pids
from toolcatalog.build.pipeline import build
from toolcatalog.system import files

PATHS = (
    "/api/v3/tools/GITHUB_CREATE_ISSUE",
    "/api/v3/tools",
    "/api/v3/tools?query=create+an+issue&limit=5",
    "/api/v3/tools?toolkit_slug=slack&limit=1000",
    "/api/v3/tool_router/session/trs_playground/tools",
    "/api/v3.1/tools/SLACK_SEND_MESSAGE?version=latest",
    "/readyz",
)
CLIENTS = 3  # of each server


@dataclass(frozen=True)
class Plan:
    """What happens, and how often."""

    reloads: int = 50
    rollbacks: int = 10
    kills: int = 2
    outages: int = 1
    published: int = 4


@dataclass
class ClientStats:
    """What the clients of one server have seen: statuses, connections that ended without an answer,
    snapshots, seconds for each answer.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    dropped: int = 0
    inconsistent: int = 0
    snapshots: set[str] = field(default_factory=set)
    seconds: list[float] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """Answers other than 200."""
        return sum(self.statuses.values()) - self.statuses[200]

    def summary(self, name: str) -> str:
        """The same in a line."""
        times = sorted(self.seconds)
        p50, p99 = (1000 * times[int(len(times) * part)] for part in (0.5, 0.99))
        return (
            f"{name}: {len(times):,} requests, {self.failed} failed, {self.dropped} connections"
            f" broken, {len(self.snapshots)} snapshots seen, p50 {p50:.1f} ms, p99 {p99:.1f} ms,"
            f" longest {1000 * times[-1]:.0f} ms"
        )


class LoadGenerator:
    """Clients that ask one server on kept connections, as fast as it answers, until `end`."""

    def __init__(self, server: Server) -> None:
        self.server, self.seen, self._stop, self._lock = (
            server,
            ClientStats(),
            threading.Event(),
            threading.Lock(),
        )
        self._threads = [
            threading.Thread(target=self._run_client, args=(number,)) for number in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def _run_client(self, number: int) -> None:
        with httpx.Client(
            base_url=self.server.url, headers={"x-api-key": self.server.key}, timeout=TIMEOUT
        ) as client:
            while not self._stop.is_set():
                number += 1
                self._send_request(client, PATHS[number % len(PATHS)])

    def _send_request(self, client: httpx.Client, path: str) -> None:
        began = time.perf_counter()
        try:
            answer = client.get(path)
        except httpx.TransportError:
            with self._lock:
                self.seen.dropped += 1
            return
        with self._lock:
            self.seen.seconds.append(time.perf_counter() - began)
            self.seen.statuses[answer.status_code] += 1
            self.seen.snapshots.add(answer.headers["x-catalog-snapshot"])
            self.seen.inconsistent += (
                path == "/readyz"
                and answer.json()["snapshot"] != answer.headers["x-catalog-snapshot"]
            )

    def stop(self) -> ClientStats:
        """Stop, and tell what was seen."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        return self.seen


def build_two_snapshots(folder: Path) -> list[str]:
    """A build with two snapshots of the shipped catalog: their digests."""
    catalog = folder / "catalog"
    run_successfully("build", "--catalog", SHIPPED_CATALOG, "--out", folder / "build", "--no-site")
    first = (folder / "build/current").resolve().name
    shutil.copytree(SHIPPED_CATALOG, catalog)
    metadata = catalog / "toolkits/github/toolkit.yaml"
    metadata.write_text(metadata.read_text().replace("name: GitHub", "name: GitHub again", 1))
    return [first, build(catalog, folder / "build", None).digest]


def reload_and_kill_workers(server: Server, folder: Path, digests: list[str], plan: Plan) -> None:
    """Move `current` as builds do, roll back, and kill a worker now and then."""
    events = ["reload"] * plan.reloads
    for kind, times in (("rollback", plan.rollbacks), ("kill", plan.kills)):
        step = max(1, len(events) // (times + 1))
        for number in range(times):
            events.insert((number + 1) * step, kind)
    current = folder / "build/current"
    for kind in events:
        other = next(digest for digest in digests if digest != current.resolve().name)
        if kind == "kill":
            os.kill(min(worker_pids(server)), signal.SIGKILL)
        elif kind == "rollback":
            run_successfully("snapshots", "use", other[:12], "--build", folder / "build")
        else:
            files.replace_symlink(current, f"snapshots/{other}")
        if kind != "kill":
            wait_until(partial(is_served, server, other))


def served_snapshot(server: Server) -> str:
    """What a new connection is answered from; empty while that is being fetched."""
    served: str = httpx.get(f"{server.url}/readyz", timeout=TIMEOUT).headers.get(
        "x-catalog-snapshot", ""
    )
    return served


def is_served(server: Server, digest: str) -> bool:
    """Tell whether new connections are answered from this snapshot."""
    return served_snapshot(server) == digest


def publish_with_outages(
    server: Server, folder: Path, url: str, digests: list[str], plan: Plan, proxy: FaultyProxy
) -> None:
    """Publish one snapshot and the other in turn; the store is away for some seconds in between."""
    published = folder / "published"
    published.mkdir()
    (published / "snapshots").symlink_to(folder / "build/snapshots")
    for number in range(plan.published):
        if number < plan.outages:
            proxy.stop()
            time.sleep(5)
            proxy.start()
        files.replace_symlink(published / "current", f"snapshots/{digests[number % 2]}")
        run_successfully("publish", url, "--build", published, env=proxy.env)
        wait_until(partial(is_served, server, digests[number % 2]))


@contextmanager
def start_both_servers(
    folder: Path,
) -> Iterator[tuple[Server, Server, str, list[str], FaultyProxy]]:
    """The two servers, the address of the store, the digests, and the proxy before the store."""
    digests = build_two_snapshots(folder)
    for name in ("local", "following"):
        (folder / name).mkdir()
    with start_s3_server() as store:
        proxy = FaultyProxy(store)
        proxy.start()
        url = f"s3://{create_bucket(store)}/catalog"
        run_successfully("publish", url, "--build", folder / "build", env=proxy.env)
        with (
            start_server(folder / "build", folder / "local", "--workers", "2") as local,
            start_server(
                url, folder / "following", "--cache", folder / "cache", env=proxy.env
            ) as following,
        ):
            wait_until(lambda: served_snapshot(following))
            yield local, following, url, digests, proxy


def run_endurance(folder: Path, plan: Plan) -> tuple[ClientStats, ClientStats]:
    """All of that at once: what the clients of either server have seen."""
    with start_both_servers(folder) as (local, following, url, digests, proxy):
        loads = [LoadGenerator(local), LoadGenerator(following)]
        try:
            beside = threading.Thread(
                target=publish_with_outages, args=(following, folder, url, digests, plan, proxy)
            )
            beside.start()
            reload_and_kill_workers(local, folder, digests, plan)
            beside.join()
        finally:
            seen = [load.stop() for load in loads]
    return seen[0], seen[1]


if __name__ == "__main__":
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        for name, seen in zip(
            ("a build, 2 workers", "an object store, 1 process"),
            run_endurance(Path(scratch), Plan()),
            strict=True,
        ):
            print(seen.summary(name))
    print(f"{Plan()} in {time.monotonic() - began:.0f} s", file=sys.stderr)
