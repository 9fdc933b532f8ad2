"""Import tools that an MCP server lists.

An MCP tool has a name, an optional title and description, JSON Schemas of its input and output, and
hints about its behavior. The hints become tags, see `exports.definitions.hint_tags`. What the
catalog format cannot hold is reported as a `Loss`.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from toolcatalog import names
from toolcatalog.errors import UsageError, raise_all
from toolcatalog.exports.definitions import HINT_TAGS, hint_tags
from toolcatalog.importers import slugs
from toolcatalog.importers.json_schema import MAX_TOTAL_SCHEMAS, Loss, SchemaBudget
from toolcatalog.importers.to_parameters import convert
from toolcatalog.importers.writer import ImportedTool, check_tool_count

_SCHEMA_FIELDS = {"inputSchema": "input_parameters", "outputSchema": "output_parameters"}
# what starts a package of each registry
_PACKAGE_COMMANDS = {"npm": "npx -y", "pypi": "uvx"}
_MAX_SHOWN = 200  # characters of a text from a file in a message
_KNOWN_FIELDS = ("name", "title", "description", "annotations", *_SCHEMA_FIELDS)


def import_tools(value: Any, toolkit: str = "") -> list[ImportedTool]:
    """Convert MCP tools in a JSON value to imported tools.

    `value` is a `tools/list` result, the JSON-RPC message around it, or a list of tools. The tools
    go to `toolkit`, or else to a toolkit named after the server (`serverInfo` next to `tools`).
    Raises UsageError, with a sentence for each fault, if an item is not an MCP tool or no toolkit
    is known.
    """
    tools, server = _extract_tools(value)
    fields = _toolkit_fields(toolkit, server)
    check_tool_count(len(tools), len(json.dumps(tools)))
    raise_all(
        [fault for number, tool in enumerate(tools, 1) for fault in _find_faults(tool, number)]
    )
    tool_slugs = slugs.make_slugs(fields["slug"], [(tool["name"], tool["name"]) for tool in tools])
    budget = SchemaBudget(MAX_TOTAL_SCHEMAS)
    return [
        _import_tool(tool, slug, fields, budget)
        for tool, slug in zip(tools, tool_slugs, strict=True)
    ]


def _extract_tools(value: Any) -> tuple[list[Any], Mapping[str, Any]]:
    """Return the list of tools and the fields of their server."""
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        raise UsageError(
            "This is an error of an MCP server, not a list of tools: "
            f"{str(value['error'].get('message', ''))[:200]}"
        )
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        value = value["result"]
    tools = value.get("tools") if isinstance(value, dict) else value
    if isinstance(value, dict) and tools is None:
        _refuse_server_description(value)
    if not isinstance(tools, list):
        raise UsageError(
            'There is no list of MCP tools here: give the result of `tools/list`, {"tools": '
            "[...]}, or a JSON array of tools."
        )
    server = value.get("serverInfo") if isinstance(value, dict) else None
    if isinstance(value, dict) and value.get("nextCursor"):
        raise UsageError(
            "This is one page of several (`nextCursor`): give all tools in one list, or the "
            "command that starts the server."
        )
    return tools, server if isinstance(server, dict) else {}


def _refuse_server_description(value: Mapping[str, Any]) -> None:
    """Raise UsageError if a value is a `server.json`: it says how to reach a server, not its tools.

    An entry of a registry has it under `server`.
    """
    server = value.get("server", value)
    if not (isinstance(server, dict) and ("remotes" in server or "packages" in server)):
        return
    name = str(server.get("name", ""))[:_MAX_SHOWN]
    source = _find_server(server)
    raise UsageError(
        f"This describes the MCP server {name} (`server.json`), and does not list its tools: "
        + (
            f"run `toolcatalog import mcp {source}`, with the arguments that it needs."
            if source.startswith("-- ")
            else f"run `toolcatalog import mcp {source}`."
            if source
            else "start the server, and give its answer to `tools/list`."
        )
    )


def _find_server(server: Mapping[str, Any]) -> str:
    """Return the URL of a server, or else the command that starts it; empty if there is neither."""
    for remote in server.get("remotes") or ():
        url = remote.get("url") if isinstance(remote, dict) else None
        if isinstance(url, str) and remote.get("type") == "streamable-http":
            return shlex.quote(url[:_MAX_SHOWN])
    for package in server.get("packages") or ():
        kind = package.get("registryType") if isinstance(package, dict) else None
        if command := _PACKAGE_COMMANDS.get(str(kind)):
            name, version = (str(package.get(key, "")) for key in ("identifier", "version"))
            separator = "==" if kind == "pypi" else "@"
            pinned = f"{name}{separator}{version}" if version else name
            return f"-- {command} {shlex.quote(pinned[:_MAX_SHOWN])}"
    return ""


def _toolkit_fields(chosen: str, server: Mapping[str, Any]) -> dict[str, Any]:
    """Return the toolkit's slug and the fields that the server provides for it."""
    name = server.get("name") if isinstance(server.get("name"), str) else ""
    slug = chosen or slugs.toolkit_slug_from_server(str(name))
    if not slug:
        raise UsageError(
            "No toolkit is known for these tools, and no server names itself here: name it with "
            "--toolkit SLUG."
        )
    if not names.is_valid(names.TOOLKIT_SLUG, slug):
        expected = f"lower-case letters, digits, `_` and `-`, at most {names.MAX_LENGTH}"
        raise UsageError(
            f"`{slug}` is not a toolkit slug: it needs {expected}. Give one with --toolkit SLUG."
        )
    title, homepage = server.get("title") or name, server.get("websiteUrl")
    fields = {
        "name": title if isinstance(title, str) else "",
        "homepage": homepage
        if isinstance(homepage, str) and homepage.startswith("https://")
        else "",
    }
    return {"slug": slug, **{key: text for key, text in fields.items() if text}}


def _find_faults(tool: Any, number: int) -> Iterator[str]:
    """Yield why an item of the list, counted from 1, is not an MCP tool."""
    if not isinstance(tool, dict):
        yield (
            f"Item {number} is not a JSON object: a tool of MCP has at least a name and an "
            "inputSchema."
        )
        return
    name = tool.get("name")
    if not (isinstance(name, str) and name):
        yield f"Item {number} has no name: give it one, or remove the item."
    for key in _SCHEMA_FIELDS:
        schema = tool.get(key)
        if schema is not None and not _describes_an_object(schema):
            yield (
                f"`{key}` of item {number} ({str(name)[:100]!r}) is not the JSON Schema of an "
                "object: fix it, or remove it."
            )


def _describes_an_object(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type", "object") in ("object", ["object"])


def _import_tool(
    tool: Mapping[str, Any], slug: str, toolkit: Mapping[str, Any], budget: SchemaBudget
) -> ImportedTool:
    annotations = tool.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    losses = [*_tool_losses(tool, annotations)]
    title, text = tool.get("title") or annotations.get("title"), tool.get("description")
    tags = hint_tags(annotations)
    value: dict[str, Any] = {
        "name": title if isinstance(title, str) else tool["name"],
        "description": text if isinstance(text, str) else "",
        **({"tags": tags} if tags else {}),
    }
    for key, field in _SCHEMA_FIELDS.items():
        described, parameter_losses = convert(tool.get(key) or {}, field, budget)
        losses += parameter_losses
        value |= {field: described} if described else {}
    return ImportedTool(slug=slug, value=value, toolkit=toolkit, losses=tuple(losses))


def _tool_losses(tool: Mapping[str, Any], annotations: Mapping[str, Any]) -> Iterator[Loss]:
    """Yield the fields and annotations that the catalog format cannot hold."""
    for key, value in tool.items():
        if key not in _KNOWN_FIELDS and value is not None:
            yield Loss((key,), f"`{key}` of a tool")
    for key, value in annotations.items():
        if value is not None and (
            key != "title" and (key not in HINT_TAGS or not isinstance(value, bool))
        ):
            yield Loss(("annotations", key), f"`{key}` of annotations")
