"""Request context: the request id, the trace and the snapshot of one request."""

import re
import secrets
from collections.abc import Mapping

from starlette.types import Scope

from toolcatalog.server.responses import TRACEPARENT_HEADER, ResponseContext

_is_request_id = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}").fullmatch
# of this process: workers are spawned, not forked, so each has its own
_PROCESS_PREFIX = secrets.token_hex(8).encode()
_TRACEPARENT = re.compile(  # version, trace, span, flags
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)


def create_context(headers: Mapping[bytes, bytes], snapshot: bytes) -> ResponseContext:
    """Return the context of a request from its headers and the digest of the snapshot."""
    traceparent = headers.get(TRACEPARENT_HEADER)
    return ResponseContext(
        assign_request_id(headers.get(b"x-request-id")),
        snapshot,
        traceparent and validate_traceparent(traceparent),
    )


def path_below_root(scope: Scope) -> str:
    """Return the decoded path of a request below the root path of the server."""
    path: str = scope["path"]
    return path.removeprefix(scope["root_path"]) if scope.get("root_path") else path


def assign_request_id(client_id: bytes | None) -> bytes:
    """Return the client's request id if it is valid, else a new one.

    It names the process, and has 64 random bits: a counter would tell clients how many requests
    others make.
    """
    if client_id is not None and _is_request_id(client_id):
        return client_id
    return _PROCESS_PREFIX + secrets.token_hex(8).encode()


def validate_traceparent(value: bytes) -> bytes | None:
    """Return a `traceparent` if it is well formed (W3C Trace Context, 3.2), else None."""
    return value if _TRACEPARENT.fullmatch(value) else None
