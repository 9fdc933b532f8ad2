"""The ASGI application: the dispatcher of the API, and Starlette for everything else.

Starlette serves the site, the OpenAPI document, health and readiness, and the extra routes (MCP,
metrics). It also answers unknown paths and methods.
"""

from collections.abc import Sequence
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response as StarletteResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from toolcatalog import openapi
from toolcatalog.api.answers import Answer
from toolcatalog.api.bodies import join_body
from toolcatalog.api.content_coding import GZIP_LEVEL, MIN_SIZE
from toolcatalog.api.error_responses import (
    ErrorDetail,
    RequestError,
    not_ready,
    server_draining,
)
from toolcatalog.api.operations import tag_body
from toolcatalog.server import responses
from toolcatalog.server.dispatcher import Dispatcher, make_failure, make_refusal
from toolcatalog.server.responses import PreparedAnswer, Response, ResponseContext
from toolcatalog.server.route_suggestion import suggest_route
from toolcatalog.server.site import Site
from toolcatalog.server.state import AppState, ServedSnapshot

# bytes compressed on the event loop, in half a millisecond; larger bodies go to a thread, and other
# requests are answered meanwhile
_MAX_INLINE_SIZE = 64 * 1024


def create_app(
    state: AppState,
    site: Path | None,
    extra_routes: Sequence[BaseRoute] = (),
    root_path: str = "",
) -> ASGIApp:
    """Return the ASGI application.

    It serves the current snapshot and the extra routes, and the site at `/` if there is one.
    `root_path` is the path below which a proxy publishes the server.
    """
    endpoints = _Endpoints(state, root_path)
    app = Starlette(
        routes=[
            *extra_routes,
            Route("/openapi.json", endpoints.get_openapi),
            Route("/healthz", endpoints.get_health),
            Route("/readyz", endpoints.get_readiness),
            *(Route(path, _refuse_method, methods=["GET"]) for path in _OPERATION_PATHS),
        ],
        exception_handlers={
            RequestError: _handle_request_error,
            HTTPException: _handle_http_error,
            Exception: _handle_exception,
        },
    )
    app.router.redirect_slashes = False
    if site:
        app.router.default = Site(site)
    compressed = GZipMiddleware(app, MIN_SIZE, GZIP_LEVEL, _MAX_INLINE_SIZE)
    return Dispatcher(state, compressed)


# the dispatcher answers GET and HEAD; Starlette refuses all other methods
_OPERATION_PATHS = [
    f"{prefix}{path}"
    for prefix in openapi.API_PREFIXES
    for path in (
        "/tools",
        "/tools/enum",
        "/tools/{slug}",
        "/toolkits",
        "/toolkits/categories",
        "/toolkits/{slug}",
        "/tool_router/session/{id}/tools",
    )
]
_OPERATION_PATHS += [
    openapi.SERVERS_PATH,
    *(
        path.replace("{server_name}", "{namespace}/{name}")
        for path in (openapi.SERVER_VERSIONS_PATH, openapi.SERVER_PATH)
    ),
]


_ALL_PATHS = (*_OPERATION_PATHS, "/openapi.json", "/healthz", "/readyz", "/metrics", "/mcp")


async def _refuse_method(request: Request) -> StarletteResponse:  # noqa: ARG001 - required
    raise HTTPException(405)


class _Endpoints:
    """The endpoints that are no operations."""

    def __init__(self, state: AppState, root_path: str) -> None:
        self._state = state
        document = orjson.dumps(openapi.build_document(root_path))
        self._openapi = {gzip: tag_body(document, gzip=gzip) for gzip in (False, True)}
        self._health = tag_body(b'{"status":"ok"}')

    async def get_openapi(self, request: Request) -> StarletteResponse:
        """Return the OpenAPI document."""
        # the dispatcher leaves `gzip` or nothing in this header
        return _respond(request, self._openapi["accept-encoding" in request.headers])

    async def get_health(self, request: Request) -> StarletteResponse:
        """Answer 200 while the process is alive."""
        return _respond(request, self._health)

    async def get_readiness(self, request: Request) -> StarletteResponse:
        """Answer 200 if the server accepts requests, with the digest of its snapshot.

        Raises RequestError (503) if no snapshot is open, and while the server drains.
        """
        if self._state.draining.is_set():
            raise RequestError(server_draining())
        served: ServedSnapshot | None = request.scope["served"]
        if served is None:
            raise RequestError(not_ready())
        status = {"status": "ready", "snapshot": served.store.digest}
        return _respond(request, tag_body(orjson.dumps(status)))


def _respond(request: Request, answer: Answer) -> StarletteResponse:
    given = request.headers.get("if-none-match")
    if_none_match = None if given is None else given.encode("latin-1")
    prepared, context = PreparedAnswer(answer), _get_context(request)
    return _to_starlette(responses.make_response(prepared, if_none_match, context))


def _to_starlette(response: Response) -> StarletteResponse:
    result = StarletteResponse(join_body(response.body), response.status)
    result.raw_headers = response.headers
    return result


def _get_context(request: Request) -> ResponseContext:
    context: ResponseContext = request.scope["context"]
    return context


async def _handle_request_error(request: Request, error: Exception) -> StarletteResponse:
    assert isinstance(error, RequestError)
    return _to_starlette(make_refusal(error, _get_context(request)))


async def _handle_exception(request: Request, error: Exception) -> StarletteResponse:  # noqa: ARG001 - required
    # Starlette raises the error again, and the dispatcher logs it
    return _to_starlette(make_failure(_get_context(request)))


async def _handle_http_error(request: Request, error: Exception) -> StarletteResponse:
    """Return the error envelope for errors that Starlette raises, such as 404 and 405."""
    assert isinstance(error, HTTPException)
    path, status = request.url.path[:200], error.status_code
    context = _get_context(request)
    if status == 405:
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "GET, HEAD").split(", ")))
        detail = ErrorDetail(
            405,
            "method_not_allowed",
            f"{request.method} is not answered at {path}.",
            f"Use {allowed}.",
        )
        allow = (b"allow", allowed.encode())
        return _to_starlette(responses.make_error_response([detail], context, allow))
    if status == 404:
        suggestion = suggest_route(path, _ALL_PATHS, openapi.API_PREFIXES[0])
        detail = ErrorDetail(
            404,
            "route_not_found",
            f"There is no route for {path}.",
            f"Did you mean {suggestion}?" if suggestion else "See /openapi.json for all paths.",
        )
    else:
        detail = ErrorDetail(
            status,
            "invalid_request",
            str(error.detail),
            "See /openapi.json for the allowed methods.",
        )
    return _to_starlette(responses.make_error_response([detail], context))
