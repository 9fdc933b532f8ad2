"""Tests of `exports.providers`."""

import hashlib
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from support.profile import example_settings
from support.provider_checks import check_definitions, check_gemini, check_single_formats
from support.tool_samples import TOOL, tools
from toolcatalog.exports import definitions, providers
from toolcatalog.parameters import to_served_inputs
from toolcatalog.snapshot.format import Tool

LONG = "A" * 200


@pytest.mark.parametrize(
    ("parameter", "schema", "losses"),
    [
        ({"type": "string", "nullable": True}, {"type": "string", "nullable": True}, ""),
        (
            {"type": "integer", "enum": [1, 2], "multipleOf": 1},
            {"type": "integer"},
            "enum, multipleOf",
        ),
        (
            {"type": "string", "enum": ["a", "b"], "format": "uuid", "examples": ["a"]},
            {"type": "string", "enum": ["a", "b"], "example": "a"},
            "",
        ),
        (
            {"type": "string", "format": "date-time"},
            {"type": "string", "format": "date-time"},
            "",
        ),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}, "items"),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object"},
            "additionalProperties",
        ),
        (
            {"type": "string", "oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "oneOf",
        ),
        (
            {"type": "number", "exclusiveMinimum": 0, "maximum": 9},
            {"type": "number", "maximum": 9},
            "exclusiveMinimum",
        ),
    ],
)
def test_gemini_schema(parameter: dict[str, Any], schema: dict[str, Any], losses: str) -> None:
    """Unsupported keywords are removed and reported."""
    tool = replace(TOOL, input_parameters={"a": {**parameter, "description": "", "required": True}})
    result = providers.fit_definition(tool, "gemini")
    assert result.definition
    assert result.definition["parameters"] == {
        "type": "object",
        "properties": {"a": schema},
        "required": ["a"],
    }
    note = f"{tool.slug} loses {losses}: gemini's schema cannot express it."
    assert result.notes == ((note,) if losses else ())
    check_gemini(result.definition)


def test_gemini_names() -> None:
    """A tool with a rejected name or argument is left out with a reason."""
    for tool, reason in (
        (replace(TOOL, slug="3D_PRINT"), "starts with a digit"),
        (replace(TOOL, input_parameters={"a.b": {"type": "string"}}), "'a.b'"),
    ):
        definition, (note,) = providers.fit_definition(tool, "gemini")
        assert definition is None
        assert reason in note
    empty = providers.fit_definition(replace(TOOL, input_parameters={}), "gemini").definition
    assert empty
    assert "parameters" not in empty


def test_long_names_are_shortened_in_place() -> None:
    """Where the definition has the name."""
    tool = replace(TOOL, slug=LONG)
    for output_format, path in (("openai-responses", ()), ("bedrock", ("toolSpec",))):
        definition: Any = providers.fit_definition(tool, output_format).definition
        for key in path:
            definition = definition[key]
        assert len(definition["name"]) == 64
    assert check_single_formats(tool) == []


@example_settings(33)
@given(tools())
def test_any_tool_is_exported_or_left_out(tool: Tool) -> None:
    """With any valid names, descriptions and parameters."""
    assert {*check_single_formats(tool)} <= {"gemini"}
    for output_format in check_definitions(tool):
        assert output_format == "anthropic"
        assert not all(re.fullmatch("[a-zA-Z0-9_.-]{1,64}", name) for name in tool.input_parameters)


# What is changed to fit


def test_fitting_tool_is_not_changed() -> None:
    """A bare schema gets the name as title."""
    variants = definitions.to_all_formats(TOOL)
    variants["json-schema"] = {
        "$schema": definitions.JSON_SCHEMA_DIALECT,
        "$id": "MAIL_SEND@20250101_00",
        **variants["json-schema"],
    }
    assert {
        output_format: result.definition
        for output_format, result in providers.fit_definitions(TOOL).items()
    } == variants
    assert {result.notes for result in providers.fit_definitions(TOOL).values()} == {()}


@pytest.mark.parametrize(
    ("output_format", "maximum"), [("openai", 64), ("anthropic", 64), ("mcp", 128)]
)
def test_too_long_name_is_shortened(output_format: str, maximum: int) -> None:
    """Deterministic, unique, and with a note."""
    (definition, notes) = providers.fit_definitions(replace(TOOL, slug=LONG))[output_format]
    assert definition is not None
    name = definition["function"]["name"] if output_format == "openai" else definition["name"]
    assert (
        name
        == providers.provider_name(LONG, output_format)
        == f"{'A' * (maximum - 17)}_{hashlib.sha256(LONG.encode()).hexdigest()[:16]}"
    )
    assert providers.provider_name(LONG[:-1] + "B", output_format) != name
    assert notes == (
        f"{name} is the name of {LONG}: {output_format} takes names of {maximum} characters.",
    )
    assert providers.provider_name("A" * maximum, output_format) == "A" * maximum


def test_bare_schema_has_the_whole_slug() -> None:
    (definition, notes) = providers.fit_definitions(replace(TOOL, slug=LONG))["json-schema"]
    assert (definition or {})["$id"] == f"{LONG}@20250101_00"
    assert notes == ()


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1021 + "..."),
        ("word " * 300, "word " * 203 + "word..."),
        ("ab " + "x" * 2000, "ab..."),
    ],
)
def test_openai_description_is_cut(text: str, cut: str) -> None:
    """At a word if possible; other formats have all of it."""
    result = providers.fit_definitions(replace(TOOL, description=text))
    definitions = {output_format: item.definition or {} for output_format, item in result.items()}
    fields = {
        output_format: definition.get("function", definition)["description"]
        for output_format, definition in definitions.items()
    }
    assert fields == {"openai": cut, "anthropic": text, "mcp": text, "json-schema": text}
    assert len(result["openai"].notes) == (cut != text)


def test_empty_description_is_left_out() -> None:
    result = providers.fit_definitions(replace(TOOL, description=""))
    for output_format in ("anthropic", "mcp"):
        assert "description" not in (result[output_format].definition or {"description": ""})
    assert "description" not in (result["openai"].definition or {})["function"]


@pytest.mark.parametrize("name", ["$top", "filter[id]", "x" * 65, "a b", "é", ""])
def test_anthropic_refuses_invalid_argument_names(name: str) -> None:
    result = providers.fit_definitions(
        replace(TOOL, input_parameters={name: {"type": "string", "required": True}})
    )
    assert result["anthropic"] == (
        None,
        (f"MAIL_SEND is left out: anthropic refuses the name of its argument {name!r}.",),
    )
    assert all(
        result[output_format].definition for output_format in ("openai", "mcp", "json-schema")
    )


def test_list_of_anything_has_items() -> None:
    """OpenAI requires `items`, at any depth."""
    authored: dict[str, Any] = {
        "a": {"type": "array", "nullable": True},
        "b": {"type": "object", "properties": {"c": {"type": "array"}}},
    }
    schema = definitions.input_schema(to_served_inputs(authored))
    assert schema["properties"]["a"] == {"type": ["array", "null"], "items": {}}
    assert schema["properties"]["b"]["properties"]["c"] == {"type": "array", "items": {}}


# The array


def test_list_has_a_line_per_tool() -> None:
    """So that diffs are small."""
    assert providers.render_json_array([]) == b"[]\n"
    assert providers.render_json_array([b"1", b"2"]) == b"[\n1,\n2\n]\n"
