"""Prometheus exposition: counters in text form, at `/metrics` or at an address of its own.

The multiprocess mode of the Prometheus client library needs a file of one megabyte for each process
that ever ran, and reads all of them at each scrape. That does not suit a server that runs for years
and replaces its workers, so `server.metrics.workers` is used instead.

`/metrics` needs no key, so only local requests are accepted: the client address and the requested
host are loopback, and no header says that a proxy forwards the request. All others get 404. A proxy
on the same machine that adds no such header cannot be distinguished from a local client: behind
one, `--metrics` moves the metrics to an address of their own.

A browser on this machine must not fetch the metrics for a page of another origin: a request with an
`Origin`, or with a `Sec-Fetch-Site` other than `same-origin` or `none`, gets 404 as well, and no
response here has a CORS header.
"""

import ipaddress
import os
import re
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, NamedTuple
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolcatalog.server.metrics.counters import (
    BUCKET_BOUNDS,
    CACHE_HITS,
    CACHE_MISSES,
    LOG_LINES_DROPPED,
    REFUSED_SNAPSHOTS,
    RELOADS,
    SNAPSHOTS_FETCHED,
    STORE_FAILURES,
    CounterValues,
    WorkerStatus,
    sum_values,
)
from toolcatalog.system import threads

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric


# top-level domains that are reserved, or private by use, and those of a cluster
_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".svc", ".test", ".home.arpa")
_TIMEOUT = 10.0  # seconds for a scrape to send its request
ReadAllCounts = Callable[[], Sequence[CounterValues]]  # the current counts of all processes
ReadCounts = Callable[[], CounterValues]  # the current counts of one process

_EVENT_METRICS = {
    RELOADS: ("toolcatalog_snapshot_reloads", "New snapshots taken over, by each process."),
    REFUSED_SNAPSHOTS: (
        "toolcatalog_snapshot_refused",
        "New snapshots that were not whole, by each process; the one before stayed.",
    ),
    CACHE_HITS: ("toolcatalog_answer_cache_hits", "List and session answers from the cache."),
    CACHE_MISSES: (
        "toolcatalog_answer_cache_misses",
        "List and session answers that were computed.",
    ),
    LOG_LINES_DROPPED: (
        "toolcatalog_access_log_dropped",
        "Lines of the access log that could not be written.",
    ),
    SNAPSHOTS_FETCHED: ("toolcatalog_store_fetched", "Snapshots fetched from the object store."),
    STORE_FAILURES: (
        "toolcatalog_store_failures",
        "Looks at the object store that failed, or found what was refused.",
    ),
}


class MetricsText(NamedTuple):
    """The body of a scrape response, and its content type."""

    body: bytes
    content_type: str


def render_metrics(read_all: ReadAllCounts, accept: str) -> MetricsText:
    """Return the metrics in the format that an `Accept` header asks for.

    The formats are Prometheus text and OpenMetrics. Takes some milliseconds.
    """
    from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 - only for a scrape

    encode, kind = choose_encoder(accept)
    return MetricsText(encode(_create_registry(read_all)), kind)


def is_of_page(origin: str | None, site: str | None) -> bool:
    """Return whether a browser sends a request for a page of another origin.

    `origin` and `site` are the headers `Origin` and `Sec-Fetch-Site`. A scraper, and a person who
    types the address, send neither.
    """
    return origin is not None or site not in (None, "none", "same-origin")


def is_own_host(header: str) -> bool:
    """Return whether a `Host` header is an IP address or a name that is not in the public DNS.

    A web page can point a public name of its own to this machine, and is then of the same origin.
    The name of this machine is accepted, too.
    """
    name = _PORT.sub("", header.strip().lower()).strip("[]").removesuffix(".")
    if "." not in name or name.endswith(_PRIVATE_SUFFIXES) or name == socket.gethostname().lower():
        return True
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def serve_metrics(read_all: ReadAllCounts, listener: socket.socket) -> None:
    """Serve metrics on a socket of their own, in threads of this process, until it ends.

    A browser that asks for a page of another origin gets 403, and so does a request for a host that
    anyone could point to this machine: see `is_own_host`.
    """
    from prometheus_client import make_wsgi_app  # noqa: PLC0415

    metrics = make_wsgi_app(_create_registry(read_all))

    def application(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        if is_of_page(environ.get("HTTP_ORIGIN"), environ.get("HTTP_SEC_FETCH_SITE")):
            start("403 Forbidden", [("Content-Type", "text/plain")])
            return [b"Metrics are not for web pages: scrape them from a program.\n"]
        if not is_own_host(environ.get("HTTP_HOST", "")):
            start("403 Forbidden", [("Content-Type", "text/plain")])
            return [b"Scrape metrics by IP address, or by a name that is not a public one.\n"]
        return metrics(environ, start)  # type: ignore[no-any-return]

    server = _MetricsServer(listener)
    server.set_app(application)
    threads.start(threading.Thread(target=server.serve_forever, name="metrics", daemon=True))


class _MetricsHandler(WSGIRequestHandler):
    timeout = _TIMEOUT

    def log_message(self, *args: object) -> None:
        """Log nothing: a scrape every few seconds is not worth a line."""


class _MetricsServer(ThreadingMixIn, WSGIServer):
    """The standard library's WSGI server, on a socket that is already listening."""

    daemon_threads = True

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(listener.getsockname()[:2], _MetricsHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        # the base class would look up a host name in the DNS
        self.server_name, self.server_port = listener.getsockname()[:2]
        self.setup_environ()


def _create_registry(read_all: ReadAllCounts) -> "CollectorRegistry":
    from prometheus_client import CollectorRegistry  # noqa: PLC0415

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(read_all))
    return registry


class _Collector:
    def __init__(self, read_all: ReadAllCounts) -> None:
        self._read_all = read_all

    def collect(self) -> Iterator["Metric"]:
        """Yield all metrics, from counts that are read once."""
        counts = sum_values(self._read_all())
        yield from _request_metrics(counts)
        yield from _event_metrics(counts)
        yield from _process_metrics(counts.workers)


def _request_metrics(counts: CounterValues) -> Iterator["Metric"]:
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily  # noqa: PLC0415

    requests = CounterMetricFamily(
        "toolcatalog_requests", "Requests answered.", labels=["route", "status"]
    )
    latency = HistogramMetricFamily(
        "toolcatalog_request_duration_seconds",
        "From its headers to the end of its answer.",
        labels=["route"],
    )
    keys = CounterMetricFamily(
        "toolcatalog_key_requests",
        "Requests by the id of their key; none: without a good one.",
        labels=["key"],
    )
    for name, cell in sorted(counts.requests.items()):
        status, _, route = name.partition(" ")
        requests.add_metric([route, status], sum(cell[:-1]))
    for route, cell in sorted(_sum_by_route(counts.requests).items()):
        buckets = zip([*map(str, BUCKET_BOUNDS), "+Inf"], accumulate(cell[:-1]), strict=True)
        latency.add_metric([route], [*buckets], cell[-1])
    for key, number in sorted(counts.keys.items()):
        keys.add_metric([key], number)
    yield from (requests, latency, keys)


def _sum_by_route(requests: Mapping[str, Sequence[float]]) -> Mapping[str, Sequence[float]]:
    found: dict[str, Sequence[float]] = {}
    for name, cell in requests.items():
        route = name.partition(" ")[2]
        found[route] = (
            [a + b for a, b in zip(found[route], cell, strict=True)] if route in found else cell
        )
    return found


def _event_metrics(counts: CounterValues) -> Iterator["Metric"]:
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415

    for event, (name, meaning) in _EVENT_METRICS.items():
        yield CounterMetricFamily(name, meaning, counts.events[event])


def _process_metrics(processes: Sequence[WorkerStatus]) -> Iterator["Metric"]:
    from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily  # noqa: PLC0415

    info = InfoMetricFamily(
        "toolcatalog_snapshot",
        "The snapshot that is served; two while processes take over a new one.",
    )
    since = "Since a process first opened it, by a clock that never jumps."
    age = GaugeMetricFamily("toolcatalog_snapshot_age_seconds", since, labels=["digest"])
    opened: defaultdict[str, list[float]] = defaultdict(list)
    for process in processes:
        if process.snapshot:
            opened[process.snapshot].append(process.opened)
    for digest, times in sorted(opened.items()):
        info.add_metric([], {"digest": digest})
        age.add_metric([digest], max(0.0, time.monotonic() - min(times)))
    yield from (info, age)
    yield GaugeMetricFamily("toolcatalog_processes", "Processes that answer.", len(processes))
    cached = sum(process.cached_answers for process in processes)
    yield GaugeMetricFamily(
        "toolcatalog_answer_cache_entries", "Answers in the caches now.", cached
    )
    sizes = [_resident_memory(process.process) for process in processes]
    if all(sizes):
        yield GaugeMetricFamily(
            "toolcatalog_resident_memory_bytes",
            "Of all processes; what they share counts for each.",
            sum(sizes),
        )


def _resident_memory(pid: int) -> int:
    """Return the resident memory of a process in bytes.

    Returns 0 if the system does not report it, or if the process has ended.
    """
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


PATH = "/metrics"
_PROXY_HEADERS = (
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
)
_PORT = re.compile(r":[0-9]*\Z")


def create_metrics_route(read_all: ReadAllCounts) -> Route:
    """Return the `/metrics` route; `read_all` reads the counts of all processes."""

    async def scrape(request: Request) -> Response:
        if not is_local_request(request):
            raise HTTPException(404)
        found = await run_in_threadpool(render_metrics, read_all, request.headers.get("accept", ""))
        return Response(
            found.body, headers={"content-type": found.content_type, "cache-control": "no-store"}
        )

    return Route(PATH, scrape)


def is_local_request(request: Request) -> bool:
    """Return whether a request comes from this machine directly.

    Returns False if a proxy, or a page of another origin, is behind it.
    """
    host = _PORT.sub("", request.headers.get("host", "")).strip("[]")
    client = request.client.host if request.client else ""
    return (
        _is_loopback(client)
        and (host == "localhost" or _is_loopback(host))
        and not any(name in request.headers for name in _PROXY_HEADERS)
        and not is_of_page(request.headers.get("origin"), request.headers.get("sec-fetch-site"))
    )


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)
