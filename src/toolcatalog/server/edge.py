"""What holds for every answer: a request id, the snapshot, a coding where asked for, CORS, and no
fault without an envelope. Pure ASGI.
"""

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

from toolcatalog.ending import heard
from toolcatalog.keys import Key
from toolcatalog.server import tracing
from toolcatalog.server.answers import NOTHING_RUNS, Answer, Header, Marks, refuse
from toolcatalog.server.coding import CODINGS, Coded, chosen
from toolcatalog.server.live import Live
from toolcatalog.server.refusals import Refusal
from toolcatalog.server.scraping import PATH as METRICS
from toolcatalog.server.witness import Answered, asked

_SANE_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")
_EXPOSED = (
    "ETag",
    "X-Request-Id",
    "Retry-After",
    "RateLimit",
    "RateLimit-Policy",
    "X-Suggested-Query",
    "X-Catalog-Snapshot",
)
# of this process: a worker is spawned, not forked, and has one of its own
_SERIES = secrets.token_hex(8).encode()
_NUMBERS = itertools.count()
_log = logging.getLogger("toolcatalog.server")


class Edge:
    """Wraps the application. What it answers from, and with which marks, is settled here for the
    whole request.
    """

    def __init__(self, app: ASGIApp, live: Live) -> None:
        self.live = live
        methods = ("GET", "HEAD", "OPTIONS")
        self._cors = _Cors(
            app,
            allow_origins=["*"],
            allow_methods=methods,
            allow_headers=["*"],
            expose_headers=_EXPOSED,
            max_age=86400,
        )
        self._coded = {coding: Coded(self._found, coding) for coding in CODINGS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        if scope["type"] != "http":
            return
        began, headers = perf_counter(), Headers(scope=scope)
        given = headers.get("x-request-id")
        scope["serving"] = serving = self.live.now
        request_id = identify(None if given is None else given.encode("latin-1"))
        traceparent = tracing.sane(headers.get("traceparent", "").encode("latin-1"))
        scope["marks"] = marks = Marks(
            request_id, serving.snapshot if serving else b"", traceparent
        )
        scope["found"] = found = _Found()
        status, size = 0, 0

        async def send_on(message: Message) -> None:
            nonlocal status, size
            size += len(message.get("body", b""))
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _complete(message["headers"], marks)
            await send(message)

        try:
            await self._coded.get(chosen(headers.get("accept-encoding", "")), self._found)(
                scope, receive, send_on
            )
        except ClientDisconnect:
            _log.info(
                "request %s: the client went away before it had sent its body", request_id.decode()
            )
        except Exception:  # noqa: BLE001 - whatever it is, the client gets an answer, and the log all of it
            _log.exception(
                "request %s: %s %r failed%s",
                request_id.decode(),
                scope["method"],
                scope["path"],
                _of_trace(traceparent),
            )
            if not status:
                await fault(marks)(scope, receive, send_on)
        if status:
            size = 0 if scope["method"] == "HEAD" else size
            told = (
                marks,
                scope["method"],
                asked(scope),
                scope.get("client"),
                found.route(scope["method"], status),
                found.key,
            )
            self.live.witness.saw(Answered(*told, status, size, began))

    async def _found(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note what was found out about it: a coding hands on a copy of the
        scope.
        """
        try:
            await self._cors(scope, receive, send)
        finally:
            scope["found"].note(scope)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Begin and end with the server: in the end all has been answered, and what is still to be
        written down is.
        """
        while (await heard(receive))["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        self.live.witness.close()
        await send({"type": "lifespan.shutdown.complete"})


class _Found:
    """What the application finds out about a request: which of its routes leads there, and whose
    key came with it.
    """

    def __init__(self) -> None:
        self.key: Key | None = None
        self._path = ""

    def note(self, scope: Scope) -> None:
        """Take over what the scope says in the end."""
        self.key, self._path = scope.get("key"), getattr(scope.get("route"), "path", "")

    def route(self, method: str, status: int) -> str:
        """The route as it is counted: its template; `site` for pages and `preflight`, which have
        none; `none` where nothing is.
        """
        if self._path or status >= 400:
            return self._path or "none"
        return "preflight" if method == "OPTIONS" else "site"


def _of_trace(traceparent: bytes | None) -> str:
    return f" (traceparent {traceparent.decode()})" if traceparent else ""


def _complete(headers: Sequence[Header], marks: Marks) -> list[Header]:
    """What is in every answer, added where it is not there yet: pages, and what CORS answers."""
    found = [*map(_vary_once, headers)]
    there = {name for name, _ in found}
    return [
        *found,
        *(header for header in (*marks.headers, *NOTHING_RUNS) if header[0] not in there),
    ]


def _vary_once(header: Header) -> Header:
    """A `Vary` that several hands have written says each name once."""
    name, value = header
    return (
        (name, b", ".join(dict.fromkeys(one.strip() for one in value.split(b","))))
        if name == b"vary"
        else header
    )


class _Cors(CORSMiddleware):
    """Any origin may read, but not the metrics. A preflight is never an error: the browser reads
    the lists and refuses by itself.
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


def fault(marks: Marks) -> Response:
    """The answer to a fault of ours: no internals; the log has the trace under the same request id."""
    fix = f"Try again; if it lasts, report request id {marks.request_id.decode()} to the operator."
    return response(
        refuse([Refusal(500, "internal_error", "Something went wrong on the server.", fix)], marks)
    )


def response(answer: Answer) -> Response:
    """An answer as Starlette sends it, with these headers and no others."""
    status, headers, body = answer
    found = Response(body, status)
    found.raw_headers = headers
    return found


def marks(request: Request) -> Marks:
    """What the answer to a request names: the id, the caller's own where it is sane, and the
    snapshot.
    """
    found: Marks = request.scope["marks"]
    return found


def identify(given: bytes | None) -> bytes:
    """The id that a request came with where it is sane, else a new one: no two requests to any
    server have the same.
    """
    return (
        given
        if given is not None and _SANE_ID.fullmatch(given)
        else b"%s%016x" % (_SERIES, next(_NUMBERS))
    )
