"""Conversion of JSON Schema to the parameter descriptions of the catalog.

`json_schema` first normalizes the schemas. This module then turns a list of required names into
`required` on each parameter, gives every description a type, and reports what the format cannot
hold as a `Loss`. Values are never changed. `catalog.schema` checks whether examples and defaults
match their descriptions.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolcatalog import parameters
from toolcatalog.catalog.file_schemas import SCHEMAS
from toolcatalog.catalog.yaml_reader import MAX_DEPTH
from toolcatalog.errors import Pointer
from toolcatalog.importers.json_schema import (
    BRANCHES,
    Loss,
    Normalizer,
    Schema,
    SchemaBudget,
    type_keywords,
)

# without `required`, which has its own rules
_SUPPORTED_KEYWORDS = SCHEMAS["tool"]["$defs"]["output"]["properties"]
_TYPE_NAMES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # invalid in Unicode text
_ANY_TYPE = ("string", "number", "boolean", "object", "array", "null")


def convert(
    schema: Mapping[str, Any], field: str, budget: SchemaBudget | None = None
) -> tuple[dict[str, Any], list[Loss]]:
    """Convert a JSON Schema of an object to parameters, and return them with the losses.

    `schema` may also be a map of names to descriptions, as the API serves it. `field` is the tool's
    field, `input_parameters` or `output_parameters`. Several conversions share `budget`. Raises
    UsageError if it is exceeded.
    """
    is_served = bool(schema) and all(
        isinstance(inner, dict) and isinstance(inner.get("type"), str) for inner in schema.values()
    )
    normalizer = Normalizer(schema)
    root = normalizer.normalize({"properties": schema} if is_served else schema, (field,)) or {}
    if budget is not None:
        budget.charge(normalizer)
    return convert_normalized(root, field, normalizer, is_served), normalizer.losses


def convert_normalized(
    root: Schema, field: str, normalizer: Normalizer, served: bool = False
) -> dict[str, Any]:
    """Convert the plain schema of an object to parameters.

    Losses are recorded in the normalizer that produced the schema.
    """
    writer = _ParameterWriter(normalizer.report_loss, field == "input_parameters", served)
    writer.report_required(root, (field,))
    for key in root:
        if key not in ("type", "properties", "required"):
            normalizer.report_loss((field, key), f"`{key}` of a whole parameters object")
    return writer.convert_properties(root, (field,))


def is_storable(value: Any, depth: int) -> bool:
    """Return whether a catalog file can hold a JSON value at this depth.

    The top-level value of a file is at depth 1.
    """
    if isinstance(value, dict):
        return depth <= MAX_DEPTH and all(
            is_storable(key, depth) and is_storable(inner, depth + 1)
            for key, inner in value.items()
        )
    if isinstance(value, list):
        return depth <= MAX_DEPTH and all(is_storable(inner, depth + 1) for inner in value)
    if isinstance(value, str):
        return depth <= MAX_DEPTH and (value.isascii() or not _LONE_SURROGATE.search(value))
    if isinstance(value, float):
        return depth <= MAX_DEPTH and math.isfinite(value)
    return depth <= MAX_DEPTH and (value is None or -(2**63) <= value < 2**63)


@dataclass(frozen=True, slots=True)
class _ParameterWriter:
    """Converts plain schemas to parameter descriptions.

    `is_input` adds `required`; `is_served` means that the source is descriptions served by the API.
    """

    report_loss: Callable[..., None]
    is_input: bool
    is_served: bool

    def convert_properties(self, schema: Schema, pointer: Pointer) -> dict[str, Any]:
        """Return the descriptions of an object's properties; `pointer` is their location."""
        names = schema.get("required")
        required_names = {*names} if isinstance(names, list) else ()
        described = {}
        for name, inner in schema.get("properties", {}).items():
            required = self.is_input and (name in required_names or inner.get("required") is True)
            if is_storable(name, 1):
                described[name] = self.convert_description(inner, (*pointer, name), required)
            else:
                self.report_loss(pointer, "a name that is not Unicode")
        return described

    def convert_description(
        self, schema: Schema, pointer: Pointer, required: bool = False, outer_type: str = ""
    ) -> dict[str, Any]:
        """Return the description of one value.

        `outer_type` is the type of the description that this one is a branch of, or empty.
        """
        self.report_required(schema, pointer, required)
        schema = self.add_type(schema, pointer, outer_type)
        fields = {
            key: value for key in schema for value in self.convert_keyword(key, schema, pointer)
        }
        if self.is_served and any(key in fields for key in BRANCHES):
            fields = _remove_type_of_branches(fields)
        first: dict[str, Any] = {
            key: fields[key] for key in ("type", "description") if key in fields
        }
        return {**first, **({"required": True} if required else {}), **fields}

    def report_required(self, schema: Schema, pointer: Pointer, required: bool = False) -> None:
        """Report what of `required` has no place.

        The argument `required` is true if the value itself is required.
        """
        stated = schema.get("required", [])
        if stated and not self.is_input:
            self.report_loss((*pointer, "required"), "`required` of outputs")
        elif stated is True and not required:
            self.report_loss((*pointer, "required"), "`required` of a value without a name")
        for name in stated if isinstance(stated, list) and self.is_input else ():
            if name not in schema.get("properties", {}):
                kind = "a required property that is not described"
                self.report_loss((*pointer, "required"), kind, name)

    def add_type(self, schema: Schema, pointer: Pointer, outer_type: str) -> Schema:
        """Return the schema with a `type` or branches, which the format requires.

        A schema without any indication of its type may be any value.
        """
        if schema.get("type") == "null":
            return {**schema, "type": "string", "nullable": True, "enum": [None]}
        if "type" in schema or any(schema.get(key) for key in BRANCHES):
            return schema
        kinds = self.guess_types(schema, pointer, outer_type)
        nullable = {"nullable": True} if "null" in kinds else {}
        types = [kind for kind in kinds if kind != "null"] or ["string"]
        if len(types) == 1:
            return {"type": types[0], **schema, **nullable}
        return {**schema, "anyOf": [{"type": kind} for kind in types], **nullable}

    def guess_types(self, schema: Schema, pointer: Pointer, outer_type: str) -> list[str]:
        """Return the types that the values of a schema without `type` may have."""
        if "enum" in schema:
            return [*dict.fromkeys(_TYPE_NAMES[type(value)] for value in schema["enum"])]
        if outer_type:
            return [outer_type]
        implied = [
            name
            for name in ("string", "number", "array", "object")
            if any(key in schema for key in type_keywords(name))
        ]
        if len(implied) != 1:
            return [*_ANY_TYPE]
        kind = "no `type` in the source: taken from the other keywords"
        self.report_loss((*pointer, "type"), kind, implied[0])
        return implied

    def convert_keyword(self, key: str, schema: Schema, pointer: Pointer) -> Iterator[Any]:
        """Yield the value of a keyword in the catalog format, or nothing if it has no place."""
        value = schema[key]
        if key == "properties":
            yield self.convert_properties(schema, (*pointer, key))
        elif key == "items" or (key == "additionalProperties" and isinstance(value, dict)):
            yield self.convert_description(value, (*pointer, key))
        elif key in BRANCHES:
            if value:
                yield self.convert_branches(key, schema, pointer)
        elif key in ("enum", "examples"):
            yield from self.filter_values(key, value, pointer)
        elif key in _SUPPORTED_KEYWORDS and is_storable(value, len(pointer) + 2):
            yield value
        elif key != "required":
            kind = (
                " with a value that no catalog file can hold" if key in _SUPPORTED_KEYWORDS else ""
            )
            self.report_loss((*pointer, key), f"`{key}`{kind}")

    def convert_branches(self, key: str, schema: Schema, pointer: Pointer) -> list[dict[str, Any]]:
        """Return the descriptions of the branches of a choice."""
        outer = schema.get("type", "")
        return [
            self.convert_description(branch, (*pointer, key, index), outer_type=outer)
            for index, branch in enumerate(schema[key])
        ]

    def filter_values(self, key: str, values: list[Any], pointer: Pointer) -> Iterator[list[Any]]:
        """Yield a list of values without those that a file cannot hold."""
        storable = [value for value in values if is_storable(value, len(pointer) + 3)]
        if len(storable) < len(values):
            self.report_loss((*pointer, key), f"a value of `{key}` that no catalog file can hold")
        if storable or not values:
            yield storable


def _remove_type_of_branches(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a description without the type that the API derives from its branches.

    The API derives it again when it serves the description.
    """
    rest = {key: value for key, value in fields.items() if key != "type"}
    return rest if parameters.type_of(rest) == fields.get("type") else fields
