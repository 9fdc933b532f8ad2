"""Bytes to answers: status, headers and body, with ETag, 304, caching, request id and snapshot.
Knows nothing of tools, and no framework.
"""

import hashlib
import string
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from toolcatalog.server import tracing
from toolcatalog.server.refusals import Refusal, envelope, first

Header = tuple[bytes, bytes]
Piece = bytes | memoryview
Answer = tuple[int, list[Header], bytes]  # status, headers in lower case, body

_JSON = (b"content-type", b"application/json")
_REVALIDATE = (b"cache-control", b"private, no-cache")  # keep it, but ask each time: a 304 is cheap
_NEVER = (b"cache-control", b"no-store")
_VARY = (b"vary", b"Accept-Encoding, x-api-key, Origin")
_VARY_ERROR = (b"vary", b"Origin")
_PLAIN = string.punctuation.replace("%", "") + " "  # of a header
_LONGEST_SUGGESTION = 1000  # bytes
_POLICY = b"default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
NOTHING_RUNS = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", _POLICY))


class Marks(NamedTuple):
    """What every answer names: its request, the snapshot that it comes from (empty where none is
    open), and the trace it is part of.
    """

    request_id: bytes
    snapshot: bytes
    traceparent: bytes | None = None

    @property
    def headers(self) -> list[Header]:
        """The same as headers."""
        named = (
            (b"x-request-id", self.request_id),
            (b"x-catalog-snapshot", self.snapshot),
            (tracing.NAME, self.traceparent),
        )
        return [(name, value) for name, value in named if value]


def answer(body: bytes, tag: bytes, held: bytes | None, marks: Marks) -> Answer:
    """200 with the bytes and their tag, or 304 where the client holds them: `held` is its own
    `If-None-Match`, or None.
    """
    if held is not None and _holds(held, _ETAG % tag):
        return 304, _unchanged(_ETAG % tag, marks.headers), b""
    return 200, _whole(_ETAG % tag, b"%d" % len(body), marks.headers), body


def written(
    body: list[Piece], tag: bytes, held: bytes | None, marks: Marks
) -> tuple[int, bytes, list[Piece]]:
    """As `answer`, ready to be sent: the headers as lines, the body in pieces. For answers from a
    snapshot that are part of no trace.
    """
    if held is not None and _holds(held, _ETAG % tag):
        return 304, _UNCHANGED % (tag, marks.request_id, marks.snapshot), []
    return 200, _WHOLE % (tag, sum(map(len, body)), marks.request_id, marks.snapshot), body


def suggested(query: str) -> list[Header]:
    """The header with a query that was perhaps meant; whatever is not plain ASCII in it, and `%`,
    is percent-encoded. None where that takes more than 1 KB: proxies refuse an answer with a large
    head.
    """
    value = quote(query, safe=_PLAIN).encode()
    return [(b"x-suggested-query", value)] if 0 < len(value) <= _LONGEST_SUGGESTION else []


def lines(headers: Sequence[Header]) -> bytes:
    """Headers as they are sent."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def _whole(etag: bytes, size: bytes, marks: Sequence[Header]) -> list[Header]:
    return [
        (b"etag", etag),
        _REVALIDATE,
        _VARY,
        (b"content-length", size),
        _JSON,
        *marks,
        *NOTHING_RUNS,
    ]


def _unchanged(etag: bytes, marks: Sequence[Header]) -> list[Header]:
    return [(b"etag", etag), _REVALIDATE, _VARY, *marks, *NOTHING_RUNS]


_ANY = Marks(b"%b", b"%b").headers
_ETAG = b'"%b"'  # of these very bytes; coded ones have another (see `coding`)
_WHOLE, _UNCHANGED = lines(_whole(_ETAG, b"%d", _ANY)), lines(_unchanged(_ETAG, _ANY))


def _holds(held: bytes, etag: bytes) -> bool:
    """Weak comparison (RFC 9110, 13.1.2): a tag matches with or without a `W/` before it."""
    if held == etag:
        return True
    tags = [one.strip().removeprefix(b"W/") for one in held.split(b",")]
    return tags == [b"*"] or etag in tags


def refuse(refusals: Sequence[Refusal], marks: Marks, *more: Header) -> Answer:
    """The error envelope under its status. Errors are never cached."""
    body = envelope(refusals, marks.request_id.decode())
    headers = [
        _NEVER,
        *more,
        _VARY_ERROR,
        (b"content-length", b"%d" % len(body)),
        _JSON,
        *marks.headers,
        *NOTHING_RUNS,
    ]
    return first(refusals).status, headers, body


def tag_of(body: bytes) -> bytes:
    """The tag of a body, or of the tag and the text that a body is made of: 128 bits in
    hexadecimal.
    """
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()
