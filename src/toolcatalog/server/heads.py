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

from toolcatalog.keys.api_keys import hash_secret
from toolcatalog.server import tracing
from toolcatalog.server.answers import Header

_TAG_PATTERN = rb"[!-+\x2d-~]{1,80}"  # no white space, and no comma: one tag, or `*`
_IF_NONE_MATCH = re.compile(rb"\n[Ii]f-[Nn]one-[Mm]atch: (?=(%b)\r)" % _TAG_PATTERN)
_is_tag = re.compile(_TAG_PATTERN).fullmatch


class RequestHead(NamedTuple):
    """A packet that held one request and nothing else, from the end of its request line on: all of
    it, or what stands around the tag.
    """

    prefix: bytes
    suffix: bytes | None
    key_digest: str

    def matches(self, rest: bytes) -> tuple[bool, bytes | None]:
        """Tell whether this is the same head, and the tag that the client holds now."""
        if self.suffix is None:
            return rest == self.prefix, None
        if not (rest.startswith(self.prefix) and rest.endswith(self.suffix)):
            return False, None
        held = rest[len(self.prefix) : -len(self.suffix)]
        return _is_tag(held) is not None, held


def learn_head(rest: bytes, headers: Sequence[Header]) -> RequestHead | None:
    """The head of a packet that was parsed to these headers, names in lower case; None where it
    will not come again, or is not plain.
    """
    found = dict(reversed(headers))
    held, digest = found.get(b"if-none-match"), hash_secret(found.get(b"x-api-key", b""))
    if b"x-request-id" in found or tracing.TRACEPARENT_HEADER in found:
        return None
    if held is None:
        return RequestHead(rest, None, digest)
    line = _IF_NONE_MATCH.search(rest.partition(b"\r\n\r\n")[0] + b"\r")
    if line is None or line[1] != held or sum(name == b"if-none-match" for name, _ in headers) > 1:
        return None
    return RequestHead(rest[: line.end()], rest[line.end() + len(held) :], digest)
