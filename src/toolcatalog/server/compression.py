"""Compression of responses: zstd or gzip, negotiated with the client."""

import re
import sys
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipResponder, IdentityResponder
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcatalog.server.responses import Header

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ENCODINGS = ("zstd", "gzip")  # the preferred one first
_MAX_HEADER_LENGTH = 1000  # characters of an Accept-Encoding; clients send a few dozen
_MIN_SIZE = 1024  # bytes; smaller bodies are not compressed
# bytes compressed on the event loop, in half a millisecond; larger bodies go to a thread, and other
# requests are answered meanwhile
_MAX_INLINE_SIZE = 64 * 1024
_GZIP_LEVEL = 3  # a third of the time of level 6, for a seventh more bytes
_ZSTD_LEVEL = 3  # on a page of 3 MB a fifth of the time of gzip's level 3, and 0.6 of its bytes


def negotiate_encoding(header: str) -> str:
    """Return the coding for an Accept-Encoding header: `zstd`, `gzip`, or empty for none.

    The header must name the coding, or `*`, with a weight above 0 (RFC 9110, 12.5.3). Of several
    codings the one with the greatest weight is chosen; of equal ones, zstd. A header of more than
    1000 characters is not parsed: the response is not compressed.
    """
    if len(header) > _MAX_HEADER_LENGTH:
        return ""
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        coding, _, parameter = part.partition(";")
        weights[coding.strip()] = _parse_weight(parameter.strip())
    known = {coding: weights.get(coding, weights.get("*", 0.0)) for coding in ENCODINGS}
    best = max(known, key=lambda coding: known[coding])
    return best if 0 < known[best] >= weights.get("identity", 0.0) else ""


def _parse_weight(parameter: str) -> float:
    said = re.fullmatch(r"q\s*=\s*([01](?:\.[0-9]{0,3})?)", parameter)
    return min(float(said[1]), 1.0) if said else 1.0


class CompressionMiddleware:
    """Wraps an application and compresses its responses with one coding.

    The ETag of a compressed body ends with the name of the coding. The application never sees that
    suffix.
    """

    def __init__(self, app: ASGIApp, encoding: str) -> None:
        self.app = app
        self._responder = _GzipResponder if encoding == "gzip" else _ZstdResponder
        self._encoding_header = (b"content-encoding", encoding.encode())
        self._etag_suffix = b'-%b"' % encoding.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        asked = [self._strip_etag_suffix(*header) for header in scope["headers"]]
        holds_packed = asked != scope["headers"]

        async def tagged(message: Message) -> None:
            if message["type"] == "http.response.start" and self._is_compressed(
                message, holds_packed
            ):
                message["headers"] = [
                    self._add_etag_suffix(*header) for header in message["headers"]
                ]
            await send(message)

        await self._responder(self.app)({**scope, "headers": asked}, receive, tagged)

    def _is_compressed(self, start: Message, has_compressed_tag: bool) -> bool:
        return self._encoding_header in start["headers"] or (
            start["status"] == 304 and has_compressed_tag
        )

    def _strip_etag_suffix(self, name: bytes, value: bytes) -> Header:
        return (name, value.replace(self._etag_suffix, b'"') if name == b"if-none-match" else value)

    def _add_etag_suffix(self, name: bytes, value: bytes) -> Header:
        return (name, value.removesuffix(b'"') + self._etag_suffix if name == b"etag" else value)


class _GzipResponder(GZipResponder):
    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, _MIN_SIZE, _GZIP_LEVEL, thread_minimum_size=_MAX_INLINE_SIZE)


class _ZstdResponder(IdentityResponder):
    content_encoding = "zstd"

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, _MIN_SIZE)
        self._compressor: Any = None

    async def apply_compression(self, body: bytes, *, more_body: bool) -> bytes:
        """Return a chunk of the body, compressed; the last one ends the frame."""
        if len(body) >= _MAX_INLINE_SIZE:
            return await run_in_threadpool(self._compress, body, more_body)
        return self._compress(body, more_body)

    def _compress(self, body: bytes, more_body: bool) -> bytes:
        self._compressor = self._compressor or zstd.ZstdCompressor(level=_ZSTD_LEVEL)
        mode = zstd.ZstdCompressor.FLUSH_BLOCK if more_body else zstd.ZstdCompressor.FLUSH_FRAME
        packed: bytes = self._compressor.compress(body, mode)
        return packed
