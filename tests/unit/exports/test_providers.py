"""Tests of `exports.providers`, with the types of the providers' SDKs and their known limits."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from pydantic import TypeAdapter

from support.command import run_successfully
from support.paths import SHARED, SHIPPED_CATALOG
from support.profile import example_settings
from support.reference_model import ReferenceModel
from support.tool_samples import TOOL, tools
from toolcatalog.exports import definitions, providers
from toolcatalog.parameters import to_served_inputs
from toolcatalog.snapshot.format import Tool, tool_from_document

WIRE = SHARED / "data" / "wire-tools.json"
LONG = "A" * 200
NAMES = {
    "openai-responses": "[a-zA-Z0-9_-]{1,64}",
    "gemini": "[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",
    "bedrock": "[a-zA-Z0-9_-]{1,64}",
    "openai": "[a-zA-Z0-9_-]{1,64}",
    "anthropic": "[a-zA-Z0-9_-]{1,64}",
    "mcp": "[A-Za-z0-9_.-]{1,128}",
}


@cache
def types(output_format: str) -> tuple[TypeAdapter[Any], set[str]]:
    """What the provider's SDK takes for one tool, and the names of its fields; loaded when asked
    for, it takes seconds.
    """
    if output_format == "openai":
        from openai.types.chat import ChatCompletionFunctionToolParam  # noqa: PLC0415

        return TypeAdapter(ChatCompletionFunctionToolParam), {
            *ChatCompletionFunctionToolParam.__annotations__
        }
    if output_format == "anthropic":
        from anthropic.types import ToolParam  # noqa: PLC0415

        return TypeAdapter(ToolParam), {*ToolParam.__annotations__}
    from mcp.types import Tool as Listed  # noqa: PLC0415

    return TypeAdapter(Listed), {field.alias or name for name, field in Listed.model_fields.items()}


def hold(tool: Tool) -> list[str]:
    """See that no provider would refuse a definition of this tool; the forms in which it has
    none.
    """
    result = providers.fit_definitions(tool)
    assert [*result] == [*definitions.FORMATS]
    for output_format, (definition, _) in result.items():
        if definition is None:
            continue
        if output_format == "json-schema":
            jsonschema_rs.meta.validate(definition)
            assert (definition["$id"], definition["type"]) == (
                f"{tool.slug}@{tool.version}",
                "object",
            )
            continue
        adapter, fields = types(output_format)
        adapter.validate_python(definition)
        assert {*definition} <= fields
        text = definition["function"] if output_format == "openai" else definition
        schema = text[
            {"openai": "parameters", "anthropic": "input_schema", "mcp": "inputSchema"}[
                output_format
            ]
        ]
        hold_form(output_format, text, schema)
    return [output_format for output_format, item in result.items() if item.definition is None]


def hold_form(output_format: str, fields: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    assert re.fullmatch(NAMES[output_format], fields["name"])
    assert fields.get("description", "nothing") != ""
    jsonschema_rs.meta.validate({**schema})  # by Draft 2020-12, where a schema names none
    assert schema["type"] == "object"
    # no anyOf, oneOf, allOf, enum or not at the top
    assert {*schema} <= {"type", "properties", "required"}
    assert {*schema.get("required", ())} <= {*schema["properties"]}
    if output_format == "openai":
        assert len(fields.get("description", "")) <= 1024
        assert all(
            "items" in inner
            for inner in inner_schemas(schema)
            if inner.get("type") in ("array", ["array", "null"])
        )
    if output_format == "anthropic":
        assert all(re.fullmatch("[a-zA-Z0-9_.-]{1,64}", name) for name in schema["properties"])
        assert "$ref" not in {key for inner in inner_schemas(schema) for key in inner}


def inner_schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """A schema and all within it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for inner in (
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", ()),
        *schema.get("oneOf", ()),
    ):
        yield from inner_schemas(inner)
    for key in ("items", "additionalProperties"):
        yield from inner_schemas(schema.get(key))


# Formats of single definitions


def check_single_formats(tool: Tool) -> list[str]:
    """Check the definitions that only `export` makes; return the formats that have none."""
    missing = []
    for output_format in ("openai-responses", "gemini", "bedrock"):
        definition, notes = providers.fit_definition(tool, output_format)
        if definition is None:
            assert notes
            missing.append(output_format)
        elif output_format == "openai-responses":
            check_responses(definition)
        elif output_format == "gemini":
            check_gemini(definition)
        else:
            check_bedrock(definition)
    return missing


def check_responses(definition: Mapping[str, Any]) -> None:
    from openai.types.responses import FunctionToolParam  # noqa: PLC0415 - takes a second

    TypeAdapter(FunctionToolParam).validate_python(definition)
    assert definition["strict"] is False
    hold_form("openai-responses", definition, definition["parameters"])


def check_gemini(definition: Mapping[str, Any]) -> None:
    """The SDK's own model, which forbids unknown fields, accepts it."""
    from google.genai.types import FunctionDeclaration  # noqa: PLC0415 - takes seconds

    assert re.fullmatch(NAMES["gemini"], definition["name"])
    FunctionDeclaration.model_validate(definition)
    for schema in inner_schemas(definition.get("parameters")):
        assert schema.get("type") != "array" or schema["items"]
        assert "type" in schema or "anyOf" in schema
        assert all(isinstance(value, str) for value in schema.get("enum", ()))


@cache
def bedrock_shape() -> Any:
    """The shape of a tool in the service model of the AWS SDK."""
    from botocore.session import (  # noqa: PLC0415 - takes a second
        get_session,
    )

    return get_session().get_service_model("bedrock-runtime").shape_for("Tool")


def check_bedrock(definition: Mapping[str, Any]) -> None:
    """The AWS SDK's own validator accepts it."""
    from botocore.validate import (  # noqa: PLC0415 - takes a second
        ParamValidator,
    )

    report = ParamValidator().validate(definition, bedrock_shape())
    assert not report.has_errors(), report.generate_report()
    specification = definition["toolSpec"]
    hold_form("bedrock", specification, specification["inputSchema"]["json"])


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


# Real tools


def test_shipped_tools_are_complete_for_every_provider() -> None:
    """Nothing is left out, cut or renamed."""
    shipped = list_versions(SHIPPED_CATALOG)
    assert len(shipped) >= 190
    assert {tool.slug: remaining for tool in shipped if (remaining := hold(tool))} == {}
    assert [tool.slug for tool in shipped if check_single_formats(tool)] == []
    assert [
        note
        for tool in shipped
        for result in providers.fit_definitions(tool).values()
        for note in result.notes
    ] == []


def test_real_tools_are_exported_or_left_out(tmp_path: Path) -> None:
    """Of 930 tools, two have an argument that Anthropic refuses, and four a too long name for two
    providers.
    """
    if not WIRE.exists():
        pytest.skip("the real tool definitions lie outside the repository, and not here")
    run_successfully("import", "wire", WIRE, "--catalog", tmp_path / "catalog")
    real = list_versions(tmp_path / "catalog")
    assert len(real) == 930
    remaining = {tool.slug: remaining for tool in real if (remaining := hold(tool))}
    assert remaining == {
        "GITHUB_UPDATE_A_REPOSITORY": ["anthropic"],
        "GITHUB_UPDATE_BRANCH_PROTECTION": ["anthropic"],
    }
    rejected = {tool.slug: missing for tool in real if (missing := check_single_formats(tool))}
    assert {*remaining} <= {*rejected}
    assert {form for missing in rejected.values() for form in missing} == {"gemini"}
    notes = [
        note
        for tool in real
        for result in providers.fit_definitions(tool).values()
        for note in result.notes
    ]
    assert (
        sorted(note.split(":")[0].split(" ", 1)[1].split(" of ")[0] for note in notes)
        == ["is left out"] * 2 + ["is the name"] * 8
    )


def list_versions(catalog: Path) -> list[Tool]:
    """Return every version of every tool of a catalog."""
    return [
        tool_from_document(json.loads(entry.body), None)
        for entries in ReferenceModel(catalog).tools.values()
        for entry in entries
    ]


@example_settings(33)
@given(tools())
def test_any_tool_is_exported_or_left_out(tool: Tool) -> None:
    """With any valid names, descriptions and parameters."""
    assert {*check_single_formats(tool)} <= {"gemini"}
    for output_format in hold(tool):
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
