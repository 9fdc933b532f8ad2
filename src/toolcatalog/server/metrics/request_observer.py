"""Request observer: count each request, and write it to the access log."""

from time import perf_counter, time

from starlette.types import Scope

from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.server.logs.access_log import MAX_QUEUED_PATH, AccessLog, AccessLogEntry
from toolcatalog.server.metrics.counters import NO_KEY, Counters
from toolcatalog.server.metrics.workers import WorkerPage
from toolcatalog.server.responses import ResponseContext


class RequestObserver:
    """Observes all requests of one process, on its event loop."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.access_log: AccessLog | None = None
        self.worker_page: WorkerPage | None = None

    def record(
        self,
        scope: Scope,
        context: ResponseContext,
        route: str,
        key: ApiKey | None,
        status: int,
        size: int,
        started: float,
    ) -> None:
        """Count an answered request and write it to the access log.

        `route` is a path template, `size` the bytes of the body as sent, and `started` a time of
        `perf_counter`.
        """
        duration = perf_counter() - started
        self.counters.count_request(route, status, duration, key.id if key else NO_KEY)
        if self.access_log is None:
            return
        client = scope.get("client")
        self.access_log.enqueue(
            AccessLogEntry(
                time(),
                duration,
                context.request_id,
                scope["method"],
                _request_target(scope),
                route,
                status,
                size,
                key.id if key else "",
                key.project if key else "",
                context.snapshot,
                context.traceparent,
                client[0] if client else "",
            )
        )

    def close(self) -> None:
        """Write what is still pending. Nothing may be recorded afterwards."""
        if self.access_log:
            self.access_log.close()
        if self.worker_page:
            self.worker_page.write()


def _request_target(scope: Scope) -> bytes:
    """Return the raw path of a request with its query; of a long one, the first part."""
    path: bytes = scope.get("raw_path") or scope["path"].encode("latin-1", "replace")
    target = b"%b?%b" % (path, scope["query_string"]) if scope["query_string"] else path
    return target[:MAX_QUEUED_PATH]
