"""The head of a request that came before on the same connection: the same bytes behind the request
line mean the same again.

A client on a kept connection sends the same headers with each request, so parsing them is most of
the work of a small answer. What is remembered is the bytes and what they said: whose request it is,
by the digest of the key. Whether that key is still good is asked each time. One line may have
another value each time, and is read by itself: `If-None-Match`.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from toolcatalog.minting import digest_of
from toolcatalog.server import tracing
from toolcatalog.server.answers import Header

_TAG = rb"[!-+\x2d-~]{1,80}"  # no white space, and no comma: one tag, or `*`
_HELD = re.compile(rb"\n[Ii]f-[Nn]one-[Mm]atch: (?=(%b)\r)" % _TAG)
_is_tag = re.compile(_TAG).fullmatch


class Head(NamedTuple):
    """A packet that held one request and nothing else, from the end of its request line on: all of
    it, or what stands around the tag.
    """

    before: bytes
    after: bytes | None
    digest: str

    def again(self, rest: bytes) -> tuple[bool, bytes | None]:
        """Tell whether this is the same head, and the tag that the client holds now."""
        if self.after is None:
            return rest == self.before, None
        if not (rest.startswith(self.before) and rest.endswith(self.after)):
            return False, None
        held = rest[len(self.before) : -len(self.after)]
        return _is_tag(held) is not None, held


def learn(rest: bytes, headers: Sequence[Header]) -> Head | None:
    """The head of a packet that was parsed to these headers, names in lower case; None where it
    will not come again, or is not plain.
    """
    found = dict(reversed(headers))
    held, digest = found.get(b"if-none-match"), digest_of(found.get(b"x-api-key", b""))
    if b"x-request-id" in found or tracing.NAME in found:
        return None
    if held is None:
        return Head(rest, None, digest)
    line = _HELD.search(rest.partition(b"\r\n\r\n")[0] + b"\r")
    if line is None or line[1] != held or sum(name == b"if-none-match" for name, _ in headers) > 1:
        return None
    return Head(rest[: line.end()], rest[line.end() + len(held) :], digest)
