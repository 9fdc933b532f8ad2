"""JSON Schema normalization: one table for each pass."""

from typing import Any

import pytest

from toolcatalog.importers import json_schema
from toolcatalog.importers.json_schema import Normalizer, Schema

POINTER = ("input_parameters", "x")


def losses(normalizer: Normalizer) -> list[str]:
    """What was left out."""
    return [loss.kind for loss in normalizer.losses]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": 1}, {"enum": [1]}),
        ({"const": 1, "enum": [1, 2]}, {"enum": [1]}),
        ({"const": True, "enum": [1]}, {"const": True, "enum": [1]}),
        ({"example": 1, "examples": [2, 1]}, {"examples": [1, 2]}),
        ({"x-nullable": True}, {"nullable": True}),
        ({"nullable": False}, {}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
    ],
)
def test_rename_old_keywords(schema: Schema, expected: Schema) -> None:
    """To current ones."""
    assert json_schema.rename_old_keywords(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected", "left_out"),
    [
        (
            {"type": "string", "enum": "a"},
            {"type": "string"},
            ["`enum` of a form that is not read"],
        ),
        (
            {"type": 5, "items": 3},
            {},
            ["`type` of a form that is not read", "`items` of a form that is not read"],
        ),
        ({"type": ["string"]}, {"type": ["string"]}, []),
    ],
)
def test_drop_invalid_keywords(schema: Schema, expected: Schema, left_out: list[str]) -> None:
    """With values of a wrong type, and report them."""
    normalizer = Normalizer({})
    assert normalizer.drop_invalid_keywords(schema, POINTER) == expected
    assert losses(normalizer) == left_out


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["integer", "number"]}, {"type": "number"}),
        ({"type": ["null"]}, {"type": "null"}),
        ({"title": "A"}, {"title": "A"}),
        (
            {"type": ["string", "array"], "items": {}, "minLength": 1, "title": "A"},
            {
                "title": "A",
                "anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {}}],
            },
        ),
    ],
)
def test_normalize_types(schema: Schema, expected: Schema) -> None:
    """A list becomes one type, `nullable`, or branches."""
    assert Normalizer({}).normalize_types(schema, POINTER) == expected


def test_unknown_types_are_reported() -> None:
    normalizer = Normalizer({})
    assert normalizer.normalize_types({"type": "file"}, POINTER) == {}
    assert losses(normalizer) == ["`type` that JSON Schema does not have"]


ROOT: dict[str, Any] = {"a": {"type": "string"}, "loop": {"$ref": "#/loop", "title": "Loop"}}


@pytest.mark.parametrize(
    ("schema", "own", "parts"),
    [
        ({"$ref": "#/a", "title": "A"}, {"title": "A"}, [{"type": "string"}]),
        ({"allOf": [{"type": "string"}, True], "$defs": {}}, {}, [{"type": "string"}, True]),
        ({"type": "string"}, {"type": "string"}, []),
    ],
)
def test_resolve_references(schema: Schema, own: Schema, parts: list[Any]) -> None:
    """`$ref` and `allOf` become parts to merge."""
    result, results = Normalizer(ROOT).resolve_references(schema, POINTER, ())
    assert (result, [part for part, _ in results]) == (own, parts)


def test_recursive_reference_is_cut() -> None:
    """The rest names the schema."""
    normalizer = Normalizer(ROOT)
    part, refs = normalizer.resolve_reference("#/loop", POINTER, ("#/loop",))
    assert (part, refs) == ({"title": "Loop"}, ("#/loop",))
    assert losses(normalizer) == ["a schema within itself, cut where it comes again"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"oneOf": [{"type": "null"}]}, {"type": "null"}),
        (
            {"anyOf": [{"type": "string"}, {"type": "number"}, {"enum": [None]}]},
            {"anyOf": [{"type": "string"}, {"type": "number"}], "nullable": True},
        ),
    ],
)
def test_split_null(schema: Schema, expected: Schema) -> None:
    """`nullable` replaces null branches, and a single branch is merged."""
    assert Normalizer({}).split_null(schema, POINTER) == expected


@pytest.mark.parametrize(
    ("own", "part", "expected"),
    [
        ({"title": "A"}, {"type": "string"}, {"title": "A", "type": "string"}),
        ({"required": ["a"]}, {"required": ["b", "a"]}, {"required": ["a", "b"]}),
        ({"type": "string"}, {"type": "number"}, {"type": "string", "anyOf": [{"type": "number"}]}),
        (
            {"type": "string", "nullable": True},
            {"type": "string"},
            {"type": "string", "nullable": True},
        ),
        ({"type": "string"}, {"type": "string", "nullable": True}, {"type": "string"}),
    ],
)
def test_merge(own: Schema, part: Schema, expected: Schema) -> None:
    """Both must match; a contradiction becomes a branch."""
    assert Normalizer({}).merge(own, part, POINTER) == expected
