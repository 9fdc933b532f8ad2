"""A change: one difference between two versions, and its text."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import orjson

Kind = Literal["breaking", "scope", "additive", "text"]
KINDS: tuple[Kind, ...] = ("breaking", "scope", "additive", "text")  # in this order they are told

ABSENT: Any = object()  # where nothing is said of what could be told
_MAX_VALUE_LENGTH = 120  # characters of a value that are shown
_MAX_VALUES = 10  # values that are shown


class Change(NamedTuple):
    """One change: of which kind, where, and what as a clause that `place` is the subject of.

    Values and names of the catalog stand in backquotes, numbers apart; a backquote within is
    `\\u0060`, so that they always pair. Places are `input a.b`, with `[]` for the items of a list,
    `.*` for other properties, `.anyOf[0]` for a branch, and the names of the tool's fields; a name
    that could be mistaken is in quotes, as JSON.
    """

    kind: Kind
    place: str
    what: str


def describe_text_change(before: str, after: str) -> str:
    """What became of a text for people that differs."""
    return "was reworded" if before and after else "was added" if after else "was removed"


def describe_keyword_change(key: str, before: Any, after: Any) -> str:
    """That one value of a keyword or field became another; ABSENT where one says nothing of it."""
    was, now = (
        "" if value is ABSENT else str(value) if key == "type" else format_value(value)
        for value in (before, after)
    )
    return (
        f"has {key} {now} now"
        if not was
        else f"no longer has {key} {was}"
        if not now
        else f"{key} {was} became {now}"
    )


def describe_value_change(before: Any, after: Any) -> str:
    """That one plain value became another."""
    return f"{format_value(before)} became {format_value(after)}"


def format_value(value: Any) -> str:
    """A value within a sentence: what could be mistaken for its words stands in backquotes."""
    return (
        _value_text(value)
        if value is None or isinstance(value, (bool, int, float))
        else quote_value(value)
    )


def quote_values(values: Sequence[Any]) -> str:
    """Values in backquotes; of very many the first."""
    shown = ", ".join(quote_value(value) for value in values[:_MAX_VALUES])
    return shown if len(values) <= _MAX_VALUES else f"{shown} and {len(values) - _MAX_VALUES} more"


def quote_value(value: Any) -> str:
    """A value in backquotes."""
    return f"`{_value_text(value)}`"


def _value_text(value: Any) -> str:
    """A value in JSON; a text as it stands, unless it would read as something else or has what does
    not show.
    """
    as_it_is = (
        isinstance(value, str)
        and value.isprintable()
        and value == value.strip()
        and "`" not in value
        and not _is_json(value)
    )
    text = value if as_it_is else orjson.dumps(value).decode().replace("`", "\\u0060")
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return not text
    return True


def format_name(name: str) -> str:
    """A name within a place; quoted if it has what places are made of."""
    is_plain = bool(name) and name.isprintable() and not any(char in ' ."[]*`' for char in name)
    return name if is_plain else orjson.dumps(name).decode().replace("`", "\\u0060")


def are_equal(before: Any, after: Any) -> bool:
    """Tell whether two values are equal in JSON, where 1 is 1.0 and not true."""
    if before is after or ABSENT in (before, after):
        return before is after
    # most are, written alike: told fast
    return orjson.dumps(before) == orjson.dumps(after) or to_canonical(before) == to_canonical(
        after
    )


def are_identical(before: Any, after: Any) -> bool:
    """Tell whether two values are served as the same bytes: the order of keys counts too."""
    if before is after or ABSENT in (before, after):
        return before is after
    return orjson.dumps(before) == orjson.dumps(after)


def to_canonical(value: Any) -> bytes:
    """A value as the one text that all values equal to it have."""
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
