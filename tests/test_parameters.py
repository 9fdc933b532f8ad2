"""Parameter descriptions: the form that is served, and the schema that values are held against."""

import json
from typing import Any

import jsonschema_rs
import pytest

from toolcatalog.parameters import served_inputs, served_outputs, type_of, value_schema, walk

AUTHORED: dict[str, Any] = {
    "head": {
        "examples": [{"topic": "x"}],
        "properties": {"topic": {"required": True, "type": "string"}, "size": {"type": "integer", "minimum": 0}},
        "type": "object",
    },
    "to": {"type": "array", "required": True, "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}], "description": "Or a number."},
    "extra": {"type": "object", "additionalProperties": {"type": "number"}},
    "open": {"type": "object", "additionalProperties": False},
}


def test_served_inputs() -> None:
    """Each named input, at every level, has type, description and required; `items` and branches have no required."""
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
            "anyOf": [{"type": "string", "description": "", "format": "date"}, {"type": "integer", "description": ""}],
        },
        "extra": {
            "type": "object",
            "description": "",
            "required": False,
            "additionalProperties": {"type": "number", "description": ""},
        },
        "open": {"type": "object", "description": "", "required": False, "additionalProperties": False},
    }
    assert json.dumps(served_inputs(AUTHORED)) == json.dumps(expected)  # as text: the order counts too


def test_served_outputs_never_say_required() -> None:
    """An output has type and description and never a required, whatever the author's form, at every level."""
    served = json.dumps(served_outputs(AUTHORED))
    assert '"required"' not in served
    assert json.loads(served)["to"]["items"]["properties"]["name"] == {"type": "string", "description": ""}


def test_parameters_named_like_keywords() -> None:
    """A parameter may be called `type`, `required` or `properties`: a name is not a keyword."""
    described: dict[str, Any] = {
        "required": {"type": "string"},
        "properties": {"type": "object", "properties": {"type": {"type": "string"}}},
    }
    assert served_inputs(described) == {
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
    """The author's type, or else the one that the branches share, or the first branch's."""
    assert type_of(description) == expected


@pytest.mark.parametrize(
    ("description", "fits", "misfits"),
    [
        ({"type": "string", "pattern": "^a", "maxLength": 2}, ["a", "ab"], ["b", "abc", 1, None]),
        ({"type": "integer", "minimum": 1, "nullable": True}, [1, None, 2.0], [0, 1.5, "1"]),
        ({"type": "string", "enum": ["a"], "nullable": True}, ["a", None], ["b", ""]),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": True}, ["a", 1, None], [1.5, []]),
        ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]}, [1, 5.5], [7, "x"]),
        ({"type": "array", "items": {"type": "string", "required": True}, "minItems": 1}, [["a"]], [[], [1]]),
        ({"type": "object", "properties": {"a": {"type": "string", "required": True}}}, [{"a": "x"}, {"a": "", "b": 1}], [{}, {"a": 1}]),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}, [{}, {"a": "x"}], [{"b": "x"}]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1}], [{"a": "x"}]),
    ],
)
def test_value_schema(description: dict[str, Any], fits: list[Any], misfits: list[Any]) -> None:
    """The schema of a value says what the description says: required properties are required, null fits where it is nullable."""
    gate = jsonschema_rs.Draft202012Validator(value_schema(description))
    assert [value for value in fits if not gate.is_valid(value)] == []
    assert [value for value in misfits if gate.is_valid(value)] == []


def test_value_schema_without_enum() -> None:
    """Enum values themselves are held against all but the enum."""
    assert value_schema({"type": "string", "enum": ["a"], "maxLength": 3}, enum=False) == {"maxLength": 3, "type": "string"}


def test_walk_meets_every_description_with_its_pointer() -> None:
    """Nested properties, items, additional properties and branches are all met, each at its place."""
    branch = {"type": "object", "properties": {"b": {"type": "string"}}}
    described: dict[str, Any] = {
        "a": {"type": "array", "items": {"anyOf": [branch]}},
        "c": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    pointers = [pointer for pointer, _ in walk(described, ("in",))]
    assert pointers == [
        ("in", "a"),
        ("in", "a", "items"),
        ("in", "a", "items", "anyOf", 0),
        ("in", "a", "items", "anyOf", 0, "properties", "b"),
        ("in", "c"),
        ("in", "c", "additionalProperties"),
    ]
