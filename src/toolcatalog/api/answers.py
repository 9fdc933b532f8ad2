"""Answers: the successful results of operations, each in one coding and with a tag."""

import hashlib
from typing import NamedTuple

from toolcatalog.api.bodies import Body

GZIP = b"gzip"


class Answer(NamedTuple):
    """A body in one coding, and the tag of its content.

    `tag` is the same in each coding. `encoding` is `gzip` or empty. `suggestion` is a corrected
    query if a list matched nothing.
    """

    body: Body
    tag: bytes
    encoding: bytes = b""
    suggestion: str = ""


def compute_tag(body: bytes) -> bytes:
    """Return the tag of a body: 128 bits in hexadecimal.

    `body` may also be a tag and text that together determine the body.
    """
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()
