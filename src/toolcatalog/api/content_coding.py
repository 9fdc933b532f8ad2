"""Content coding: whether a client takes gzip, and compression of bodies made at run time."""

import gzip
import re
from functools import lru_cache

MIN_SIZE = 1024  # bytes; smaller bodies are not compressed
GZIP_LEVEL = 3  # a third of the time of level 6, for a seventh more bytes
_MAX_HEADER_SIZE = 1000  # bytes of an Accept-Encoding; clients send a few dozen
_WEIGHT = re.compile(rb"q\s*=\s*([01](?:\.[0-9]{0,3})?)")


@lru_cache(maxsize=256)
def accepts_gzip(header: bytes) -> bool:
    """Return whether an `Accept-Encoding` header prefers gzip to a plain body.

    The header must name `gzip`, `x-gzip` or `*` with a weight above 0, and not give more weight to
    `identity` (RFC 9110, 12.5.3). A header of more than 1000 bytes counts as absent.
    """
    if len(header) > _MAX_HEADER_SIZE:
        return False
    weights: dict[bytes, float] = {}
    for part in header.lower().split(b","):
        coding, _, parameter = part.partition(b";")
        weights[coding.strip()] = _parse_weight(parameter.strip())
    weight = weights.get(b"gzip", weights.get(b"x-gzip", weights.get(b"*", 0.0)))
    return 0 < weight >= weights.get(b"identity", 0.0)


def _parse_weight(parameter: bytes) -> float:
    match = _WEIGHT.fullmatch(parameter)
    return min(float(match[1]), 1.0) if match else 1.0


def compress(body: bytes) -> bytes:
    """Return a body as gzip; the same body gives the same bytes."""
    return gzip.compress(body, GZIP_LEVEL, mtime=0)
