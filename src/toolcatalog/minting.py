"""How the text of a key is made: `tc_`, 30 random base-62 characters (178 bits) and a 6-character
checksum of the rest.

By the checksum a scanner or a person tells a key from a typing error without asking anybody.
Because a key is random and long, a plain SHA-256 at rest is enough.
"""

import hashlib
import hmac
import re
import secrets
import zlib

SECRET_PREFIX = "tc_"  # noqa: S105
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ENCODED = "%(?:25)*"
_LETTER = f"(?:[0-9A-Za-z]|{_ENCODED}(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]))"
_KEY = re.compile(f"(?:t|{_ENCODED}74)(?:c|{_ENCODED}63)(?:_|{_ENCODED}5[Ff]){_LETTER}{{36}}")


def generate_secret() -> str:
    """A new secret: prefix, 30 base-62 characters, checksum."""
    body = SECRET_PREFIX + random_base62(30)
    return body + _secret_checksum(body)


def random_base62(length: int) -> str:
    """So many random base-62 characters."""
    return "".join(secrets.choice(_BASE62) for _ in range(length))


def is_well_formed(secret: str) -> bool:
    """Tell whether a text is a key as this room makes them, by its checksum. Says nothing of
    whether it is known.
    """
    shape = re.fullmatch(SECRET_PREFIX + "[0-9A-Za-z]{36}", secret)
    return shape is not None and hmac.compare_digest(_secret_checksum(secret[:-6]), secret[-6:])


def redact(text: str) -> str:
    """A text for a log, with `tc_[redacted]` in place of each key, be it a good one or not.

    Characters of a key may be percent-encoded, also more than once.
    """
    return _KEY.sub(f"{SECRET_PREFIX}[redacted]", text)


def _secret_checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


def hash_secret(secret: bytes) -> str:
    """What is kept of a key: its SHA-256 in hexadecimal."""
    return hashlib.sha256(secret).hexdigest()
