"""Placeholders of meta tools: `{$session: NAME}` stands for something that only the session knows.
Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from toolcatalog.errors import Pointer

MARK = "$session"

# What stands for each while a meta tool is checked as the tool that it will be.
SAMPLES: Mapping[str, Any] = {
    "toolkits": ["toolkit"],
    "tools": ["TOOL"],
    "session_id": "trs_session",
    "user_id": "user",
    "auth_configs": ["ac_config"],
}


def fill(value: Any, given: Mapping[str, Any]) -> Any:
    """The value with each placeholder replaced by what is given for its name. Raises KeyError for a
    name that is not given.
    """
    if isinstance(value, dict):
        return (
            given[value[MARK]]
            if MARK in value
            else {key: fill(inner, given) for key, inner in value.items()}
        )
    if isinstance(value, list):
        return [fill(inner, given) for inner in value]
    return value


def without_choices(value: Any) -> Any:
    """The value without each `enum` that is a placeholder: while the session is not known, any
    value may be one of its choices.
    """
    if isinstance(value, dict):
        return {
            key: without_choices(inner)
            for key, inner in value.items()
            if key != "enum" or not _stands(inner)
        }
    return [without_choices(inner) for inner in value] if isinstance(value, list) else value


def _stands(value: Any) -> bool:
    return isinstance(value, dict) and MARK in value


def malformed(value: Any, pointer: Pointer = ()) -> Iterator[tuple[Pointer, dict[str, Any]]]:
    """Each placeholder that is not one key and a known name: its pointer, and what stands there."""
    if isinstance(value, dict):
        if MARK in value:
            if len(value) > 1 or not isinstance(value[MARK], str) or value[MARK] not in SAMPLES:
                yield pointer, value
        else:
            for key, inner in value.items():
                yield from malformed(inner, (*pointer, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from malformed(inner, (*pointer, index))
