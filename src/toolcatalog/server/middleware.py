"""ASGI middleware: request id, snapshot header, CORS, compression and unexpected errors."""

import itertools
import logging
import re
import secrets
from collections.abc import Sequence
from time import perf_counter

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.server import responses
from toolcatalog.server.compression import ENCODINGS, CompressionMiddleware, negotiate_encoding
from toolcatalog.server.error_responses import ErrorDetail
from toolcatalog.server.lifespan import receive_lifespan
from toolcatalog.server.metrics.prometheus import PATH as METRICS
from toolcatalog.server.metrics.requests import RequestRecord, request_target
from toolcatalog.server.responses import (
    SECURITY_HEADERS,
    Header,
    RawResponse,
    ResponseContext,
    make_error_response,
)
from toolcatalog.server.state import AppState

_VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")
_EXPOSED_HEADERS = (
    "ETag",
    "X-Request-Id",
    "Retry-After",
    "RateLimit",
    "RateLimit-Policy",
    "X-Suggested-Query",
    "X-Catalog-Snapshot",
)
# unique for this process: workers are spawned, not forked, so each has its own
_PROCESS_PREFIX = secrets.token_hex(8).encode()
_REQUEST_NUMBERS = itertools.count()
_log = logging.getLogger("toolcatalog.server")


class RequestMiddleware:
    """Wraps the application and prepares each request.

    The snapshot and the context of the response are chosen here, once for the whole request.
    """

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self.state = state
        methods = ("GET", "HEAD", "OPTIONS")
        self._cors = _CorsMiddleware(
            app,
            allow_origins=["*"],
            allow_methods=methods,
            allow_headers=["*"],
            expose_headers=_EXPOSED_HEADERS,
            max_age=86400,
        )
        self._compressors = {
            coding: CompressionMiddleware(self._call_app, coding) for coding in ENCODINGS
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._handle_lifespan(receive, send)
        if scope["type"] != "http":
            return
        began, headers = perf_counter(), Headers(scope=scope)
        given = headers.get("x-request-id")
        scope["serving"] = serving = self.state.current
        request_id = assign_request_id(None if given is None else given.encode("latin-1"))
        traceparent = responses.validate_traceparent(
            headers.get("traceparent", "").encode("latin-1")
        )
        scope["context"] = marks = ResponseContext(
            request_id, serving.digest if serving else b"", traceparent
        )
        scope["request_info"] = found = _RequestInfo()
        status, size = 0, 0

        async def send_on(message: Message) -> None:
            nonlocal status, size
            size += len(message.get("body", b""))
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _complete_headers(message["headers"], marks)
            await send(message)

        try:
            await self._compressors.get(
                negotiate_encoding(headers.get("accept-encoding", "")), self._call_app
            )(scope, receive, send_on)
        except ClientDisconnect:
            _log.info(
                "request %s: the client went away before it had sent its body", request_id.decode()
            )
        except Exception:  # noqa: BLE001 - the client gets an error response, the log the traceback
            _log.exception(
                "request %s: %s %r failed%s",
                request_id.decode(),
                scope["method"],
                scope["path"],
                _format_trace(traceparent),
            )
            if not status:
                await make_fault_response(marks)(scope, receive, send_on)
        if status:
            size = 0 if scope["method"] == "HEAD" else size
            told = (
                marks,
                scope["method"],
                request_target(scope),
                scope.get("client"),
                found.route_label(scope["method"], status),
                found.key,
            )
            self.state.observer.record(RequestRecord(*told, status, size, began))

    async def _call_app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and keep what the application learns about it.

        The compression middleware passes on a copy of the scope, so the scope itself is not enough.
        """
        try:
            await self._cors(scope, receive, send)
        finally:
            scope["request_info"].update(scope)

    async def _handle_lifespan(self, receive: Receive, send: Send) -> None:
        """Handle the lifespan of the server.

        At shutdown all requests have been answered; the observer then writes what is pending.
        """
        while (await receive_lifespan(receive))["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        self.state.observer.close()
        await send({"type": "lifespan.shutdown.complete"})


class _RequestInfo:
    """What the application learns about a request: its route and its API key."""

    def __init__(self) -> None:
        self.key: ApiKey | None = None
        self._route_path = ""

    def update(self, scope: Scope) -> None:
        """Copy the key and the route from the scope."""
        self.key, self._route_path = scope.get("key"), getattr(scope.get("route"), "path", "")

    def route_label(self, method: str, status: int) -> str:
        """Return the route for the metrics: its path template.

        Without a route it is `site` for pages, `preflight` for CORS preflights, and `none` for
        errors.
        """
        if self._route_path or status >= 400:
            return self._route_path or "none"
        return "preflight" if method == "OPTIONS" else "site"


def _format_trace(traceparent: bytes | None) -> str:
    return f" (traceparent {traceparent.decode()})" if traceparent else ""


def _complete_headers(headers: Sequence[Header], context: ResponseContext) -> list[Header]:
    """Return the headers with those of every response added where they are missing.

    They are missing in pages and in the responses of the CORS middleware.
    """
    found = [*map(_deduplicate_vary, headers)]
    there = {name for name, _ in found}
    return [
        *found,
        *(header for header in (*context.headers, *SECURITY_HEADERS) if header[0] not in there),
    ]


def _deduplicate_vary(header: Header) -> Header:
    """Return a header; a `Vary` that was extended several times names each header once."""
    name, value = header
    return (
        (name, b", ".join(dict.fromkeys(one.strip() for one in value.split(b","))))
        if name == b"vary"
        else header
    )


class _CorsMiddleware(CORSMiddleware):
    """CORS for any origin, except for the metrics.

    A preflight is never an error: the browser reads the allowed methods and headers, and rejects
    the request itself.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == METRICS:
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def preflight_response(self, request_headers: Headers) -> Response:
        response = super().preflight_response(request_headers)
        response.status_code = 200
        return response


def make_fault_response(context: ResponseContext) -> Response:
    """Return the 500 response to an unexpected exception.

    It shows no internals; the log has the traceback under the same request id.
    """
    fix = (
        f"Try again; if it lasts, report request id {context.request_id.decode()} to the operator."
    )
    return to_starlette_response(
        make_error_response(
            [ErrorDetail(500, "internal_error", "Something went wrong on the server.", fix)],
            context,
        )
    )


def to_starlette_response(raw_response: RawResponse) -> Response:
    """Return a response for Starlette with exactly these headers."""
    status, headers, body = raw_response
    found = Response(body, status)
    found.raw_headers = headers
    return found


def get_context(request: Request) -> ResponseContext:
    """Return the context of the response to a request.

    Its request id is that of the client if it is valid.
    """
    found: ResponseContext = request.scope["context"]
    return found


def assign_request_id(client_id: bytes | None) -> bytes:
    """Return the client's request id if it is valid, else a new one.

    No two requests to any server get the same new id.
    """
    return (
        client_id
        if client_id is not None and _VALID_REQUEST_ID.fullmatch(client_id)
        else b"%s%016x" % (_PROCESS_PREFIX, next(_REQUEST_NUMBERS))
    )
