"""Tests of `exports.definitions`: equivalent, valid definitions and snippets that run."""

import ast
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import given

from support import tool_samples
from support.api_clients import CLIENT_LIBRARIES, ClientLibrary
from support.paths import SHIPPED_CATALOG
from support.profile import example_settings
from support.reference_model import ReferenceModel
from support.sample_arguments import sample_arguments
from support.server import Server
from toolcatalog.exports import definitions
from toolcatalog.parameters import to_served_inputs, to_value_schema
from toolcatalog.snapshot.format import Tool, tool_from_document

SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 2},
        "head": {
            "type": ["object", "null"],
            "description": "What stands above.",
            "title": "Head",
            "properties": {
                "topic": {"type": "string", "minLength": 1},
                "size": {"type": "integer", "default": 3},
            },
            "required": ["topic"],
            "additionalProperties": {
                "type": "object",
                "properties": {"required": {"type": "number"}},
                "required": ["required"],
            },
        },
        "when": {
            "anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}, {"type": "null"}],
            "examples": [7],
        },
        "one": {
            "title": "One",
            "anyOf": [
                {"oneOf": [{"type": ["integer", "null"]}, {"type": "string"}], "enum": [1, "a"]},
                {"type": "null"},
            ],
        },
        "state": {"type": ["string", "null"], "enum": ["open", "closed", None], "default": None},
    },
    "required": ["to"],
}
ANSWER = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Its id."},
        "copies": {"type": "object", "properties": {"n": {"type": "integer"}}},
    },
}


@pytest.fixture(scope="module")
def shipped_tools() -> list[Tool]:
    """Every version of every tool of the shipped catalog."""
    return [
        tool_from_document(json.loads(entry.body), None)
        for entries in ReferenceModel(SHIPPED_CATALOG).tools.values()
        for entry in entries
    ]


@pytest.fixture(scope="module")
def meta_tools(shipped_build: Path) -> list[Tool]:
    """The meta tools of every session of the shipped catalog."""
    answers = [
        json.loads(file.read_bytes())
        for file in sorted(shipped_build.glob("current/sessions/*.json"))
    ]
    return [
        tool_from_document(document, None) for answer in answers for document in answer["items"]
    ]


# Schemas


def test_standard_schema_of_inputs() -> None:
    """`required` lists at each level, null as type or branch; different branches give no type."""
    assert definitions.input_schema(tool_samples.TOOL.input_parameters) == SCHEMA
    assert definitions.input_schema({}) == {"type": "object", "properties": {}}


def test_standard_schema_of_outputs_requires_nothing() -> None:
    assert definitions.output_schema(tool_samples.TOOL.output_parameters) == ANSWER


@example_settings(66)
@given(tool_samples.parameters(), tool_samples.VALUES)
def test_standard_schema_accepts_the_same_values(authored: dict[str, Any], value: Any) -> None:
    """It is valid, and as strict as the author's description."""
    schema = definitions.input_schema(to_served_inputs(authored))
    jsonschema.Draft202012Validator.check_schema(schema)
    actual = jsonschema_rs.Draft202012Validator(schema)
    authors = jsonschema_rs.Draft202012Validator(
        to_value_schema({"type": "object", "properties": authored})
    )
    for tried in (
        value,
        *({name: value} for name in authored),
        sample_arguments(to_served_inputs(authored)),
    ):
        assert actual.is_valid(tried) == authors.is_valid(tried)


@example_settings(16)
@given(tool_samples.parameters())
def test_schema_keeps_texts_and_limits(authored: dict[str, Any]) -> None:
    """Descriptions, titles, examples, defaults and limits."""
    for name, schema in definitions.input_schema(to_served_inputs(authored))["properties"].items():
        remaining = {
            key: value
            for key, value in authored[name].items()
            if key in tool_samples.SAYING and key != "enum" and (key, value) != ("description", "")
        }
        assert {key: schema[key] for key in remaining} == remaining


def test_shipped_schemas_are_valid(shipped_tools: list[Tool]) -> None:
    """And equal in all formats."""
    assert len(shipped_tools) >= 190
    hold_schemas(shipped_tools)


def test_meta_tools_can_be_exported(meta_tools: list[Tool]) -> None:
    """With the values of a session."""
    assert meta_tools
    hold_schemas(meta_tools)
    hold_samples(meta_tools)


def hold_schemas(tools: list[Tool]) -> None:
    for tool in tools:
        schema = definitions.input_schema(tool.input_parameters)
        for item in (
            schema,
            definitions.output_schema(tool.output_parameters),
            definitions.to_json_schema(tool),
        ):
            jsonschema.Draft202012Validator.check_schema(item)
        variants = (
            definitions.to_openai(tool)["function"]["parameters"],
            definitions.to_anthropic(tool)["input_schema"],
            definitions.to_mcp(tool)["inputSchema"],
        )
        assert [*variants] == [schema] * 3


# Hints


HINT_STATES = [*itertools.product((True, False, None), repeat=4)]


@pytest.mark.parametrize("states", HINT_STATES)
def test_hints_round_trip_as_tags(states: tuple[bool | None, ...]) -> None:
    """All 81 combinations of true, false and not stated."""
    stated = zip(definitions.HINT_TAGS, states, strict=True)
    annotations = {hint: state for hint, state in stated if state is not None}
    assert definitions.hint_annotations(definitions.hint_tags(annotations)) == annotations


@pytest.mark.parametrize(
    ("tags", "annotations"),
    [
        ([], {}),
        (["mail", "important"], {}),
        (
            ["readOnlyHint"],
            {
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": False,
                "openWorldHint": False,
            },
        ),
        (["readOnlyHint", "partialHints"], {"readOnlyHint": True}),
        (["destructiveHint:false", "partialHints"], {"destructiveHint": False}),
        (["partialHints"], {}),
    ],
)
def test_hints_of_tags(tags: list[str], annotations: dict[str, bool]) -> None:
    """A hint without a tag is false, or unstated if there are none or with partialHints."""
    assert definitions.hint_annotations(tags) == annotations


# Definitions


def test_definitions() -> None:
    """With the fields of each provider; MCP hints come from tags."""
    output = {"name": "MAIL_SEND", "description": tool_samples.TOOL.description}
    assert definitions.to_openai(tool_samples.TOOL) == {
        "type": "function",
        "function": {**output, "parameters": SCHEMA},
    }
    assert definitions.to_anthropic(tool_samples.TOOL) == {**output, "input_schema": SCHEMA}
    hints = {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }
    assert definitions.to_mcp(tool_samples.TOOL) == {
        **output,
        "title": "Send a mail",
        "inputSchema": SCHEMA,
        "outputSchema": ANSWER,
        "annotations": hints,
    }
    assert definitions.to_mcp(replace(tool_samples.TOOL, tags=("x",), output_parameters={})) == {
        **output,
        "title": "Send a mail",
        "inputSchema": SCHEMA,
    }
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Send a mail",
        "description": tool_samples.TOOL.description,
    }
    assert definitions.to_json_schema(tool_samples.TOOL) == {**head, **SCHEMA}


def test_tokens_are_a_quarter_of_the_characters() -> None:
    """Rounded up."""
    empty = replace(tool_samples.TOOL, description="", input_parameters={})
    length = len(json.dumps(definitions.to_openai(empty), separators=(",", ":")))
    counts = {
        extra: definitions.estimate_tokens(replace(empty, description="ü" * extra))
        for extra in range(9)
    }
    assert counts == {extra: (length + extra + 3) // 4 for extra in range(9)}


def test_tokens_of_a_definition_equal_those_of_its_tool(shipped_tools: list[Tool]) -> None:
    for tool in shipped_tools:
        openai = definitions.list_definitions(tool)[0].value
        tokens = definitions.estimate_definition_tokens(openai)
        assert tokens == definitions.estimate_tokens(tool)


# Example arguments


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ({"type": "string", "examples": ["e", "f"], "default": "d", "enum": ["n"]}, "e"),
        ({"type": "string", "examples": [], "default": "d", "enum": ["n"]}, "d"),
        ({"type": "string", "enum": ["n", "m"]}, "n"),
        ({"type": "string", "default": None, "nullable": True}, None),
        ({"type": "boolean"}, True),
        ({"type": "string"}, "text"),
        ({"type": "string", "maxLength": 2}, "te"),
        ({"type": "string", "minLength": 6}, "textte"),
        ({"type": "string", "minLength": 10**12}, "text" * 250),
        ({"type": "string", "format": "email"}, "ada@example.com"),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "integer", "exclusiveMinimum": 3, "maximum": 9}, 4),
        ({"type": "integer", "maximum": -2.5}, -3),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}, 0.25),
        ({"type": "number", "minimum": 2, "maximum": 1}, 1),
        ({"type": "integer", "minimum": 1e300}, 1),
        ({"type": "array", "items": {"type": "integer", "minimum": 5}}, [5]),
        ({"type": "array"}, ["text"]),
        ({"type": "array", "maxItems": 0}, []),
        (
            {
                "type": "array",
                "minItems": 2,
                "items": {"type": "string", "examples": ["a", "b", "c"]},
            },
            ["a", "b"],
        ),
        (
            {
                "type": "array",
                "minItems": 3,
                "uniqueItems": True,
                "items": {"type": "string", "examples": ["a"]},
            },
            ["a", "a 2", "a 3"],
        ),
        (
            {"type": "array", "minItems": 3, "uniqueItems": True, "items": {"type": "integer"}},
            [1, 2, 3],
        ),
        ({"type": "array", "minItems": 10**12}, ["text"] * 10),
        ({"anyOf": [{"type": "integer", "minimum": 2}, {"type": "string"}]}, 2),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string", "required": True}, "b": {"type": "string"}},
            },
            {"a": "text"},
        ),
        (
            {
                "oneOf": [
                    {"type": "object", "properties": {"a": {"type": "boolean", "required": True}}}
                ]
            },
            {"a": True},
        ),
    ],
)
def test_sample_arguments(description: dict[str, Any], expected: Any) -> None:
    """The author's value, or one with the right type, format and limits."""
    served = to_served_inputs({"x": {**description, "required": True}, "y": {**description}})
    result = sample_arguments(served)
    assert json.dumps(result) == json.dumps({"x": expected})


def test_nested_samples_stay_small() -> None:
    """Lists of lists with a thousand items each."""
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(20):
        inner = {"type": "array", "minItems": 1000, "items": inner}
    assert (
        len(json.dumps(sample_arguments(to_served_inputs({"x": {**inner, "required": True}}))))
        < 1000
    )


@example_settings(50)
@given(
    tool_samples.parameters(
        but=frozenset(["pattern", "format", "oneOf", "uniqueItems", *tool_samples.SAYING])
    )
)
def test_generated_sample_is_valid(authored: dict[str, Any]) -> None:
    served = to_served_inputs(authored)
    jsonschema_rs.Draft202012Validator(definitions.input_schema(served)).validate(
        sample_arguments(served)
    )


@pytest.mark.parametrize(
    "format",
    ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"],
)
def test_generated_text_has_its_format(format: str) -> None:
    """By a validator with format checks."""
    served = to_served_inputs({"x": {"type": "string", "format": format, "required": True}})
    gate = jsonschema_rs.Draft202012Validator(
        definitions.input_schema(served), validate_formats=True
    )
    assert not gate.is_valid({"x": "te xt"})
    gate.validate(sample_arguments(served))


def test_shipped_samples_are_valid(shipped_tools: list[Tool]) -> None:
    """With exactly the required arguments."""
    hold_samples(shipped_tools)


def hold_samples(tools: list[Tool]) -> None:
    for tool in tools:
        result = sample_arguments(tool.input_parameters)
        jsonschema_rs.Draft202012Validator(
            definitions.input_schema(tool.input_parameters), validate_formats=True
        ).validate(result)
        assert {*result} == {name for name, it in tool.input_parameters.items() if it["required"]}


# Texts to copy


def test_snippets_and_definitions_are_ordered() -> None:
    """Names are usable in ids."""
    requests = definitions.request_snippets(tool_samples.TOOL)
    assert [(one.name, one.title, one.language) for one in requests] == [
        ("curl", "curl", "bash"),
        ("python", "Python", "python"),
        ("typescript", "TypeScript", "typescript"),
    ]
    forms = definitions.list_definitions(tool_samples.TOOL)
    assert [(one.name, one.title) for one in forms] == [
        ("openai", "OpenAI"),
        ("anthropic", "Anthropic"),
        ("gemini", "Gemini"),
        ("mcp", "MCP"),
        ("json-schema", "JSON Schema"),
    ]


@example_settings(16)
@given(tool_samples.tools())
def test_snippets_are_valid(tool: Tool) -> None:
    """One Python call, three shell words, JSON definitions; address and key come from the
    environment.
    """
    texts = {one.name: one.text for one in definitions.request_snippets(tool)}
    calls = [node for node in ast.walk(ast.parse(texts["python"])) if isinstance(node, ast.Call)]
    constants = [
        node.value
        for call in calls
        for node in (*call.args, *(word.value for word in call.keywords))
        if isinstance(node, ast.Constant)
    ]
    assert sorted(map(str, constants)) == sorted([tool.slug, tool.version])
    assert 'base_url=os.environ["TOOLCATALOG_URL"]' in texts["python"]
    assert (
        texts["curl"] == 'curl -H "x-api-key: $TOOLCATALOG_KEY" \\\n'
        f'  "$TOOLCATALOG_URL/api/v3/tools/{tool.slug}?version={tool.version}"'
    )
    values = {one.name: one.value for one in definitions.list_definitions(tool)}
    for name, form in (
        ("openai", definitions.to_openai),
        ("anthropic", definitions.to_anthropic),
        ("mcp", definitions.to_mcp),
        ("json-schema", definitions.to_json_schema),
    ):
        assert values[name] == form(tool)
    gemini = values["gemini"]
    assert gemini["parametersJsonSchema"] == definitions.input_schema(tool.input_parameters)
    assert (gemini["name"], gemini["description"]) == (tool.slug, tool.description)


def snippet_runs() -> Iterator[Any]:
    """Each snippet with what runs it: the shell, and every client library in its language."""
    yield pytest.param("curl", None, id="curl")
    for library in CLIENT_LIBRARIES:
        name = "python" if library.is_python else "typescript"
        yield pytest.param(name, library, id=library.name.replace(" ", "-"))


def follow_comment(text: str) -> str:
    """The Python snippet, changed for version 2 of the client as its comment says."""
    text = text.replace("import Composio", "import Composio, ProjectAuth")
    pattern = r"# composio-client 2: auth=ProjectAuth\(key\)\n    api_key=(.*),"
    text, count = re.subn(pattern, r"auth=ProjectAuth(\1),", text)
    assert count == 1
    return text


@pytest.mark.parametrize(("name", "library"), [*snippet_runs()])
def test_snippets_get_the_tool(
    name: str,
    library: ClientLibrary | None,
    shipped: Server,
    shipped_tools: list[Tool],
    tmp_path: Path,
) -> None:
    """With each client library, the version of the page."""
    tool = next(
        shipped_tool
        for shipped_tool in shipped_tools
        if shipped_tool.slug == "GITHUB_CREATE_ISSUE"
        and shipped_tool.version != shipped_tool.available_versions[-1]
    )
    text = next(
        shipped_tool.text
        for shipped_tool in definitions.request_snippets(tool, f"{shipped.url}/")
        if shipped_tool.name == name
    )
    suffix, program = {
        "curl": ("sh", "sh"),
        "python": ("py", sys.executable),
        "typescript": ("mjs", "node"),
    }[name]
    if shutil.which("curl" if name == "curl" else program) is None:
        pytest.skip(f"{name} cannot be run here")
    if library and (reason := library.missing_reason()):
        pytest.skip(f"{library.name}: {reason}")
    if name == "typescript":
        assert library
        assert library.site_packages
        (tmp_path / "node_modules" / "@composio").mkdir(parents=True)
        (tmp_path / "node_modules" / "@composio" / "client").symlink_to(library.site_packages)
    if library and library.name.startswith("composio-client 2"):
        text = follow_comment(text)
    (tmp_path / f"run.{suffix}").write_text(text)
    base = library.environment() if library else {**os.environ, "NO_PROXY": "*"}
    env = {**base, "TOOLCATALOG_KEY": shipped.key}
    result = subprocess.run(
        [program, f"run.{suffix}"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert (answer["slug"], answer["version"], answer["input_parameters"]) == (
        tool.slug,
        tool.version,
        tool.input_parameters,
    )


def test_hostile_base_url_stays_one_string() -> None:
    base = "http://h/$(id)'\";`x`\\"
    texts = {item.name: item.text for item in definitions.request_snippets(tool_samples.TOOL, base)}
    result = subprocess.run(
        ["sh", "-c", texts["curl"].replace("curl", "printf '%s\\n'", 1)],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert result.stdout.splitlines() == [
        "-H",
        "x-api-key: ",
        f"{base}/api/v3/tools/MAIL_SEND?version=20250101_00",
    ]
    assert base in [
        node.value
        for node in ast.walk(ast.parse(texts["python"]))
        if isinstance(node, ast.Constant)
    ]
