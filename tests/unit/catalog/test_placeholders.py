"""Placeholders of sessions: filled at any depth, and refused if malformed."""

from typing import Any

import pytest

from toolcatalog.catalog.sessions import (
    SAMPLE_VALUES,
    fill_placeholders,
    find_invalid_placeholders,
    remove_placeholder_enums,
)


def test_fill_replaces_at_any_depth() -> None:
    """In mappings, lists, or alone; other values stay."""
    value = {
        "a": {"$session": "tools"},
        "b": [{"$session": "user_id"}, "x", {"c": {"$session": "user_id"}}],
        "d": 1,
    }
    argument = {"tools": ["T"], "user_id": "u"}
    assert fill_placeholders(value, argument) == {"a": ["T"], "b": ["u", "x", {"c": "u"}], "d": 1}
    assert fill_placeholders({"$session": "tools"}, argument) == ["T"]


def test_fill_does_not_change_its_input() -> None:
    template = {"a": {"b": {"$session": "user_id"}}}
    fill_placeholders(template, {"user_id": "u"})
    assert template == {"a": {"b": {"$session": "user_id"}}}


def test_fill_refuses_unknown_names() -> None:
    with pytest.raises(KeyError):
        fill_placeholders({"$session": "tools"}, {})


@pytest.mark.parametrize("name", SAMPLE_VALUES)
def test_sample_names_are_valid(name: str) -> None:
    """The documented names are the supported ones."""
    assert list(find_invalid_placeholders({"a": [{"$session": name}]})) == []
    assert {*SAMPLE_VALUES} == {"toolkits", "tools", "session_id", "user_id", "auth_configs"}


@pytest.mark.parametrize(
    "placeholder",
    [
        {"$session": "toolkit"},
        {"$session": None},
        {"$session": ["tools"]},
        {"$session": {}},
        {"$session": 5},
        {"$session": "tools", "x": 1},
    ],
)
def test_malformed_placeholders_are_reported(placeholder: dict[str, Any]) -> None:
    """An unknown name, a value that is not a name, and other keys next to it."""
    assert list(find_invalid_placeholders({"a": ["x", {"b": placeholder}]})) == [
        (("a", 1, "b"), placeholder)
    ]


def test_session_choices_are_removed() -> None:
    """Only an `enum` that is a placeholder."""
    value = {
        "x": {"enum": {"$session": "tools"}, "default": {"$session": "user_id"}},
        "y": [{"enum": ["a"]}],
    }
    assert remove_placeholder_enums(value) == {
        "x": {"default": {"$session": "user_id"}},
        "y": [{"enum": ["a"]}],
    }
