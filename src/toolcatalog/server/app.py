"""The application: its routes, and what Starlette refuses by itself. Every operation is a line or
two: who asks, what, the answer.
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
from toolcatalog.keys import Key
from toolcatalog.server.answers import Header, answer, refuse, suggested
from toolcatalog.server.descriptors import CLIENTS
from toolcatalog.server.edge import Edge, fault, marks, response
from toolcatalog.server.front import Front
from toolcatalog.server.live import Live, Serving
from toolcatalog.server.operations import Operations, Tagged, stranger, tagged
from toolcatalog.server.questions import LARGEST_BODY
from toolcatalog.server.refusals import Refusal, Refused, crowded, draining, not_ready


def create_app(live: Live, site: Path | None, more: Sequence[BaseRoute] = ()) -> ASGIApp:
    """The ASGI application that answers from what is live, at more routes too, and serves the site
    at `/` where there is one.
    """
    return Front(live, long_way(live, site, more))


def long_way(live: Live, site: Path | None, more: Sequence[BaseRoute] = ()) -> ASGIApp:
    """The same application without its short way."""
    api = Api(live)
    routes: list[BaseRoute] = [*more]
    for prefix in openapi.PREFIXES:
        routes.append(Route(f"{prefix}/tools", api.tools))
        routes.append(Route(f"{prefix}/tools/{{slug}}", api.tool))
        routes.append(Route(f"{prefix}/tool_router/session/{{id}}/tools", api.session))
    routes.append(Route("/openapi.json", api.openapi))
    routes.append(Route("/healthz", api.health))
    routes.append(Route("/readyz", api.ready))
    app = Starlette(
        routes=routes,
        exception_handlers={Refused: _refused, HTTPException: _http_refused, Exception: _failed},
    )
    app.router.redirect_slashes = False
    if site:
        app.router.default = _Site(site)
    return Edge(app, live)


class Api:
    """The endpoints."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.document = tagged(orjson.dumps(openapi.document()))
        self.alive = tagged(b'{"status":"ok"}')

    async def tool(self, request: Request) -> Response:
        """Get tool by slug."""
        key, operations = self._key(request), _operations(request)
        return _answer(
            request,
            operations.tool(key, request.path_params["slug"], request.scope["query_string"]),
        )

    async def tools(self, request: Request) -> Response:
        """List available tools."""
        key, operations, query = (
            self._key(request),
            _operations(request),
            request.scope["query_string"],
        )
        await self._count(request, key)
        if operations.store.knows_meaning:
            await run_in_threadpool(operations.encode, query)  # meanwhile others are answered
        return _answer(request, operations.tools(key, query))

    async def session(self, request: Request) -> Response:
        """List meta tools for a tool router session."""
        key, operations = self._key(request), _operations(request)  # before the body is read
        id, query = request.path_params["id"], request.scope["query_string"]
        return _answer(request, operations.session(key, id, query, await _body(request)))

    async def openapi(self, request: Request) -> Response:
        """The OpenAPI document."""
        return _answer(request, self.document)

    async def health(self, request: Request) -> Response:
        """Whether the process is alive."""
        return _answer(request, self.alive)

    async def ready(self, request: Request) -> Response:
        """Whether the server wants requests, and from which snapshot it answers.

        Raises Refused (503) while it has none, and when it is about to end.
        """
        if self.live.draining.is_set():
            raise Refused(draining())
        digest = _operations(request).store.digest
        return _answer(request, tagged(orjson.dumps({"status": "ready", "snapshot": digest})))

    def _key(self, request: Request) -> Key:
        """Whose request it is; refuses a stranger's."""
        key = self.live.keys.find(_header(request, "x-api-key") or b"") or stranger()
        request.scope["key"] = key
        return key

    async def _count(self, request: Request, key: Key) -> None:
        """Count a list where lists are counted; refuses one too many. Where the key stands is told
        with whatever answer comes.
        """
        if self.live.limits and "limits" not in request.scope:  # the short way may have counted it
            now = await self.live.limits.hit(key.id)
            request.scope["limits"] = now.headers()
            if not now.is_within:
                raise Refused(now.refusal())


def _operations(request: Request) -> Operations:
    """What answers a request; refuses it while no snapshot is open."""
    serving: Serving | None = request.scope["serving"]
    if serving is None:
        raise Refused(not_ready())
    return serving.operations


def _answer(request: Request, found: Tagged) -> Response:
    status, headers, body = answer(
        b"".join(found.pieces), found.tag, _header(request, "if-none-match"), marks(request)
    )
    return response((status, [*headers, *suggested(found.suggested), *_limits(request)], body))


def _limits(request: Request) -> list[Header]:
    """Where the key stands that has asked, where that is counted."""
    told: list[Header] = request.scope.get("limits", [])
    return told


def _header(request: Request, name: str) -> bytes | None:
    value = request.headers.get(name)
    return None if value is None else value.encode("latin-1")


async def _body(request: Request) -> bytes:
    """The request's body, read no further than it takes to see that it is too large."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST_BODY:
            break
    return data


class _Files(StaticFiles):
    """Starlette's, but what is not there is refused as everywhere, unless a browser asks: people
    get the site's own page about that.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        found = await super().get_response(path, scope)
        if found.status_code != 404:
            return found
        if "text/html" not in Headers(scope=scope).get("accept", "") or not isinstance(
            found, FileResponse
        ):
            raise HTTPException(404)
        # whole, also where a range of a page was asked for
        page = await run_in_threadpool(Path(found.path).read_bytes)
        return HTMLResponse(page, 404, {"cache-control": "no-store"})


class _Site:
    """The generated pages, for every path that is not the API's."""

    def __init__(self, folder: Path) -> None:
        self.files = _Files(directory=folder, html=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # files of our own, and of others, that are no pages
        if scope["path"].startswith("/api/") or "/." in scope["path"]:
            raise HTTPException(404)
        with CLIENTS.another() as has_room:
            if not has_room:
                raise Refused(crowded())
            await self.files(scope, receive, partial(_with_policy, send))


_POLICY = (
    # logos lie elsewhere
    b"default-src 'self'; img-src 'self' https: data:; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)


async def _with_policy(send: Send, message: Message) -> None:
    """Pages may run the site's own script, and nothing else."""
    if message["type"] == "http.response.start":
        message["headers"] = [*message["headers"], (b"content-security-policy", _POLICY)]
    await send(message)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    again = (
        [(b"retry-after", b"1")] if any(refusal.status == 503 for refusal in error.refusals) else []
    )
    return response(refuse(error.refusals, marks(request), *again, *_limits(request)))


async def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette raises it again, and the edge logs it
    return fault(marks(request))


async def _http_refused(request: Request, error: Exception) -> Response:
    """What Starlette refuses by itself: paths and methods that are not there."""
    assert isinstance(error, HTTPException)
    where, status = request.url.path[:200], error.status_code
    if status == 405:
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "GET, HEAD").split(", ")))
        refusal = Refusal(
            405,
            "method_not_allowed",
            f"{request.method} is not answered at {where}.",
            f"Use {allowed}.",
        )
        return response(refuse([refusal], marks(request), (b"allow", allowed.encode())))
    if status == 404:
        refusal = Refusal(
            404,
            "route_not_found",
            f"There is nothing at {where}.",
            "See /openapi.json for the paths that are there.",
        )
    else:
        refusal = Refusal(
            status, "invalid_request", str(error.detail), "See /openapi.json for what is answered."
        )
    return response(refuse([refusal], marks(request)))
