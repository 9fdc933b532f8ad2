"""The tools that an MCP server lists to additions to a catalog. Pure.

A tool of MCP has a name, perhaps a title and a description, JSON Schemas of its input and output,
and hints on what it does. The hints become tags of the same names; what the catalog format has no
place for is told.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolcatalog import names
from toolcatalog.errors import UsageError
from toolcatalog.exports import HINTS
from toolcatalog.importers import slugs
from toolcatalog.importers.additions import Addition, stop, stop_at_many
from toolcatalog.importers.descriptions import describe
from toolcatalog.importers.dialects import Loss

_SCHEMAS = {"inputSchema": "input_parameters", "outputSchema": "output_parameters"}
_READ = ("name", "title", "description", "annotations", *_SCHEMAS)


def additions(value: Any, toolkit: str = "") -> list[Addition]:
    """The tools in a JSON value: what `tools/list` answers, the JSON-RPC message around it, or the
    bare list.

    They go to `toolkit`, else to one named like the server (`serverInfo` beside `tools`). Raises
    UsageError, a sentence for each, where something is no tool of MCP, and where no toolkit is
    known.
    """
    tools, server = _listed(value)
    kit = _toolkit(toolkit, server)
    stop_at_many(len(tools), len(json.dumps(tools)))
    stop([fault for number, tool in enumerate(tools, 1) for fault in _faults(tool, number)])
    found = slugs.slugs(kit["slug"], [(tool["name"], tool["name"]) for tool in tools])
    return [_addition(tool, slug, kit) for tool, slug in zip(tools, found, strict=True)]


def _listed(value: Any) -> tuple[list[Any], Mapping[str, Any]]:
    """The tools, and what is said of their server."""
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        raise UsageError(
            "This is an error of an MCP server and no list of tools: "
            f"{str(value['error'].get('message', ''))[:200]}"
        )
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        value = value["result"]
    tools = value.get("tools") if isinstance(value, dict) else value
    if not isinstance(tools, list):
        raise UsageError(
            'There is no list of MCP tools here: give what `tools/list` answers, {"tools": '
            "[...]}, or a JSON array of tools."
        )
    server = value.get("serverInfo") if isinstance(value, dict) else None
    if isinstance(value, dict) and value.get("nextCursor"):
        raise UsageError(
            "This is one page of several (`nextCursor`): give all tools in one list, or the "
            "command that starts the server."
        )
    return tools, server if isinstance(server, dict) else {}


def _toolkit(chosen: str, server: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the toolkit: its slug, and what the server says of itself."""
    name = server.get("name") if isinstance(server.get("name"), str) else ""
    slug = chosen or re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_")
    if not slug:
        raise UsageError(
            "It is not said which toolkit these tools are of, and no server names itself "
            "here: say it with --toolkit SLUG."
        )
    if not names.fits(names.TOOLKIT_SLUG, slug):
        what = "lower-case letters, digits, `_` and `-`"
        raise UsageError(
            f"`{slug}` is not a toolkit slug: it needs {what}, at most {names.LONGEST}. Give "
            "one with --toolkit SLUG."
        )
    title, home = server.get("title") or name, server.get("websiteUrl")
    said = {
        "name": title if isinstance(title, str) else "",
        "homepage": home if isinstance(home, str) and home.startswith("https://") else "",
    }
    return {"slug": slug, **{key: text for key, text in said.items() if text}}


def _faults(tool: Any, number: int) -> Iterator[str]:
    """Why an item of the list, counted from 1, is no tool of MCP."""
    if not isinstance(tool, dict):
        yield f"Item {number} is not a JSON object: a tool of MCP has at least a name and an inputSchema."
        return
    name = tool.get("name")
    if not (isinstance(name, str) and name):
        yield f"Item {number} has no name: give it one, or remove the item."
    for key in _SCHEMAS:
        schema = tool.get(key)
        if schema is not None and not (
            isinstance(schema, dict) and schema.get("type", "object") in ("object", ["object"])
        ):
            yield f"`{key}` of item {number} ({str(name)[:100]!r}) is not the JSON Schema of an object: mend it, or remove it."


def _addition(tool: Mapping[str, Any], slug: str, toolkit: Mapping[str, Any]) -> Addition:
    hints = tool.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    losses = [
        Loss((key,), f"`{key}` of a tool")
        for key in tool
        if key not in _READ and tool[key] is not None
    ]
    losses += [*_untaken(hints)]
    title, text = tool.get("title") or hints.get("title"), tool.get("description")
    tags = [hint for hint in HINTS if hints.get(hint) is True]
    value: dict[str, Any] = {
        "name": title if isinstance(title, str) else tool["name"],
        "description": text if isinstance(text, str) else "",
        **({"tags": tags} if tags else {}),
    }
    for key, field in _SCHEMAS.items():
        described, lost = describe(tool.get(key) or {}, field)
        losses += lost
        value |= {field: described} if described else {}
    return Addition(slug=slug, value=value, toolkit=toolkit, losses=tuple(losses))


def _untaken(hints: Mapping[str, Any]) -> Iterator[Loss]:
    """What of a tool's hints has no place: a tag is there or not, and not being there is not a no."""
    for key, said in hints.items():
        if key in HINTS and said is False:
            yield Loss(("annotations", key), f"`{key}` that is false")
        elif key not in (*HINTS, "title") and said is not None:
            yield Loss(("annotations", key), f"`{key}` of annotations")
