"""What holds for every answer: a request id, gzip where asked for, CORS, and no fault without an envelope. Pure ASGI."""

import logging
import re
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcatalog.server.answers import refuse
from toolcatalog.server.refusals import Refusal

_SANE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")
_EXPOSED = ("ETag", "X-Request-Id", "Retry-After", "RateLimit", "RateLimit-Policy", "X-Suggested-Query", "X-Catalog-Snapshot")
_POLICY = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_log = logging.getLogger("toolcatalog.server")


class Edge:
    """Wraps the application."""

    def __init__(self, app: ASGIApp) -> None:
        methods = ("GET", "HEAD", "OPTIONS")
        self.plain = _Cors(app, allow_origins=["*"], allow_methods=methods, allow_headers=["*"], expose_headers=_EXPOSED, max_age=86400)
        self.gzipped = GZipMiddleware(self.plain, minimum_size=1024, compresslevel=6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        scope["request_id"] = request_id = _sane(headers.get("x-request-id"))
        started = False

        async def send_on(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _complete(MutableHeaders(scope=message), request_id)
            await send(message)

        app: ASGIApp = self.plain
        if accepts_gzip(headers.get("accept-encoding", "")):
            app = self.gzipped
            scope["headers"] = [(b"accept-encoding", b"gzip"), *scope["headers"]]  # Starlette knows no other spelling
        try:
            await app(scope, receive, send_on)
        except ClientDisconnect:
            _log.info("request %s: the client went away before it had sent its body", request_id)
        except Exception:
            _log.exception("request %s: %s %r failed", request_id, scope["method"], scope["path"])
            if not started:
                await fault(request_id)(scope, receive, send_on)


def _complete(headers: MutableHeaders, request_id: str) -> None:
    """Headers of every answer; a `Vary` that several hands have written says each name once."""
    headers["X-Request-Id"] = request_id
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Content-Security-Policy"] = _POLICY
    if vary := headers.get("vary"):
        headers["Vary"] = ", ".join(dict.fromkeys(name.strip() for name in vary.split(",")))


class _Cors(CORSMiddleware):
    """Any origin may read. A preflight is never an error: the browser reads the lists and refuses by itself."""

    def preflight_response(self, request_headers: Headers) -> Response:
        response = super().preflight_response(request_headers)
        response.status_code = 200
        return response


def fault(request_id: str) -> Response:
    """The answer to a fault of ours: no internals; the log has the trace under the same request id."""
    fix = f"Try again; if it lasts, report request id {request_id} to the operator."
    return refuse([Refusal(500, "internal_error", "Something went wrong on the server.", fix)], request_id)


def request_id(request: Request) -> str:
    """The id of a request, the caller's own where it is sane."""
    found: str = request.scope["request_id"]
    return found


def _sane(given: str | None) -> str:
    return given if given and _SANE_ID.fullmatch(given) else uuid.uuid4().hex


def accepts_gzip(header: str) -> bool:
    """Tell whether an Accept-Encoding asks for gzip, by name or by `*`, with a weight above 0 (RFC 9110, 12.5.3)."""
    weights: dict[str, bool] = {}
    for part in header.lower().split(","):
        coding, _, parameter = part.partition(";")
        weights[coding.strip()] = re.fullmatch(r"q=0(\.0*)?", parameter.strip()) is None
    return weights.get("gzip", weights.get("*", False))
