"""One server process: the application with all its parts."""

import socket
from dataclasses import dataclass
from pathlib import Path

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from toolcatalog.errors import SnapshotError
from toolcatalog.keys import api_keys
from toolcatalog.publish import trusted_pointers
from toolcatalog.publish.signatures import VerifyKeys
from toolcatalog.server.access_log import AccessLog
from toolcatalog.server.app import create_app
from toolcatalog.server.metrics import prometheus
from toolcatalog.server.metrics.workers import WorkerPage
from toolcatalog.server.rate_limit import LocalRateLimiter, Rate, RateLimiter
from toolcatalog.server.reload import SnapshotReloader, read_current_identity
from toolcatalog.server.state import AppState, Flag
from toolcatalog.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What a server is told at its start; it travels to every worker. `waits`: there may be no
    build yet, it is being fetched.

    `drain`: seconds for which a server goes on after SIGTERM, while `/readyz` says 503. `mcp`:
    agents are answered at `/mcp`. `scraped_apart`: metrics have a socket of their own. `pages`: the
    folder where several processes write down what they count. `rate`: how often a key may list.
    `redis`: the URL of what several servers share their keys and counts through. `verify_keys`:
    only a snapshot is served that one of them has signed.
    """

    build: Path
    keys: Path
    site: Path | None
    workers: int = 1
    drain_seconds: float = 0.0
    wait_for_build: bool = False
    mcp: bool = False
    access_log: Path | None = None
    separate_metrics: bool = False
    metrics_folder: Path | None = None
    rate: Rate | None = None
    redis: str | None = None
    verify_keys: VerifyKeys | None = None


def create_worker_app(
    settings: ServerSettings,
    draining: Flag,
    metrics_listener: socket.socket | None = None,
    read_extra_counts: prometheus.ReadCounts | None = None,
) -> ASGIApp:
    """What answers in one process, and follows the build. Raises SnapshotError or KeyFileError."""
    seen = read_current_identity(
        settings.build
    )  # before it is opened: what comes between is opened once more
    store = open_or_wait(
        settings.build, settings.verify_keys, wait_for_build=settings.wait_for_build
    )
    live = AppState(
        api_keys.KeyRing(settings.keys), store, draining, _create_rate_limiter(settings)
    )
    if store is None and settings.verify_keys:
        seen = None  # a snapshot that is here already may still get its signature
    SnapshotReloader(live, settings.build, seen, settings.verify_keys).start()
    every = _create_counts_reader(live, settings, read_extra_counts)
    if metrics_listener:
        prometheus.serve_metrics(every, metrics_listener)
    more = _create_mcp_routes(live) if settings.mcp else []
    return create_app(
        live,
        settings.site,
        more if settings.separate_metrics else [*more, prometheus.create_metrics_route(every)],
    )


def _create_rate_limiter(settings: ServerSettings) -> RateLimiter | None:
    """Who counts in this process: it alone, for its share of the rate, or Redis for all."""
    if settings.rate is None:
        return None
    own = LocalRateLimiter(settings.rate.divide(settings.workers))
    if settings.redis is None:
        return own
    from toolcatalog.keys.redis import RedisAddress  # noqa: PLC0415 - only where there is a Redis
    from toolcatalog.server.redis_rate_limit import RedisRateLimiter  # noqa: PLC0415

    return RedisRateLimiter(RedisAddress(settings.redis), settings.rate, own)


def _create_counts_reader(
    state: AppState, settings: ServerSettings, read_extra_counts: prometheus.ReadCounts | None
) -> prometheus.ReadAllCounts:
    """What tells the counts of all processes; the access log begins, where there is to be one."""
    if settings.access_log:
        state.observer.access_log = AccessLog(settings.access_log, state.observer.counters)
    if settings.metrics_folder is None:
        return lambda: [state.get_counts(), *([read_extra_counts()] if read_extra_counts else [])]
    state.observer.worker_page = page = WorkerPage(settings.metrics_folder, state.get_counts)
    return page.read_all


def _create_mcp_routes(state: AppState) -> list[BaseRoute]:
    from toolcatalog.server.mcp import route  # noqa: PLC0415 - it comes with an extra, and takes a while to load

    return [route.create_mcp_route(state)]


def open_or_wait(
    build: Path, verify_keys: VerifyKeys | None = None, *, wait_for_build: bool
) -> Store | None:
    """The snapshot in force in a build, signed by one of the keys where there are any. Raises
    SnapshotError where there is none; where one is waited for, None says so.
    """
    try:
        return trusted_pointers.open_verified_build(build, verify_keys)
    except SnapshotError:
        if wait_for_build:
            return None
        raise
