"""Checks of exported definitions, with the types of the providers' SDKs and their known limits."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema_rs
from pydantic import TypeAdapter

from toolcatalog.exports import definitions, providers
from toolcatalog.snapshot.format import Tool

NAMES = {
    "openai-responses": "[a-zA-Z0-9_-]{1,64}",
    "gemini": "[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",
    "bedrock": "[a-zA-Z0-9_-]{1,64}",
    "openai": "[a-zA-Z0-9_-]{1,64}",
    "anthropic": "[a-zA-Z0-9_-]{1,64}",
    "mcp": "[A-Za-z0-9_.-]{1,128}",
}


@cache
def load_sdk_type(output_format: str) -> tuple[TypeAdapter[Any], set[str]]:
    """Return the type of a tool in the provider's SDK, and the names of its fields.

    To import an SDK takes seconds.
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


def check_definitions(tool: Tool) -> list[str]:
    """Check that no provider would refuse a definition of this tool; return the formats that have
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
        adapter, fields = load_sdk_type(output_format)
        adapter.validate_python(definition)
        assert {*definition} <= fields
        text = definition["function"] if output_format == "openai" else definition
        schema = text[
            {"openai": "parameters", "anthropic": "input_schema", "mcp": "inputSchema"}[
                output_format
            ]
        ]
        check_form(output_format, text, schema)
    return [output_format for output_format, item in result.items() if item.definition is None]


def check_form(output_format: str, fields: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
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
    """Yield a schema and all within it."""
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
    check_form("openai-responses", definition, definition["parameters"])


def check_gemini(definition: Mapping[str, Any]) -> None:
    """Check it with the SDK's own model, which forbids unknown fields."""
    from google.genai.types import FunctionDeclaration  # noqa: PLC0415 - takes seconds

    assert re.fullmatch(NAMES["gemini"], definition["name"])
    FunctionDeclaration.model_validate(definition)
    for schema in inner_schemas(definition.get("parameters")):
        assert schema.get("type") != "array" or schema["items"]
        assert "type" in schema or "anyOf" in schema
        assert all(isinstance(value, str) for value in schema.get("enum", ()))


@cache
def bedrock_shape() -> Any:
    """Return the shape of a tool in the service model of the AWS SDK."""
    from botocore.session import (  # noqa: PLC0415 - takes a second
        get_session,
    )

    return get_session().get_service_model("bedrock-runtime").shape_for("Tool")


def check_bedrock(definition: Mapping[str, Any]) -> None:
    """Check it with the AWS SDK's own validator."""
    from botocore.validate import (  # noqa: PLC0415 - takes a second
        ParamValidator,
    )

    report = ParamValidator().validate(definition, bedrock_shape())
    assert not report.has_errors(), report.generate_report()
    specification = definition["toolSpec"]
    check_form("bedrock", specification, specification["inputSchema"]["json"])
