"""The application: its routes, and the three operations in a few lines each: who asks, what is asked, what is answered.

Serves: "Endpoints" of the interface.
"""

from pathlib import Path

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcatalog import names
from toolcatalog.keys import Key, KeyRing
from toolcatalog.server import openapi, questions
from toolcatalog.server.answers import answer, refuse
from toolcatalog.server.edge import Edge, fault, request_id
from toolcatalog.server.questions import LARGEST_BODY, Page
from toolcatalog.server.refusals import Refusal, Refused, unauthorized
from toolcatalog.server.view import View
from toolcatalog.store import Store


def create_app(store: Store, keys: KeyRing, site: Path | None) -> ASGIApp:
    """The ASGI application that answers from this store, with these keys, and serves the site at `/` where there is one."""
    api = Api(store, keys)
    routes: list[BaseRoute] = []
    for prefix in openapi.PREFIXES:
        routes.append(Route(f"{prefix}/tools", api.tools))
        routes.append(Route(f"{prefix}/tools/{{slug}}", api.tool))
        routes.append(Route(f"{prefix}/tool_router/session/{{id}}/tools", api.session))
    routes.append(Route("/openapi.json", api.openapi))
    routes.append(Route("/healthz", api.health))
    routes.append(Route("/readyz", api.ready))
    app = Starlette(routes=routes, exception_handlers={Refused: _refused, HTTPException: _http_refused, Exception: _failed})
    app.router.redirect_slashes = False
    if site:
        app.router.default = _Site(site)
    return Edge(app)


class Api:
    """The operations."""

    def __init__(self, store: Store, keys: KeyRing) -> None:
        self.store = store
        self.keys = keys
        self.document = orjson.dumps(openapi.document())

    async def tool(self, request: Request) -> Response:
        """Get tool by slug."""
        view = View(self.store, self._key(request).toolkits)
        question, refusals = questions.tool(request.path_params["slug"], request.scope["query_string"])
        found = view.tool(question) if names.fits(names.TOOL_SLUG, question.slug) else 0
        if refusals or isinstance(found, Refusal):
            raise Refused(*refusals, *([found] if isinstance(found, Refusal) else []))
        return answer(request, self.store.document(found))

    async def tools(self, request: Request) -> Response:
        """List available tools."""
        view = View(self.store, self._key(request).toolkits)
        question, refusals = questions.tools(request.scope["query_string"])
        if refusals := [*refusals, *view.refusals(question)]:
            raise Refused(*refusals)
        numbers, total = view.tools(question)
        items, _ = self.store.documents(numbers)
        return answer(request, page_of(items, question.page, total))

    async def session(self, request: Request) -> Response:
        """List meta tools for a tool router session."""
        key = self._key(request)
        question, refusals = questions.session(request.path_params["id"], request.scope["query_string"], await _body(request))
        if refusals := [*refusals, *self._not_its_session(question.id, key.project)]:
            raise Refused(*refusals)
        _, body = self.store.session(question.id) or ("", b"")
        return answer(request, _paged(body, question.page) if question.page else body)

    def _not_its_session(self, id: str, project: str) -> list[Refusal]:
        found = self.store.session(id)
        if not names.fits(names.SESSION_ID, id) or (found and found[0] == project):
            return []
        if found is None:
            return [Refusal(404, "session_not_found", f"session_id: there is no session {id}.", "Check the id with its owner.")]
        return [Refusal(403, "forbidden", f"session_id: {id} belongs to another project.", "Use a key of its owner.")]

    async def openapi(self, request: Request) -> Response:
        """The OpenAPI document."""
        return answer(request, self.document)

    async def health(self, request: Request) -> Response:
        """Whether the process is alive."""
        return answer(request, b'{"status":"ok"}')

    async def ready(self, request: Request) -> Response:
        """Whether the server can answer, and from which snapshot."""
        return answer(request, orjson.dumps({"status": "ready", "snapshot": self.store.digest}))

    def _key(self, request: Request) -> Key:
        key = self.keys.find(request.headers.get("x-api-key", ""))
        if key is None:
            raise Refused(unauthorized())
        return key


def page_of(items: bytes, page: Page, total: int) -> bytes:
    """A tool list page around the bytes of its items, which have commas between them."""
    pages = -(-total // page.size)
    following = Page(page.number + 1, page.size).cursor() if page.number < pages else None
    about = {"next_cursor": following, "total_pages": pages, "current_page": page.number, "total_items": total}
    return b'{"items":[' + items + b"]," + orjson.dumps(about)[1:]


def _paged(body: bytes, page: Page) -> bytes:
    items = [orjson.dumps(item) for item in orjson.loads(body)["items"]]
    return page_of(b",".join(items[page.start : page.start + page.size]), page, len(items))


async def _body(request: Request) -> bytes:
    """The request's body, read no further than it takes to see that it is too large."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST_BODY:
            break
    return data


class _Site:
    """The generated pages, for every path that is not the API's."""

    def __init__(self, folder: Path) -> None:
        self.files = StaticFiles(directory=folder, html=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/api/") or "/." in scope["path"]:  # files of our own, and of others, that are no pages
            raise HTTPException(404)
        await self.files(scope, receive, send)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refuse(error.refusals, request_id(request))


async def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette raises it again, and the edge logs it
    return fault(request_id(request))


async def _http_refused(request: Request, error: Exception) -> Response:
    """What Starlette refuses by itself: paths and methods that are not there."""
    assert isinstance(error, HTTPException)
    where, status = request.url.path[:200], error.status_code
    if status == 405:
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "GET, HEAD").split(", ")))
        refusal = Refusal(405, "method_not_allowed", f"{request.method} is not answered at {where}.", f"Use {allowed}.")
        return refuse([refusal], request_id(request), {"Allow": allowed})
    if status == 404:
        refusal = Refusal(404, "route_not_found", f"There is nothing at {where}.", "See /openapi.json for the paths that are there.")
    else:
        refusal = Refusal(status, "invalid_request", str(error.detail), "See /openapi.json for what is answered.")
    return refuse([refusal], request_id(request))
