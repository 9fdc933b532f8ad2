"""HTTP responses: status, headers and body with ETag, 304, caching and CORS.

This module does not depend on the catalog.
"""

import re
import string
from collections.abc import Sequence
from typing import NamedTuple, Protocol
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.types import Scope

from toolcatalog.api.answers import GZIP, Answer
from toolcatalog.api.bodies import Body
from toolcatalog.api.error_responses import ErrorDetail, primary_error, render_envelope

Header = tuple[bytes, bytes]

TRACEPARENT_HEADER = b"traceparent"
RESPONSE_EXTENSION = "toolcatalog.response"  # of ASGI; its `writer` is a `ResponseWriter`
_JSON = (b"content-type", b"application/json")
_REVALIDATE = (b"cache-control", b"private, no-cache")  # revalidate each time: a 304 is cheap
_NO_STORE = (b"cache-control", b"no-store")
_VARY = (b"vary", b"Accept-Encoding, x-api-key")
_POLICY = b"default-src 'none'; frame-ancestors 'none'"
SECURITY_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", _POLICY))
CORS_HEADERS = ((b"access-control-allow-origin", b"*"),)
_CONTROL_CHARACTER = re.compile(rb"[\x00-\x1f\x7f]")
_PLAIN = string.punctuation.replace("%", "") + " "  # characters that need no encoding in a header
_MAX_SUGGESTION_SIZE = 1000  # bytes
_MAX_IF_NONE_MATCH = 4096  # bytes


def encode_headers(headers: Sequence[Header]) -> bytes:
    """Return headers as lines of an HTTP/1.1 message.

    Raises ValueError if a value has a control character, which could begin another line.
    """
    for name, value in headers:
        if _CONTROL_CHARACTER.search(value):
            raise ValueError(f"A value of {name!r} has a control character.")
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def decode_headers(lines: bytes) -> list[Header]:
    """Return the headers of lines that `encode_headers` made."""
    parts = [line.partition(b": ") for line in lines.split(b"\r\n")[:-1]]
    return [(name, value) for name, _, value in parts]


_NOT_MODIFIED_LINES = encode_headers([_REVALIDATE, _VARY, *CORS_HEADERS])
_ANSWER_LINES = encode_headers([_JSON]) + _NOT_MODIFIED_LINES + encode_headers(SECURITY_HEADERS)
_GZIP_LINES = encode_headers([(b"content-encoding", GZIP)]) + _ANSWER_LINES
_ERROR_LINES = encode_headers([_NO_STORE, _JSON, *SECURITY_HEADERS, *CORS_HEADERS])
# of the answer to a browser that asks for permission to send another request
PREFLIGHT_LINES = encode_headers(
    [
        (b"access-control-allow-methods", b"GET, HEAD, OPTIONS"),
        (b"access-control-allow-headers", b"*, Authorization"),
        (b"access-control-max-age", b"86400"),
        *CORS_HEADERS,
        *SECURITY_HEADERS,
    ]
)


class ResponseContext:
    """What every response names: the request id, the snapshot and the trace.

    `snapshot` is empty if no snapshot is open; `traceparent` is None if the request is not part of
    a trace. `header_lines` has them as header lines, without those that are empty.
    """

    __slots__ = ("header_lines", "request_id", "snapshot", "traceparent")

    def __init__(
        self, request_id: bytes, snapshot: bytes, traceparent: bytes | None = None
    ) -> None:
        self.request_id = request_id
        self.snapshot = snapshot
        self.traceparent = traceparent
        self.header_lines = b"x-request-id: %b\r\n" % request_id
        if snapshot:
            self.header_lines += b"x-catalog-snapshot: %b\r\n" % snapshot
        if traceparent:
            self.header_lines += encode_headers([(TRACEPARENT_HEADER, traceparent)])

    @property
    def headers(self) -> list[Header]:
        """The same as names and values."""
        return decode_headers(self.header_lines)


class PreparedAnswer:
    """An answer with the header lines of every response that has its body.

    `size` is the number of bytes of the body.
    """

    __slots__ = ("body", "etag", "header_lines", "size", "tag")

    def __init__(self, answer: Answer) -> None:
        self.body, self.tag, encoding, suggestion = answer
        # each coding has its own
        self.etag = b'"%b-%b"' % (self.tag, encoding) if encoding else b'"%b"' % self.tag
        self.size = len(self.body) if isinstance(self.body, bytes) else self.body.size
        own = [(b"etag", self.etag), *suggestion_headers(suggestion)]
        self.header_lines = b"%bcontent-length: %d\r\n%b" % (
            encode_headers(own),
            self.size,
            _GZIP_LINES if encoding else _ANSWER_LINES,
        )


class Response(NamedTuple):
    """A response: its status, its header lines with names in lower case, and its body.

    `size` is the number of bytes of the body.
    """

    status: int
    header_lines: bytes
    body: Body = b""
    size: int = 0

    @property
    def headers(self) -> list[Header]:
        """The names and values of the headers."""
        return decode_headers(self.header_lines)


class ResponseWriter(Protocol):
    """An ASGI extension of the HTTP protocol: a response without a message for each part."""

    def write_response(self, response: Response) -> bool:
        """Write a response; return False if it has to be sent as messages instead."""

    def is_disconnected(self) -> bool:
        """Return whether the client is gone."""


def find_writer(scope: Scope) -> ResponseWriter | None:
    """Return the extension of a request; None if its server has none."""
    extension = scope["extensions"].get(RESPONSE_EXTENSION) if "extensions" in scope else None
    writer: ResponseWriter | None = extension and extension["writer"]
    return writer


def check_connected(scope: Scope) -> None:
    """Raise ClientDisconnect if the client of a request is known to be gone."""
    writer = find_writer(scope)
    if writer and writer.is_disconnected():
        raise ClientDisconnect


def make_response(
    answer: PreparedAnswer,
    if_none_match: bytes | None,
    context: ResponseContext,
    extra_headers: Sequence[Header] = (),
) -> Response:
    """Return 200 with the body and its ETag, or 304 if the client has that body in any coding.

    `if_none_match` is the client's header, or None.
    """
    common = context.header_lines + encode_headers(extra_headers)
    if if_none_match is not None and (etag := _find_match(if_none_match, answer)):
        return Response(304, b"etag: %b\r\n%b%b" % (etag, _NOT_MODIFIED_LINES, common))
    return Response(200, answer.header_lines + common, answer.body, answer.size)


def _find_match(if_none_match: bytes, answer: PreparedAnswer) -> bytes | None:
    """Return the ETag of an answer, in any coding, that an `If-None-Match` header names.

    Tags are compared weakly (RFC 9110, 13.1.2): one matches with or without `W/`. `*` matches. A
    header of more than 4 KiB matches nothing.
    """
    if if_none_match == answer.etag:
        return if_none_match
    if len(if_none_match) > _MAX_IF_NONE_MATCH:
        return None
    tags = [tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b",")]
    etags = (answer.etag, b'"%b"' % answer.tag, b'"%b-gzip"' % answer.tag)
    return next((etag for etag in etags if tags == [b"*"] or etag in tags), None)


def suggestion_headers(query: str) -> list[Header]:
    """Return the `X-Suggested-Query` header for a corrected query.

    Characters other than plain ASCII, and `%`, are percent-encoded. Returns no header if the value
    is empty or takes more than 1000 bytes: proxies reject a response with a large head.
    """
    value = quote(query, safe=_PLAIN).encode()
    return [(b"x-suggested-query", value)] if 0 < len(value) <= _MAX_SUGGESTION_SIZE else []


def make_error_response(
    errors: Sequence[ErrorDetail], context: ResponseContext, *extra_headers: Header
) -> Response:
    """Return the error envelope under the status of its primary error.

    Errors are never cached.
    """
    body = render_envelope(errors, context.request_id.decode())
    lines = b"%bcontent-length: %d\r\n%b%b" % (
        _ERROR_LINES,
        len(body),
        context.header_lines,
        encode_headers(extra_headers),
    )
    return Response(primary_error(errors).status, lines, body, len(body))
