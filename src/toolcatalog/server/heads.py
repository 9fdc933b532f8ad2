"""Heads of requests that have been parsed before: the same bytes after the request line mean the same again.

A client on a kept connection sends the same headers with each request, so parsing them is most of the work of a small answer. What is
kept is what they said, under a keyed digest of the bytes: of the secret in them only its hash, as in the key file. Whether the key is
still good is not kept; that is asked each time. The one line that differs from request to request is read by itself: `If-None-Match`.

All bytes here are those of a packet from the end of its request line, a line feed, on.
"""

import hashlib
import re
import secrets
from collections.abc import Sequence
from functools import partial

from toolcatalog.keys import digest_of
from toolcatalog.server.answers import Header

_MOST = 4096  # heads; then all are forgotten
_END = b"\r\n\r\n"
_HELD = re.compile(rb"\n[Ii]f-[Nn]one-[Mm]atch: ([!-+\x2d-~]{1,80})\r(?=\n[^ \t])")
_mark = partial(hashlib.blake2b, key=secrets.token_bytes(16), digest_size=16)


class Heads:
    """What heads said: whose request it was, by the digest of the key."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def find(self, rest: bytes) -> tuple[str, bytes | None] | None:
        """The digest of the key and the tag that the client holds; None where the head is not known, or something comes after it."""
        bare, held = _divided(rest)
        digest = self._known.get(_mark(bare).digest())
        return None if digest is None else (digest, held)

    def keep(self, rest: bytes, headers: Sequence[Header]) -> None:
        """Remember a head that was parsed to these headers, names in lower case, and that says nothing but whose request it is."""
        bare, held = _divided(rest)
        found = dict(reversed(headers))
        if not bare or b"x-request-id" in found or found.get(b"if-none-match") != held:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[_mark(bare).digest()] = digest_of(found.get(b"x-api-key", b""))


def _divided(rest: bytes) -> tuple[bytes, bytes | None]:
    """A head without its line `If-None-Match`, and what that line said; nothing where more than a head is there."""
    if rest.find(_END) != len(rest) - len(_END):
        return b"", None
    held = _HELD.search(rest)
    return (rest[: held.start()] + rest[held.end() :], held[1]) if held else (rest, None)
