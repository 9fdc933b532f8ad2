"""The site: the generated pages as static files, with a content security policy."""

import mimetypes
from functools import partial
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

from toolcatalog.api.error_responses import RequestError, too_many_connections
from toolcatalog.server.limits.connection_limit import CLIENT_LIMIT
from toolcatalog.server.request_context import path_below_root

_MAX_PATH_LENGTH = 1024  # characters of a path in the site: those of a page have a few hundred
_POLICY = (
    b"default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)

mimetypes.add_type("font/woff2", ".woff2")  # Python 3.11 does not know it


class Site:
    """The generated pages, for every path that is not the API's.

    A long path is not looked up: resolving one of thousands of folders takes a large part of a
    second.
    """

    def __init__(self, folder: Path) -> None:
        self.files = _SiteFiles(directory=folder, html=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises HTTPException for API paths and hidden files."""
        path = path_below_root(scope)
        if len(path) > _MAX_PATH_LENGTH or path.startswith("/api/") or "/." in path:
            raise HTTPException(404)
        with CLIENT_LIMIT.reserve() as has_room:
            if not has_room:
                raise RequestError(too_many_connections())
            await self.files(scope, receive, partial(_send_with_policy, send))


class _SiteFiles(StaticFiles):
    """Static files with the error envelope for a missing path.

    A browser gets the 404 page of the site instead.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if response.status_code != 404:
            return response
        accepts_html = "text/html" in Headers(scope=scope).get("accept", "")
        if not accepts_html or not isinstance(response, FileResponse):
            raise HTTPException(404)
        # the whole page, even if the request asks for a range
        page = await run_in_threadpool(Path(response.path).read_bytes)
        return HTMLResponse(page, 404, {"cache-control": "no-store"})


async def _send_with_policy(send: Send, message: Message) -> None:
    """Send a message with the content security policy of pages.

    Pages may run only the site's own scripts.
    """
    if message["type"] == "http.response.start":
        headers = [*message["headers"], (b"content-security-policy", _POLICY)]
        message = {**message, "headers": headers}
    await send(message)
