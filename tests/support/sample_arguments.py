"""Example arguments of a tool, for tests that compare schemas."""

import math
from collections.abc import Mapping
from typing import Any

from toolcatalog.exports.definitions import ServedParameter
from toolcatalog.parameters import LOWER_BOUNDS, UPPER_BOUNDS

_MAX_TEXT_LENGTH = 1000  # characters of a generated text: a huge minLength must not fill the memory
_MAX_ITEMS = 10  # items of generated lists, including nested lists
_FORMAT_EXAMPLES = {
    "date-time": "2025-01-15T09:30:00Z",
    "date": "2025-01-15",
    "time": "09:30:00Z",
    "duration": "PT30M",
    "email": "ada@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}


def sample_arguments(parameters: Mapping[str, ServedParameter]) -> dict[str, Any]:
    """Return example arguments for served inputs: a value for each required one.

    A value is the first example, else the default, else the first enum value, else a plain value of
    the type. That value respects format, bounds and lengths (lists of up to 10 items, texts of up
    to 1,000 characters) and required properties within it. It does not respect `pattern`, nor that
    only one branch of `oneOf` may match.
    """
    return _sample_required(parameters, _MAX_ITEMS)


def _sample_required(parameters: Mapping[str, ServedParameter], max_items: int) -> dict[str, Any]:
    return {
        name: _example_value(description, max_items)
        for name, description in parameters.items()
        if description.get("required")
    }


def _example_value(description: ServedParameter, max_items: int) -> Any:
    candidates = [
        *description.get("examples", ())[:1],
        *([description["default"]] if "default" in description else []),
        *description.get("enum", ())[:1],
    ]
    return candidates[0] if candidates else _generate_value(description, max_items)


def _generate_value(description: ServedParameter, max_items: int) -> Any:
    branches = description.get("anyOf") or description.get("oneOf")
    first = (
        _example_value(_narrow_branch(branches[0], description), max_items) if branches else None
    )
    kind = description["type"]
    if kind == "object":
        return _sample_required(description.get("properties", {}), max_items) | (
            first if isinstance(first, dict) else {}
        )
    if branches:
        return first
    if kind == "array":
        return _generate_items(description, max_items)
    return (
        True
        if kind == "boolean"
        else _generate_text(description)
        if kind == "string"
        else _generate_number(description)
    )


def _narrow_branch(branch: ServedParameter, description: ServedParameter) -> ServedParameter:
    """Return a branch with the bounds of its parent; of two bounds the narrower one."""
    lower = {
        key: max(description[key], branch.get(key, description[key]))
        for key in LOWER_BOUNDS
        if key in description
    }
    upper = {
        key: min(description[key], branch.get(key, description[key]))
        for key in UPPER_BOUNDS
        if key in description
    }
    return {**branch, **lower, **upper}


def _generate_text(description: ServedParameter) -> str:
    example = _FORMAT_EXAMPLES.get(str(description.get("format")))
    if example:
        return example
    minimum: int = min(description.get("minLength", 0), _MAX_TEXT_LENGTH)
    length: int = max(minimum, min(4, description.get("maxLength", 4)))
    return ("text" * (length // 4 + 1))[:length]


def _generate_number(description: ServedParameter) -> float:
    """Return 1 if that fits, else a number at, next to or between bounds, else 1."""
    lows = [description[key] for key in ("minimum", "exclusiveMinimum") if key in description]
    highs = [description[key] for key in ("maximum", "exclusiveMaximum") if key in description]
    candidates: list[float] = [
        1,
        0,
        *lows,
        *(low + 1 for low in lows),
        *highs,
        *(high - 1 for high in highs),
    ]
    candidates += [low + (high - low) / 2 for low in lows for high in highs]
    if description["type"] == "integer":
        candidates = [
            round_to(number)
            for number in candidates
            if abs(number) < 2**53
            for round_to in (math.floor, math.ceil)
        ]
    return next(
        (
            number
            for number in candidates
            if math.isfinite(number) and _fits_bounds(number, description)
        ),
        1,
    )


def _fits_bounds(value: float, description: ServedParameter) -> bool:
    return (
        description.get("minimum", value) <= value <= description.get("maximum", value)
        and not value <= description.get("exclusiveMinimum", -math.inf)
        and not value >= description.get("exclusiveMaximum", math.inf)
    )


def _generate_items(description: ServedParameter, max_items: int) -> list[Any]:
    """Return as many items as required, at least one if allowed, and at most `max_items`.

    The items are the author's enum values or examples, or else generated; they differ if they must
    be unique.
    """
    item = description.get("items", {"type": "string"})
    count = max(
        0,
        min(
            max(description.get("minItems", 1), 1),
            description.get("maxItems", max_items),
            max_items,
        ),
    )
    values = (
        item.get("enum")
        or item.get("examples")
        or [_example_value(item, max_items // max(count, 1))]
    )
    if "enum" in item or not description.get("uniqueItems"):
        return [values[index % len(values)] for index in range(count)]
    return [
        *values[:count],
        *(_make_distinct(values[0], index) for index in range(len(values), count)),
    ]


def _make_distinct(value: Any, number: int) -> Any:
    """Return a value like this one; texts and numbers differ for each `number` from 1 on."""
    if isinstance(value, str):
        return f"{value} {number + 1}"
    return (
        value + number if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    )
