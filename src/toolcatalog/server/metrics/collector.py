"""Prometheus collector: counters as metric families of the Prometheus client library.

This module imports that library, so servers import it only when somebody reads metrics.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder

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

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

ReadAllCounts = Callable[[], Sequence[CounterValues]]  # the current counts of all processes

_EVENT_METRICS = {
    RELOADS: ("toolcatalog_snapshot_reloads", "New snapshots loaded, by each process."),
    REFUSED_SNAPSHOTS: (
        "toolcatalog_snapshot_refused",
        "Incomplete new snapshots, by each process; the previous one stayed.",
    ),
    CACHE_HITS: ("toolcatalog_answer_cache_hits", "API answers from the cache."),
    CACHE_MISSES: ("toolcatalog_answer_cache_misses", "API answers that were computed."),
    LOG_LINES_DROPPED: (
        "toolcatalog_access_log_dropped",
        "Lines of the access log that could not be written.",
    ),
    SNAPSHOTS_FETCHED: ("toolcatalog_store_fetched", "Snapshots fetched from the object store."),
    STORE_FAILURES: (
        "toolcatalog_store_failures",
        "Checks of the object store that failed or found a refused snapshot.",
    ),
}


def encode_metrics(read_all: ReadAllCounts, accept: str) -> tuple[bytes, str]:
    """Return the metrics in the format that an `Accept` header asks for, and its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(create_registry(read_all)), content_type


def create_wsgi_app(read_all: ReadAllCounts) -> "WSGIApplication":
    """Return a WSGI application that answers a scrape."""
    return make_wsgi_app(create_registry(read_all))


def create_registry(read_all: ReadAllCounts) -> CollectorRegistry:
    """Return a registry whose metrics are read from counts at each scrape."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(read_all))
    return registry


class _Collector:
    def __init__(self, read_all: ReadAllCounts) -> None:
        self._read_all = read_all

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, from counts that are read once."""
        counts = sum_values(self._read_all())
        yield from _request_metrics(counts)
        yield from _event_metrics(counts)
        yield from _process_metrics(counts.workers)


def _request_metrics(counts: CounterValues) -> Iterator[Metric]:
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
        "Requests by the id of their key; none: without a valid one.",
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


def _event_metrics(counts: CounterValues) -> Iterator[Metric]:
    for event, (name, meaning) in _EVENT_METRICS.items():
        yield CounterMetricFamily(name, meaning, counts.events[event])


def _process_metrics(processes: Sequence[WorkerStatus]) -> Iterator[Metric]:
    info = InfoMetricFamily(
        "toolcatalog_snapshot",
        "The snapshot that is served; two while processes switch to a new one.",
    )
    since = "Time since a process first opened it, by a monotonic clock."
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
            "Of all processes; shared memory counts for each.",
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
