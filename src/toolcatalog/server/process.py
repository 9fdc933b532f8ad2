"""One server process: create the application with its store, key ring, metrics and logs."""

import gc
import socket
from dataclasses import dataclass, field
from pathlib import Path

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from toolcatalog.errors import SnapshotError
from toolcatalog.keys import api_keys
from toolcatalog.keys.redis_connection import RedisAddress
from toolcatalog.publish import trusted_pointers
from toolcatalog.publish.signatures import VerifyKeys
from toolcatalog.server.app import create_app
from toolcatalog.server.limits.rate_limit import LocalRateLimiter, Rate, RateLimiter
from toolcatalog.server.limits.redis_rate_limit import RedisRateLimiter
from toolcatalog.server.logs.access_log import AccessLog
from toolcatalog.server.logs.server_log import LogSettings
from toolcatalog.server.metrics import prometheus
from toolcatalog.server.metrics.workers import WorkerPage
from toolcatalog.server.reload import SnapshotReloader, read_current_identity
from toolcatalog.server.state import AppState, Flag
from toolcatalog.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of a server; they are sent to every worker.

    `wait_for_build`: the server may start without a build, which is still being fetched.
    `drain_seconds`: how long it keeps answering after SIGTERM, while `/readyz` answers 503. `mcp`:
    serve MCP at `/mcp`. `separate_metrics`: the metrics have a socket of their own.
    `metrics_folder`: where several processes write their counters. `rate`: how often a key may list
    tools. `redis`: the URL of the Redis through which several servers share keys and counts.
    `verify_keys`: serve only snapshots that one of these keys has signed. `root_path`: the path
    below which a proxy publishes the server. `forwarded_allow_ips`: the addresses of proxies whose
    `X-Forwarded-For` and `X-Forwarded-Proto` are trusted, with commas. `tracing`: send a span of
    each request with OpenTelemetry.
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
    root_path: str = ""
    forwarded_allow_ips: str | None = None
    log: LogSettings = field(default_factory=LogSettings)
    tracing: bool = False


def create_worker_app(
    settings: ServerSettings,
    draining: Flag,
    metrics_listener: socket.socket | None = None,
    read_extra_counts: prometheus.ReadCounts | None = None,
) -> ASGIApp:
    """Return the ASGI application of one process, and start to follow the build.

    Raises SnapshotError or KeyFileError.
    """
    seen = read_current_identity(
        settings.build
    )  # read first: a snapshot that is published in between is opened again
    store = open_or_wait(
        settings.build, settings.verify_keys, wait_for_build=settings.wait_for_build
    )
    live = AppState(
        api_keys.KeyRing(settings.keys), store, draining, _create_rate_limiter(settings)
    )
    if store is None:
        seen = None  # the current snapshot may still get its signature, or become readable
    SnapshotReloader(live, settings.build, seen, settings.verify_keys).start()
    every = _create_counts_reader(live, settings, read_extra_counts)
    if metrics_listener:
        prometheus.serve_metrics(every, metrics_listener)
    more = _create_mcp_routes(live) if settings.mcp else []
    if not settings.separate_metrics:
        more.append(prometheus.create_metrics_route(every))
    app = create_app(live, settings.site, more, settings.root_path)
    if settings.tracing:
        app = _trace(app)
    gc.freeze()  # the collector visits only what requests leave, so it stops them for less time
    return app


def _create_rate_limiter(settings: ServerSettings) -> RateLimiter | None:
    """Return the rate limiter of this process, or None if there is no rate.

    Without Redis the process counts alone, and gets its share of the rate.
    """
    if settings.rate is None:
        return None
    own = LocalRateLimiter(settings.rate.divide(settings.workers))
    if settings.redis is None:
        return own
    return RedisRateLimiter(RedisAddress(settings.redis), settings.rate, own)


def _create_counts_reader(
    state: AppState, settings: ServerSettings, read_extra_counts: prometheus.ReadCounts | None
) -> prometheus.ReadAllCounts:
    """Return a function that reads the counts of all processes.

    Also starts the access log, if there is one.
    """
    if settings.access_log:
        state.observer.access_log = AccessLog(settings.access_log, state.observer.counters)
    if settings.metrics_folder is None:
        return lambda: [state.get_counts(), *([read_extra_counts()] if read_extra_counts else [])]
    state.observer.worker_page = page = WorkerPage(settings.metrics_folder, state.get_counts)
    return page.read_all


def _trace(app: ASGIApp) -> ASGIApp:
    from toolcatalog.server.logs import tracing  # noqa: PLC0415 - an optional extra

    return tracing.trace_requests(app)


def _create_mcp_routes(state: AppState) -> list[BaseRoute]:
    from toolcatalog.server.mcp import route  # noqa: PLC0415 - optional, slow to import

    return [route.create_mcp_route(state)]


def open_or_wait(
    build: Path, verify_keys: VerifyKeys | None = None, *, wait_for_build: bool
) -> Store | None:
    """Return the current snapshot of a build, signed by one of the keys if there are any.

    Raises SnapshotError if there is none; with `wait_for_build`, returns None instead.
    """
    try:
        return trusted_pointers.open_verified_build(build, verify_keys)
    except SnapshotError:
        if wait_for_build:
            return None
        raise
