"""What holds for every answer: a request id, gzip where asked for, CORS, and no fault without an envelope. Pure ASGI."""

import itertools
import logging
import re
import secrets
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcatalog.server.answers import NOTHING_RUNS, Answer, Header, refuse
from toolcatalog.server.refusals import Refusal

_SANE_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")
_EXPOSED = ("ETag", "X-Request-Id", "Retry-After", "RateLimit", "RateLimit-Policy", "X-Suggested-Query", "X-Catalog-Snapshot")
_SERIES = secrets.token_hex(8).encode()  # of this process: a worker is spawned, not forked, and has one of its own
_NUMBERS = itertools.count()
_LEVEL = 3  # of gzip: a third of the time of level 6 for a seventh more bytes
_INLINE = 64 * 1024  # bytes packed at once, in half a millisecond; more goes to a thread, and others are answered meanwhile
_log = logging.getLogger("toolcatalog.server")


class Edge:
    """Wraps the application."""

    def __init__(self, app: ASGIApp) -> None:
        methods = ("GET", "HEAD", "OPTIONS")
        self.plain = _Cors(app, allow_origins=["*"], allow_methods=methods, allow_headers=["*"], expose_headers=_EXPOSED, max_age=86400)
        self.gzipped = GZipMiddleware(self.plain, minimum_size=1024, compresslevel=_LEVEL, thread_minimum_size=_INLINE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id")
        scope["request_id"] = request_id = identify(None if given is None else given.encode("latin-1"))
        started = False

        async def send_on(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = _complete(message["headers"], request_id)
            await send(message)

        app: ASGIApp = self.plain
        if accepts_gzip(headers.get("accept-encoding", "")):
            app = self.gzipped
            scope["headers"] = [(b"accept-encoding", b"gzip"), *scope["headers"]]  # Starlette knows no other spelling
        try:
            await app(scope, receive, send_on)
        except ClientDisconnect:
            _log.info("request %s: the client went away before it had sent its body", request_id.decode())
        except Exception:
            _log.exception("request %s: %s %r failed", request_id.decode(), scope["method"], scope["path"])
            if not started:
                await fault(request_id)(scope, receive, send_on)


def _complete(headers: Sequence[Header], request_id: bytes) -> list[Header]:
    """What is in every answer, added where it is not there yet: pages, and what CORS answers."""
    found = [*map(_vary_once, headers)]
    there = {name for name, _ in found}
    return [*found, *(header for header in ((b"x-request-id", request_id), *NOTHING_RUNS) if header[0] not in there)]


def _vary_once(header: Header) -> Header:
    """A `Vary` that several hands have written says each name once."""
    name, value = header
    return (name, b", ".join(dict.fromkeys(one.strip() for one in value.split(b",")))) if name == b"vary" else header


class _Cors(CORSMiddleware):
    """Any origin may read. A preflight is never an error: the browser reads the lists and refuses by itself."""

    def preflight_response(self, request_headers: Headers) -> Response:
        response = super().preflight_response(request_headers)
        response.status_code = 200
        return response


def fault(request_id: bytes) -> Response:
    """The answer to a fault of ours: no internals; the log has the trace under the same request id."""
    fix = f"Try again; if it lasts, report request id {request_id.decode()} to the operator."
    return response(refuse([Refusal(500, "internal_error", "Something went wrong on the server.", fix)], request_id))


def response(answer: Answer) -> Response:
    """An answer as Starlette sends it, with these headers and no others."""
    status, headers, body = answer
    found = Response(body, status)
    found.raw_headers = headers
    return found


def request_id(request: Request) -> bytes:
    """The id of a request, the caller's own where it is sane."""
    found: bytes = request.scope["request_id"]
    return found


def identify(given: bytes | None) -> bytes:
    """The id that a request came with where it is sane, else a new one: no two requests to any server have the same."""
    return given if given is not None and _SANE_ID.fullmatch(given) else b"%s%016x" % (_SERIES, next(_NUMBERS))


def accepts_gzip(header: str) -> bool:
    """Tell whether an Accept-Encoding asks for gzip, by name or by `*`, with a weight above 0 (RFC 9110, 12.5.3)."""
    weights: dict[str, bool] = {}
    for part in header.lower().split(","):
        coding, _, parameter = part.partition(";")
        weights[coding.strip()] = re.fullmatch(r"q=0(\.0*)?", parameter.strip()) is None
    return weights.get("gzip", weights.get("*", False))
