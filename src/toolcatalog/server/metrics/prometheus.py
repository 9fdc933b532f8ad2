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

import contextlib
import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from socketserver import ThreadingMixIn
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolcatalog.server.metrics.counters import (
    CounterValues,
)
from toolcatalog.system import threads

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment


# top-level domains that are reserved, or private by use, and those of a cluster
_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".svc", ".test", ".home.arpa")
_TIMEOUT = 10.0  # seconds for a scrape to send its request and read the response
# at once: each takes a thread, and a file descriptor of those reserved for the server
MAX_CONNECTIONS = 16
ReadAllCounts = Callable[[], Sequence[CounterValues]]  # the current counts of all processes
ReadCounts = Callable[[], CounterValues]  # the current counts of one process


class MetricsText(NamedTuple):
    """The body of a scrape response, and its content type."""

    body: bytes
    content_type: str


def render_metrics(read_all: ReadAllCounts, accept: str) -> MetricsText:
    """Return the metrics in the format that an `Accept` header asks for.

    The formats are Prometheus text and OpenMetrics. Takes some milliseconds.
    """
    return MetricsText(*_load_collector().encode_metrics(read_all, accept))


def _load_collector() -> ModuleType:
    from toolcatalog.server.metrics import collector  # noqa: PLC0415 - only to read metrics

    return collector


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
    metrics = _load_collector().create_wsgi_app(read_all)

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
    def log_message(self, *args: object) -> None:
        """Log nothing: a scrape every few seconds is not worth a line."""


class _MetricsServer(ThreadingMixIn, WSGIServer):
    """The standard library's WSGI server, on a socket that is already listening.

    A connection beyond the maximum is closed at once, and every other one after the timeout.
    """

    daemon_threads = True

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(listener.getsockname()[:2], _MetricsHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        # the base class would look up a host name in the DNS
        self.server_name, self.server_port = listener.getsockname()[:2]
        self.setup_environ()
        self._free = threading.Semaphore(MAX_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a request in a thread, if one is free."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no more threads may be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a request, and end its connection after the timeout."""
        timer = threading.Timer(_TIMEOUT, _shut_down, [request])
        timer.daemon = True
        try:
            timer.start()
            super().process_request_thread(request, client_address)
        except RuntimeError:  # no more threads may be started
            self.shutdown_request(request)
        finally:
            timer.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report nothing: a client that goes away is no error of the server."""


def _shut_down(connection: socket.socket) -> None:
    """End a connection; a thread that waits for it goes on."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


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
