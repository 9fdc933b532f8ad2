"""Bytes to answers: status, headers and body, with ETag, 304, caching and request id. Knows nothing of tools, and no framework.

Serves: ETag/304 and HEAD; an answer that needs a key is never kept by a shared cache.
"""

import hashlib
from collections.abc import Sequence

from toolcatalog.server.refusals import Refusal, envelope, first

Header = tuple[bytes, bytes]
Piece = bytes | memoryview
Answer = tuple[int, list[Header], bytes]  # status, headers in lower case, body

_JSON = (b"content-type", b"application/json")
_REVALIDATE = (b"cache-control", b"private, no-cache")  # keep it, but ask each time: a 304 is cheap
_NEVER = (b"cache-control", b"no-store")
_VARY = (b"vary", b"Accept-Encoding, x-api-key, Origin")
_VARY_ERROR = (b"vary", b"Origin")
_POLICY = b"default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
NOTHING_RUNS = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", _POLICY))


def answer(body: bytes, tag: bytes, held: bytes | None, request_id: bytes) -> Answer:
    """200 with the bytes and their tag, or 304 where the client holds them: `held` is its own `If-None-Match`, or None."""
    if held is not None and _holds(held, _ETAG % tag):
        return 304, _unchanged(_ETAG % tag, request_id), b""
    return 200, _whole(_ETAG % tag, b"%d" % len(body), request_id), body


def written(body: list[Piece], tag: bytes, held: bytes | None, request_id: bytes) -> tuple[int, bytes, list[Piece]]:
    """As `answer`, ready to be sent: the headers as lines, the body in pieces."""
    if held is not None and _holds(held, _ETAG % tag):
        return 304, _UNCHANGED % (tag, request_id), []
    return 200, _WHOLE % (tag, sum(map(len, body)), request_id), body


def lines(headers: Sequence[Header]) -> bytes:
    """Headers as they are sent."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def _whole(etag: bytes, size: bytes, request_id: bytes) -> list[Header]:
    sized = (b"content-length", size)
    return [(b"etag", etag), _REVALIDATE, _VARY, sized, _JSON, (b"x-request-id", request_id), *NOTHING_RUNS]


def _unchanged(etag: bytes, request_id: bytes) -> list[Header]:
    return [(b"etag", etag), _REVALIDATE, _VARY, (b"x-request-id", request_id), *NOTHING_RUNS]


_ETAG = b'W/"%b"'  # weak: the same for the gzipped bytes
_WHOLE, _UNCHANGED = lines(_whole(_ETAG, b"%d", b"%b")), lines(_unchanged(_ETAG, b"%b"))


def _holds(held: bytes, etag: bytes) -> bool:
    """Weak comparison (RFC 9110, 13.1.2): a tag matches with or without its `W/`."""
    if held == etag:
        return True
    tags = [one.strip().removeprefix(b"W/") for one in held.split(b",")]
    return tags == [b"*"] or etag.removeprefix(b"W/") in tags


def refuse(refusals: Sequence[Refusal], request_id: bytes, *more: Header) -> Answer:
    """The error envelope under its status. Errors are never cached."""
    body, own = envelope(refusals, request_id.decode()), (b"x-request-id", request_id)
    headers = [_NEVER, *more, _VARY_ERROR, (b"content-length", b"%d" % len(body)), _JSON, own, *NOTHING_RUNS]
    return first(refusals).status, headers, body


def tag_of(body: bytes) -> bytes:
    """The tag of a body, or of the tag and the text that a body is made of: 128 bits in hexadecimal."""
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()
