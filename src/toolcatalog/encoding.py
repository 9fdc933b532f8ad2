"""Encoding: canonical JSON bytes, and SHA-256 digests."""

import hashlib
import re
from typing import Any

import orjson

_DIGEST_PATTERN = re.compile("[0-9a-f]{64}")


def is_digest(text: str) -> bool:
    """Tell whether a text is one that a snapshot, or a file of one, may be named by: 64 hex digits."""
    return _DIGEST_PATTERN.fullmatch(text) is not None


def dump_json(value: Any) -> bytes:
    """A value as JSON in UTF-8, in the order given: the one spelling of everything in a snapshot."""
    return orjson.dumps(value)


def dump_json_compact(value: Any) -> bytes:
    """The same in no more memory than it takes, for what is held of very many: orjson leaves each
    in a block of at least 4 KB.
    """
    return b"%b" % orjson.dumps(value)


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of the bytes in lower-case hex."""
    return hashlib.sha256(data).hexdigest()
