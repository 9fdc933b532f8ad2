"""Import tool definitions from the wire format of this API family.

A definition has a slug, a name, a description, tags, and two JSON Schemas of objects. Some also
have the toolkit, a version, scopes and whether the tool is deprecated. Everything that the catalog
format can hold is imported; the rest is reported as a `Loss`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolcatalog.errors import UsageError, raise_all
from toolcatalog.importers.json_schema import MAX_TOTAL_SCHEMAS, Loss, SchemaBudget
from toolcatalog.importers.to_parameters import convert
from toolcatalog.importers.writer import ImportedTool, check_tool_count

_PARAMETER_FIELDS = ("input_parameters", "output_parameters")
_COPIED_FIELDS = ("name", "description", "scopes", "tags", "no_auth")  # unchanged
_KNOWN_FIELDS = (
    "slug",
    "toolkit",
    "version",
    "available_versions",
    "is_deprecated",
    "deprecated",
    *_COPIED_FIELDS,
    *_PARAMETER_FIELDS,
)
_FIELD_TYPES = {"toolkit": dict, "version": str, "available_versions": list, "deprecated": dict}


def import_tools(value: Any) -> list[ImportedTool]:
    """Convert a list of definitions, or a page of the API (`{"items": [...]}`), to tools.

    Raises UsageError, with a sentence for each fault, if an item is not a definition.
    """
    definitions = value.get("items") if isinstance(value, dict) else value
    if not isinstance(definitions, list):
        raise UsageError(
            "There is no list of tool definitions here: give a JSON array, or a page as the "
            'API sends it, {"items": [...]}.'
        )
    check_tool_count(len(definitions), len(json.dumps(definitions)))
    raise_all(
        [
            fault
            for number, definition in enumerate(definitions, 1)
            for fault in _find_faults(definition, number)
        ]
    )
    budget = SchemaBudget(MAX_TOTAL_SCHEMAS)
    return [_import_tool(definition, budget) for definition in definitions]


def _find_faults(definition: Any, number: int) -> Iterator[str]:
    """Yield why an item of the list, counted from 1, is not a tool definition."""
    if not isinstance(definition, dict):
        yield (
            f"Item {number} is not a JSON object: a tool definition has at least a slug, a name "
            "and a description."
        )
        return
    slug = definition.get("slug")
    if not (isinstance(slug, str) and slug):
        yield f"Item {number} has no slug: give it one, or remove the item."
    for key in _PARAMETER_FIELDS:
        if definition.get(key) is not None and not _describes_an_object(definition[key]):
            yield (
                f"`{key}` of item {number} ({slug!r}) is not the JSON Schema of an object: fix it, "
                "or remove it."
            )


def _describes_an_object(schema: Any) -> bool:
    return isinstance(schema, dict) and (
        isinstance(schema.get("type", {}), dict) or schema["type"] in ("object", ["object"])
    )


def _import_tool(definition: Mapping[str, Any], budget: SchemaBudget) -> ImportedTool:
    value = {
        key: definition[key] for key in _COPIED_FIELDS if definition.get(key) not in (None, [])
    }
    losses = [*_definition_losses(definition)]
    if _is_deprecated(definition):
        value["deprecation"] = {}
    for key in _PARAMETER_FIELDS:
        described, parameter_losses = convert(definition.get(key) or {}, key, budget)
        losses += parameter_losses
        if described:
            value[key] = described
    toolkit, version = definition.get("toolkit"), definition.get("version")
    return ImportedTool(
        slug=definition["slug"],
        value=value,
        toolkit=toolkit if isinstance(toolkit, dict) else {},
        version=version if isinstance(version, str) else "",
        losses=tuple(losses),
    )


def _is_deprecated(definition: Mapping[str, Any]) -> bool:
    details = definition.get("deprecated")
    return definition.get("is_deprecated") is True or (
        isinstance(details, dict) and details.get("is_deprecated") is True
    )


def _definition_losses(definition: Mapping[str, Any]) -> Iterator[Loss]:
    """Yield what of a definition has no place in a tool's file, apart from its parameters."""
    for key in definition:
        if key not in _KNOWN_FIELDS:
            yield Loss((key,), f"`{key}` of a tool")
    for key, field_type in _FIELD_TYPES.items():
        if not isinstance(definition.get(key), (field_type, type(None))):
            yield Loss((key,), f"`{key}` of a form that is not read")
    if others := _other_versions(definition):
        kind = "`available_versions` other than the one that is described"
        yield Loss(("available_versions",), kind, ", ".join(others))
    details, name = definition.get("deprecated"), definition.get("name")
    if isinstance(details, dict) and details.get("displayName", name) != name:
        yield Loss(("deprecated", "displayName"), "`displayName` other than the name")


def _other_versions(definition: Mapping[str, Any]) -> list[str]:
    """Return the versions of a tool other than the one that is described."""
    versions = definition.get("available_versions")
    if not isinstance(versions, list):
        return []
    return [str(version) for version in versions if version != definition.get("version")]
