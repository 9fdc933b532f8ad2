"""What the server refuses, as values, and the error envelope that tells it. Pure.

An error body stays below 16 KB, whatever the request names and whatever the catalog contains.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

_MESSAGES = {
    400: "The request is not valid.",
    401: "The API key is missing or not valid.",
    403: "This key may not do that.",
    404: "There is no such thing.",
    405: "This path does not answer that method.",
    429: "Too many requests.",
    500: "Something went wrong on the server.",
    503: "The server is not ready.",
}


_MOST_LINES = 20  # in `errors`, and fixes in `suggested_fix`
# bytes of JSON: one line with its fix takes 1 KB, and 20 of them with all else less than 16 KB
_LONGEST_LINE, _LONGEST_FIX, _LONGEST_FIXES = 400, 1000, 4000


@dataclass(frozen=True, slots=True)
class Refusal:
    """One problem of a request: the HTTP status, the slug of the error, the problem in one line,
    and how to mend it.
    """

    status: int
    slug: str
    line: str
    fix: str


class Refused(Exception):
    """Stops a request; `refusals` are all that is wrong with it, at least one."""

    def __init__(self, *refusals: Refusal) -> None:
        super().__init__(*(refusal.line for refusal in refusals))
        self.refusals = refusals


def invalid(line: str, fix: str) -> Refusal:
    """A malformed parameter, cursor, slug or body."""
    return Refusal(400, "invalid_request", line, fix)


def unauthorized() -> Refusal:
    """One text for a key that is missing, unknown, expired or revoked: it tells a guesser nothing."""
    fix = "Send an active project API key in the header x-api-key; `toolcatalog keys create` makes one."
    return Refusal(401, "unauthorized", "x-api-key: missing, unknown, expired or revoked.", fix)


def not_ready() -> Refusal:
    """No snapshot is open yet."""
    return Refusal(
        503,
        "not_ready",
        "The server has no catalog yet: it is being fetched.",
        "Try again in some seconds.",
    )


def draining() -> Refusal:
    """The server answers what still comes, and then ends."""
    return Refusal(
        503, "draining", "The server is about to end.", "Send further requests to another one."
    )


def crowded() -> Refusal:
    """No more connections fit."""
    return Refusal(
        503,
        "too_many_connections",
        "The server holds as many connections as it may.",
        "Keep one open, or try again later.",
    )


def first(refusals: Sequence[Refusal]) -> Refusal:
    """The refusal that gives the answer its status: the lowest one (a malformed request goes before
    what it asks for).
    """
    return min(refusals, key=lambda refusal: refusal.status)


def envelope(refusals: Sequence[Refusal], request_id: str) -> bytes:
    """The body of an error answer, all seven fields: less than 16 KB of JSON.

    Only the first 20 problems get a line; one more line says how many others there are.
    """
    chief, shown = first(refusals), refusals[:_MOST_LINES]
    lines = [_shortened(refusal.line, _LONGEST_LINE) for refusal in shown]
    if len(refusals) > len(shown):
        lines.append(f"{len(refusals) - len(shown)} more problems are not listed.")
    fixes = dict.fromkeys(_shortened(refusal.fix, _LONGEST_FIX) for refusal in shown)
    error = {
        "message": _shortened(chief.line, _LONGEST_LINE)
        if len(refusals) == 1
        else f"{_MESSAGES[chief.status]} {len(refusals)} problems, see errors.",
        "code": 1000 + chief.status,
        "slug": chief.slug,
        "status": chief.status,
        "request_id": request_id,
        "suggested_fix": _shortened(" ".join(fixes), _LONGEST_FIXES),
        "errors": lines,
    }
    return orjson.dumps({"error": error})


def _shortened(text: str, most: int) -> str:
    """A text that takes at most `most` bytes as JSON, cut at its end where it takes more."""
    length = min(len(text), most)
    while len(orjson.dumps(text[:length])) > most:
        length -= length // 8 + 1
    return text if length == len(text) else text[:length] + "..."
