"""Encoding: canonical JSON bytes, and SHA-256 digests."""

import hashlib
import re
from typing import Any

import orjson

_DIGEST_PATTERN = re.compile("[0-9a-f]{64}")


def is_digest(text: str) -> bool:
    """Return whether a text is a SHA-256 of 64 lower-case hex digits, as snapshots use them."""
    return _DIGEST_PATTERN.fullmatch(text) is not None


def dump_json(value: Any) -> bytes:
    """Return a value as JSON in UTF-8, in the given order: the canonical form in snapshots."""
    return orjson.dumps(value)


def dump_json_compact(value: Any) -> bytes:
    """Return the same JSON in an object of minimal size, for many values that stay in memory.

    orjson leaves each result in a block of at least 4 KB.
    """
    return b"%b" % orjson.dumps(value)


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of the bytes in lower-case hex."""
    return hashlib.sha256(data).hexdigest()
