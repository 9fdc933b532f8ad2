"""The rooms `dialects` and `descriptions`: JSON Schema in any spelling becomes a parameter description of the same meaning."""

import json
from typing import Any

import pytest

from toolcatalog.descriptions import describe

ANYTHING = {"anyOf": [{"type": name} for name in ("string", "number", "boolean", "object", "array")], "nullable": True}
PERSON = {"type": "object", "title": "Person", "properties": {"name": {"type": "string"}}, "required": ["name"]}
DESCRIBED_PERSON = {"type": "object", "title": "Person", "properties": {"name": {"type": "string", "required": True}}}


def described(schema: Any, of: str = "input_parameters", **root: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    """The description of the one parameter `x`, and the losses as tuples: their pointers from `x` on, and what is lost."""
    found, losses = describe({"type": "object", "properties": {"x": schema}, **root}, of)
    return found.get("x"), [("/".join(map(str, loss.pointer[2:])), loss.what) for loss in losses]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"type": "string"}),
        ({"type": ["string"]}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["null", "integer"], "default": None}, {"type": "integer", "default": None, "nullable": True}),
        (
            {"type": ["string", "array", "null"], "minLength": 1, "items": {"type": "string"}, "title": "T"},
            {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}}], "nullable": True, "title": "T"},
        ),
        ({"type": ["integer", "number"]}, {"type": "number"}),
        ({"type": "null"}, {"type": "string", "nullable": True, "enum": [None]}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 3}], "title": "T"}, {"type": "string", "maxLength": 3, "nullable": True, "title": "T"}),
        (
            {"anyOf": [{"type": "string"}, {"const": None}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": True},
        ),
        ({"anyOf": [{"type": "integer"}]}, {"type": "integer"}),
        (  # both descriptions are kept: the one of the branch stays in a branch
            {"anyOf": [{"type": "string", "description": "A word."}, {"type": "null"}], "description": "A word or nothing."},
            {"description": "A word or nothing.", "nullable": True, "anyOf": [{"type": "string", "description": "A word."}]},
        ),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": [1, 2]}, {"type": "integer", "enum": [1, 2]}),
        ({"enum": ["a", None]}, {"type": "string", "enum": ["a", None], "nullable": True}),
        ({"enum": ["a", True]}, {"enum": ["a", True], "anyOf": [{"type": "string"}, {"type": "boolean"}]}),
        ({"allOf": [PERSON]}, DESCRIBED_PERSON),
        (
            {"allOf": [PERSON, {"properties": {"age": {"type": "integer"}}, "required": ["age"]}]},
            {**DESCRIBED_PERSON, "properties": {"name": {"type": "string", "required": True}, "age": {"type": "integer", "required": True}}},
        ),
        (  # a closed object and one with other names: together they would allow more than each does
            {"type": "object", "additionalProperties": False, "allOf": [{"properties": {"a": {"type": "string"}}}]},
            {"type": "object", "additionalProperties": False, "anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]},
        ),
        ({"type": "string", "allOf": [{"minLength": 1}, {"minLength": 2}]}, {"type": "string", "minLength": 1, "anyOf": [{"type": "string", "minLength": 2}]}),
        ({"type": "number", "minimum": 3, "exclusiveMinimum": True}, {"type": "number", "exclusiveMinimum": 3}),
        ({"type": "number", "maximum": 3, "exclusiveMaximum": False}, {"type": "number", "maximum": 3}),
        ({"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
        ({"type": "integer", "example": 1, "examples": [True, 1, 2]}, {"type": "integer", "examples": [1, True, 2]}),
        ({"type": "array", "items": {}}, {"type": "array"}),
        ({"type": "array", "items": True}, {"type": "array"}),
        ({"type": "object", "additionalProperties": {}}, {"type": "object", "additionalProperties": True}),
        (
            {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
        ),
        (True, ANYTHING),
        ({}, ANYTHING),
        ({"description": "Any value."}, {"description": "Any value.", **ANYTHING}),
        ({"description": "D", "title": "T", "type": "string"}, {"type": "string", "description": "D", "title": "T"}),
    ],
)  # fmt: skip
def test_every_spelling_becomes_the_one_of_the_catalog(schema: Any, expected: dict[str, Any]) -> None:
    """A schema that says nothing special has one description, in the format's spelling, and nothing is lost."""
    found, losses = described(schema)
    if any("anyOf" in branch or "minLength" in branch or "properties" in branch for branch in found.get("anyOf", [])):
        found = json.loads(json.dumps(found))
    assert (found, losses) == (expected, [])
    assert [*found][: len([key for key in ("type", "description") if key in found])] == [
        key for key in ("type", "description") if key in found
    ]
