"""Metric counters of one server process.

All of them are bounded: routes are templates, statuses are those that the server sends, keys are
those of the key file. Nothing here uses the wall clock.
"""

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# seconds
BUCKET_BOUNDS = (
    0.00005,
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)
NO_KEY = "none"  # the key id of a request without a valid key
RELOADS, REFUSED_SNAPSHOTS = "reloads", "refused_snapshots"
CACHE_HITS, CACHE_MISSES = "answer_cache_hits", "answer_cache_misses"
LOG_LINES_DROPPED = "access_log_dropped"
SNAPSHOTS_FETCHED, STORE_FAILURES = "store_fetched", "store_failures"
_EVENTS = (
    RELOADS,
    REFUSED_SNAPSHOTS,
    CACHE_HITS,
    CACHE_MISSES,
    LOG_LINES_DROPPED,
    SNAPSHOTS_FETCHED,
    STORE_FAILURES,
)

# the number of responses in each bucket, one more for those above the last bound, and the sum of
# their seconds
Histogram = list[float]


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """The current status of a process.

    `process` is its process id, `snapshot` the digest that it serves (empty if none), `opened` the
    monotonic time in seconds when it opened that snapshot, and `cached_answers` the number of
    cached responses.
    """

    process: int
    snapshot: str
    opened: float
    cached_answers: int


@dataclass(frozen=True, slots=True)
class CounterValues:
    """The values of all counters, of one process or of several.

    `requests` maps `STATUS ROUTE` to a histogram, `keys` maps key ids to numbers of requests,
    `events` maps events to numbers. `workers` has the status of each process.
    """

    requests: Mapping[str, Sequence[float]] = field(default_factory=dict)
    keys: Mapping[str, int] = field(default_factory=dict)
    events: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(_EVENTS, 0))
    workers: Sequence[WorkerStatus] = ()


class CacheCounts:
    """The answers that came from the answer cache, and those that were computed."""

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0


class Counters:
    """The counters of one process.

    `count_request` is for the event loop's thread only; the rest is thread-safe.
    """

    def __init__(self) -> None:
        self._histograms: dict[tuple[str, int], Histogram] = {}
        self._keys: defaultdict[str, int] = defaultdict(int)
        self._events = dict.fromkeys(_EVENTS, 0)
        self._lock = threading.Lock()
        self.cache = CacheCounts()

    def count_request(self, route: str, status: int, seconds: float, key: str) -> None:
        """Count one answered request.

        `seconds` is its duration; `key` is the id of its API key, or NO_KEY.
        """
        cell = self._histograms.get((route, status))
        if cell is None:
            cell = self._histograms[route, status] = [0] * (len(BUCKET_BOUNDS) + 1) + [0.0]
        cell[bisect_left(BUCKET_BOUNDS, seconds)] += 1
        cell[-1] += seconds
        self._keys[key] += 1

    def count_event(self, event: str, times: int = 1) -> None:
        """Count an event. Thread-safe."""
        with self._lock:
            self._events[event] += times

    def count_reload(self, ok: bool) -> None:
        """Count a new snapshot that was opened (`ok`) or rejected."""
        self.count_event(RELOADS if ok else REFUSED_SNAPSHOTS)

    def get_values(self, *workers: WorkerStatus) -> CounterValues:
        """Return the current values. Thread-safe."""
        cells = {
            f"{status} {route}": [*cell]
            for (route, status), cell in self._histograms.copy().items()
        }
        lookups = {CACHE_HITS: self.cache.hits, CACHE_MISSES: self.cache.misses}
        return CounterValues(cells, self._keys.copy(), {**self._events, **lookups}, workers)


def sum_values(values: Iterable[CounterValues]) -> CounterValues:
    """Return the sum of the values of several processes.

    Numbers are added; the statuses of the processes are concatenated.
    """
    answered: dict[str, list[float]] = {}
    keys: defaultdict[str, int] = defaultdict(int)
    events = dict.fromkeys(_EVENTS, 0)
    now: list[WorkerStatus] = []
    for counts in values:
        for name, cell in counts.requests.items():
            answered[name] = (
                [a + b for a, b in zip(answered[name], cell, strict=True)]
                if name in answered
                else [*cell]
            )
        for name, number in counts.keys.items():
            keys[name] += number
        for name, number in counts.events.items():
            events[name] += number
        now += counts.workers
    return CounterValues(answered, keys, events, tuple(now))


def parse_values(fields: Mapping[str, Any]) -> CounterValues:
    """Parse values that were written as JSON."""
    return CounterValues(
        fields["answered"],
        fields["keys"],
        fields["events"],
        [WorkerStatus(**now) for now in fields["now"]],
    )
