"""The W3C's `traceparent`: the id by which a request is followed through several programs. It is
passed on as it came, where it is sane.
"""

import re

TRACEPARENT_HEADER = b"traceparent"
# version, trace, span, flags
_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)


def validate_traceparent(value: bytes | None) -> bytes | None:
    """A `traceparent` that is well formed (W3C Trace Context, 3.2); None for any other, and for
    none.
    """
    return value if value is not None and _TRACEPARENT.fullmatch(value) else None
