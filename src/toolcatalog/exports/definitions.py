"""Tool definitions for other programs: function definitions, MCP tools, JSON Schema, examples.

The catalog's form of a parameter differs from JSON Schema (2020-12) in two ways: `required` is a
boolean on the parameter, and `nullable` stands for a second type. Here both are converted to the
standard form; descriptions, examples, defaults and all constraints are kept. An array without
`items` gets `items: {}`: this means the same in JSON Schema, and OpenAI rejects an array without
`items`.
"""

import json
import shlex
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from toolcatalog.encoding import dump_json
from toolcatalog.exports.gemini_schema import to_gemini_schema
from toolcatalog.parameters import BRANCHES, type_of
from toolcatalog.snapshot.format import Tool

JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# tags that are annotations in MCP
HINT_TAGS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
HINT_IS_FALSE = ":false"  # ends the tag of a hint that is stated as false
PARTIAL_HINTS = "partialHints"  # tag: only the hints with a tag are stated
KEY_VARIABLE = "TOOLCATALOG_KEY"  # environment variable with the API key in snippets
URL_VARIABLE = "TOOLCATALOG_URL"  # environment variable with the API address in snippets
FORMATS = ("openai", "anthropic", "mcp", "json-schema")

EXPORT_FORMATS = (*FORMATS[:2], "openai-responses", "gemini", "bedrock", *FORMATS[2:])
# Anthropic's server tool that finds deferred tools by their descriptions
TOOL_SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}

Schema = dict[str, Any]
ServedParameter = Mapping[str, Any]

_NESTED_KEYS = frozenset((*BRANCHES, "items", "additionalProperties"))
_OMITTED_KEYS = frozenset(("required", "nullable"))
# of a parameter that needs more than the removal of `required`
_CONVERTED_KEYS = _NESTED_KEYS.union(("properties", "nullable"))
_ANNOTATIONS = ("title", "description", "examples", "default")


class Snippet(NamedTuple):
    """A text to copy.

    `name` can be used in an HTML id, `title` is for people, and `language` selects the
    highlighting.
    """

    name: str
    title: str
    language: str
    text: str


class Definition(NamedTuple):
    """A tool in the form of a provider, or a call of it; `name` and `title` as in `Snippet`."""

    name: str
    title: str
    value: dict[str, Any]


# Schemas


def input_schema(parameters: Mapping[str, ServedParameter]) -> Schema:
    """Return the JSON Schema of the arguments that served inputs describe.

    It is an object, with `required` as a list if anything is required.
    """
    return {"type": "object", **_properties_schema(parameters)}


def output_schema(parameters: Mapping[str, ServedParameter]) -> Schema:
    """Return the JSON Schema of the result that served outputs describe.

    It is an object that may lack any of its properties.
    """
    return {"type": "object", **_properties_schema(parameters)}


def _properties_schema(parameters: Mapping[str, ServedParameter]) -> Schema:
    required = [name for name, description in parameters.items() if description.get("required")]
    properties = {name: _parameter_schema(description) for name, description in parameters.items()}
    return {"properties": properties, **({"required": required} if required else {})}


def _parameter_schema(description: ServedParameter) -> Schema:
    if _CONVERTED_KEYS.isdisjoint(description) and description.get("description"):
        # most parameters are the same in JSON Schema
        schema = dict(description)
        schema.pop("required", None)
        if schema.get("type") == "array":
            schema["items"] = {}
        return schema
    schema = {}
    for key, value in description.items():
        if key == "properties":
            schema |= _properties_schema(value)
        elif key in _NESTED_KEYS:
            schema[key] = _nested_schema(key, value)
        elif key not in _OMITTED_KEYS and not (key == "description" and value == ""):
            schema[key] = value
    if _has_derived_type(description):
        del schema["type"]
    if schema.get("type") == "array":
        schema.setdefault("items", {})
    return _make_nullable(schema) if description.get("nullable") else schema


def _nested_schema(key: str, value: Any) -> Any:
    if key in BRANCHES:
        return [_parameter_schema(branch) for branch in value]
    return (
        _parameter_schema(value)
        if key in ("items", "additionalProperties") and isinstance(value, Mapping)
        else value
    )


def _has_derived_type(description: ServedParameter) -> bool:
    """Return whether the type is only derived from the branches.

    If the branches have different types, it is that of the first and would reject the others.
    """
    if not (description.get("anyOf") or description.get("oneOf")):
        return False
    without_type = {key: value for key, value in description.items() if key != "type"}
    return "type" in description and type_of(without_type) == description["type"]


def _make_nullable(schema: Schema) -> Schema:
    """Return a schema that also accepts null.

    Exactly one branch of `oneOf` may match, and one may accept null already, so a schema with
    `oneOf` is wrapped as a whole.
    """
    if "oneOf" in schema:
        annotations = {key: schema[key] for key in _ANNOTATIONS if key in schema}
        return {
            **annotations,
            "anyOf": [
                {key: value for key, value in schema.items() if key not in annotations},
                {"type": "null"},
            ],
        }
    nullable: Schema = {"type": [schema["type"], "null"]} if "type" in schema else {}
    if "enum" in schema and None not in schema["enum"]:
        nullable["enum"] = [*schema["enum"], None]
    if "anyOf" in schema:
        nullable["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    return {**schema, **nullable}


# Definitions


# The first four take the tool's input schema, for callers that already have it.


def to_openai(tool: Tool, inputs: Schema | None = None) -> dict[str, Any]:
    """Return the function definition for OpenAI's chat API.

    The name is the unchanged slug, which may be longer than the provider accepts.
    """
    return {
        "type": "function",
        "function": {
            "name": tool.slug,
            "description": tool.description,
            "parameters": inputs or input_schema(tool.input_parameters),
        },
    }


def to_anthropic(tool: Tool, inputs: Schema | None = None) -> dict[str, Any]:
    """Return the tool definition for Anthropic's messages API."""
    return {
        "name": tool.slug,
        "description": tool.description,
        "input_schema": inputs or input_schema(tool.input_parameters),
    }


def to_mcp(tool: Tool, inputs: Schema | None = None) -> dict[str, Any]:
    """Return the tool as an MCP server lists it.

    `outputSchema` and `annotations` are present only if the catalog has data for them.
    """
    definition = {
        "name": tool.slug,
        "title": tool.name,
        "description": tool.description,
        "inputSchema": inputs or input_schema(tool.input_parameters),
    }
    if tool.output_parameters:
        definition["outputSchema"] = output_schema(tool.output_parameters)
    if hints := hint_annotations(tool.tags):
        definition["annotations"] = hints
    return definition


def to_json_schema(tool: Tool, inputs: Schema | None = None) -> Schema:
    """Return the tool's arguments as a standalone JSON Schema."""
    return {
        "$schema": JSON_SCHEMA_DIALECT,
        "title": tool.name,
        "description": tool.description,
        **(inputs or input_schema(tool.input_parameters)),
    }


def to_openai_responses(tool: Tool) -> dict[str, Any]:
    """Return the function tool for OpenAI's Responses API."""
    function = to_openai(tool)["function"]
    return {"type": "function", **function, "strict": False}


def to_gemini(tool: Tool, losses: set[str]) -> dict[str, Any]:
    """Return the function declaration for Gemini.

    Adds the JSON Schema keywords that its schema lacks to `losses`.
    """
    declaration = {"name": tool.slug, "description": tool.description}
    if tool.input_parameters:
        schema = to_gemini_schema(input_schema(tool.input_parameters), losses)
        return {**declaration, "parameters": schema}
    return declaration


def to_bedrock(tool: Tool) -> dict[str, Any]:
    """Return the tool for the `toolConfig` of Bedrock's Converse API."""
    schema = {"json": input_schema(tool.input_parameters)}
    specification = {"name": tool.slug, "description": tool.description, "inputSchema": schema}
    return {"toolSpec": specification}


def to_all_formats(tool: Tool) -> dict[str, dict[str, Any]]:
    """Return the definitions in all four formats, by the names in `FORMATS`.

    They share one input schema, because creating it is most of the work.
    """
    inputs = input_schema(tool.input_parameters)
    converters = (to_openai, to_anthropic, to_mcp, to_json_schema)
    return {name: convert(tool, inputs) for name, convert in zip(FORMATS, converters, strict=True)}


def hint_annotations(tags: Collection[str]) -> dict[str, bool]:
    """Return the hints that tags state, as annotations of MCP.

    A hint is true (`readOnlyHint`), false (`readOnlyHint:false`) or not stated. A hint without a
    tag is false if the tool has the tag of another one: tags say what a tool does. It is not stated
    if the tool has no such tag at all, or has `partialHints`.
    """
    stated = {
        hint: hint in tags for hint in HINT_TAGS if hint in tags or f"{hint}{HINT_IS_FALSE}" in tags
    }
    if not stated or PARTIAL_HINTS in tags:
        return stated
    return {hint: hint in tags for hint in HINT_TAGS}


def hint_tags(annotations: Mapping[str, Any]) -> list[str]:
    """Return the tags for annotations of MCP, so that `hint_annotations` returns the same hints."""
    stated = {hint: annotations.get(hint) for hint in HINT_TAGS}
    true = [hint for hint, value in stated.items() if value is True]
    false = [f"{hint}{HINT_IS_FALSE}" for hint, value in stated.items() if value is False]
    if len(true) + len(false) == len(HINT_TAGS):
        return true or false
    return [*true, *false, PARTIAL_HINTS] if true or false else []


def estimate_tokens(tool: Tool) -> int:
    """Estimate how many tokens a model reads for the definition.

    The estimate is four characters of the compact OpenAI form per token. The actual number depends
    on the model's tokenizer and on how the provider writes definitions into the prompt.
    """
    return estimate_definition_tokens(to_openai(tool))


def estimate_definition_tokens(definition: Mapping[str, Any]) -> int:
    """Estimate the tokens of a definition, as `estimate_tokens` does for a tool."""
    return -(-len(dump_json(definition).decode()) // 4)


# Texts to copy


def request_snippets(tool: Tool, base_url: str = "") -> list[Snippet]:
    """Return snippets that read this version of a tool from the API.

    They take the key from the environment and contain no free text from the catalog. Without
    `base_url`, they take the address of the API from the environment too.
    """
    base_url = base_url.rstrip("/")
    return [
        Snippet("curl", "curl", "bash", _curl_code(tool, base_url)),
        Snippet("python", "Python", "python", _python_code(tool, base_url)),
        Snippet("typescript", "TypeScript", "typescript", _typescript_code(tool, base_url)),
    ]


def list_definitions(tool: Tool) -> list[Definition]:
    """Return the definitions of a tool for each provider.

    They share one input schema, because creating it is most of the work.
    """
    form = to_all_formats(tool)
    return [
        Definition("openai", "OpenAI", form["openai"]),
        Definition("anthropic", "Anthropic", form["anthropic"]),
        Definition("gemini", "Gemini", _to_gemini(form["openai"]["function"])),
        Definition("mcp", "MCP", form["mcp"]),
        Definition("json-schema", "JSON Schema", form["json-schema"]),
    ]


def _to_gemini(function: Mapping[str, Any]) -> dict[str, Any]:
    """Return the function declaration for Gemini, from the function of OpenAI's definition."""
    return {
        "name": function["name"],
        "description": function["description"],
        "parametersJsonSchema": function["parameters"],
    }


def _curl_code(tool: Tool, base_url: str) -> str:
    slug, version = quote(tool.slug, safe=""), quote(tool.version, safe="")
    path = f"/api/v3/tools/{slug}?version={version}"
    return f'curl -H "x-api-key: ${KEY_VARIABLE}" \\\n  {shell_url(base_url, path)}'


def shell_url(base_url: str, path: str) -> str:
    """Return a URL as a word of a shell; without `base_url` it begins with a variable.

    `path` has no character that is special within double quotes.
    """
    return shlex.quote(base_url + path) if base_url else f'"${URL_VARIABLE}{path}"'


def _python_code(tool: Tool, base_url: str) -> str:
    address = _string_literal(base_url) if base_url else f'os.environ["{URL_VARIABLE}"]'
    slug, version = _string_literal(tool.slug), _string_literal(tool.version)
    return _join_lines(
        "import os",
        "from composio_client import Composio",
        "",
        "client = Composio(",
        f"    base_url={address},",
        "    # composio-client 2: auth=ProjectAuth(key)",
        f'    api_key=os.environ["{KEY_VARIABLE}"],',
        ")",
        f"tool = client.tools.retrieve({slug}, version={version})",
        "print(tool.to_json())",
    )


def _typescript_code(tool: Tool, base_url: str) -> str:
    address = _string_literal(base_url) if base_url else f"process.env.{URL_VARIABLE}"
    slug, version = _string_literal(tool.slug), _string_literal(tool.version)
    return _join_lines(
        'import { Composio } from "@composio/client";',
        "",
        "const client = new Composio({",
        f"  baseURL: {address},",
        f"  apiKey: process.env.{KEY_VARIABLE},",
        "});",
        f"const tool = await client.tools.retrieve({slug}, {{",
        f"  version: {version},",
        "});",
        "console.log(JSON.stringify(tool, null, 2));",
    )


def _string_literal(text: str) -> str:
    """Return a text as a literal that is valid in both Python and JavaScript."""
    return json.dumps(text, ensure_ascii=False)


def _join_lines(*lines: str) -> str:
    return "\n".join(lines)
