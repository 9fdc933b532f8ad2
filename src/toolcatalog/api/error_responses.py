"""Error responses: what the server rejects, as values, and the error envelope.

The body of an error stays below 16 KB, whatever the request names and whatever the catalog
contains.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

_MESSAGES = {
    400: "The request is not valid.",
    401: "The API key is missing or not valid.",
    403: "This key may not do that.",
    404: "Not found.",
    405: "Method not allowed.",
    429: "Too many requests.",
    500: "Something went wrong on the server.",
    503: "The server is not ready.",
}


_MOST_LINES = 20  # lines in `errors`, and fixes in `suggested_fix`
# bytes of JSON: 20 lines, the fixes and all other fields take less than 16 KB
_LONGEST_LINE, _LONGEST_FIX, _LONGEST_FIXES = 400, 1000, 4000


@dataclass(frozen=True, slots=True)
class ErrorDetail:
    """One problem of a request.

    It has the HTTP status, the slug of the error, the problem in one line, and how to fix it.
    """

    status: int
    slug: str
    message: str
    fix: str


class RequestError(Exception):
    """Stops a request; `errors` are all of its problems, at least one."""

    def __init__(self, *errors: ErrorDetail) -> None:
        super().__init__(*(refusal.message for refusal in errors))
        self.errors = errors


def invalid_request(message: str, fix: str) -> ErrorDetail:
    """Return the error for a malformed parameter, cursor, slug or body."""
    return ErrorDetail(400, "invalid_request", message, fix)


def unauthorized(*, has_key: bool, has_authorization: bool = False) -> ErrorDetail:
    """Return the error for a request without a valid key.

    `has_key`: it has a header `x-api-key`; `has_authorization`: it has the header `Authorization`,
    which this route does not read. The text is the same for an unknown, expired or revoked key, so
    that guessing reveals nothing.
    """
    fix = (
        "Send an active project API key in the header x-api-key; `toolcatalog keys create` "
        "creates one."
    )
    if has_authorization and not has_key:
        fix = f"This route does not read the header Authorization. {fix}"
    line = "unknown, expired or revoked." if has_key else "the request has no such header."
    return ErrorDetail(401, "unauthorized", f"x-api-key: {line}", fix)


def not_ready() -> ErrorDetail:
    """Return the error for a server that has not opened a snapshot yet."""
    return ErrorDetail(
        503,
        "not_ready",
        "The server has no catalog yet: it is being fetched.",
        "Try again in some seconds.",
    )


def server_draining() -> ErrorDetail:
    """Return the error for a server that still answers but is about to stop."""
    return ErrorDetail(
        503, "draining", "The server is shutting down.", "Send further requests to another one."
    )


def too_many_connections() -> ErrorDetail:
    """Return the error for a server that accepts no more connections."""
    return ErrorDetail(
        503,
        "too_many_connections",
        "The server has as many connections as it allows.",
        "Keep one open, or try again later.",
    )


def server_busy() -> ErrorDetail:
    """Return the error for a request that would wait behind too many others."""
    return ErrorDetail(
        503,
        "server_busy",
        "Too many requests wait for an answer.",
        "Try again in a second, and send fewer requests at once.",
    )


def primary_error(errors: Sequence[ErrorDetail]) -> ErrorDetail:
    """Return the error that determines the status: the one with the lowest status.

    A malformed request therefore takes precedence over what it asks for.
    """
    return min(errors, key=lambda refusal: refusal.status)


def render_envelope(errors: Sequence[ErrorDetail], request_id: str) -> bytes:
    """Return the body of an error response, with all seven fields: less than 16 KB of JSON.

    Only the first 20 problems get a line each; one more line counts the others.
    """
    chief, shown = primary_error(errors), errors[:_MOST_LINES]
    lines = [_shortened(refusal.message, _LONGEST_LINE) for refusal in shown]
    if len(errors) > len(shown):
        lines.append(f"{len(errors) - len(shown)} more problems are not listed.")
    fixes = dict.fromkeys(_shortened(refusal.fix, _LONGEST_FIX) for refusal in shown)
    error = {
        "message": _shortened(chief.message, _LONGEST_LINE)
        if len(errors) == 1
        else f"{_MESSAGES[chief.status]} {len(errors)} problems, see errors.",
        "code": 1000 + chief.status,
        "slug": chief.slug,
        "status": chief.status,
        "request_id": request_id,
        "suggested_fix": _shortened(" ".join(fixes), _LONGEST_FIXES),
        "errors": lines,
    }
    return orjson.dumps({"error": error})


def _shortened(text: str, most: int) -> str:
    """Return a text, cut at its end so that it takes at most `most` bytes as JSON."""
    length = min(len(text), most)
    while len(orjson.dumps(text[:length])) > most:
        length -= length // 8 + 1
    return text if length == len(text) else text[:length] + "..."
