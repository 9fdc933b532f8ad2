"""Gemini schemas: JSON Schema to the subset of OpenAPI 3.0 that Gemini's `parameters` accept.

What the subset cannot express is left out, and reported by its keyword. So the result accepts more
than the JSON Schema, except for an array of any items: Gemini requires a type, which is `string`.
"""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_KEPT = frozenset(
    (
        "title",
        "description",
        "default",
        "maximum",
        "minimum",
        "maxItems",
        "minItems",
        "maxLength",
        "minLength",
        "maxProperties",
        "minProperties",
        "pattern",
    )
)
_CONVERTED = frozenset(
    ("type", "format", "examples", "properties", "required", "items", "enum", "anyOf")
)
# the formats of the subset; others are hints that Gemini rejects
_FORMATS = {
    "string": ("date-time", "enum"),
    "integer": ("int32", "int64"),
    "number": ("float", "double"),
}


def to_gemini_schema(schema: Mapping[str, Any], losses: set[str]) -> Schema:
    """Convert a JSON Schema; add the keywords that are left out to `losses`."""
    kind, is_nullable = _split_type(schema.get("type"))
    result: Schema = {"type": kind} if kind else {}
    result |= {key: value for key, value in schema.items() if key in _KEPT}
    losses.update({*schema} - _KEPT - _CONVERTED)
    if schema.get("format") in _FORMATS.get(kind, ()):
        result["format"] = schema["format"]
    if schema.get("examples"):
        result["example"] = schema["examples"][0]
    if kind == "object":
        _add_properties(result, schema, losses)
    if kind == "array":
        _add_items(result, schema, losses)
    if "enum" in schema:
        _add_enum(result, schema["enum"], losses)
        is_nullable = is_nullable or None in schema["enum"]
    branches = [branch for key in ("anyOf", "oneOf") for branch in schema.get(key, ())]
    if branches:
        is_nullable = _add_branches(result, branches, losses) or is_nullable
    return {**result, "nullable": True} if is_nullable else result


def _add_properties(result: Schema, schema: Mapping[str, Any], losses: set[str]) -> None:
    """Add the properties of an object; Gemini rejects an empty list of them."""
    if schema.get("properties"):
        result["properties"] = {
            name: to_gemini_schema(inner, losses) for name, inner in schema["properties"].items()
        }
    if schema.get("required"):
        result["required"] = schema["required"]


def _add_items(result: Schema, schema: Mapping[str, Any], losses: set[str]) -> None:
    """Add the items of an array; Gemini requires a type for them."""
    if not schema.get("items"):
        losses.add("items")
    result["items"] = to_gemini_schema(schema.get("items") or {"type": "string"}, losses)


def _split_type(types: Any) -> tuple[str, bool]:
    """Return the type of a schema, and whether null is accepted too."""
    if isinstance(types, list):
        others = [name for name in types if name != "null"]
        return (others[0] if len(others) == 1 else ""), "null" in types
    return types or "", False


def _add_enum(result: Schema, values: list[Any], losses: set[str]) -> None:
    """Add allowed values: Gemini accepts them only as texts."""
    texts = [value for value in values if value is not None]
    if result.get("type") == "string" and all(isinstance(value, str) and value for value in texts):
        result["enum"] = texts
    else:
        losses.add("enum")


def _add_branches(result: Schema, branches: list[Mapping[str, Any]], losses: set[str]) -> bool:
    """Add branches, of which a value fits at least one; return whether one is null alone."""
    others = [branch for branch in branches if branch.get("type") != "null"]
    converted = [to_gemini_schema(branch, losses) for branch in others]
    if len(converted) == 1:
        for key, value in converted[0].items():
            result.setdefault(key, value)
    elif converted:
        result["anyOf"] = converted
    return len(others) < len(branches)
