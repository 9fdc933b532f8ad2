"""The short way for the two plain requests that nearly all traffic consists of: get a tool and list tools.

It does no work of its own: the operations, the answers and the headers are those of the long way, through Edge and Starlette, and so
are the bytes. What is not plain goes the long way: another path or method, an `Origin`, gzip asked for, a query whose meaning is to be
found, and every fault.
"""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from toolcatalog.keys import Key
from toolcatalog.openapi import PREFIXES
from toolcatalog.server.answers import Answer, Piece, answer, refuse, written
from toolcatalog.server.edge import accepts_gzip, identify
from toolcatalog.server.heads import Head
from toolcatalog.server.operations import Operations, Tagged, stranger
from toolcatalog.server.refusals import Refused
from toolcatalog.server.remembered import Remembered

_TOOLS = frozenset(f"{prefix}/tools" for prefix in PREFIXES)
_METHODS = ("GET", "HEAD")  # the server leaves out the body of an answer to HEAD
_LONGEST = 256  # bytes of a query string
_PATHS = b"|".join(re.escape(path.encode()) for path in sorted(_TOOLS))
_LINE = re.compile(rb"GET (?:%b)(?:/([A-Z0-9_-]{1,200}))?(?:\?([!$-;=?-~]{0,%d}))? HTTP/1\.1" % (_PATHS, _LONGEST))


class Front:
    """Wraps the application, `rest`."""

    def __init__(self, operations: Operations, rest: ASGIApp) -> None:
        self.operations = operations
        self.rest = rest
        self._remembered = Remembered()

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
        if not (one or scope["path"] in _TOOLS) or scope["method"] not in _METHODS or self._is_long(query):
            return None
        headers = dict(reversed(scope["headers"]))  # the first of several lines counts, as in Starlette
        coding = headers.get(b"accept-encoding")
        if b"origin" in headers or (coding is not None and accepts_gzip(coding.decode("latin-1"))):
            return None
        request_id = identify(headers.get(b"x-request-id"))
        try:
            key = self.operations.keys.find(headers.get(b"x-api-key", b"")) or stranger()
            found = self._found(key, slug if one else None, query)
            return None if found.suggested else answer(b"".join(found.pieces), found.tag, headers.get(b"if-none-match"), request_id)
        except Refused as refused:
            return refuse(refused.refusals, request_id)
        except Exception:
            return None

    def again(self, packet: bytes, head: Head) -> tuple[int, bytes, list[Piece]] | None:
        """The answer to a packet whose head is this one: status, lines of headers, body; None for any other, and for what is refused."""
        line, _, rest = packet.partition(b"\r")
        is_same, held = head.again(rest)
        if not is_same:
            return None
        try:
            key = self.operations.keys.holder(head.digest)
            if key is None:
                return None
            found = self._remembered.get((key.toolkits, line)) or self._first(key, line)
            return found and written(found.pieces, found.tag, held, identify(None))
        except Exception:
            return None  # the way of a request whose head is new tells it

    def _first(self, key: Key, line: bytes) -> Tagged | None:
        """What is asked for with a key of these toolkits for the first time; None where it is not plain."""
        asked = _LINE.fullmatch(line)
        if asked is None:
            return None
        slug, query = asked.groups()
        if self._is_long(query or b""):
            return None
        found = self._found(key, slug.decode() if slug else None, query or b"")
        if found.suggested:
            return None
        self._remembered.keep((key.toolkits, line), found)
        return found

    def _is_long(self, query: bytes) -> bool:
        """Tell whether a query string takes long to answer: where there is a text to find the meaning of."""
        return len(query) > _LONGEST or (self.operations.store.knows_meaning and (b"query=" in query or b"search=" in query))

    def _found(self, key: Key, slug: str | None, query: bytes) -> Tagged:
        return self.operations.tools(key, query) if slug is None else self.operations.tool(key, slug, query)
