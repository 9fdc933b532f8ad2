"""Round trips: records and documents, and tools through exporters and importers."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema_rs
from hypothesis import example, given, settings

from support.profile import DEEP_PROFILE
from support.tool_samples import TOOL, described, tools
from toolcatalog import encoding
from toolcatalog.catalog import resolve
from toolcatalog.catalog.model import Toolkit, ToolVersion
from toolcatalog.exports import definitions
from toolcatalog.importers import mcp, wire
from toolcatalog.importers.to_parameters import convert
from toolcatalog.importers.writer import ImportedTool
from toolcatalog.parameters import to_served_inputs
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import Tool

KIT = Toolkit(slug="kit", name="Kit", logo="https://kit.example/logo.svg")
FORMS: dict[str, Callable[[Tool], Any]] = {  # how others get the schema of the inputs
    "openai": lambda tool: definitions.to_openai(tool)["function"]["parameters"],
    "anthropic": lambda tool: definitions.to_anthropic(tool)["input_schema"],
    "mcp": lambda tool: definitions.to_mcp(tool)["inputSchema"],
}


def document(tool: Tool) -> dict[str, Any]:
    """The document of a tool, through JSON."""
    results: dict[str, Any] = json.loads(
        encoding.dump_json(snapshot_format.tool_to_document(tool, KIT.name, KIT.logo))
    )
    return results


def again(addition: ImportedTool, tool: Tool) -> Tool:
    """What would be served of an imported tool in the place of the one that was exported."""
    content = ToolVersion.from_value(
        addition.value, path="", slug=tool.slug, toolkit=tool.toolkit, version=tool.version
    )
    return resolve.resolve_tool(content, KIT, tool.available_versions)


def by_wire(tool: Tool) -> Tool:
    return again(wire.import_tools([document(tool)])[0], tool)


def by_mcp(tool: Tool) -> Tool:
    return again(mcp.import_tools([definitions.to_mcp(tool)], "kit")[0], tool)


@settings(max_examples=2_000 if DEEP_PROFILE else 20)
@given(tools())
def test_document_to_record_round_trip(tool: Tool) -> None:
    """Except the deprecation texts, which the toolkit index has."""
    output = document(tool)
    assert snapshot_format.tool_from_document(output, tool.deprecation) == tool
    assert document(snapshot_format.tool_from_document(output, tool.deprecation)) == output
    row = json.loads(
        encoding.dump_json(snapshot_format.make_toolkit_index_row(tool, encoding.dump_json(output)))
    )
    assert row.pop("digest") == encoding.sha256_hex(encoding.dump_json(output))
    assert row == {key: output[key] for key in row if key != "deprecation"} | {
        "deprecation": tool.deprecation
    }


# seen only once it is plain
NULL_AFTER_ALL = {"type": "string", "nullable": True, "enum": [None], "oneOf": [{"type": "string"}]}
BOTH_WAYS = {"type": "string", "nullable": True, "anyOf": [{"type": "string", "nullable": False}]}
TWO_PATTERNS = {
    "type": "string",
    "pattern": "^a",
    "nullable": True,
    "anyOf": [{"type": "string", "pattern": "b$", "nullable": True}],
}
# a form that goes out with null in the list
ENUM = {"type": "string", "nullable": True, "enum": ["a"]}


@settings(max_examples=2_000 if DEEP_PROFILE else 20)
@given(tools())
@example(replace(TOOL, output_parameters={"a": {"anyOf": [NULL_AFTER_ALL, {"type": "integer"}]}}))
@example(replace(TOOL, output_parameters={"a": {"type": "string", "anyOf": [BOTH_WAYS]}}))
@example(replace(TOOL, output_parameters={"a": {"type": "string", "anyOf": [TWO_PATTERNS]}}))
@example(replace(TOOL, output_parameters={"a": {**ENUM, "oneOf": [{"anyOf": [ENUM]}]}}))
def test_export_and_import_round_trip(tool: Tool) -> None:
    """`import wire` of API documents, `import mcp` of exports: after one import, a tool stays the
    same.
    """
    once = by_wire(tool)
    assert document(by_wire(once)) == document(once)
    assert document(replace(once, input_parameters={}, output_parameters={})) == document(
        replace(tool, input_parameters={}, output_parameters={})
    )
    once = by_mcp(tool)
    assert definitions.to_mcp(by_mcp(once)) == definitions.to_mcp(once)
    assert definitions.to_mcp(once).get("annotations") == definitions.to_mcp(tool).get(
        "annotations"
    )
    assert (once.description, once.name) == (tool.description, tool.name or tool.slug)


POOL = [
    "",
    "a",
    "b",
    "2025-01-15",
    0,
    1,
    7,
    -1,
    1.5,
    True,
    False,
    None,
    [],
    ["a"],
    [1, 1],
    [None],
    {},
    {"a": 1},
    {"b": "a"},
    {"required": None},
]


@given(described())
# no value at all, and null became one
@example({"enum": [""], "anyOf": [{"type": "boolean", "nullable": True}]})
@example(
    {"enum": [""], "anyOf": [{"nullable": True, "anyOf": [{"type": "string"}, {"type": "string"}]}]}
)
def test_imported_schema_accepts_the_same_values(authored: dict[str, Any]) -> None:
    """For each export format, unless a loss is reported."""
    tool = replace(TOOL, input_parameters=to_served_inputs({"a": authored}))
    for name, output_format in FORMS.items():
        request = output_format(tool)
        result, losses = convert(request, "input_parameters")
        content = definitions.input_schema(to_served_inputs(result))
        assert losses or accepted(content) == accepted(request), name


def accepted(schema: Any) -> list[Any]:
    """What of the pool may be given as `a`, and whether it may be left out."""
    validator = jsonschema_rs.Draft202012Validator(schema)
    return [value for value in [{}, *({"a": value} for value in POOL)] if validator.is_valid(value)]
