"""The `/mcp` route: MCP over streamable HTTP.

Needs the extra `mcp`.

Each request is independent: it has its own key, snapshot and SDK transport, which lives as long as
the request. Nothing is kept between requests, so any worker and any replica may answer the next
one, and the route needs no lifespan. A request without access gets the error envelope of the API;
an invalid message gets an MCP error.
"""

import json
import re
from functools import partial

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from toolcatalog import names
from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.server.error_responses import ErrorDetail, RequestError, invalid_request, not_ready
from toolcatalog.server.mcp import protocol
from toolcatalog.server.mcp.tools import CatalogAccess
from toolcatalog.server.operations import raise_unauthorized
from toolcatalog.server.query_params import MAX_BODY_SIZE
from toolcatalog.server.state import AppState, ServedSnapshot

PATH = "/mcp"
_LOCAL_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises RequestError if it has no valid key, comes from a page of another origin, or has
        a long id.
        """
        request = Request(scope, receive)
        _check_origin(request.headers.get("origin"))
        key = self._authenticate(request)
        seen, session = _get_access(request, key), request.query_params.get("session", "")
        if session and isinstance(
            refusal := seen.view.get_session(session, seen.project), ErrorDetail
        ):
            raise RequestError(refusal)
        body = await _read_body(request)
        _check_message(body)
        talking = StreamableHTTPSessionManager(
            protocol.create_server(lambda: seen, session, partial(self._apply_rate_limit, key)),
            json_response=True,
            stateless=True,
        )
        async with talking.run():
            await talking.handle_request(scope, _ReplayedBody(body, receive), send)

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

    async def _apply_rate_limit(self, key: ApiKey) -> ErrorDetail | None:
        """Count a search as a list request of this key, if there is a limit.

        Returns an error if the key has reached its limit.
        """
        if self.state.rate_limiter is None:
            return None
        now = await self.state.rate_limiter.hit(key.id)
        return None if now.is_allowed else now.to_error()


def _get_access(request: Request, key: ApiKey) -> CatalogAccess:
    served: ServedSnapshot | None = request.scope["served"]
    if served is None:
        raise RequestError(not_ready())
    return CatalogAccess(served.store, key.toolkits, key.project)


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


def _check_message(body: bytes) -> None:
    """Raise RequestError (400) if the id or the method of a message is longer than 200 characters.

    The SDK returns both in its answer. Whatever else is wrong with a message, the SDK says.
    """
    try:
        message = json.loads(body, parse_int=str)
    except (ValueError, RecursionError):
        return
    for name in ("id", "method"):
        value = message.get(name) if isinstance(message, dict) else None
        if isinstance(value, str) and len(value) > names.MAX_LENGTH:
            raise RequestError(
                invalid_request(
                    f"{name}: more than {names.MAX_LENGTH} characters.", f"Send a shorter {name}."
                )
            )


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
