"""A change: one difference between two versions, and its text."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import orjson

Kind = Literal["breaking", "scope", "additive", "text"]
KINDS: tuple[Kind, ...] = ("breaking", "scope", "additive", "text")  # in the order of reports

ABSENT: Any = object()  # the value of a keyword that is not set
_MAX_VALUE_LENGTH = 120  # characters of a value that are shown
_CONTEXT_LENGTH = 20  # characters before the part of a long value that differs
_MAX_VALUES = 10  # values that are shown
_MAX_LOCATION_LENGTH = 200  # characters of a place


class Change(NamedTuple):
    """One change: its kind, its place, and a clause whose subject is the place.

    Values and names from the catalog are in backquotes, except numbers. A backquote in a value is
    written as `\\u0060`, so that backquotes always pair. Places are the names of the tool's fields,
    or `input a.b`, with `[]` for the items of a list, `.*` for additional properties and
    `.anyOf[0]` for a branch. A name that would be ambiguous is quoted as JSON. In the middle of a
    place of more than 200 characters, `…` replaces what is left out.
    """

    kind: Kind
    location: str
    text: str


def describe_text_change(old: str, new: str) -> str:
    """Return how a text for people changed."""
    return "was reworded" if old and new else "was added" if new else "was removed"


def describe_keyword_change(key: str, old: Any, new: Any) -> str:
    """Return a clause on the change of a keyword or field; ABSENT means that it is not set."""
    if old is ABSENT:
        return f"has {key} {_format_keyword(key, new)} now"
    if new is ABSENT:
        return f"no longer has {key} {_format_keyword(key, old)}"
    if key == "type":
        return f"type {old} became {new}"
    return f"{key} {describe_value_change(old, new)}"


def _format_keyword(key: str, value: Any) -> str:
    return str(value) if key == "type" else format_value(value)


def describe_value_change(old: Any, new: Any) -> str:
    """Return a clause on the change of a plain value; of long ones, the part that differs."""
    texts = _full_text(old), _full_text(new)
    start = _common_length(*texts) - _CONTEXT_LENGTH
    if start > 0 and max(map(len, texts)) > _MAX_VALUE_LENGTH:
        old_text, new_text = (f"`{_shorten(f'…{text[start:]}')}`" for text in texts)
        return f"{old_text} became {new_text}"
    return f"{format_value(old)} became {format_value(new)}"


def _common_length(old: str, new: str) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(old), len(new)))


def format_value(value: Any) -> str:
    """Format a value for a sentence, in backquotes unless it is null, a boolean or a number."""
    return (
        _value_text(value)
        if value is None or isinstance(value, (bool, int, float))
        else quote_value(value)
    )


def quote_values(values: Sequence[Any]) -> str:
    """Return values in backquotes; if there are many, only the first of them."""
    quoted = ", ".join(quote_value(value) for value in values[:_MAX_VALUES])
    return (
        quoted if len(values) <= _MAX_VALUES else f"{quoted} and {len(values) - _MAX_VALUES} more"
    )


def quote_value(value: Any) -> str:
    """Return a value in backquotes."""
    return f"`{_value_text(value)}`"


def _value_text(value: Any) -> str:
    return _shorten(_full_text(value))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"


def _full_text(value: Any) -> str:
    """Return a value as JSON, or a string without quotes if it is unambiguous and printable."""
    as_it_is = (
        isinstance(value, str)
        and value.isprintable()
        and value == value.strip()
        and "`" not in value
        and not _is_json(value)
    )
    return value if as_it_is else orjson.dumps(value).decode().replace("`", "\\u0060")


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return not text
    return True


def format_name(name: str) -> str:
    """Return a name as it is written in a place, quoted if it contains the syntax of places."""
    if name.isascii() and name.isidentifier():  # the fast path for nearly all
        return name
    is_plain = bool(name) and name.isprintable() and not any(char in ' ."[]*`' for char in name)
    return name if is_plain else orjson.dumps(name).decode().replace("`", "\\u0060")


def shorten_location(location: str) -> str:
    """Return a place, or the beginning and the end of a long one.

    The places of thousands of changes within objects with long names would take gigabytes.
    """
    if len(location) <= _MAX_LOCATION_LENGTH:
        return location
    end_length = _MAX_LOCATION_LENGTH // 2
    return f"{location[: end_length - 1]}…{location[-end_length:]}"


def are_equal(old: Any, new: Any) -> bool:
    """Return whether two values are equal in JSON, where 1 equals 1.0 but not true."""
    if old is new or ABSENT in (old, new):
        return old is new
    # fast path: most equal values are written the same way
    return orjson.dumps(old) == orjson.dumps(new) or to_canonical(old) == to_canonical(new)


def are_identical(old: Any, new: Any) -> bool:
    """Return whether two values are served as the same bytes; the order of keys matters."""
    if old is new or ABSENT in (old, new):
        return old is new
    return orjson.dumps(old) == orjson.dumps(new)


def to_canonical(value: Any) -> bytes:
    """Return the canonical JSON of a value; equal values have the same text."""
    return orjson.dumps(_normalize(value), option=orjson.OPT_SORT_KEYS)


def _normalize(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _normalize(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_normalize(inner) for inner in value]
    return (
        int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        else value
    )
