"""The Starlette application: its routes, and errors that Starlette raises itself.

Each endpoint authenticates the request, calls an operation (`server.operations`) and makes the
response.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcatalog import openapi
from toolcatalog.keys.api_keys import ApiKey
from toolcatalog.server.connection_limit import CLIENT_LIMIT
from toolcatalog.server.error_responses import (
    ErrorDetail,
    RequestError,
    not_ready,
    server_draining,
    too_many_connections,
)
from toolcatalog.server.fast_path import FastPath
from toolcatalog.server.middleware import (
    RequestMiddleware,
    get_context,
    make_fault_response,
    to_starlette_response,
)
from toolcatalog.server.operations import OperationResult, Operations, raise_unauthorized, tag_body
from toolcatalog.server.query_params import MAX_BODY_SIZE
from toolcatalog.server.responses import Header, make_error_response, make_response, suggested
from toolcatalog.server.state import AppState, ServedSnapshot


def create_app(
    state: AppState, site: Path | None, extra_routes: Sequence[BaseRoute] = ()
) -> ASGIApp:
    """Return the ASGI application, with the fast path.

    It serves the current snapshot and the extra routes, and the site at `/` if there is one.
    """
    return FastPath(state, create_full_app(state, site, extra_routes))


def create_full_app(
    state: AppState, site: Path | None, extra_routes: Sequence[BaseRoute] = ()
) -> ASGIApp:
    """Return the same application without the fast path."""
    api = ApiEndpoints(state)
    routes: list[BaseRoute] = [*extra_routes]
    for prefix in openapi.API_PREFIXES:
        routes.append(Route(f"{prefix}/tools", api.list_tools))
        routes.append(Route(f"{prefix}/tools/{{slug}}", api.get_tool))
        routes.append(Route(f"{prefix}/tool_router/session/{{id}}/tools", api.list_session_tools))
    routes.append(Route("/openapi.json", api.get_openapi))
    routes.append(Route("/healthz", api.get_health))
    routes.append(Route("/readyz", api.get_readiness))
    app = Starlette(
        routes=routes,
        exception_handlers={
            RequestError: _handle_request_error,
            HTTPException: _handle_http_error,
            Exception: _handle_exception,
        },
    )
    app.router.redirect_slashes = False
    if site:
        app.router.default = _Site(site)
    return RequestMiddleware(app, state)


class ApiEndpoints:
    """The endpoints of the API."""

    def __init__(self, state: AppState) -> None:
        self.state = state
        self.openapi_result = tag_body(orjson.dumps(openapi.build_document()))
        self.health_result = tag_body(b'{"status":"ok"}')

    async def get_tool(self, request: Request) -> Response:
        """Get tool by slug."""
        key, operations = self._authenticate(request), _get_operations(request)
        return _make_response(
            request,
            operations.get_tool(key, request.path_params["slug"], request.scope["query_string"]),
        )

    async def list_tools(self, request: Request) -> Response:
        """List available tools."""
        key, operations, query = (
            self._authenticate(request),
            _get_operations(request),
            request.scope["query_string"],
        )
        await self._apply_rate_limit(request, key)
        if operations.store.has_semantic_search:
            await run_in_threadpool(operations.encode_query, query)  # does not block others
        return _make_response(request, operations.list_tools(key, query))

    async def list_session_tools(self, request: Request) -> Response:
        """List meta tools for a tool router session."""
        key, operations = (
            self._authenticate(request),
            _get_operations(request),
        )  # checked before the body is read
        id, query = request.path_params["id"], request.scope["query_string"]
        return _make_response(
            request, operations.list_session_tools(key, id, query, await _read_body(request))
        )

    async def get_openapi(self, request: Request) -> Response:
        """Return the OpenAPI document."""
        return _make_response(request, self.openapi_result)

    async def get_health(self, request: Request) -> Response:
        """Answer 200 while the process is alive."""
        return _make_response(request, self.health_result)

    async def get_readiness(self, request: Request) -> Response:
        """Answer 200 if the server accepts requests, with the digest of its snapshot.

        Raises RequestError (503) if no snapshot is open, and while the server drains.
        """
        if self.state.draining.is_set():
            raise RequestError(server_draining())
        digest = _get_operations(request).store.digest
        return _make_response(
            request, tag_body(orjson.dumps({"status": "ready", "snapshot": digest}))
        )

    def _authenticate(self, request: Request) -> ApiKey:
        """Return the API key of a request. Raises RequestError (401) if it has none."""
        key = self.state.keys.find(_get_header(request, "x-api-key") or b"") or raise_unauthorized()
        request.scope["key"] = key
        return key

    async def _apply_rate_limit(self, request: Request, key: ApiKey) -> None:
        """Count a list request. Raises RequestError (429) if the key has reached its limit.

        Every response to the request then has the rate limit headers.
        """
        if (
            self.state.rate_limiter and "limits" not in request.scope
        ):  # the fast path may have counted it
            now = await self.state.rate_limiter.hit(key.id)
            request.scope["limits"] = now.headers()
            if not now.is_allowed:
                raise RequestError(now.to_error())


def _get_operations(request: Request) -> Operations:
    """Return the operations for a request.

    Raises RequestError (503) if no snapshot is open.
    """
    serving: ServedSnapshot | None = request.scope["serving"]
    if serving is None:
        raise RequestError(not_ready())
    return serving.operations


def _make_response(request: Request, result: OperationResult) -> Response:
    status, headers, body = make_response(
        b"".join(result.chunks),
        result.tag,
        _get_header(request, "if-none-match"),
        get_context(request),
    )
    return to_starlette_response(
        (status, [*headers, *suggested(result.suggestion), *_rate_limit_headers(request)], body)
    )


def _rate_limit_headers(request: Request) -> list[Header]:
    """Return the rate limit headers of a request, if its key was counted."""
    told: list[Header] = request.scope.get("limits", [])
    return told


def _get_header(request: Request, name: str) -> bytes | None:
    value = request.headers.get(name)
    return None if value is None else value.encode("latin-1")


async def _read_body(request: Request) -> bytes:
    """Read the body of a request, but only until it is known to be too large."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY_SIZE:
            break
    return data


class _SiteFiles(StaticFiles):
    """Static files with the error envelope for a missing path.

    A browser gets the 404 page of the site instead.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        found = await super().get_response(path, scope)
        if found.status_code != 404:
            return found
        if "text/html" not in Headers(scope=scope).get("accept", "") or not isinstance(
            found, FileResponse
        ):
            raise HTTPException(404)
        # the whole page, even if the request asks for a range
        page = await run_in_threadpool(Path(found.path).read_bytes)
        return HTMLResponse(page, 404, {"cache-control": "no-store"})


_MAX_PATH_LENGTH = 1024  # characters of a path in the site: those of a page have a few hundred


class _Site:
    """The generated pages, for every path that is not the API's.

    A long path is not looked up: resolving one of thousands of folders takes a large part of a
    second.
    """

    def __init__(self, folder: Path) -> None:
        self.files = _SiteFiles(directory=folder, html=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # API paths and hidden files are not pages
        path = scope["path"]
        if len(path) > _MAX_PATH_LENGTH or path.startswith("/api/") or "/." in path:
            raise HTTPException(404)
        with CLIENT_LIMIT.reserve() as has_room:
            if not has_room:
                raise RequestError(too_many_connections())
            await self.files(scope, receive, partial(_send_with_policy, send))


_SITE_POLICY = (
    # logos may come from other hosts
    b"default-src 'self'; img-src 'self' https: data:; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)


async def _send_with_policy(send: Send, message: Message) -> None:
    """Send a message with the content security policy of pages.

    Pages may run only the site's own scripts.
    """
    if message["type"] == "http.response.start":
        message["headers"] = [*message["headers"], (b"content-security-policy", _SITE_POLICY)]
    await send(message)


async def _handle_request_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    again = (
        [(b"retry-after", b"1")] if any(refusal.status == 503 for refusal in error.errors) else []
    )
    return to_starlette_response(
        make_error_response(
            error.errors, get_context(request), *again, *_rate_limit_headers(request)
        )
    )


async def _handle_exception(request: Request, error: Exception) -> Response:  # noqa: ARG001 - required
    # Starlette raises the error again, and the middleware logs it
    return make_fault_response(get_context(request))


async def _handle_http_error(request: Request, error: Exception) -> Response:
    """Return the error envelope for errors that Starlette raises, such as 404 and 405."""
    assert isinstance(error, HTTPException)
    where, status = request.url.path[:200], error.status_code
    if status == 405:
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "GET, HEAD").split(", ")))
        refusal = ErrorDetail(
            405,
            "method_not_allowed",
            f"{request.method} is not answered at {where}.",
            f"Use {allowed}.",
        )
        return to_starlette_response(
            make_error_response([refusal], get_context(request), (b"allow", allowed.encode()))
        )
    if status == 404:
        refusal = ErrorDetail(
            404,
            "route_not_found",
            f"There is nothing at {where}.",
            "See /openapi.json for the paths that are there.",
        )
    else:
        refusal = ErrorDetail(
            status, "invalid_request", str(error.detail), "See /openapi.json for what is answered."
        )
    return to_starlette_response(make_error_response([refusal], get_context(request)))
