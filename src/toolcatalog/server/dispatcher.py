"""The ASGI dispatcher: answers the operations of the API, and passes on all other requests.

Every request gets its snapshot and its context here, once, and is counted and logged here. Requests
for the API operations are answered without Starlette: `match_route` finds the operation, and
`api.operations` runs it. All other requests go to the Starlette application of `server.app`.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcatalog.api.answers import Answer
from toolcatalog.api.content_coding import accepts_gzip
from toolcatalog.api.error_responses import ErrorDetail, RequestError, not_ready
from toolcatalog.api.operations import Operations, raise_unauthorized
from toolcatalog.api.query_params import MAX_BODY_SIZE
from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.openapi import (
    API_PREFIXES,
    SERVER_PATH,
    SERVER_VERSIONS_PATH,
    SERVERS_PATH,
)
from toolcatalog.server.answer_cache import CacheKey
from toolcatalog.server.call_queue import MAX_WAITING_CALLS, TooManyCallsError
from toolcatalog.server.lifespan import receive_lifespan
from toolcatalog.server.metrics.prometheus import PATH as METRICS_PATH
from toolcatalog.server.request_context import create_context, path_below_root
from toolcatalog.server.responses import (
    CORS_HEADERS,
    PREFLIGHT_LINES,
    SECURITY_HEADERS,
    Header,
    PreparedAnswer,
    Response,
    ResponseContext,
    check_connected,
    find_writer,
    make_error_response,
    make_response,
)
from toolcatalog.server.state import AppState, ServedSnapshot
from toolcatalog.server.work_threads import run_in_work_thread

_MAX_TURNS = 8  # answers that are not cached, in one round of the event loop
_MAX_INLINE_QUERY = 512  # bytes of a query string; a longer one is answered in a thread
# browsers let a page read only these headers; other clients send no `Origin`
_EXPOSED: Sequence[Header] = ((b"access-control-expose-headers", b"*"),)
_log = logging.getLogger("toolcatalog.server")


class Route(NamedTuple):
    """The route of an operation: its path template and its name, a method of `Operations`."""

    template: str
    operation: str


# a route, and the parts of a path that are arguments of its operation
RouteMatch = tuple[Route, tuple[Any, ...]]

_LISTS = {
    "/tools": "list_tools",
    "/tools/enum": "list_slugs",
    "/toolkits": "list_toolkits",
    "/toolkits/categories": "list_categories",
}
_MATCHES: dict[str, RouteMatch] = {
    prefix + path: (Route(prefix + path, operation), ())
    for prefix in API_PREFIXES
    for path, operation in _LISTS.items()
}
_MATCHES[SERVERS_PATH] = (Route(SERVERS_PATH, "list_servers"), ())
_RATE_LIMITED = {*_LISTS.values(), "list_servers"}
# by the path without its last part, the slug
_SLUG_ROUTES = {
    prefix + path: Route(f"{prefix}{path}/{{slug}}", operation)
    for prefix in API_PREFIXES
    for path, operation in (("/tools", "get_tool"), ("/toolkits", "get_toolkit"))
}
_SESSION_PATH = re.compile(
    rf"({'|'.join(map(re.escape, API_PREFIXES))})/tool_router/session/([^/]+)/tools"
)
# the name of a server has one slash, which clients encode
_SERVER_PATH = re.compile(
    rf"{re.escape(SERVERS_PATH)}/([^/]+/[^/]+)/versions(?:/(?P<version>[^/]+))?"
)


def match_route(path: str) -> RouteMatch | None:
    """Return the route of an operation for a path; None for any other path."""
    if match := _MATCHES.get(path):
        return match
    parent, _, slug = path.rpartition("/")
    if route := _SLUG_ROUTES.get(parent):
        return (route, (slug,)) if slug else None
    if found := _SESSION_PATH.fullmatch(path):
        template = f"{found[1]}/tool_router/session/{{id}}/tools"
        return Route(template, "list_session_tools"), (found[2],)
    if found := _SERVER_PATH.fullmatch(path):
        template = SERVER_VERSIONS_PATH if found["version"] is None else SERVER_PATH
        return Route(template, "get_server"), (found[1], found["version"])
    return None


class _Request:
    """A request: its headers with names in lower case, its snapshot, its context and its key.

    Of several headers with one name, the first counts.
    """

    __slots__ = (
        "context",
        "extra_headers",
        "gzip",
        "headers",
        "key",
        "path",
        "scope",
        "served",
        "started",
        "writer",
    )

    def __init__(self, scope: Scope, served: ServedSnapshot | None) -> None:
        self.started = perf_counter()
        self.scope = scope
        self.path = path_below_root(scope)
        self.served = served
        self.headers: Mapping[bytes, bytes] = dict(reversed(scope["headers"]))
        self.context = create_context(self.headers, served.digest if served else b"")
        self.gzip = accepts_gzip(self.headers.get(b"accept-encoding", b""))
        self.key: ApiKey | None = None
        self.extra_headers: Sequence[Header] = _EXPOSED if b"origin" in self.headers else ()
        self.writer = find_writer(scope)

    @property
    def snapshot(self) -> ServedSnapshot:
        """The snapshot. Raises RequestError (503) if none is open."""
        if self.served is None:
            raise RequestError(not_ready())
        return self.served

    @property
    def is_preflight(self) -> bool:
        """Whether a browser asks for permission to send another request."""
        return (
            self.scope["method"] == "OPTIONS"
            and b"origin" in self.headers
            and b"access-control-request-method" in self.headers
            and self.path != METRICS_PATH
        )


class _Turns:
    """Turns to work on the event loop: a few in each of its rounds.

    So hundreds of requests that take milliseconds each do not delay others, such as health checks,
    by all their time together.
    """

    def __init__(self) -> None:
        self._taken = 0  # in this round
        self._waiting = 0

    async def take(self) -> None:
        """Wait for a turn. Raises TooManyCallsError if too many wait.

        Waits for one round at least, in which the event loop notices clients that have gone.
        """
        if self._waiting >= MAX_WAITING_CALLS:
            raise TooManyCallsError
        self._waiting += 1
        try:
            await asyncio.sleep(0)
            while self._taken >= _MAX_TURNS:  # noqa: ASYNC110 - an event would be set in each round
                await asyncio.sleep(0)
        finally:
            self._waiting -= 1
        if not self._taken:
            asyncio.get_running_loop().call_soon(self._begin_round)
        self._taken += 1

    def _begin_round(self) -> None:
        self._taken = 0


class Dispatcher:
    """The ASGI application; `app` answers everything that is no operation of the API."""

    def __init__(self, state: AppState, app: ASGIApp) -> None:
        self.state = state
        self.app = app
        self._turns = _Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or handle the lifespan of the server."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._handle_lifespan(receive, send)
            return
        request = _Request(scope, self.state.current)
        match = match_route(request.path) if scope["method"] in ("GET", "HEAD") else None
        if match:
            response = await self._answer(request, match, receive)
            label = match[0].template
        elif request.is_preflight:
            response = Response(204, PREFLIGHT_LINES + request.context.header_lines)
            label = "preflight"
        else:
            await self._delegate(request, receive, send)
            return
        if response is None:
            return
        if scope["method"] == "HEAD":
            response = Response(response.status, response.header_lines)
        await _send_response(request, response, send)
        self.state.observer.record(
            scope,
            request.context,
            label,
            request.key,
            response.status,
            response.size,
            request.started,
        )

    async def _answer(
        self, request: _Request, match: RouteMatch, receive: Receive
    ) -> Response | None:
        """Return the response of an operation, from the cache if it has the answer, or an error.

        Returns None if the client disconnects.
        """
        try:
            key, snapshot = self._authenticate(request), request.snapshot
            (_, operation), path_arguments = match
            if operation in _RATE_LIMITED:
                await self._apply_rate_limit(request, key)
            query = request.scope["query_string"]
            arguments: tuple[Any, ...] = (*path_arguments, query)
            more: CacheKey = ()
            if operation == "list_session_tools":
                body = await read_body(receive)
                key = self._authenticate(request)  # it may have been revoked meanwhile
                arguments, more = (*arguments, body), (key.project, body)
            cache_key: CacheKey = (key.toolkits, request.gzip, request.path, query, *more)
            answer = snapshot.cache.get(cache_key)
            if answer is None:
                call = partial(
                    getattr(snapshot.operations, operation), key, *arguments, gzip=request.gzip
                )
                await self._turns.take()
                answer = PreparedAnswer(
                    await _run_operation(
                        snapshot.operations, match, query, partial(_run_if_connected, request, call)
                    )
                )
                snapshot.cache.add(cache_key, answer)
                self._authenticate(request)  # it may have been revoked meanwhile
            return make_response(
                answer,
                request.headers.get(b"if-none-match"),
                request.context,
                request.extra_headers,
            )
        except RequestError as error:
            return make_refusal(error, request.context, request.extra_headers)
        except ClientDisconnect:
            _log_disconnect(request.context)
            return None
        except Exception:  # noqa: BLE001 - the client gets an error response, the log the traceback
            log_failure(request.scope, request.context)
            return make_failure(request.context)

    def _authenticate(self, request: _Request) -> ApiKey:
        """Return the API key of a request. Raises RequestError (401) if it has none."""
        secret = request.headers.get(b"x-api-key", b"")
        key = self.state.keys.find(secret)
        request.key = key = key or raise_unauthorized(
            has_key=bool(secret), has_authorization=b"authorization" in request.headers
        )
        return key

    async def _apply_rate_limit(self, request: _Request, key: ApiKey) -> None:
        """Count a list request. Raises RequestError (429) if the key has reached its limit.

        Every response to the request then has the rate limit headers.
        """
        if self.state.rate_limiter is None:
            return
        status = await self.state.rate_limiter.hit(key.id)
        request.extra_headers = (*request.extra_headers, *status.headers())
        if not status.is_allowed:
            raise RequestError(status.to_error())

    async def _delegate(self, request: _Request, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, and add the headers of every response."""
        scope, context = _normalize_encoding(request), request.context
        scope["served"], scope["context"] = request.served, context
        request.served = None  # the application releases the snapshot of a long stream
        status, size = 0, 0

        async def send_completed(message: Message) -> None:
            nonlocal status, size
            size += len(message.get("body", b""))
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = _complete_headers(message["headers"], context, request.path)
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self.app(scope, receive, send_completed)
        except ClientDisconnect:
            _log_disconnect(context)
        except Exception:  # noqa: BLE001 - the client gets an error response, the log the traceback
            log_failure(scope, context)
            if not status:
                await _send_messages(make_failure(context), send_completed)
        if status:
            sent = 0 if scope["method"] == "HEAD" else size
            route = _route_label(scope, status)
            self.state.observer.record(
                scope, context, route, scope.get("key"), status, sent, request.started
            )

    async def _handle_lifespan(self, receive: Receive, send: Send) -> None:
        """Handle the lifespan of the server.

        At shutdown all requests have been answered; the observer then writes what is pending.
        """
        while (await receive_lifespan(receive))["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        self.state.observer.close()
        await send({"type": "lifespan.shutdown.complete"})


async def _run_operation(
    operations: Operations, match: RouteMatch, query: bytes, call: Callable[[], Answer]
) -> Answer:
    """Run a call of an operation; in a thread if it may take longer than a few milliseconds."""
    (_, operation), arguments = match
    match operation:
        case "get_tool" | "get_toolkit":
            is_slow = False
        case "list_tools":
            is_slow = operations.store.has_semantic_search
        case "list_session_tools":
            is_slow = operations.is_large_session(arguments[0])
        case _:
            is_slow = True  # the first answer reads all toolkits or servers
    is_slow = is_slow or len(query) > _MAX_INLINE_QUERY
    return await run_in_work_thread(call) if is_slow else call()


def _run_if_connected(request: _Request, call: Callable[[], Answer]) -> Answer:
    """Run a call. Raises ClientDisconnect if the client has gone while it waited."""
    check_connected(request.scope)
    return call()


async def read_body(receive: Receive) -> bytes:
    """Read the body of a request, but only until it is known to be too large.

    Raises ClientDisconnect if the client goes away before it has sent its body.
    """
    body = b""
    while True:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        body += chunk
        if not message.get("more_body", False) or len(body) > MAX_BODY_SIZE:
            return body


async def _send_response(request: _Request, response: Response, send: Send) -> None:
    """Send a response: at once if the server can, else as messages, and a large body in chunks."""
    if not (request.writer and request.writer.write_response(response)):
        await _send_messages(response, send)


async def _send_messages(response: Response, send: Send) -> None:
    body = response.body
    status, headers = response.status, response.headers
    await send({"type": "http.response.start", "status": status, "headers": headers})
    if not isinstance(body, bytes):
        for chunk in body.read():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        body = b""
    await send({"type": "http.response.body", "body": body})


def make_refusal(
    error: RequestError, context: ResponseContext, extra_headers: Sequence[Header] = ()
) -> Response:
    """Return the response to a request that was refused; 503 asks the client to try again."""
    is_temporary = any(detail.status == 503 for detail in error.errors)
    retry = [(b"retry-after", b"1")] if is_temporary else []
    return make_error_response(error.errors, context, *retry, *extra_headers)


def make_failure(context: ResponseContext) -> Response:
    """Return the 500 response to an unexpected exception.

    It shows no internals; the log has the traceback under the same request id.
    """
    fix = (
        f"Try again; if it persists, report request id {context.request_id.decode()} to the "
        f"operator."
    )
    detail = ErrorDetail(500, "internal_error", "Something went wrong on the server.", fix)
    return make_error_response([detail], context)


def log_failure(scope: Scope, context: ResponseContext) -> None:
    """Log the current exception with the request that caused it."""
    trace = f" (traceparent {context.traceparent.decode()})" if context.traceparent else ""
    request_id = context.request_id.decode()
    _log.exception("request %s: %s %r failed%s", request_id, scope["method"], scope["path"], trace)


def _log_disconnect(context: ResponseContext) -> None:
    request_id = context.request_id.decode()
    _log.debug("request %s: the client disconnected", request_id)


def _normalize_encoding(request: _Request) -> Scope:
    """Return the scope of a request with `gzip` or nothing as its `Accept-Encoding`.

    Starlette compresses for any header that contains the name.
    """
    headers = [header for header in request.scope["headers"] if header[0] != b"accept-encoding"]
    if request.gzip:
        headers.append((b"accept-encoding", b"gzip"))
    return {**request.scope, "headers": headers}


def _complete_headers(
    headers: Sequence[Header], context: ResponseContext, path: str
) -> list[Header]:
    """Return the headers with those of every response added where they are missing.

    The ETag of a compressed body becomes a weak one: it is that of the plain body.
    """
    cors = (*CORS_HEADERS, *_EXPOSED)
    if path == METRICS_PATH:
        headers = [header for header in headers if header not in cors]
        cors = ()
    names = {name for name, _ in headers}
    common = (*context.headers, *SECURITY_HEADERS, *cors)
    if b"content-encoding" in names:
        headers = [_weaken_etag(header) for header in headers]
    merged = [_merge_vary(header) for header in headers]
    return [*merged, *(header for header in common if header[0] not in names)]


def _merge_vary(header: Header) -> Header:
    """Return a header; a `Vary` that was extended names each header once."""
    name, value = header
    if name != b"vary":
        return header
    return name, b", ".join(dict.fromkeys(part.strip() for part in value.split(b",")))


def _weaken_etag(header: Header) -> Header:
    name, value = header
    is_plain = name == b"etag" and not value.startswith(b"W/") and not value.endswith(b'-gzip"')
    return (name, b"W/" + value) if is_plain else header


def _route_label(scope: Scope, status: int) -> str:
    """Return the route for the metrics: its path template.

    Without a route it is `site` for pages and `none` for errors.
    """
    template: str = getattr(scope.get("route"), "path", "")  # set by Starlette
    return template or ("none" if status >= 400 else "site")
