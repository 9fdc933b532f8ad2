"""A served tool in the forms that others use: function definitions of model providers and MCP, JSON
Schema, and calls to paste. Pure.

The catalog's own form of a parameter differs from JSON Schema (2020-12) in two things: `required`
is a boolean on the parameter, and `nullable` stands for a second type. Here both are told the
standard way; descriptions, examples, defaults and all constraints stay. A list of whatever says so
(`items: {}`): to JSON Schema that is nothing new, and OpenAI refuses a list without it.
"""

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from toolcatalog.parameters import BRANCHES, LOWER, UPPER, type_of
from toolcatalog.snapshot import Tool, dump

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# tags that MCP knows as annotations
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
KEY = "TOOLCATALOG_KEY"  # the environment variable that snippets take the API key from
LOCAL = "http://127.0.0.1:8000"
FORMS = ("openai", "anthropic", "mcp", "json-schema")

Schema = dict[str, Any]
Description = Mapping[str, Any]

_HOLDING = frozenset((*BRANCHES, "items", "additionalProperties"))
_TOLD_OTHERWISE = frozenset(("required", "nullable"))
_ANNOTATIONS = ("title", "description", "examples", "default")
_LONGEST = 1000  # characters of a made-up text: no author's minLength shall fill the memory
_MOST = 10  # items of made-up lists, those within each other multiplied
_FORMATS = {
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
    """A text to copy: a `name` that can stand in an id, a title for people, the language by which
    it is coloured.
    """

    name: str
    title: str
    language: str
    text: str


class Uses(NamedTuple):
    """All texts to copy for a tool, and about how many tokens a model reads for its definition."""

    snippets: list[Snippet]
    tokens: int


# Schemas


def input_schema(parameters: Mapping[str, Description]) -> Schema:
    """The JSON Schema of the arguments that served inputs describe: an object, `required` as a list
    where anything is required.
    """
    return {"type": "object", **_named(parameters)}


def output_schema(parameters: Mapping[str, Description]) -> Schema:
    """The JSON Schema of the answer that served outputs describe: an object that may lack any of
    its properties.
    """
    return {"type": "object", **_named(parameters)}


def _named(parameters: Mapping[str, Description]) -> Schema:
    required = [name for name, described in parameters.items() if described.get("required")]
    properties = {name: _schema(described) for name, described in parameters.items()}
    return {"properties": properties, **({"required": required} if required else {})}


def _schema(described: Description) -> Schema:
    schema: Schema = {}
    for key, value in described.items():
        if key == "properties":
            schema |= _named(value)
        elif key in _HOLDING:
            schema[key] = _within(key, value)
        elif key not in _TOLD_OTHERWISE and not (key == "description" and value == ""):
            schema[key] = value
    if _has_derived_type(described):
        del schema["type"]
    if schema.get("type") == "array":
        schema.setdefault("items", {})
    return _or_null(schema) if described.get("nullable") else schema


def _within(key: str, value: Any) -> Any:
    if key in BRANCHES:
        return [_schema(branch) for branch in value]
    return (
        _schema(value)
        if key in ("items", "additionalProperties") and isinstance(value, Mapping)
        else value
    )


def _has_derived_type(described: Description) -> bool:
    """Tell whether the type says no more than the branches; the first one's stands there where they
    differ, and would refuse the others.
    """
    if not (described.get("anyOf") or described.get("oneOf")):
        return False
    rest = {key: value for key, value in described.items() if key != "type"}
    return "type" in described and type_of(rest) == described["type"]


def _or_null(schema: Schema) -> Schema:
    """The same for null too. Of `oneOf` exactly one branch may fit, and one that takes null may be
    there: so that one is wrapped whole.
    """
    if "oneOf" in schema:
        said = {key: schema[key] for key in _ANNOTATIONS if key in schema}
        return {
            **said,
            "anyOf": [
                {key: value for key, value in schema.items() if key not in said},
                {"type": "null"},
            ],
        }
    more: Schema = {"type": [schema["type"], "null"]} if "type" in schema else {}
    if "enum" in schema and None not in schema["enum"]:
        more["enum"] = [*schema["enum"], None]
    if "anyOf" in schema:
        more["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    return {**schema, **more}


# Definitions


def openai(tool: Tool) -> dict[str, Any]:
    """The function definition of OpenAI's chat API. The name is the slug as it is, though it may be
    longer than a provider takes.
    """
    return _openai(tool, input_schema(tool.input_parameters))


def anthropic(tool: Tool) -> dict[str, Any]:
    """The tool definition of Anthropic's messages API."""
    return _anthropic(tool, input_schema(tool.input_parameters))


def mcp(tool: Tool) -> dict[str, Any]:
    """The tool as an MCP server lists it; `outputSchema` and `annotations` only where the catalog
    says something of them.
    """
    return _mcp(tool, input_schema(tool.input_parameters))


def json_schema(tool: Tool) -> Schema:
    """The tool's arguments as a JSON Schema that stands by itself."""
    return _json_schema(tool, input_schema(tool.input_parameters))


def forms(tool: Tool) -> dict[str, dict[str, Any]]:
    """All four, by the names of `FORMS`. They share parts: the schema is made once, for that is
    most of the work.
    """
    inputs = input_schema(tool.input_parameters)
    made = (
        _openai(tool, inputs),
        _anthropic(tool, inputs),
        _mcp(tool, inputs),
        _json_schema(tool, inputs),
    )
    return dict(zip(FORMS, made, strict=True))


def _openai(tool: Tool, inputs: Schema) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": tool.slug, "description": tool.description, "parameters": inputs},
    }


def _anthropic(tool: Tool, inputs: Schema) -> dict[str, Any]:
    return {"name": tool.slug, "description": tool.description, "input_schema": inputs}


def _mcp(tool: Tool, inputs: Schema) -> dict[str, Any]:
    hints = {hint: True for hint in HINTS if hint in tool.tags}
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


def _json_schema(tool: Tool, inputs: Schema) -> Schema:
    return {"$schema": DIALECT, "title": tool.name, "description": tool.description, **inputs}


def tokens(tool: Tool) -> int:
    """About how many tokens a model reads for the definition: an estimate, of four characters of
    the compact OpenAI form a token.

    What a model really counts depends on its tokenizer, and on how the provider writes definitions
    into the prompt.
    """
    return _tokens(openai(tool))


def _tokens(definition: Mapping[str, Any]) -> int:
    return -(-len(dump(definition).decode()) // 4)


# Example arguments


def sample(parameters: Mapping[str, Description]) -> dict[str, Any]:
    """Example arguments for served inputs: a value for each required one, the optional ones left
    out.

    A value is the first example, else the default, else the first of the enum, else something plain
    of the type. That heeds format, bounds and lengths, of lists up to 10 items and of texts up to
    1,000 characters, and what is required within it; not `pattern`, and not that only one branch of
    `oneOf` may fit.
    """
    return _sample(parameters, _MOST)


def _sample(parameters: Mapping[str, Description], room: int) -> dict[str, Any]:
    return {
        name: _example(described, room)
        for name, described in parameters.items()
        if described.get("required")
    }


def _example(described: Description, room: int) -> Any:
    said = [
        *described.get("examples", ())[:1],
        *([described["default"]] if "default" in described else []),
        *described.get("enum", ())[:1],
    ]
    return said[0] if said else _made_up(described, room)


def _made_up(described: Description, room: int) -> Any:
    branches = described.get("anyOf") or described.get("oneOf")
    first = _example(_bounded(branches[0], described), room) if branches else None
    kind = described["type"]
    if kind == "object":
        return _sample(described.get("properties", {}), room) | (
            first if isinstance(first, dict) else {}
        )
    if branches:
        return first
    if kind == "array":
        return _items(described, room)
    return (
        True if kind == "boolean" else _text(described) if kind == "string" else _number(described)
    )


def _bounded(branch: Description, described: Description) -> Description:
    """A branch with the bounds of what it is a branch of: of two the narrower one."""
    lower = {
        key: max(described[key], branch.get(key, described[key]))
        for key in LOWER
        if key in described
    }
    upper = {
        key: min(described[key], branch.get(key, described[key]))
        for key in UPPER
        if key in described
    }
    return {**branch, **lower, **upper}


def _text(described: Description) -> str:
    known = _FORMATS.get(str(described.get("format")))
    if known:
        return known
    least: int = min(described.get("minLength", 0), _LONGEST)
    length: int = max(least, min(4, described.get("maxLength", 4)))
    return ("text" * (length // 4 + 1))[:length]


def _number(described: Description) -> float:
    """1 if that fits, else a number at or beside a bound, else between two; 1 where nothing is
    found.
    """
    lows = [described[key] for key in ("minimum", "exclusiveMinimum") if key in described]
    highs = [described[key] for key in ("maximum", "exclusiveMaximum") if key in described]
    tries: list[float] = [
        1,
        0,
        *lows,
        *(low + 1 for low in lows),
        *highs,
        *(high - 1 for high in highs),
    ]
    tries += [low + (high - low) / 2 for low in lows for high in highs]
    if described["type"] == "integer":
        tries = [
            round_to(one)
            for one in tries
            if abs(one) < 2**53
            for round_to in (math.floor, math.ceil)
        ]
    return next((one for one in tries if math.isfinite(one) and _is_within(one, described)), 1)


def _is_within(value: float, described: Description) -> bool:
    return (
        described.get("minimum", value) <= value <= described.get("maximum", value)
        and not value <= described.get("exclusiveMinimum", -math.inf)
        and not value >= described.get("exclusiveMaximum", math.inf)
    )


def _items(described: Description, room: int) -> list[Any]:
    """As many items as there must be and at least one, from what the author names for them, else
    made up; different where they must be.
    """
    item = described.get("items", {"type": "string"})
    count = max(0, min(max(described.get("minItems", 1), 1), described.get("maxItems", room), room))
    known = item.get("enum") or item.get("examples") or [_example(item, room // max(count, 1))]
    if "enum" in item or not described.get("uniqueItems"):
        return [known[at % len(known)] for at in range(count)]
    return [*known[:count], *(_other(known[0], at) for at in range(len(known), count))]


def _other(value: Any, number: int) -> Any:
    """A value like this one and, if it is a text or a number, different for each number from 1 on."""
    if isinstance(value, str):
        return f"{value} {number + 1}"
    return (
        value + number if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    )


# Texts to copy


def uses(tool: Tool, base: str = LOCAL) -> Uses:
    """As `snippets` and `tokens`; of both most of the work is the definitions, and here they are
    made once.
    """
    form = forms(tool)
    return Uses([*requests(tool, base), *_definitions(tool, form)], _tokens(form["openai"]))


def requests(tool: Tool, base: str = LOCAL) -> list[Snippet]:
    """How to read this version of a tool from the API. They take the key from the environment; no
    text of the catalog is in them.
    """
    base = base.rstrip("/")
    return [
        Snippet("curl", "curl", "bash", _curl(tool, base)),
        Snippet("python", "Python", "python", _python(tool, base)),
        Snippet("typescript", "TypeScript", "typescript", _typescript(tool, base)),
    ]


def _definitions(tool: Tool, form: Mapping[str, Any]) -> list[Snippet]:
    call = {"name": tool.slug, "arguments": sample(tool.input_parameters)}
    made = (
        ("openai", "OpenAI function", form["openai"]),
        ("anthropic", "Anthropic tool", form["anthropic"]),
        ("mcp", "MCP tool", form["mcp"]),
        (
            "mcp-call",
            "MCP call",
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        ),
        ("json-schema", "JSON Schema", form["json-schema"]),
    )
    return [
        Snippet(name, title, "json", orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
        for name, title, value in made
    ]


def _curl(tool: Tool, base: str) -> str:
    url = f"{base}/api/v3/tools/{quote(tool.slug, safe='')}?version={quote(tool.version, safe='')}"
    return f'curl -H "x-api-key: ${KEY}" {shlex.quote(url)}'


def _python(tool: Tool, base: str) -> str:
    return _lines(
        "import os",
        "",
        "from composio_client import Composio",
        "",
        f'client = Composio(base_url={_literal(base)}, api_key=os.environ["{KEY}"])',
        f"tool = client.tools.retrieve({_literal(tool.slug)}, version={_literal(tool.version)})",
        "print(tool.to_json())",
    )


def _typescript(tool: Tool, base: str) -> str:
    return _lines(
        'import { Composio } from "@composio/client";',
        "",
        f"const client = new Composio({{ baseURL: {_literal(base)}, apiKey: process.env.{KEY} }});",
        (
            f"const tool = await client.tools.retrieve({_literal(tool.slug)}, {{ version: "
            f"{_literal(tool.version)} }});"
        ),
        "console.log(JSON.stringify(tool, null, 2));",
    )


def _literal(text: str) -> str:
    """A text as a literal that Python and JavaScript read alike."""
    return json.dumps(text, ensure_ascii=False)


def _lines(*lines: str) -> str:
    return "\n".join(lines)
