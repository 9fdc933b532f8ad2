"""The short way for the two plain requests that nearly all traffic consists of: get a tool and list
tools.

It does no work of its own: the operations, the answers and the headers are those of the long way,
through Edge and Starlette, and so are the bytes. What is not plain goes the long way: another path
or method, an `Origin`, a coding asked for, a query whose meaning is to be found, a list for which
Redis counts, every fault, and everything while no snapshot is open.
"""

import re
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from toolcatalog.keys import Key
from toolcatalog.openapi import PREFIXES
from toolcatalog.server import tracing
from toolcatalog.server.answers import (
    Answer,
    Header,
    Marks,
    Piece,
    answer,
    lines,
    refuse,
    suggested,
    written,
)
from toolcatalog.server.coding import chosen
from toolcatalog.server.edge import identify
from toolcatalog.server.heads import Head
from toolcatalog.server.limiting import Counts
from toolcatalog.server.live import Live, Serving
from toolcatalog.server.operations import Tagged, stranger
from toolcatalog.server.refusals import Refused
from toolcatalog.server.tallies import MISSED
from toolcatalog.server.witness import Answered
from toolcatalog.server.witness import asked as path_asked

_TOOLS = frozenset(f"{prefix}/tools" for prefix in PREFIXES)
# the route of a tool, as the long way has it
_ONE = {tools: f"{tools}/{{slug}}" for tools in _TOOLS}
_METHODS = ("GET", "HEAD")  # the server leaves out the body of an answer to HEAD
_LONGEST = 256  # bytes of a query string
_PATHS = b"|".join(re.escape(path.encode()) for path in sorted(_TOOLS))
_LINE = re.compile(
    rb"GET (%b)(?:/([A-Z0-9_-]{1,200}))?(?:\?([!$-;=?-~]{0,%d}))? HTTP/1\.1" % (_PATHS, _LONGEST)
)


class _Plain(NamedTuple):
    """A plain request: what answers it, the tool that it asks for (None: a list), its route, and
    its headers, names in lower case.
    """

    now: Serving
    slug: str | None
    route: str
    headers: Mapping[bytes, bytes]


class _Line(NamedTuple):
    """The line of a plain request: the tool that it asks for (None: a list), its query, its route."""

    slug: str | None
    query: bytes
    route: str


class Front:
    """Wraps the application, `rest`."""

    def __init__(self, live: Live, rest: ASGIApp) -> None:
        self.live = live
        self.rest = rest
        self._tallies = live.witness.tallies
        # at once, in memory
        self._counts = live.limits if isinstance(live.limits, Counts) else None
        # Redis, for each list: that is no short way
        self._asks = live.limits is not None and self._counts is None

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
        """The answer to a plain request; None for any other, and where something fails: the long
        way tells and logs it.
        """
        began, plain = perf_counter(), self._plain(scope)
        if plain is None:
            return None
        headers, key = plain.headers, None
        marks = Marks(
            identify(headers.get(b"x-request-id")),
            plain.now.snapshot,
            tracing.sane(headers.get(tracing.NAME)),
        )
        try:
            key = self.live.keys.find(headers.get(b"x-api-key", b"")) or stranger()
            answered = self._answered(scope, plain, key, marks)
        except Refused as refused:
            answered = refuse(refused.refusals, marks, *scope.get("limits", ()))
        except Exception:  # noqa: BLE001 - whatever it is, it comes again on the long way, which tells it
            return None
        if answered:
            size = 0 if scope["method"] == "HEAD" else len(answered[2])
            told = Answered(
                marks,
                scope["method"],
                path_asked(scope),
                scope.get("client"),
                plain.route,
                key,
                answered[0],
                size,
                began,
            )
            self.live.witness.saw(told)
        return answered

    def _plain(self, scope: Scope) -> _Plain | None:
        """A request that is answered here, as far as its head tells; None for any other."""
        path, query, now = scope["path"], scope["query_string"], self.live.now
        above, _, slug = path.rpartition("/")
        is_one = above in _TOOLS and slug != ""
        if (
            now is None
            or not (is_one or path in _TOOLS)
            or scope["method"] not in _METHODS
            or _is_long(now, query)
        ):
            return None
        if self._asks and not is_one:
            return None
        # the first of several lines counts, as in Starlette
        headers = dict(reversed(scope["headers"]))
        coding = headers.get(b"accept-encoding")
        if b"origin" in headers or (coding is not None and chosen(coding.decode("latin-1"))):
            return None
        return _Plain(now, slug if is_one else None, _ONE[above] if is_one else path, headers)

    def _answered(self, scope: Scope, plain: _Plain, key: Key, marks: Marks) -> Answer:
        """The answer for the holder of a key. Raises Refused."""
        limits: Sequence[Header] = ()
        if self._counts and plain.slug is None:
            standing = self._counts.count(key.id)
            # for the long way too: a list is counted once
            limits = scope["limits"] = standing.headers()
            if not standing.is_within:
                raise Refused(standing.refusal())
        found = _found(plain.now, key, plain.slug, scope["query_string"])
        status, headers, body = answer(
            b"".join(found.pieces), found.tag, plain.headers.get(b"if-none-match"), marks
        )
        return status, [*headers, *suggested(found.suggested), *limits], body

    def again(
        self, packet: bytes, head: Head, client: tuple[str, int] | None = None
    ) -> tuple[int, bytes, list[Piece]] | None:
        """The answer to a packet whose head is this one: status, lines of headers, body; None for
        any other.

        A list is counted before anything is searched, and what is refused is answered here too:
        nothing is worked out twice.
        """
        began = perf_counter()
        line, _, rest = packet.partition(b"\r")
        is_same, held = head.again(rest)
        now = self.live.now
        if not is_same or now is None:
            return None
        try:
            key = self.live.keys.holder(head.digest)
            if key is None:
                return None
            asked = now.remembered.get((key.toolkits, line)) or _plain_line(
                now, line, only_one=self._asks
            )
            if asked is None:
                return None
            marks, route = Marks(identify(None), now.snapshot), asked.route
            answered = self._again(now, key, line, asked, held, marks)
        except Exception:  # noqa: BLE001 - the way of a request whose head is new tells it
            return None
        self._tallies.answered(route, answered[0], perf_counter() - began, key.id)
        if self.live.witness.log:
            size = sum(map(len, answered[2]))
            self.live.witness.note(
                Answered(marks, "GET", line[4:-9], client, route, key, answered[0], size, began)
            )
        return answered

    def _again(
        self,
        now: Serving,
        key: Key,
        line: bytes,
        asked: Tagged | _Line,
        held: bytes | None,
        marks: Marks,
    ) -> tuple[int, bytes, list[Piece]]:
        """The same for the holder of a key who asks what is remembered, or for the first time."""
        limits: Sequence[Header] = ()
        try:
            if self._counts and asked.route in _TOOLS:
                standing = self._counts.count(key.id)
                limits = standing.headers()
                if not standing.is_within:
                    raise Refused(standing.refusal())
            if isinstance(asked, Tagged):
                found = asked
                self._tallies.hits += 1
            else:
                found = _found(now, key, asked.slug, asked.query)._replace(route=asked.route)
                now.remembered.keep((key.toolkits, line), found)
                self._tallies.happened(MISSED)
        except Refused as refused:
            status, headers, body = refuse(refused.refusals, marks, *limits)
            return status, lines(headers), [body]
        status, told, pieces = written(found.pieces, found.tag, held, marks)
        more = (*suggested(found.suggested), *limits) if found.suggested else limits
        return status, told + lines(more) if more else told, pieces


def _plain_line(now: Serving, line: bytes, *, only_one: bool) -> _Line | None:
    """What a line asks for; None where it is not plain, or a list for which Redis is asked."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    path, slug, query = match.groups()
    if _is_long(now, query or b"") or (only_one and not slug):
        return None
    route = _ONE[path.decode()] if slug else path.decode()
    return _Line(slug.decode() if slug else None, query or b"", route)


def _is_long(now: Serving, query: bytes) -> bool:
    """Tell whether a query string takes long to answer: where there is a text to find the meaning
    of.
    """
    return len(query) > _LONGEST or (
        now.store.knows_meaning and (b"query=" in query or b"search=" in query)
    )


def _found(now: Serving, key: Key, slug: str | None, query: bytes) -> Tagged:
    return (
        now.operations.tools(key, query) if slug is None else now.operations.tool(key, slug, query)
    )
