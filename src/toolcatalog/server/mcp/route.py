"""The `/mcp` route: MCP over streamable HTTP.

Needs the extra `mcp`.

Each request is independent: it has its own key, snapshot and SDK transport, which lives as long as
the request. Nothing is kept between requests, so any worker and any replica may answer the next
one, and the route needs no lifespan. A request without access gets the error envelope of the API;
an invalid message gets an MCP error.

The answer to `subscriptions/listen` is a stream of notifications. It lasts until the client closes
it, the server drains or the key is revoked. A stream reads the current snapshot and keeps none.
"""

import json
import re
from collections import Counter
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from toolcatalog import names
from toolcatalog.api.error_responses import (
    ErrorDetail,
    RequestError,
    invalid_request,
    not_ready,
    server_draining,
    too_many_connections,
)
from toolcatalog.api.operations import raise_unauthorized
from toolcatalog.api.query_params import MAX_BODY_SIZE
from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.server.call_queue import CallQueue
from toolcatalog.server.mcp import protocol
from toolcatalog.server.mcp.list_changes import (
    LISTEN_METHOD,
    MAX_STREAMS,
    MAX_STREAMS_OF_KEY,
    ListChanges,
)
from toolcatalog.server.mcp.tools import CatalogAccess
from toolcatalog.server.responses import check_connected
from toolcatalog.server.state import AppState, ServedSnapshot

PATH = "/mcp"
_LOCAL_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)
_MAX_MESSAGES = 4  # that the SDK handles at once, mostly on the event loop
_MAX_QUERY_SIZE = 1024  # bytes; a session id has at most 200 characters
# values in a message: the SDK checks each against dozens of types, on the event loop
_MAX_VALUES = 2000


def create_mcp_route(state: AppState) -> Route:
    """Return the route to the endpoint.

    GET would open an event stream, and DELETE would end a session. The server has neither, so both
    are 405.
    """
    return Route(PATH, McpEndpoint(state), methods=["POST"])


class McpEndpoint:
    """The endpoint, an ASGI application for POST."""

    def __init__(self, state: AppState) -> None:
        self.state = state
        self._streams = Counter[str]()  # that are open, by the id of their key
        self._queue = CallQueue(_MAX_MESSAGES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises RequestError if it has no valid key, comes from a page of another origin, or has
        a long id.
        """
        request = Request(scope, receive)
        _check_origin(request.headers.get("origin"))
        _check_query(scope["query_string"])
        key, session = self._authenticate(request), request.query_params.get("session", "")
        _check_session(request, key, session)
        body = await _read_body(request)
        key = self._authenticate(request)  # it may have been revoked meanwhile
        replayed = _ReplayedBody(body, receive)
        if _check_message(body) == LISTEN_METHOD:
            await self._stream_changes(request, replayed, send, key, session)
            return
        seen = _get_access(request, key)
        check_limit = partial(self._apply_rate_limit, key)
        changes = ListChanges(lambda: seen, session)  # declared, and served by other requests
        server = protocol.create_server(lambda: seen, session, check_limit, changes)
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        async with self._queue.wait_for_slot():
            check_connected(scope)
            self._authenticate(request)  # it may have been revoked meanwhile
            await _handle(server, scope, replayed, collect)
        for message in messages:  # a slow client keeps no slot
            await send(message)

    async def _stream_changes(
        self, request: Request, receive: Receive, send: Send, key: ApiKey, session: str
    ) -> None:
        """Answer with a stream of changes of the listed tools.

        Raises RequestError (503) if the server drains or has as many streams as it allows.
        """
        if self.state.draining.is_set():
            raise RequestError(server_draining())
        if self._streams.total() >= MAX_STREAMS or self._streams[key.id] >= MAX_STREAMS_OF_KEY:
            raise RequestError(too_many_connections())
        request.scope["served"] = None  # else the stream would keep its first snapshot in memory

        def get_access() -> CatalogAccess:
            assert self.state.current
            return CatalogAccess(self.state.current.store, key.toolkits, key.project)

        def is_open() -> bool:
            return not self.state.draining.is_set() and self._is_active(key)

        changes = ListChanges(get_access, session, is_open)
        server = protocol.create_server(get_access, session, changes=changes)
        self._streams[key.id] += 1
        try:
            await anyio.lowlevel.checkpoint()
            check_connected(request.scope)
            state = await changes.read_state()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(changes.watch, state)
                await _handle(server, request.scope, receive, send)
                tasks.cancel_scope.cancel()
        finally:
            self._streams[key.id] -= 1
            self._streams += Counter()  # without keys that have none

    def _authenticate(self, request: Request) -> ApiKey:
        """Return the API key of a request.

        It is in the header of the API, or in the `Authorization` header that MCP clients send.
        Raises RequestError (401) if there is no valid key.
        """
        bearer = _BEARER.fullmatch(request.headers.get("authorization", ""))
        secret = request.headers.get("x-api-key") or (bearer[1] if bearer else "")
        request.scope["key"] = key = self.state.keys.find(
            secret.encode("latin-1")
        ) or raise_unauthorized(has_key=bool(secret))
        return key

    def _is_active(self, key: ApiKey) -> bool:
        """Return whether a key is still valid and unchanged."""
        return self.state.keys.find_by_digest(key.sha256) == key

    async def _apply_rate_limit(self, key: ApiKey) -> ErrorDetail | None:
        """Count a search as a list request of this key, if there is a limit.

        Returns an error if the key has reached its limit.
        """
        if self.state.rate_limiter is None:
            return None
        try:
            status = await self.state.rate_limiter.hit(key.id)
        except RequestError as error:
            return error.errors[0]
        return None if status.is_allowed else status.to_error()


def _get_access(request: Request, key: ApiKey) -> CatalogAccess:
    served: ServedSnapshot | None = request.scope["served"]
    if served is None:
        raise RequestError(not_ready())
    return CatalogAccess(served.store, key.toolkits, key.project)


def _check_session(request: Request, key: ApiKey, session: str) -> None:
    """Raise RequestError if a session is named that the key may not see."""
    access = _get_access(request, key)
    found = access.view.get_session(session, access.project) if session else b""
    if isinstance(found, ErrorDetail):
        raise RequestError(found)


async def _handle(server: Server[Any], scope: Scope, receive: Receive, send: Send) -> None:
    """Let the SDK answer a request."""
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


class _ReplayedBody:
    """A receive function that returns a body already read, then further messages of the client."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self.body: bytes | None = body
        self.receive = receive

    async def __call__(self) -> Message:
        body, self.body = self.body, None
        return (
            await self.receive()
            if body is None
            else {"type": "http.request", "body": body, "more_body": False}
        )


def _check_origin(origin: str | None) -> None:
    """Raise RequestError (403) for a request from a page in a browser.

    Pages of this machine are allowed, for example MCP inspectors.
    """
    if origin and not _LOCAL_ORIGIN.fullmatch(origin):
        fix = "Call it from a program, or from a page at localhost."
        raise RequestError(
            ErrorDetail(
                403, "forbidden", f"origin: pages of {origin[:200]} may not call {PATH}.", fix
            )
        )


def _check_query(query: bytes) -> None:
    """Raise RequestError (400) for a long query string, because it is parsed on the event loop."""
    if len(query) > _MAX_QUERY_SIZE:
        raise RequestError(
            invalid_request(
                f"query: more than {_MAX_QUERY_SIZE:,} bytes.", "Send only `session`, or nothing."
            )
        )


def _check_message(body: bytes) -> str:
    """Return the method of a message; empty if it has none.

    Raises RequestError (400) if its id or method is longer than 200 characters, because the SDK
    returns both in its answer, and if it has very many values or answers to questions of a server.
    Whatever else is wrong with a message, the SDK says.
    """
    try:
        message = json.loads(body, parse_int=str)
    except (ValueError, RecursionError):
        return ""
    _check_values(message)
    for name in ("id", "method"):
        value = message.get(name) if isinstance(message, dict) else None
        if isinstance(value, str) and len(value) > names.MAX_LENGTH:
            raise RequestError(
                invalid_request(
                    f"{name}: more than {names.MAX_LENGTH} characters.", f"Send a shorter {name}."
                )
            )
    method = message.get("method") if isinstance(message, dict) else None
    return method if isinstance(method, str) else ""


def _check_values(message: Any) -> None:
    """Raise RequestError (400) for a message that takes the SDK long to check."""
    params = message.get("params") if isinstance(message, dict) else None
    if isinstance(params, dict) and "inputResponses" in params:
        raise RequestError(
            invalid_request(
                "inputResponses: this server asks for no input.", "Send the call without it."
            )
        )
    remaining, count = [message], 0
    while remaining:
        value = remaining.pop()
        children = (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        )
        count += len(children)
        if count > _MAX_VALUES:
            raise RequestError(
                invalid_request(
                    f"message: more than {_MAX_VALUES:,} values.", "Send fewer arguments."
                )
            )
        remaining.extend(children)


async def _read_body(request: Request) -> bytes:
    """Read the body of a request. Raises RequestError as soon as it is too large."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY_SIZE:
            raise RequestError(
                invalid_request(
                    "body: more than 64 KiB.",
                    "Send one message of MCP at a time, without what is not needed.",
                )
            )
    return data
