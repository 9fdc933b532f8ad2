"""Request observer: count each request, and write it to the access log."""

from time import perf_counter, time
from typing import NamedTuple

from starlette.types import Scope

from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.server.access_log import AccessLog, AccessLogEntry
from toolcatalog.server.metrics.counters import NO_KEY, Counters
from toolcatalog.server.metrics.workers import WorkerPage
from toolcatalog.server.responses import ResponseContext


class RequestRecord(NamedTuple):
    """An answered request.

    `path` is the raw path with its query, `size` the bytes of the body as sent, `started` a time of
    `perf_counter`.
    """

    context: ResponseContext
    method: str
    path: bytes
    client: tuple[str, int] | None
    route: str
    key: ApiKey | None
    status: int
    size: int
    started: float


class RequestObserver:
    """Observes all requests of one process, on its event loop."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.access_log: AccessLog | None = None
        self.worker_page: WorkerPage | None = None

    def record(self, answered: RequestRecord) -> None:
        """Count a request and write it to the access log."""
        self.counters.count_request(
            answered.route,
            answered.status,
            perf_counter() - answered.started,
            answered.key.id if answered.key else NO_KEY,
        )
        self.log_request(answered)

    def log_request(self, answered: RequestRecord) -> None:
        """Write a request that is already counted to the access log, if there is one."""
        if self.access_log is None:
            return
        marks, method, path, client, route, key, status, size, began = answered
        whose = (key.id, key.project) if key else ("", "")
        came = client[0] if client else ""
        told = (
            marks.request_id,
            method,
            path,
            route,
            status,
            size,
            *whose,
            marks.snapshot,
            marks.traceparent,
            came,
        )
        self.access_log.enqueue(AccessLogEntry(time(), perf_counter() - began, *told))

    def close(self) -> None:
        """Write what is still pending. Nothing may be recorded afterwards."""
        if self.access_log:
            self.access_log.close()
        if self.worker_page:
            self.worker_page.write()


def request_target(scope: Scope) -> bytes:
    """Return the raw path of a request with its query."""
    path: bytes = scope.get("raw_path") or scope["path"].encode("latin-1", "replace")
    return b"%b?%b" % (path, scope["query_string"]) if scope["query_string"] else path
