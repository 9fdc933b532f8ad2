"""The fast path: plain get and list requests, answered without Starlette.

A client on a persistent connection sends the same headers with each request, and parsing them is
most of the work of a small response. The fast path remembers the bytes of a head and the digest of
its key. Whether that key is still valid is checked each time. One header may have another value
each time and is parsed separately: `If-None-Match`.

The operations, results and headers are those of the full application (`RequestMiddleware` and
Starlette), and so are the bytes of each response. All requests that are not plain go to the full
application: another path or method, an `Origin`, a content coding, a query that needs semantic
search, a list that Redis counts, every unexpected exception, and everything while no snapshot is
open.
"""

import re
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from toolcatalog.keys.api_keys import ApiKey, hash_secret
from toolcatalog.openapi import API_PREFIXES
from toolcatalog.server import responses
from toolcatalog.server.compression import negotiate_encoding
from toolcatalog.server.error_responses import RequestError
from toolcatalog.server.metrics.counters import CACHE_MISSES
from toolcatalog.server.metrics.requests import RequestRecord
from toolcatalog.server.metrics.requests import request_target as path_asked
from toolcatalog.server.middleware import assign_request_id
from toolcatalog.server.operations import OperationResult, raise_unauthorized
from toolcatalog.server.rate_limit import LocalRateLimiter
from toolcatalog.server.responses import (
    BodyChunk,
    Header,
    RawResponse,
    ResponseContext,
    encode_headers,
    encode_response,
    make_error_response,
    make_response,
    suggested,
)
from toolcatalog.server.state import AppState, ServedSnapshot

_TAG_PATTERN = rb"[!-+\x2d-~]{1,80}"  # no white space and no comma: one tag, or `*`
_IF_NONE_MATCH = re.compile(rb"\n[Ii]f-[Nn]one-[Mm]atch: (?=(%b)\r)" % _TAG_PATTERN)
_is_tag = re.compile(_TAG_PATTERN).fullmatch


class RequestHead(NamedTuple):
    """The rest of a packet with exactly one request, from the end of its request line on.

    `prefix` is all of it if `suffix` is None; otherwise they are the bytes before and after the
    value of `If-None-Match`.
    """

    prefix: bytes
    suffix: bytes | None
    key_digest: str

    def matches(self, rest: bytes) -> tuple[bool, bytes | None]:
        """Return whether this is the same head, and the current value of `If-None-Match`."""
        if self.suffix is None:
            return rest == self.prefix, None
        if not (rest.startswith(self.prefix) and rest.endswith(self.suffix)):
            return False, None
        held = rest[len(self.prefix) : -len(self.suffix)]
        return _is_tag(held) is not None, held


def learn_head(rest: bytes, headers: Sequence[Header]) -> RequestHead | None:
    """Return the head of a packet that was parsed to these headers, with names in lower case.

    Returns None if the head is not plain, or differs with each request.
    """
    found = dict(reversed(headers))
    held, digest = found.get(b"if-none-match"), hash_secret(found.get(b"x-api-key", b""))
    if b"x-request-id" in found or responses.TRACEPARENT_HEADER in found:
        return None
    if held is None:
        return RequestHead(rest, None, digest)
    line = _IF_NONE_MATCH.search(rest.partition(b"\r\n\r\n")[0] + b"\r")
    if line is None or line[1] != held or sum(name == b"if-none-match" for name, _ in headers) > 1:
        return None
    return RequestHead(rest[: line.end()], rest[line.end() + len(held) :], digest)


_LIST_ROUTES = frozenset(f"{prefix}/tools" for prefix in API_PREFIXES)
# the route of a tool, as in the full application
_TOOL_ROUTES = {tools: f"{tools}/{{slug}}" for tools in _LIST_ROUTES}
_METHODS = ("GET", "HEAD")  # uvicorn and `protocol` omit the body of a response to HEAD
_MAX_QUERY_LENGTH = 256  # bytes of a query string
_PATH_PATTERN = b"|".join(re.escape(path.encode()) for path in sorted(_LIST_ROUTES))
_REQUEST_LINE = re.compile(
    rb"GET (%b)(?:/([A-Z0-9_-]{1,200}))?(?:\?([!$-;=?-~]{0,%d}))? HTTP/1\.1"
    % (_PATH_PATTERN, _MAX_QUERY_LENGTH)
)


class _PlainRequest(NamedTuple):
    """A plain request.

    It has the snapshot, the slug of the tool (None: a list), the route, and the headers with names
    in lower case.
    """

    served: ServedSnapshot
    slug: str | None
    route: str
    headers: Mapping[bytes, bytes]


class _Line(NamedTuple):
    """A parsed request line: the slug of the tool (None: a list), the query and the route."""

    slug: str | None
    query: bytes
    route: str


class FastPath:
    """Wraps the full application and answers plain requests itself."""

    def __init__(self, state: AppState, full_app: ASGIApp) -> None:
        self.state = state
        self.full_app = full_app
        self._counters = state.observer.counters
        # counts in memory
        self._local_limiter = (
            state.rate_limiter if isinstance(state.rate_limiter, LocalRateLimiter) else None
        )
        # Redis counts each list, which takes too long for the fast path
        self._uses_shared_limits = state.rate_limiter is not None and self._local_limiter is None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        found = self.respond(scope) if scope["type"] == "http" else None
        if found is None:
            await self.full_app(scope, receive, send)
            return
        status, headers, body = found
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def respond(self, scope: Scope) -> RawResponse | None:
        """Return the response to a plain request, or None.

        None is for any other request, and for an unexpected exception: the full application raises
        it again and logs it.
        """
        began, plain = perf_counter(), self._parse_request(scope)
        if plain is None:
            return None
        headers, key = plain.headers, None
        marks = ResponseContext(
            assign_request_id(headers.get(b"x-request-id")),
            plain.served.digest,
            responses.validate_traceparent(headers.get(responses.TRACEPARENT_HEADER)),
        )
        try:
            key = self.state.keys.find(headers.get(b"x-api-key", b"")) or raise_unauthorized()
            answered = self._respond_to(scope, plain, key, marks)
        except RequestError as refused:
            answered = make_error_response(refused.errors, marks, *scope.get("limits", ()))
        except Exception:  # noqa: BLE001 - the full application raises and logs it again
            return None
        if answered:
            size = 0 if scope["method"] == "HEAD" else len(answered[2])
            told = RequestRecord(
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
            self.state.observer.record(told)
        return answered

    def _parse_request(self, scope: Scope) -> _PlainRequest | None:
        """Return a request if it is plain, else None."""
        path, query, now = scope["path"], scope["query_string"], self.state.current
        above, _, slug = path.rpartition("/")
        is_one = above in _LIST_ROUTES and slug != ""
        if (
            now is None
            or not (is_one or path in _LIST_ROUTES)
            or scope["method"] not in _METHODS
            or _is_slow_query(now, query)
        ):
            return None
        if self._uses_shared_limits and not is_one:
            return None
        # the first of several lines counts, as in Starlette
        headers = dict(reversed(scope["headers"]))
        coding = headers.get(b"accept-encoding")
        if b"origin" in headers or (
            coding is not None and negotiate_encoding(coding.decode("latin-1"))
        ):
            return None
        return _PlainRequest(
            now, slug if is_one else None, _TOOL_ROUTES[above] if is_one else path, headers
        )

    def _respond_to(
        self, scope: Scope, request: _PlainRequest, key: ApiKey, context: ResponseContext
    ) -> RawResponse:
        """Return the response for the holder of a key. Raises RequestError."""
        limits: Sequence[Header] = ()
        if self._local_limiter and request.slug is None:
            standing = self._local_limiter.count(key.id)
            # also for the full application, so that a list is counted once
            limits = scope["limits"] = standing.headers()
            if not standing.is_allowed:
                raise RequestError(standing.to_error())
        found = _run_operation(request.served, key, request.slug, scope["query_string"])
        status, headers, body = make_response(
            b"".join(found.chunks), found.tag, request.headers.get(b"if-none-match"), context
        )
        return status, [*headers, *suggested(found.suggestion), *limits], body

    def replay(
        self, packet: bytes, head: RequestHead, client: tuple[str, int] | None = None
    ) -> tuple[int, bytes, list[BodyChunk]] | None:
        """Return the response to a packet that has a known head, or None for any other.

        The response is the status, the encoded headers and the chunks of the body. A list is
        counted before it is searched, and errors are answered here too, so nothing is computed
        twice.
        """
        began = perf_counter()
        line, _, rest = packet.partition(b"\r")
        is_same, held = head.matches(rest)
        now = self.state.current
        if not is_same or now is None:
            return None
        try:
            key = self.state.keys.find_by_digest(head.key_digest)
            if key is None:
                return None
            asked = now.cache.get((key.toolkits, line)) or _plain_line(
                now, line, only_one=self._uses_shared_limits
            )
            if asked is None:
                return None
            marks, route = ResponseContext(assign_request_id(None), now.digest), asked.route
            answered = self._again(now, key, line, asked, held, marks)
        except Exception:  # noqa: BLE001 - the full application raises and logs it again
            return None
        self._counters.count_request(route, answered[0], perf_counter() - began, key.id)
        if self.state.observer.access_log:
            size = sum(map(len, answered[2]))
            self.state.observer.log_request(
                RequestRecord(
                    marks, "GET", line[4:-9], client, route, key, answered[0], size, began
                )
            )
        return answered

    def _again(
        self,
        now: ServedSnapshot,
        key: ApiKey,
        line: bytes,
        asked: OperationResult | _Line,
        held: bytes | None,
        marks: ResponseContext,
    ) -> tuple[int, bytes, list[BodyChunk]]:
        """Return the response to a replayed request, from the cache or by running the operation."""
        limits: Sequence[Header] = ()
        try:
            if self._local_limiter and asked.route in _LIST_ROUTES:
                standing = self._local_limiter.count(key.id)
                limits = standing.headers()
                if not standing.is_allowed:
                    raise RequestError(standing.to_error())
            if isinstance(asked, OperationResult):
                found = asked
                self._counters.cache_hits += 1
            else:
                found = _run_operation(now, key, asked.slug, asked.query)._replace(
                    route=asked.route
                )
                now.cache.add((key.toolkits, line), found)
                self._counters.count_event(CACHE_MISSES)
        except RequestError as refused:
            status, headers, body = make_error_response(refused.errors, marks, *limits)
            return status, encode_headers(headers), [body]
        status, told, pieces = encode_response(found.chunks, found.tag, held, marks)
        more = (*suggested(found.suggestion), *limits) if found.suggestion else limits
        return status, told + encode_headers(more) if more else told, pieces


def _plain_line(now: ServedSnapshot, line: bytes, *, only_one: bool) -> _Line | None:
    """Parse a request line; return None if it is not plain.

    With `only_one`, a list is not plain either: Redis has to count it.
    """
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        return None
    path, slug, query = match.groups()
    if _is_slow_query(now, query or b"") or (only_one and not slug):
        return None
    route = _TOOL_ROUTES[path.decode()] if slug else path.decode()
    return _Line(slug.decode() if slug else None, query or b"", route)


def _is_slow_query(served: ServedSnapshot, query: bytes) -> bool:
    """Return whether a query string takes long to answer: semantic search, or a long query."""
    return len(query) > _MAX_QUERY_LENGTH or (
        served.store.has_semantic_search and (b"query=" in query or b"search=" in query)
    )


def _run_operation(
    served: ServedSnapshot, key: ApiKey, slug: str | None, query: bytes
) -> OperationResult:
    return (
        served.operations.list_tools(key, query)
        if slug is None
        else served.operations.get_tool(key, slug, query)
    )
