"""The short way for the two plain requests that nearly all traffic consists of: get a tool and list tools.

It does no work of its own: the operations, the answers and the headers are those of the long way, through Edge and Starlette, and so
are the bytes. What is not plain goes the long way: another path or method, an `Origin`, gzip asked for, and every fault.
"""

import re
from functools import lru_cache

from starlette.types import ASGIApp, Receive, Scope, Send

from toolcatalog.keys import Key
from toolcatalog.server import questions
from toolcatalog.server.answers import Answer, answer, refuse, written
from toolcatalog.server.edge import accepts_gzip, identify
from toolcatalog.server.heads import Heads
from toolcatalog.server.openapi import PREFIXES
from toolcatalog.server.operations import Operations, Tagged, stranger
from toolcatalog.server.refusals import Refused

_TOOLS = frozenset(f"{prefix}/tools" for prefix in PREFIXES)
_METHODS = ("GET", "HEAD")  # the server leaves out the body of an answer to HEAD
_LONGEST = 256  # bytes of a query string
_KEPT = 4096  # query strings: clients ask the same again and again
_PATHS = b"|".join(re.escape(path.encode()) for path in sorted(_TOOLS))
_LINE = re.compile(rb"GET (?:%b)(?:/([A-Z0-9_-]{1,200}))?(?:\?([!$-;=?-~]{0,%d}))? HTTP/1\.1" % (_PATHS, _LONGEST))

_tool = lru_cache(maxsize=_KEPT)(questions.tool)
_tools = lru_cache(maxsize=_KEPT)(questions.tools)


class Front:
    """Wraps the application, `rest`."""

    def __init__(self, operations: Operations, rest: ASGIApp) -> None:
        self.operations = operations
        self.rest = rest
        self._heads = Heads()

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
        request_id = identify(headers.get(b"x-request-id"))
        try:
            key = self.operations.keys.find(headers.get(b"x-api-key", b"")) or stranger()
            return answer(*self._found(key, slug if one else None, query), headers.get(b"if-none-match"), request_id)
        except Refused as refused:
            return refuse(refused.refusals, request_id)
        except Exception:
            return None

    def again(self, packet: bytes) -> tuple[int, bytes, bytes] | None:
        """The answer to the bytes of a request whose head has been seen before: status, lines of headers, body; None for any other."""
        line, _, rest = packet.partition(b"\r")
        asked = _LINE.fullmatch(line)
        known = self._heads.find(rest) if asked else None
        if asked is None or known is None:
            return None
        digest, held = known
        try:
            key = self.operations.keys.holder(digest) or stranger()
            slug, query = asked.groups()
            return written(*self._found(key, slug.decode() if slug else None, query or b""), held, identify(None))
        except Exception:
            return None  # also what is refused: the way of a request whose head is new tells it

    def remember(self, packet: bytes, scope: Scope) -> None:
        """Keep the head of a request, a packet without a body, that `answer` has just answered well."""
        self._heads.keep(packet.partition(b"\r")[2], scope["headers"])

    def _found(self, key: Key, slug: str | None, query: bytes) -> Tagged:
        if slug is None:
            return self.operations.tools(key, *_tools(query))
        return self.operations.tool(key, slug, *_tool(query))
