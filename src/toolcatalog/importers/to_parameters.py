"""JSON Schema to parameter descriptions of the catalog.

`dialects` brings them into one spelling first; here a list of required names becomes `required` on
each parameter, everything gets a type, and what the format has no place for is told as a `Loss`.
Values are never changed. Whether an example or a default fits its description is `schema`'s affair.
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
from toolcatalog.importers.json_schema import BRANCHES, Loss, Normalizer, Schema, type_keywords

# `required` aside, which has rules of its own
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
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # of a surrogate pair: no Unicode text has it
_ANY_TYPE = ("string", "number", "boolean", "object", "array", "null")


def convert(schema: Mapping[str, Any], field: str) -> tuple[dict[str, Any], list[Loss]]:
    """The parameters that a schema describes, and what it says that they cannot.

    `schema` is a JSON Schema of an object or, as the API serves it, a map of names to descriptions;
    `of` names the tool's field, `input_parameters` or `output_parameters`.
    """
    served = bool(schema) and all(
        isinstance(inner, dict) and isinstance(inner.get("type"), str) for inner in schema.values()
    )
    reader = Normalizer(schema)
    root = reader.normalize({"properties": schema} if served else schema, (field,)) or {}
    return convert_normalized(root, field, reader, served), reader.losses


def convert_normalized(
    root: Schema, field: str, normalizer: Normalizer, served: bool = False
) -> dict[str, Any]:
    """The parameters that a plain schema of an object describes; what it says that they cannot is
    told to the reader that made it.
    """
    writer = _ParameterWriter(normalizer.report_loss, field == "input_parameters", served)
    writer.report_required(root, (field,))
    for key in root:
        if key not in ("type", "properties", "required"):
            normalizer.report_loss((field, key), f"`{key}` of a whole parameters object")
    return writer.convert_properties(root, (field,))


def is_storable(value: Any, depth: int) -> bool:
    """Tell whether a catalog file can hold a JSON value at this depth, where the file's whole value
    is at 1.
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
    """Writes descriptions from plain schemas; `inputs`: with `required`; `served`: from
    descriptions that the API has made.
    """

    report_loss: Callable[..., None]
    is_input: bool
    is_served: bool

    def convert_properties(self, own: Schema, pointer: Pointer) -> dict[str, Any]:
        """The descriptions of an object's properties; `inside` is where they stand."""
        said = own.get("required")
        needed = {*said} if isinstance(said, list) else ()
        found = {}
        for name, inner in own.get("properties", {}).items():
            required = self.is_input and (name in needed or inner.get("required") is True)
            if is_storable(name, 1):
                found[name] = self.convert_description(inner, (*pointer, name), required)
            else:
                self.report_loss(pointer, "a name that is not Unicode")
        return found

    def convert_description(
        self, own: Schema, pointer: Pointer, required: bool = False, outer_type: str = ""
    ) -> dict[str, Any]:
        """The description of one value; `outer` is the type of the description that this one is a
        branch of, if it has one.
        """
        self.report_required(own, pointer, required)
        own = self.add_type(own, pointer, outer_type)
        answer = {key: value for key in own for value in self.convert_keyword(key, own, pointer)}
        if self.is_served and any(key in answer for key in BRANCHES):
            answer = _remove_type_of_branches(answer)
        first: dict[str, Any] = {
            key: answer[key] for key in ("type", "description") if key in answer
        }
        return {**first, **({"required": True} if required else {}), **answer}

    def report_required(self, own: Schema, pointer: Pointer, required: bool = False) -> None:
        """Tell what of `required` has no place; `required`: this value says so itself."""
        said = own.get("required", [])
        if said and not self.is_input:
            self.report_loss((*pointer, "required"), "`required` of outputs")
        elif said is True and not required:
            self.report_loss((*pointer, "required"), "`required` of a value without a name")
        for name in said if isinstance(said, list) and self.is_input else ():
            if name not in own.get("properties", {}):
                self.report_loss(
                    (*pointer, "required"), "a required property that is not described", name
                )

    def add_type(self, own: Schema, pointer: Pointer, outer_type: str) -> Schema:
        """The schema with a `type` or branches, as the format wants it; what is said of no type in
        particular may be anything.
        """
        if own.get("type") == "null":
            return {**own, "type": "string", "nullable": True, "enum": [None]}
        if "type" in own or any(own.get(key) for key in BRANCHES):
            return own
        telling = [
            kind
            for kind in ("string", "number", "array", "object")
            if any(key in own for key in type_keywords(kind))
        ]
        if "enum" in own:
            kinds = [*dict.fromkeys(_TYPE_NAMES[type(value)] for value in own["enum"])]
        elif outer_type:
            kinds = [outer_type]
        elif len(telling) == 1:
            kinds = telling
            self.report_loss(
                (*pointer, "type"),
                "no `type` in the source: taken from the other keywords",
                telling[0],
            )
        else:
            kinds = [*_ANY_TYPE]
        nullable = {"nullable": True} if "null" in kinds else {}
        types = [kind for kind in kinds if kind != "null"] or ["string"]
        if len(types) == 1:
            return {"type": types[0], **own, **nullable}
        return {**own, "anyOf": [{"type": kind} for kind in types], **nullable}

    def convert_keyword(self, key: str, own: Schema, pointer: Pointer) -> Iterator[Any]:
        """The value of a keyword as the format holds it; nothing where it does not."""
        value = own[key]
        if key == "properties":
            yield self.convert_properties(own, (*pointer, key))
        elif key == "items" or (key == "additionalProperties" and isinstance(value, dict)):
            yield self.convert_description(value, (*pointer, key))
        elif key in BRANCHES:
            outer = own.get("type", "")
            yield from (
                [
                    [
                        self.convert_description(branch, (*pointer, key, index), outer_type=outer)
                        for index, branch in enumerate(value)
                    ]
                ]
                if value
                else []
            )
        elif key in ("enum", "examples"):
            yield from self.filter_values(key, value, pointer)
        elif key in _SUPPORTED_KEYWORDS and is_storable(value, len(pointer) + 2):
            yield value
        elif key != "required":
            self.report_loss(
                (*pointer, key),
                f"`{key}`"
                if key not in _SUPPORTED_KEYWORDS
                else f"`{key}` that YAML as read here cannot hold",
            )

    def filter_values(self, key: str, values: list[Any], pointer: Pointer) -> Iterator[list[Any]]:
        """A list of values without those that a file cannot hold."""
        kept = [value for value in values if is_storable(value, len(pointer) + 3)]
        if len(kept) < len(values):
            self.report_loss(
                (*pointer, key), f"a value of `{key}` that YAML as read here cannot hold"
            )
        if kept or not values:
            yield kept


def _remove_type_of_branches(answer: dict[str, Any]) -> dict[str, Any]:
    """A description without the type that the API gives it beside its branches: the API will give
    it again.
    """
    rest = {key: value for key, value in answer.items() if key != "type"}
    return rest if parameters.type_of(rest) == answer.get("type") else answer
