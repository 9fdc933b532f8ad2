"""HTTP responses: status, headers and body with ETag, 304 and caching; trace context.

A well-formed `traceparent` header is returned unchanged. This module does not depend on the catalog
or on a web framework.
"""

import hashlib
import re
import string
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from toolcatalog.server.error_responses import ErrorDetail, primary_error, render_envelope

TRACEPARENT_HEADER = b"traceparent"
# version, trace, span, flags
_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)


def validate_traceparent(value: bytes | None) -> bytes | None:
    """Return a `traceparent` if it is well formed (W3C Trace Context, 3.2), else None."""
    return value if value is not None and _TRACEPARENT.fullmatch(value) else None


Header = tuple[bytes, bytes]
BodyChunk = bytes | memoryview
RawResponse = tuple[int, list[Header], bytes]  # status, headers in lower case, body

_JSON = (b"content-type", b"application/json")
_REVALIDATE = (b"cache-control", b"private, no-cache")  # revalidate each time: a 304 is cheap
_NO_STORE = (b"cache-control", b"no-store")
_VARY = (b"vary", b"Accept-Encoding, x-api-key, Origin")
_VARY_ERROR = (b"vary", b"Origin")
_PLAIN = string.punctuation.replace("%", "") + " "  # characters that need no encoding in a header
_LONGEST_SUGGESTION = 1000  # bytes
_POLICY = b"default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
SECURITY_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", _POLICY))


class ResponseContext(NamedTuple):
    """What every response names: the request id, the snapshot and the trace.

    `snapshot` is empty if no snapshot is open; `traceparent` is None if the request is not part of
    a trace.
    """

    request_id: bytes
    snapshot: bytes
    traceparent: bytes | None = None

    @property
    def headers(self) -> list[Header]:
        """The context as headers, without those that are empty."""
        named = (
            (b"x-request-id", self.request_id),
            (b"x-catalog-snapshot", self.snapshot),
            (TRACEPARENT_HEADER, self.traceparent),
        )
        return [(name, value) for name, value in named if value]


def make_response(
    body: bytes, tag: bytes, if_none_match: bytes | None, context: ResponseContext
) -> RawResponse:
    """Return 200 with the body and its ETag, or 304 if the client has that ETag.

    `tag` is the ETag without its quotes; `if_none_match` is the client's header, or None.
    """
    if if_none_match is not None and _matches_etag(if_none_match, _ETAG_FORMAT % tag):
        return 304, _not_modified_headers(_ETAG_FORMAT % tag, context.headers), b""
    return 200, _full_headers(_ETAG_FORMAT % tag, b"%d" % len(body), context.headers), body


def encode_response(
    body: list[BodyChunk], tag: bytes, if_none_match: bytes | None, context: ResponseContext
) -> tuple[int, bytes, list[BodyChunk]]:
    """Return the same response as `make_response`, ready to be sent.

    The headers are encoded lines and the body is a list of chunks. Only for responses that name a
    snapshot and no trace.
    """
    if if_none_match is not None and _matches_etag(if_none_match, _ETAG_FORMAT % tag):
        return 304, _NOT_MODIFIED_TEMPLATE % (tag, context.request_id, context.snapshot), []
    return (
        200,
        _FULL_TEMPLATE % (tag, sum(map(len, body)), context.request_id, context.snapshot),
        body,
    )


def suggested(query: str) -> list[Header]:
    """Return the `X-Suggested-Query` header for a corrected query.

    Characters other than plain ASCII, and `%`, are percent-encoded. Returns no header if the value
    is empty or takes more than 1000 bytes: proxies reject a response with a large head.
    """
    value = quote(query, safe=_PLAIN).encode()
    return [(b"x-suggested-query", value)] if 0 < len(value) <= _LONGEST_SUGGESTION else []


def encode_headers(headers: Sequence[Header]) -> bytes:
    """Return headers as lines of an HTTP/1.1 message."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def _full_headers(etag: bytes, size: bytes, context_headers: Sequence[Header]) -> list[Header]:
    return [
        (b"etag", etag),
        _REVALIDATE,
        _VARY,
        (b"content-length", size),
        _JSON,
        *context_headers,
        *SECURITY_HEADERS,
    ]


def _not_modified_headers(etag: bytes, context_headers: Sequence[Header]) -> list[Header]:
    return [(b"etag", etag), _REVALIDATE, _VARY, *context_headers, *SECURITY_HEADERS]


_CONTEXT_TEMPLATE = ResponseContext(b"%b", b"%b").headers
_ETAG_FORMAT = b'"%b"'  # `server.compression` adds a suffix for compressed bodies
_FULL_TEMPLATE, _NOT_MODIFIED_TEMPLATE = (
    encode_headers(_full_headers(_ETAG_FORMAT, b"%d", _CONTEXT_TEMPLATE)),
    encode_headers(_not_modified_headers(_ETAG_FORMAT, _CONTEXT_TEMPLATE)),
)


def _matches_etag(if_none_match: bytes, etag: bytes) -> bool:
    """Compare weakly (RFC 9110, 13.1.2): a tag matches with or without `W/`."""
    if if_none_match == etag:
        return True
    tags = [one.strip().removeprefix(b"W/") for one in if_none_match.split(b",")]
    return tags == [b"*"] or etag in tags


def make_error_response(
    errors: Sequence[ErrorDetail], context: ResponseContext, *extra_headers: Header
) -> RawResponse:
    """Return the error envelope under the status of its primary error.

    Errors are never cached.
    """
    body = render_envelope(errors, context.request_id.decode())
    headers = [
        _NO_STORE,
        *extra_headers,
        _VARY_ERROR,
        (b"content-length", b"%d" % len(body)),
        _JSON,
        *context.headers,
        *SECURITY_HEADERS,
    ]
    return primary_error(errors).status, headers, body


def compute_tag(body: bytes) -> bytes:
    """Return the tag of a body: 128 bits in hexadecimal.

    `body` may also be a tag and text that together determine the body.
    """
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()
