"""Placeholders: filled anywhere, refused where they are not one key and a known name."""

from typing import Any

import pytest

from toolcatalog.catalog.sessions import (
    SAMPLE_VALUES,
    fill_placeholders,
    find_invalid_placeholders,
    remove_placeholder_enums,
)


def test_fill_replaces_at_any_depth() -> None:
    """A placeholder may stand for any value: in a mapping, in a list, or alone; all else stays."""
    value = {
        "a": {"$session": "tools"},
        "b": [{"$session": "user_id"}, "x", {"c": {"$session": "user_id"}}],
        "d": 1,
    }
    argument = {"tools": ["T"], "user_id": "u"}
    assert fill_placeholders(value, argument) == {"a": ["T"], "b": ["u", "x", {"c": "u"}], "d": 1}
    assert fill_placeholders({"$session": "tools"}, argument) == ["T"]


def test_fill_leaves_its_input_alone() -> None:
    """What is filled for one session is not what the next one is filled from."""
    template = {"a": {"b": {"$session": "user_id"}}}
    fill_placeholders(template, {"user_id": "u"})
    assert template == {"a": {"b": {"$session": "user_id"}}}


def test_fill_of_a_name_that_is_not_given() -> None:
    """A name that is not given is a mistake of the caller, not an empty value."""
    with pytest.raises(KeyError):
        fill_placeholders({"$session": "tools"}, {})


@pytest.mark.parametrize("name", SAMPLE_VALUES)
def test_every_sample_name_is_well_formed(name: str) -> None:
    """The names that the format lists are the ones that are known."""
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
def test_malformed(placeholder: dict[str, Any]) -> None:
    """An unknown name, a value that is no name and a neighbour are told with the place and what
    stands there.
    """
    assert list(find_invalid_placeholders({"a": ["x", {"b": placeholder}]})) == [
        (("a", 1, "b"), placeholder)
    ]


def test_without_choices() -> None:
    """Only an `enum` that is a placeholder goes; one that is written out stays, and so do other
    placeholders.
    """
    value = {
        "x": {"enum": {"$session": "tools"}, "default": {"$session": "user_id"}},
        "y": [{"enum": ["a"]}],
    }
    assert remove_placeholder_enums(value) == {
        "x": {"default": {"$session": "user_id"}},
        "y": [{"enum": ["a"]}],
    }
