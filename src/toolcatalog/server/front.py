"""The short way for the two plain requests that nearly all traffic consists of: get a tool and list tools.

It does no work of its own: the operations, the answers and the headers are those of the long way, through Edge and Starlette, and so
are the bytes. What is not plain goes the long way: another path or method, an `Origin`, gzip asked for, and every fault.
"""

from functools import lru_cache

from starlette.types import ASGIApp, Receive, Scope, Send

from toolcatalog.server import questions
from toolcatalog.server.answers import Answer, answer, refuse
from toolcatalog.server.edge import accepts_gzip, identify
from toolcatalog.server.openapi import PREFIXES
from toolcatalog.server.operations import Operations
from toolcatalog.server.refusals import Refused

_TOOLS = frozenset(f"{prefix}/tools" for prefix in PREFIXES)
_METHODS = ("GET", "HEAD")  # the server leaves out the body of an answer to HEAD
_LONGEST = 256  # bytes of a query string
_KEPT = 4096  # query strings: clients ask the same again and again

_tool = lru_cache(maxsize=_KEPT)(questions.tool)
_tools = lru_cache(maxsize=_KEPT)(questions.tools)


class Front:
    """Wraps the application, `rest`."""

    def __init__(self, operations: Operations, rest: ASGIApp) -> None:
        self.operations = operations
        self.rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        found = self.answer(scope) if scope["type"] == "http" else None
        if found is None:
            await self.rest(scope, receive, send)
            return
        status, headers, body = found
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def answer(self, scope: Scope) -> Answer | None:
        """The answer to a plain request; None for any other, and where something fails: the long way tells and logs it."""
        above, _, slug = scope["path"].rpartition("/")
        one = above in _TOOLS and slug != ""
        query = scope["query_string"]
        if not (one or scope["path"] in _TOOLS) or scope["method"] not in _METHODS or len(query) > _LONGEST:
            return None
        headers = dict(reversed(scope["headers"]))  # the first of several lines counts, as in Starlette
        coding = headers.get(b"accept-encoding")
        if b"origin" in headers or (coding is not None and accepts_gzip(coding.decode("latin-1"))):
            return None
        operations, request_id = self.operations, identify(headers.get(b"x-request-id"))
        try:
            secret = headers.get(b"x-api-key", b"")
            body, tag = operations.tool(secret, slug, *_tool(query)) if one else operations.tools(secret, *_tools(query))
        except Refused as refused:
            return refuse(refused.refusals, request_id)
        except Exception:
            return None
        return answer(body, tag, headers.get(b"if-none-match"), request_id)
