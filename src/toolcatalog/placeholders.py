"""Placeholders of meta tools: `{$session: NAME}` stands for something that only the session knows.
Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from toolcatalog.errors import Pointer

PLACEHOLDER_KEY = "$session"

# What stands for each while a meta tool is checked as the tool that it will be.
SAMPLE_VALUES: Mapping[str, Any] = {
    "toolkits": ["toolkit"],
    "tools": ["TOOL"],
    "session_id": "trs_session",
    "user_id": "user",
    "auth_configs": ["ac_config"],
}


def fill_placeholders(value: Any, values: Mapping[str, Any]) -> Any:
    """The value with each placeholder replaced by what is given for its name. Raises KeyError for a
    name that is not given.
    """
    if isinstance(value, dict):
        return (
            values[value[PLACEHOLDER_KEY]]
            if PLACEHOLDER_KEY in value
            else {key: fill_placeholders(inner, values) for key, inner in value.items()}
        )
    if isinstance(value, list):
        return [fill_placeholders(inner, values) for inner in value]
    return value


def remove_placeholder_enums(value: Any) -> Any:
    """The value without each `enum` that is a placeholder: while the session is not known, any
    value may be one of its choices.
    """
    if isinstance(value, dict):
        return {
            key: remove_placeholder_enums(inner)
            for key, inner in value.items()
            if key != "enum" or not _is_placeholder(inner)
        }
    return (
        [remove_placeholder_enums(inner) for inner in value] if isinstance(value, list) else value
    )


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, dict) and PLACEHOLDER_KEY in value


def find_invalid_placeholders(
    value: Any, pointer: Pointer = ()
) -> Iterator[tuple[Pointer, dict[str, Any]]]:
    """Each placeholder that is not one key and a known name: its pointer, and what stands there."""
    if isinstance(value, dict):
        if PLACEHOLDER_KEY in value:
            if (
                len(value) > 1
                or not isinstance(value[PLACEHOLDER_KEY], str)
                or value[PLACEHOLDER_KEY] not in SAMPLE_VALUES
            ):
                yield pointer, value
        else:
            for key, inner in value.items():
                yield from find_invalid_placeholders(inner, (*pointer, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from find_invalid_placeholders(inner, (*pointer, index))
