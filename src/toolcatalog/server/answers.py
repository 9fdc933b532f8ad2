"""Bytes to responses: content type, ETag, 304, caching. Knows nothing of tools.

Serves: ETag/304 and HEAD; an answer that needs a key is never kept by a shared cache.
"""

import hashlib
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from toolcatalog.server.refusals import Refusal, envelope, first

JSON = "application/json"
_REVALIDATE = "private, no-cache"  # keep it, but ask each time: a 304 is cheap


def answer(request: Request, body: bytes) -> Response:
    """200 with the bytes, or 304 where the client has them: only ever on its own `If-None-Match`."""
    tag = f'W/"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'  # weak: the same for the gzipped bytes
    headers = {"ETag": tag, "Cache-Control": _REVALIDATE, "Vary": "Accept-Encoding, x-api-key"}
    if _known(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=JSON, headers=headers)


def _known(header: str | None, tag: str) -> bool:
    """Weak comparison (RFC 9110, 13.1.2): a tag matches with or without its `W/`."""
    if header is None:
        return False
    tags = [one.strip().removeprefix("W/") for one in header.split(",")]
    return tags == ["*"] or tag.removeprefix("W/") in tags


def refuse(refusals: Sequence[Refusal], request_id: str, headers: dict[str, str] | None = None) -> Response:
    """The error envelope under its status. Errors are never cached."""
    body = envelope(refusals, request_id)
    return Response(body, first(refusals).status, media_type=JSON, headers={"Cache-Control": "no-store", **(headers or {})})
