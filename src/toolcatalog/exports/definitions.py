"""Tool definitions for other programs: function definitions, MCP tools, JSON Schema, examples.

The catalog's form of a parameter differs from JSON Schema (2020-12) in two ways: `required` is a
boolean on the parameter, and `nullable` stands for a second type. Here both are converted to the
standard form; descriptions, examples, defaults and all constraints are kept. An array without
`items` gets `items: {}`: this means the same in JSON Schema, and OpenAI rejects an array without
`items`.
"""

import json
import math
import shlex
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from toolcatalog.encoding import dump_json
from toolcatalog.exports.gemini_schema import to_gemini_schema
from toolcatalog.parameters import BRANCHES, LOWER_BOUNDS, UPPER_BOUNDS, type_of
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
_ANNOTATIONS = ("title", "description", "examples", "default")
_MAX_TEXT_LENGTH = 1000  # characters of a generated text: a huge minLength must not fill the memory
_MAX_ITEMS = 10  # items of generated lists, including nested lists
_FORMAT_EXAMPLES = {
    "date-time": "2025-01-15T09:30:00Z",
    "date": "2025-01-15",
    "time": "09:30:00Z",
    "duration": "PT30M",
    "email": "ada@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}


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
    schema: Schema = {}
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


def to_openai(tool: Tool) -> dict[str, Any]:
    """Return the function definition for OpenAI's chat API.

    The name is the unchanged slug, which may be longer than the provider accepts.
    """
    return _openai_definition(tool, input_schema(tool.input_parameters))


def to_anthropic(tool: Tool) -> dict[str, Any]:
    """Return the tool definition for Anthropic's messages API."""
    return _anthropic_definition(tool, input_schema(tool.input_parameters))


def to_mcp(tool: Tool) -> dict[str, Any]:
    """Return the tool as an MCP server lists it.

    `outputSchema` and `annotations` are present only if the catalog has data for them.
    """
    return _mcp_definition(tool, input_schema(tool.input_parameters))


def to_json_schema(tool: Tool) -> Schema:
    """Return the tool's arguments as a standalone JSON Schema."""
    return _json_schema_definition(tool, input_schema(tool.input_parameters))


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
    results = (
        _openai_definition(tool, inputs),
        _anthropic_definition(tool, inputs),
        _mcp_definition(tool, inputs),
        _json_schema_definition(tool, inputs),
    )
    return dict(zip(FORMATS, results, strict=True))


def _openai_definition(tool: Tool, inputs: Schema) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": tool.slug, "description": tool.description, "parameters": inputs},
    }


def _anthropic_definition(tool: Tool, inputs: Schema) -> dict[str, Any]:
    return {"name": tool.slug, "description": tool.description, "input_schema": inputs}


def _mcp_definition(tool: Tool, inputs: Schema) -> dict[str, Any]:
    hints = hint_annotations(tool.tags)
    return {
        "name": tool.slug,
        "title": tool.name,
        "description": tool.description,
        "inputSchema": inputs,
        **(
            {"outputSchema": output_schema(tool.output_parameters)}
            if tool.output_parameters
            else {}
        ),
        **({"annotations": hints} if hints else {}),
    }


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


def _json_schema_definition(tool: Tool, inputs: Schema) -> Schema:
    return {
        "$schema": JSON_SCHEMA_DIALECT,
        "title": tool.name,
        "description": tool.description,
        **inputs,
    }


def estimate_tokens(tool: Tool) -> int:
    """Estimate how many tokens a model reads for the definition.

    The estimate is four characters of the compact OpenAI form per token. The actual number depends
    on the model's tokenizer and on how the provider writes definitions into the prompt.
    """
    return estimate_definition_tokens(to_openai(tool))


def estimate_definition_tokens(definition: Mapping[str, Any]) -> int:
    """Estimate the tokens of a definition, as `estimate_tokens` does for a tool."""
    return -(-len(dump_json(definition).decode()) // 4)


# Example arguments


def sample_arguments(parameters: Mapping[str, ServedParameter]) -> dict[str, Any]:
    """Return example arguments for served inputs: a value for each required one.

    A value is the first example, else the default, else the first enum value, else a plain value of
    the type. That value respects format, bounds and lengths (lists of up to 10 items, texts of up
    to 1,000 characters) and required properties within it. It does not respect `pattern`, nor that
    only one branch of `oneOf` may match.
    """
    return _sample_required(parameters, _MAX_ITEMS)


def _sample_required(parameters: Mapping[str, ServedParameter], max_items: int) -> dict[str, Any]:
    return {
        name: _example_value(description, max_items)
        for name, description in parameters.items()
        if description.get("required")
    }


def _example_value(description: ServedParameter, max_items: int) -> Any:
    candidates = [
        *description.get("examples", ())[:1],
        *([description["default"]] if "default" in description else []),
        *description.get("enum", ())[:1],
    ]
    return candidates[0] if candidates else _generate_value(description, max_items)


def _generate_value(description: ServedParameter, max_items: int) -> Any:
    branches = description.get("anyOf") or description.get("oneOf")
    first = (
        _example_value(_narrow_branch(branches[0], description), max_items) if branches else None
    )
    kind = description["type"]
    if kind == "object":
        return _sample_required(description.get("properties", {}), max_items) | (
            first if isinstance(first, dict) else {}
        )
    if branches:
        return first
    if kind == "array":
        return _generate_items(description, max_items)
    return (
        True
        if kind == "boolean"
        else _generate_text(description)
        if kind == "string"
        else _generate_number(description)
    )


def _narrow_branch(branch: ServedParameter, description: ServedParameter) -> ServedParameter:
    """Return a branch with the bounds of its parent; of two bounds the narrower one."""
    lower = {
        key: max(description[key], branch.get(key, description[key]))
        for key in LOWER_BOUNDS
        if key in description
    }
    upper = {
        key: min(description[key], branch.get(key, description[key]))
        for key in UPPER_BOUNDS
        if key in description
    }
    return {**branch, **lower, **upper}


def _generate_text(description: ServedParameter) -> str:
    example = _FORMAT_EXAMPLES.get(str(description.get("format")))
    if example:
        return example
    minimum: int = min(description.get("minLength", 0), _MAX_TEXT_LENGTH)
    length: int = max(minimum, min(4, description.get("maxLength", 4)))
    return ("text" * (length // 4 + 1))[:length]


def _generate_number(description: ServedParameter) -> float:
    """Return 1 if that fits, else a number at, next to or between bounds, else 1."""
    lows = [description[key] for key in ("minimum", "exclusiveMinimum") if key in description]
    highs = [description[key] for key in ("maximum", "exclusiveMaximum") if key in description]
    candidates: list[float] = [
        1,
        0,
        *lows,
        *(low + 1 for low in lows),
        *highs,
        *(high - 1 for high in highs),
    ]
    candidates += [low + (high - low) / 2 for low in lows for high in highs]
    if description["type"] == "integer":
        candidates = [
            round_to(number)
            for number in candidates
            if abs(number) < 2**53
            for round_to in (math.floor, math.ceil)
        ]
    return next(
        (
            number
            for number in candidates
            if math.isfinite(number) and _fits_bounds(number, description)
        ),
        1,
    )


def _fits_bounds(value: float, description: ServedParameter) -> bool:
    return (
        description.get("minimum", value) <= value <= description.get("maximum", value)
        and not value <= description.get("exclusiveMinimum", -math.inf)
        and not value >= description.get("exclusiveMaximum", math.inf)
    )


def _generate_items(description: ServedParameter, max_items: int) -> list[Any]:
    """Return as many items as required, at least one if allowed, and at most `max_items`.

    The items are the author's enum values or examples, or else generated; they differ if they must
    be unique.
    """
    item = description.get("items", {"type": "string"})
    count = max(
        0,
        min(
            max(description.get("minItems", 1), 1),
            description.get("maxItems", max_items),
            max_items,
        ),
    )
    values = (
        item.get("enum")
        or item.get("examples")
        or [_example_value(item, max_items // max(count, 1))]
    )
    if "enum" in item or not description.get("uniqueItems"):
        return [values[index % len(values)] for index in range(count)]
    return [
        *values[:count],
        *(_make_distinct(values[0], index) for index in range(len(values), count)),
    ]


def _make_distinct(value: Any, number: int) -> Any:
    """Return a value like this one; texts and numbers differ for each `number` from 1 on."""
    if isinstance(value, str):
        return f"{value} {number + 1}"
    return (
        value + number if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    )


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
    """Return the definitions of a tool for each provider, and an example call.

    They share one input schema, because creating it is most of the work.
    """
    form = to_all_formats(tool)
    call = {"name": tool.slug, "arguments": sample_arguments(tool.input_parameters)}
    return [
        Definition("openai", "OpenAI", form["openai"]),
        Definition("anthropic", "Anthropic", form["anthropic"]),
        Definition("gemini", "Gemini", _to_gemini(form["openai"]["function"])),
        Definition("mcp", "MCP", form["mcp"]),
        Definition(
            "mcp-call",
            "MCP call",
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        ),
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
