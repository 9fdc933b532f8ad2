"""Tests of `importers.to_parameters`: any JSON Schema to an equivalent parameter."""

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from support.profile import example_settings
from toolcatalog import parameters
from toolcatalog.importers.to_parameters import convert, is_storable

ANYTHING = {
    "anyOf": [{"type": name} for name in ("string", "number", "boolean", "object", "array")],
    "nullable": True,
}
PERSON = {
    "type": "object",
    "title": "Person",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
DESCRIBED_PERSON = {
    "type": "object",
    "title": "Person",
    "properties": {"name": {"type": "string", "required": True}},
}


def described(
    schema: Any, root: Mapping[str, Any] | None = None, of: str = "input_parameters"
) -> tuple[Any, list[tuple[Any, ...]]]:
    """The description of the one parameter `x`, and the losses as tuples: their pointers from `x`
    on, and what is lost.
    """
    result, losses = convert({"type": "object", "properties": {"x": schema}, **(root or {})}, of)
    return result.get("x"), [("/".join(map(str, loss.pointer[2:])), loss.kind) for loss in losses]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"type": "string"}),
        ({"type": ["string"]}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        (
            {"type": ["null", "integer"], "default": None},
            {"type": "integer", "default": None, "nullable": True},
        ),
        (
            {
                "type": ["string", "array", "null"],
                "minLength": 1,
                "items": {"type": "string"},
                "title": "T",
            },
            {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string"}},
                ],
                "nullable": True,
                "title": "T",
            },
        ),
        ({"type": ["integer", "number"]}, {"type": "number"}),
        ({"type": "null"}, {"type": "string", "nullable": True, "enum": [None]}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string", "nullable": True}),
        (
            {"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 3}], "title": "T"},
            {"type": "string", "maxLength": 3, "nullable": True, "title": "T"},
        ),
        (
            {"anyOf": [{"type": "string"}, {"const": None}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": True},
        ),
        ({"anyOf": [{"type": "integer"}]}, {"type": "integer"}),
        (  # both descriptions are kept: the one of the branch stays in a branch
            {
                "anyOf": [{"type": "string", "description": "A word."}, {"type": "null"}],
                "description": "A word or nothing.",
            },
            {
                "description": "A word or nothing.",
                "nullable": True,
                "anyOf": [{"type": "string", "description": "A word."}],
            },
        ),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": [1, 2]}, {"type": "integer", "enum": [1, 2]}),
        ({"enum": ["a", None]}, {"type": "string", "enum": ["a", None], "nullable": True}),
        (
            {"enum": ["a", True]},
            {"enum": ["a", True], "anyOf": [{"type": "string"}, {"type": "boolean"}]},
        ),
        ({"allOf": [PERSON]}, DESCRIBED_PERSON),
        (
            {"allOf": [PERSON, {"properties": {"age": {"type": "integer"}}, "required": ["age"]}]},
            {
                **DESCRIBED_PERSON,
                "properties": {
                    "name": {"type": "string", "required": True},
                    "age": {"type": "integer", "required": True},
                },
            },
        ),
        (  # a closed object and one with other names: together they would allow more than each does
            {
                "type": "object",
                "additionalProperties": False,
                "allOf": [{"properties": {"a": {"type": "string"}}}],
            },
            {
                "type": "object",
                "additionalProperties": False,
                "anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}],
            },
        ),
        (
            {"type": "string", "allOf": [{"minLength": 1}, {"minLength": 2}]},
            {"type": "string", "minLength": 1, "anyOf": [{"type": "string", "minLength": 2}]},
        ),
        (
            {"type": "number", "minimum": 3, "exclusiveMinimum": True},
            {"type": "number", "exclusiveMinimum": 3},
        ),
        (
            {"type": "number", "maximum": 3, "exclusiveMaximum": False},
            {"type": "number", "maximum": 3},
        ),
        ({"type": "string", "x-nullable": True}, {"type": "string", "nullable": True}),
        ({"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
        (
            {"type": "integer", "example": 1, "examples": [True, 1, 2]},
            {"type": "integer", "examples": [1, True, 2]},
        ),
        ({"type": "array", "items": {}}, {"type": "array"}),
        ({"type": "array", "items": True}, {"type": "array"}),
        (
            {"type": "object", "additionalProperties": {}},
            {"type": "object", "additionalProperties": True},
        ),
        (
            {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
        ),
        (True, ANYTHING),
        ({}, ANYTHING),
        ({"description": "Any value."}, {"description": "Any value.", **ANYTHING}),
    ],
)
def test_equivalent_schemas_have_one_description(schema: Any, expected: dict[str, Any]) -> None:
    """Without losses."""
    result, losses = described(schema)
    if any(
        "anyOf" in branch or "minLength" in branch or "properties" in branch
        for branch in result.get("anyOf", [])
    ):
        result = json.loads(json.dumps(result))
    assert (result, losses) == (expected, [])
    assert [*result][: len([key for key in ("type", "description") if key in result])] == [
        key for key in ("type", "description") if key in result
    ]


@pytest.mark.parametrize(
    ("schema", "expected", "lost"),
    [
        (
            {"type": "string", "contentEncoding": "base64"},
            {"type": "string"},
            [("contentEncoding", "`contentEncoding`")],
        ),
        (
            {"type": "integer", "maximum": 2**64},
            {"type": "integer"},
            [("maximum", "`maximum` with a value that no catalog file can hold")],
        ),
        (
            {"type": "string", "enum": ["a", "\ud800"]},
            {"type": "string", "enum": ["a"]},
            [("enum", "a value of `enum` that no catalog file can hold")],
        ),
        (False, None, [("", "`false`: a value that must not be there")]),
        (5, None, [("", "something that is not a schema")]),
        (
            {"type": "string", "properties": []},
            {"type": "string"},
            [("properties", "`properties` of a form that is not read")],
        ),
        (
            {"type": "array", "items": [{}]},
            {"type": "array"},
            [("items", "`items` of a form that is not read")],
        ),
        ({"type": "file"}, ANYTHING, [("type", "`type` that JSON Schema does not have")]),
        (
            {"minLength": 1},
            {"type": "string", "minLength": 1},
            [("type", "no `type` in the source: taken from the other keywords")],
        ),
        (
            {"type": "object", "required": ["a"]},
            {"type": "object"},
            [("required", "a required property that is not described")],
        ),
        (
            {"type": "array", "items": {"type": "string", "required": True}},
            {"type": "array", "items": {"type": "string"}},
            [("items/required", "`required` of a value without a name")],
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "null", "description": "none"}]},
            {"type": "string", "nullable": True},
            [("anyOf", "`description` of a null branch")],
        ),
        (
            {"title": "Owner", "allOf": [PERSON]},
            {**DESCRIBED_PERSON, "title": "Owner"},
            [("title", "`title` of a schema that is part of one with another `title`")],
        ),
        ({"const": 1, "enum": [True]}, {"type": "boolean", "enum": [True]}, [("const", "`const`")]),
    ],
)
def test_unsupported_keywords_are_reported(
    schema: Any, expected: Any, lost: list[tuple[str, str]]
) -> None:
    """One loss for each; the rest stays."""
    assert described(schema) == (expected, lost)


def test_references_are_resolved() -> None:
    """Through other references and escaped names."""
    definitions = {"a/b": {"$ref": "#/definitions/Person"}}
    result, losses = described(
        {"$ref": "#/$defs/a~1b"}, {"$defs": definitions, "definitions": {"Person": PERSON}}
    )
    assert (result, losses) == (DESCRIBED_PERSON, [])


def test_recursive_schema_is_cut() -> None:
    """The inner one has only type, title and description."""
    node = {
        "type": "object",
        "title": "Node",
        "properties": {"next": {"$ref": "#/$defs/Node"}, "value": {"type": "string"}},
    }
    result, losses = described({"$ref": "#/$defs/Node"}, {"$defs": {"Node": node}})
    assert result == {
        "type": "object",
        "title": "Node",
        "properties": {"next": {"type": "object", "title": "Node"}, "value": {"type": "string"}},
    }
    assert losses == [("properties/next/$ref", "a schema within itself, cut where it comes again")]


def test_shared_definition_is_not_recursive() -> None:
    result, losses = described(
        {"allOf": [{"$ref": "#/$defs/P"}, {"properties": {"boss": {"$ref": "#/$defs/P"}}}]},
        {"$defs": {"P": PERSON}},
    )
    assert result["properties"]["boss"] == DESCRIBED_PERSON
    assert losses == []


@pytest.mark.parametrize(
    ("ref", "where"),
    [
        ("#/$defs/None", "nothing in its definition"),
        ("#/$defs/P/title", "nothing in its definition"),
        ("#/$defs/P/required/1", "nothing in its definition"),
        ("#anchor", "nothing in its definition"),
        ("", "nothing in its definition"),
        ("https://example.com/schema.json", "another document that cannot be read"),
        ("common.yaml#/P", "another document that cannot be read"),
    ],
)
def test_unresolvable_reference_is_reported(ref: str, where: str) -> None:
    """References out of the definition are never fetched; siblings of `$ref` stay."""
    result, losses = described({"$ref": ref, "type": "string"}, {"$defs": {"P": PERSON}})
    assert (result, losses) == ({"type": "string"}, [("$ref", f"a `$ref` that leads to {where}")])


def test_exponential_references_stop() -> None:
    """Thirty definitions that each use the next one twice would expand to a billion schemas."""
    definitions = {
        f"d{number}": {
            "type": "object",
            "properties": {side: {"$ref": f"#/$defs/d{number + 1}"} for side in "ab"},
        }
        for number in range(30)
    }
    _, losses = described({"allOf": [{"$ref": "#/$defs/d0"}]}, {"$defs": definitions})
    assert "nesting beyond 32 levels" in {what for _, what in losses}
    chained = {
        f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(30)
    }
    _, losses = described({"allOf": [{"$ref": "#/$defs/d0"}]}, {"$defs": chained})
    assert "what follows the first 20,000 schemas of a definition" in {what for _, what in losses}


def test_reference_may_contain_list_indexes() -> None:
    result, losses = described(
        {"$ref": "#/$defs/A/anyOf/1"}, {"$defs": {"A": {"anyOf": [{"type": "string"}, PERSON]}}}
    )
    assert (result, losses) == (DESCRIBED_PERSON, [])


def test_long_reference_chains_stop() -> None:
    """A chain of a hundred is not followed."""
    row = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(100)} | {
        "d100": PERSON
    }
    assert described({"$ref": "#/$defs/d60"}, {"$defs": row}) == (DESCRIBED_PERSON, [])
    assert described({"$ref": "#/$defs/d0"}, {"$defs": row})[1] == [
        ("$ref", "what is more than 50 references away")
    ]


def test_values_count_towards_the_limit() -> None:
    """A list of 100,000 choices is not copied to a thousand places."""
    choices = {"type": "string", "enum": [f"choice {number}" for number in range(50_000)]}
    properties = {f"p{number}": {"$ref": "#/$defs/A"} for number in range(1000)}
    result, losses = convert(
        {"properties": properties, "$defs": {"A": choices}}, "input_parameters"
    )
    assert [name for name in result if "enum" in result[name]] == ["p0"]
    assert {loss.kind for loss in losses} == {
        "what follows the first 20,000 schemas of a definition"
    }


def test_merged_lists_count_towards_the_limit() -> None:
    """A list of choices is compared with that of each part."""
    choices = [f"choice {number}" for number in range(5_000)]
    parts: list[Any] = [{"type": "string", "enum": choices}, *[{"enum": ["a"]}] * 1_000]
    _, losses = convert({"properties": {"p": {"allOf": parts}}}, "input_parameters")
    assert "what follows the first 20,000 schemas of a definition" in {loss.kind for loss in losses}


def test_very_long_reference_is_not_followed() -> None:
    """It would be parsed again wherever it is used."""
    name = "a" * 20_000
    _, losses = described({"$ref": f"#/$defs/{name}"}, {"$defs": {name: PERSON}})
    assert losses


def test_nesting_is_cut_at_the_depth_of_a_file() -> None:
    schema: dict[str, Any] = {"type": "string", "examples": [[[["deep"]]]]}
    for _ in range(40):
        schema = {"type": "object", "properties": {"x": schema}}
    result, losses = convert(schema, "input_parameters")
    assert is_storable({"input_parameters": result}, 1)
    assert [loss.kind for loss in losses] == ["nesting beyond 32 levels"]
    assert losses[0].pointer == ("input_parameters", *["x", "properties"] * 15, "x")
    assert not is_storable({"input_parameters": {"x": {"type": "object", "properties": result}}}, 1)


def test_required_of_outputs_is_reported() -> None:
    """At every level, one loss for each list."""
    result, losses = described(PERSON, {"required": ["x"]}, "output_parameters")
    assert result == {
        "type": "object",
        "title": "Person",
        "properties": {"name": {"type": "string"}},
    }
    assert [what for _, what in losses] == ["`required` of outputs"] * 2


def test_root_keeps_only_properties() -> None:
    """And required names, also from references and `allOf`."""
    root = {
        "title": "Request",
        "description": "D",
        "$ref": "#/$defs/A",
        "allOf": [{"title": "B", "properties": {"b": {"type": "string"}}}],
        "required": ["b", "c"],
        "properties": {"o": {"type": "integer"}},
        "$defs": {"A": {"title": "A", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
    }
    result, losses = convert(root, "input_parameters")
    required = {"type": "string", "required": True}
    assert result == {"o": {"type": "integer"}, "a": required, "b": required}
    assert {(loss.pointer[1], loss.kind) for loss in losses} == {
        ("title", "`title` of a schema that is part of one with another `title`"),
        ("title", "`title` of a whole parameters object"),
        ("description", "`description` of a whole parameters object"),
        ("required", "a required property that is not described"),
    }


def test_conflicting_parts_of_the_root_are_reported() -> None:
    """The first description of a parameter counts; other parameters of all parts stay."""
    text, number = {"type": "string"}, {"type": "integer"}
    result, losses = convert(
        {"allOf": [{"properties": {"a": text}}, {"properties": {"a": number, "b": number}}]},
        "input_parameters",
    )
    assert result == {"a": text, "b": number}
    assert [(loss.pointer, loss.kind) for loss in losses] == [
        (
            ("input_parameters", "properties"),
            "`properties` of a schema that is part of one with another `properties`",
        )
    ]


def test_api_parameters_are_read() -> None:
    """A map of names to descriptions is served the same again."""
    described_by_author: dict[str, dict[str, Any]] = {
        "a": {"type": "string", "description": "A.", "required": True, "examples": ["x"]},
        "type": {
            "type": "object",
            "properties": {
                "c": {
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                    "required": True,
                    "nullable": True,
                }
            },
        },
    }
    served = parameters.to_served_inputs(described_by_author)
    result, losses = convert(served, "input_parameters")
    assert losses == []
    assert parameters.to_served_inputs(result) == served
    assert "type" not in result["type"]["properties"]["c"]


TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"]
INSTANCES = st.sampled_from(
    [
        None,
        True,
        1,
        2.5,
        "a",
        "bb",
        [],
        ["a"],
        [1],
        {},
        {"a": "a"},
        {"a": 1},
        {"b": None},
        {"a": {"a": "a"}},
    ]
)


def _schema(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": st.one_of(
            st.sampled_from(TYPES),
            st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        ),
        "anyOf": some,
        "oneOf": some,
        "allOf": some,
        "$ref": st.just("#/$defs/A"),
        "const": INSTANCES,
        "enum": st.lists(INSTANCES, min_size=1, max_size=3, unique_by=json.dumps),
        "properties": st.dictionaries(st.sampled_from("ab"), inner, min_size=1),
        "required": st.lists(st.sampled_from("ab"), max_size=1),
        "items": inner,
        "additionalProperties": st.one_of(st.booleans(), inner),
        "minimum": st.integers(1, 2),
        "minLength": st.integers(1, 2),
        "maxItems": st.integers(0, 1),
        "title": st.sampled_from("xy"),
        "description": st.sampled_from("xy"),
    }
    names = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=4, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in chosen})
    )


SCHEMAS = st.recursive(
    st.builds(lambda name: {"type": name}, st.sampled_from(TYPES)), _schema, max_leaves=6
)


@example_settings(133, *HealthCheck)
@given(
    SCHEMAS, SCHEMAS.filter(lambda schema: "$ref" not in json.dumps(schema)), INSTANCES, INSTANCES
)
def test_imported_schema_accepts_the_same_values(
    schema: Any, target: Any, one: Any, other: Any
) -> None:
    """Unless a loss is reported; null may be accepted in more places."""
    result, losses = described(schema, {"$defs": {"A": target}})
    assume(result and all(what.startswith("`title`") for _, what in losses))
    before = jsonschema_rs.Draft202012Validator({**schema, "$defs": {"A": target}})
    after = jsonschema_rs.Draft202012Validator(parameters.to_value_schema(result))
    for value in (one, other):
        if "null" in json.dumps(value):
            assert after.is_valid(value) or not before.is_valid(value)
        else:
            assert after.is_valid(value) == before.is_valid(value)


def test_required_flag_in_a_merged_schema() -> None:
    """Draft 3 has a flag there, and later drafts a list."""
    parts = [{"type": "string", "required": True}, {"enum": ["a"], "required": True}]
    result, _ = convert({"properties": {"p": {"allOf": parts}}}, "input_parameters")
    assert result["p"]["enum"] == ["a"]
