"""`GET /metrics` on the port of the API, for who sits at this machine: it tells the ids of keys and
how much they ask for.

Nobody needs a key there, so it must be plain that nobody else comes in: the connection is from the
own machine, the host asked for is the own machine, and no header says that a proxy passes on
somebody's request. Everybody else is told that there is nothing. A proxy on the same machine that
says nothing of itself cannot be told from a neighbour: behind one, `--metrics` moves this to an
address of its own.

A browser on this machine must not fetch them for a page of somebody else: what has an `Origin`, or
a `Sec-Fetch-Site` other than `same-origin` or `none`, is told that there is nothing as well (404),
and no answer here has a CORS header.
"""

import ipaddress
import re

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolcatalog.server import metrics
from toolcatalog.server.metrics import ReadAllCounts

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
    """The route; `every` tells the counts of all processes."""

    async def scrape(request: Request) -> Response:
        if not is_local_request(request):
            raise HTTPException(404)
        found = await run_in_threadpool(
            metrics.render_metrics, read_all, request.headers.get("accept", "")
        )
        return Response(
            found.body, headers={"content-type": found.content_type, "cache-control": "no-store"}
        )

    return Route(PATH, scrape)


def is_local_request(request: Request) -> bool:
    """Tell whether a request comes from the own machine, and neither a proxy nor a page of somebody
    else is behind it.
    """
    host = _PORT.sub("", request.headers.get("host", "")).strip("[]")
    client = request.client.host if request.client else ""
    return (
        _is_loopback(client)
        and (host == "localhost" or _is_loopback(host))
        and not any(name in request.headers for name in _PROXY_HEADERS)
        and not metrics.is_of_page(
            request.headers.get("origin"), request.headers.get("sec-fetch-site")
        )
    )


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)
