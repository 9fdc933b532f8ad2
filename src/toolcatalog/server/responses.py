"""HTTP responses: status, headers and body with ETag, 304, caching and CORS.

This module does not depend on the catalog or on a web framework.
"""

import string
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from toolcatalog.api.answers import GZIP, Answer
from toolcatalog.api.bodies import Body
from toolcatalog.api.error_responses import ErrorDetail, primary_error, render_envelope

Header = tuple[bytes, bytes]

TRACEPARENT_HEADER = b"traceparent"
_JSON = (b"content-type", b"application/json")
_REVALIDATE = (b"cache-control", b"private, no-cache")  # revalidate each time: a 304 is cheap
_NO_STORE = (b"cache-control", b"no-store")
_VARY = (b"vary", b"Accept-Encoding, x-api-key")
_POLICY = b"default-src 'none'; frame-ancestors 'none'"
SECURITY_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", _POLICY))
CORS_HEADERS = ((b"access-control-allow-origin", b"*"),)
_NOT_MODIFIED_HEADERS = (_REVALIDATE, _VARY, *CORS_HEADERS)
_ANSWER_HEADERS = (_JSON, *_NOT_MODIFIED_HEADERS, *SECURITY_HEADERS)
_GZIP_HEADERS = ((b"content-encoding", GZIP), *_ANSWER_HEADERS)
_ERROR_HEADERS = (_NO_STORE, _JSON, *SECURITY_HEADERS, *CORS_HEADERS)
_PLAIN = string.punctuation.replace("%", "") + " "  # characters that need no encoding in a header
_MAX_SUGGESTION_SIZE = 1000  # bytes


class ResponseContext:
    """What every response names: the request id, the snapshot and the trace.

    `snapshot` is empty if no snapshot is open; `traceparent` is None if the request is not part of
    a trace. `headers` has them as headers, without those that are empty.
    """

    __slots__ = ("headers", "request_id", "snapshot", "traceparent")

    def __init__(
        self, request_id: bytes, snapshot: bytes, traceparent: bytes | None = None
    ) -> None:
        self.request_id = request_id
        self.snapshot = snapshot
        self.traceparent = traceparent
        self.headers: list[Header] = [(b"x-request-id", request_id)]
        if snapshot:
            self.headers.append((b"x-catalog-snapshot", snapshot))
        if traceparent:
            self.headers.append((TRACEPARENT_HEADER, traceparent))


class PreparedAnswer:
    """An answer with the headers of every response that has its body.

    `size` is the number of bytes of the body.
    """

    __slots__ = ("body", "etag", "headers", "size", "tag")

    def __init__(self, answer: Answer) -> None:
        self.body, self.tag, encoding, suggestion = answer
        # each coding has its own
        self.etag = b'"%b-%b"' % (self.tag, encoding) if encoding else b'"%b"' % self.tag
        self.size = len(self.body) if isinstance(self.body, bytes) else self.body.size
        self.headers = (
            (b"etag", self.etag),
            (b"content-length", b"%d" % self.size),
            *(_GZIP_HEADERS if encoding else _ANSWER_HEADERS),
            *suggestion_headers(suggestion),
        )


class Response(NamedTuple):
    """A response: its status, its headers with names in lower case, and its body.

    `size` is the number of bytes of the body.
    """

    status: int
    headers: list[Header]
    body: Body = b""
    size: int = 0


def make_response(
    answer: PreparedAnswer,
    if_none_match: bytes | None,
    context: ResponseContext,
    extra_headers: Sequence[Header] = (),
) -> Response:
    """Return 200 with the body and its ETag, or 304 if the client has that body in any coding.

    `if_none_match` is the client's header, or None.
    """
    if if_none_match is not None and (etag := _find_match(if_none_match, answer)):
        headers = [(b"etag", etag), *_NOT_MODIFIED_HEADERS, *context.headers, *extra_headers]
        return Response(304, headers)
    headers = [*answer.headers, *context.headers, *extra_headers]
    return Response(200, headers, answer.body, answer.size)


def _find_match(if_none_match: bytes, answer: PreparedAnswer) -> bytes | None:
    """Return the ETag of an answer, in any coding, that an `If-None-Match` header names."""
    if if_none_match == answer.etag:
        return if_none_match
    etags = (answer.etag, b'"%b"' % answer.tag, b'"%b-gzip"' % answer.tag)
    return next((etag for etag in etags if matches_etag(if_none_match, etag)), None)


def suggestion_headers(query: str) -> list[Header]:
    """Return the `X-Suggested-Query` header for a corrected query.

    Characters other than plain ASCII, and `%`, are percent-encoded. Returns no header if the value
    is empty or takes more than 1000 bytes: proxies reject a response with a large head.
    """
    value = quote(query, safe=_PLAIN).encode()
    return [(b"x-suggested-query", value)] if 0 < len(value) <= _MAX_SUGGESTION_SIZE else []


def encode_headers(headers: Sequence[Header]) -> bytes:
    """Return headers as lines of an HTTP/1.1 message."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def matches_etag(if_none_match: bytes, etag: bytes) -> bool:
    """Return whether an `If-None-Match` header names an ETag, or is `*`.

    Compares weakly (RFC 9110, 13.1.2): a tag matches with or without `W/`.
    """
    tags = [tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b",")]
    return tags == [b"*"] or etag in tags


def make_error_response(
    errors: Sequence[ErrorDetail], context: ResponseContext, *extra_headers: Header
) -> Response:
    """Return the error envelope under the status of its primary error.

    Errors are never cached.
    """
    body = render_envelope(errors, context.request_id.decode())
    headers = [
        *_ERROR_HEADERS,
        (b"content-length", b"%d" % len(body)),
        *context.headers,
        *extra_headers,
    ]
    return Response(primary_error(errors).status, headers, body, len(body))
