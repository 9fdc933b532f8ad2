"""Tests of `parameters`: the served form, and the schema of values."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.parameters import (
    TYPES,
    has_plainly_valid_values,
    to_served_inputs,
    to_served_outputs,
    to_value_schema,
    type_of,
    walk_descriptions,
)

AUTHORED: dict[str, Any] = {
    "head": {
        "examples": [{"topic": "x"}],
        "properties": {
            "topic": {"required": True, "type": "string"},
            "size": {"type": "integer", "minimum": 0},
        },
        "type": "object",
    },
    "to": {
        "type": "array",
        "required": True,
        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
    "when": {
        "anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}],
        "description": "Or a number.",
    },
    "extra": {"type": "object", "additionalProperties": {"type": "number"}},
    "open": {"type": "object", "additionalProperties": False},
}


def test_served_inputs() -> None:
    """Each named input, at every level, has type, description and required; `items` and branches
    have no required.
    """
    expected = {
        "head": {
            "type": "object",
            "description": "",
            "required": False,
            "examples": [{"topic": "x"}],
            "properties": {
                "topic": {"type": "string", "description": "", "required": True},
                "size": {"type": "integer", "description": "", "required": False, "minimum": 0},
            },
        },
        "to": {
            "type": "array",
            "description": "",
            "required": True,
            "items": {
                "type": "object",
                "description": "",
                "properties": {"name": {"type": "string", "description": "", "required": False}},
            },
        },
        "when": {
            "type": "string",
            "description": "Or a number.",
            "required": False,
            "anyOf": [
                {"type": "string", "description": "", "format": "date"},
                {"type": "integer", "description": ""},
            ],
        },
        "extra": {
            "type": "object",
            "description": "",
            "required": False,
            "additionalProperties": {"type": "number", "description": ""},
        },
        "open": {
            "type": "object",
            "description": "",
            "required": False,
            "additionalProperties": False,
        },
    }
    # as text: the order counts too
    assert json.dumps(to_served_inputs(AUTHORED)) == json.dumps(expected)


def test_served_outputs_have_no_required() -> None:
    """They have type and description, at every level."""
    served = json.dumps(to_served_outputs(AUTHORED))
    assert '"required"' not in served
    assert json.loads(served)["to"]["items"]["properties"]["name"] == {
        "type": "string",
        "description": "",
    }


def test_parameters_named_like_keywords() -> None:
    """`type`, `required` or `properties`."""
    description: dict[str, Any] = {
        "required": {"type": "string"},
        "properties": {"type": "object", "properties": {"type": {"type": "string"}}},
    }
    assert to_served_inputs(description) == {
        "required": {"type": "string", "description": "", "required": False},
        "properties": {
            "type": "object",
            "description": "",
            "required": False,
            "properties": {"type": {"type": "string", "description": "", "required": False}},
        },
    }


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ({"type": "array"}, "array"),
        ({"anyOf": [{"type": "string"}, {"type": "string"}]}, "string"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "number"),
        ({"anyOf": [{"type": "object"}, {"type": "string"}]}, "object"),
        ({"anyOf": [{"oneOf": [{"type": "boolean"}]}]}, "boolean"),
        ({"type": "string", "anyOf": [{"type": "integer"}]}, "string"),
    ],
)
def test_type_of(description: dict[str, Any], expected: str) -> None:
    """The author's type, or the one that all branches share, or the first one's."""
    assert type_of(description) == expected


@pytest.mark.parametrize(
    ("description", "fits", "misfits"),
    [
        ({"type": "string", "pattern": "^a", "maxLength": 2}, ["a", "ab"], ["b", "abc", 1, None]),
        ({"type": "integer", "minimum": 1, "nullable": True}, [1, None, 2.0], [0, 1.5, "1"]),
        ({"type": "string", "enum": ["a"], "nullable": True}, ["a", None], ["b", ""]),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": True},
            ["a", 1, None],
            [1.5, []],
        ),
        ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]}, [1, 5.5], [7, "x"]),
        (
            {"type": "array", "items": {"type": "string", "required": True}, "minItems": 1},
            [["a"]],
            [[], [1]],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "required": True}}},
            [{"a": "x"}, {"a": "", "b": 1}],
            [{}, {"a": 1}],
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "additionalProperties": False,
            },
            [{}, {"a": "x"}],
            [{"b": "x"}],
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            [{}, {"a": 1}],
            [{"a": "x"}],
        ),
    ],
)
def test_value_schema(description: dict[str, Any], fits: list[Any], misfits: list[Any]) -> None:
    """Required properties are required, and null is valid if nullable."""
    gate = jsonschema_rs.Draft202012Validator(to_value_schema(description))
    assert [value for value in fits if not gate.is_valid(value)] == []
    assert [value for value in misfits if gate.is_valid(value)] == []


def test_value_schema_without_enum() -> None:
    """Enum values are checked against all other keywords."""
    assert to_value_schema({"type": "string", "enum": ["a"], "maxLength": 3}, with_enum=False) == {
        "maxLength": 3,
        "type": "string",
    }


@pytest.mark.parametrize(
    ("description", "plain"),
    [
        (
            {
                "type": "string",
                "examples": ["a", "b"],
                "default": "",
                "description": "D",
                "title": "T",
                "required": True,
            },
            True,
        ),
        (
            {
                "type": "string",
                "enum": ["a", "b"],
                "examples": ["b"],
                "default": None,
                "nullable": True,
            },
            True,
        ),
        ({"type": "number", "examples": [1, 1.5, -0.0]}, True),
        ({"type": "boolean", "default": False}, True),
        (
            {
                "type": "array",
                "items": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
                "examples": [[], [["a"]]],
            },
            True,
        ),
        ({"type": "object", "examples": [{"a": 1}], "default": {}}, True),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "default": None,
                "nullable": True,
            },
            True,
        ),
        (
            {"type": "object", "additionalProperties": False, "default": None, "nullable": True},
            True,
        ),
        ({"type": "string", "examples": [1]}, False),
        ({"type": "string", "enum": ["a", 1]}, False),
        ({"type": "string", "enum": ["a"], "examples": ["b"]}, False),
        ({"type": "string", "default": None}, False),
        ({"type": "integer", "examples": [True]}, False),
        ({"type": "integer", "examples": [1.0]}, False),
        ({"type": "integer", "enum": [1], "examples": [1]}, False),
        ({"type": "integer", "minimum": 0, "maximum": 1, "examples": [0, 1], "default": 1}, True),
        ({"type": "integer", "minimum": 0, "examples": [-1]}, False),
        ({"type": "number", "maximum": 1, "enum": [1.5]}, False),
        ({"type": "string", "minLength": 1, "maxLength": 1, "examples": ["\U0001f600"]}, True),
        ({"type": "string", "maxLength": 1, "examples": ["ab"]}, False),
        ({"type": "string", "minLength": 1, "default": ""}, False),
        ({"type": "string", "format": "date", "examples": ["2025-01-01"]}, False),
        ({"type": "string", "pattern": "a", "examples": ["a"]}, False),
        ({"anyOf": [{"type": "string"}], "examples": ["a"]}, False),
        ({"type": "array", "items": {"type": "string", "maxLength": 3}, "default": ["a"]}, True),
        (
            {"type": "array", "items": {"type": "string", "maxLength": 3}, "default": ["abcd"]},
            False,
        ),
        (
            {
                "type": "array",
                "items": {"type": "string", "pattern": "("},
                "default": None,
                "nullable": True,
            },
            False,
        ),
        ({"type": "array", "items": {"type": "string"}, "examples": [["a"], [1]]}, False),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "examples": [{"a": "x"}]},
            False,
        ),
        (
            {
                "type": "object",
                "additionalProperties": {"oneOf": [{"type": "string"}]},
                "default": None,
                "nullable": True,
            },
            False,
        ),
    ],
)
def test_simple_validity(description: dict[str, Any], plain: bool) -> None:
    """Types, limits and enums of strings are simple; other keywords need a validator."""
    assert has_plainly_valid_values(description, description) is plain


small = st.sampled_from(
    ["", "a", "b", "\U0001f600", "2025-01-01", 0, 1, -1, 1.0, 1.5, 2**53 + 1, True, False, None]
)
values = st.recursive(
    small,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)
limits = st.fixed_dictionaries(
    {},
    optional={
        "format": st.just("date"),
        "pattern": st.sampled_from(["a", "(", r"^\d+$"]),
        "minimum": st.sampled_from([0, 0.5, 2**53]),
        "maximum": st.sampled_from([1, 1.5, 2**53, 2.0**53]),
        "minLength": st.just(1),
        "maxLength": st.just(1),
        "minItems": st.just(1),
        "uniqueItems": st.booleans(),
    },
)


def descriptions(depth: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    inner = descriptions(depth - 1) if depth else st.just({"type": "string"})
    extra: dict[str, st.SearchStrategy[Any]] = {
        "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        "items": inner,
        "anyOf": st.lists(inner, min_size=1, max_size=2),
    }
    extra |= {
        "additionalProperties": st.booleans() | inner,
        "nullable": st.booleans(),
        "required": st.booleans(),
        "title": st.just("T"),
    }
    stored = {
        "enum": st.lists(values, min_size=1, max_size=3),
        "examples": st.lists(values, max_size=3),
        "default": values,
    }
    document = st.fixed_dictionaries({"type": st.sampled_from(TYPES)}, optional=extra | stored)
    return document | st.tuples(document, limits).map(lambda two: two[0] | two[1])


@given(descriptions())
def test_simple_validity_agrees_with_a_validator(description: dict[str, Any]) -> None:
    if has_plainly_valid_values(description, description):
        choices = jsonschema_rs.Draft202012Validator(
            to_value_schema(description, with_enum=False), validate_formats=True
        )
        samples = jsonschema_rs.Draft202012Validator(
            to_value_schema(description), validate_formats=True
        )
        assert [value for value in description.get("enum", []) if not choices.is_valid(value)] == []
        assert [
            value for value in description.get("examples", []) if not samples.is_valid(value)
        ] == []
        assert "default" not in description or samples.is_valid(description["default"])


def test_walk_visits_every_description_with_its_pointer() -> None:
    """Properties, items, additional properties and branches."""
    branch = {"type": "object", "properties": {"b": {"type": "string"}}}
    description: dict[str, Any] = {
        "a": {"type": "array", "items": {"anyOf": [branch]}},
        "c": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    pointers = [pointer for pointer, _ in walk_descriptions(description, ("in",))]
    assert pointers == [
        ("in", "a"),
        ("in", "a", "items"),
        ("in", "a", "items", "anyOf", 0),
        ("in", "a", "items", "anyOf", 0, "properties", "b"),
        ("in", "c"),
        ("in", "c", "additionalProperties"),
    ]
