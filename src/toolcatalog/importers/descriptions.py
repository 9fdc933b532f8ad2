"""JSON Schemas of other makers to parameter descriptions of the catalog. Pure.

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
from toolcatalog.errors import Pointer
from toolcatalog.formats import SCHEMAS
from toolcatalog.importers.dialects import BRANCHES, Loss, Reader, Schema, keywords
from toolcatalog.yaml12 import DEEPEST

# `required` aside, which has rules of its own
_HELD = SCHEMAS["tool"]["$defs"]["output"]["properties"]
_NAMES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}
_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair: no Unicode text has it
_ANYTHING = ("string", "number", "boolean", "object", "array", "null")


def describe(schema: Mapping[str, Any], of: str) -> tuple[dict[str, Any], list[Loss]]:
    """The parameters that a schema describes, and what it says that they cannot.

    `schema` is a JSON Schema of an object or, as the API serves it, a map of names to descriptions;
    `of` names the tool's field, `input_parameters` or `output_parameters`.
    """
    served = bool(schema) and all(
        isinstance(inner, dict) and isinstance(inner.get("type"), str) for inner in schema.values()
    )
    reader = Reader(schema)
    root = reader.plain({"properties": schema} if served else schema, (of,)) or {}
    return parameters_of(root, of, reader, served), reader.losses


def parameters_of(root: Schema, of: str, reader: Reader, served: bool = False) -> dict[str, Any]:
    """The parameters that a plain schema of an object describes; what it says that they cannot is
    told to the reader that made it.
    """
    writer = _Writer(reader.lose, of == "input_parameters", served)
    writer.tell_required(root, (of,))
    for key in root:
        if key not in ("type", "properties", "required"):
            reader.lose((of, key), f"`{key}` of a whole parameters object")
    return writer.named(root, (of,))


def holdable(value: Any, depth: int) -> bool:
    """Tell whether a catalog file can hold a JSON value at this depth, where the file's whole value
    is at 1.
    """
    if isinstance(value, dict):
        return depth <= DEEPEST and all(
            holdable(key, depth) and holdable(inner, depth + 1) for key, inner in value.items()
        )
    if isinstance(value, list):
        return depth <= DEEPEST and all(holdable(inner, depth + 1) for inner in value)
    if isinstance(value, str):
        return depth <= DEEPEST and (value.isascii() or not _HALF.search(value))
    if isinstance(value, float):
        return depth <= DEEPEST and math.isfinite(value)
    return depth <= DEEPEST and (value is None or -(2**63) <= value < 2**63)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes descriptions from plain schemas; `inputs`: with `required`; `served`: from
    descriptions that the API has made.
    """

    lose: Callable[..., None]
    inputs: bool
    served: bool

    def named(self, own: Schema, inside: Pointer) -> dict[str, Any]:
        """The descriptions of an object's properties; `inside` is where they stand."""
        said = own.get("required")
        needed = {*said} if isinstance(said, list) else ()
        found = {}
        for name, inner in own.get("properties", {}).items():
            required = self.inputs and (name in needed or inner.get("required") is True)
            if holdable(name, 1):
                found[name] = self.description(inner, (*inside, name), required)
            else:
                self.lose(inside, "a name that is not Unicode")
        return found

    def description(
        self, own: Schema, at: Pointer, required: bool = False, outer: str = ""
    ) -> dict[str, Any]:
        """The description of one value; `outer` is the type of the description that this one is a
        branch of, if it has one.
        """
        self.tell_required(own, at, required)
        own = self.typed(own, at, outer)
        answer = {key: value for key in own for value in self.kept(key, own, at)}
        if self.served and any(key in answer for key in BRANCHES):
            answer = _without_type_of_branches(answer)
        first: dict[str, Any] = {
            key: answer[key] for key in ("type", "description") if key in answer
        }
        return {**first, **({"required": True} if required else {}), **answer}

    def tell_required(self, own: Schema, at: Pointer, required: bool = False) -> None:
        """Tell what of `required` has no place; `required`: this value says so itself."""
        said = own.get("required", [])
        if said and not self.inputs:
            self.lose((*at, "required"), "`required` of outputs")
        elif said is True and not required:
            self.lose((*at, "required"), "`required` of a value without a name")
        for name in said if isinstance(said, list) and self.inputs else ():
            if name not in own.get("properties", {}):
                self.lose((*at, "required"), "a required property that is not described", name)

    def typed(self, own: Schema, at: Pointer, outer: str) -> Schema:
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
            if any(key in own for key in keywords(kind))
        ]
        if "enum" in own:
            kinds = [*dict.fromkeys(_NAMES[type(value)] for value in own["enum"])]
        elif outer:
            kinds = [outer]
        elif len(telling) == 1:
            kinds = telling
            self.lose(
                (*at, "type"), "no `type` in the source: taken from the other keywords", telling[0]
            )
        else:
            kinds = [*_ANYTHING]
        nullable = {"nullable": True} if "null" in kinds else {}
        types = [kind for kind in kinds if kind != "null"] or ["string"]
        if len(types) == 1:
            return {"type": types[0], **own, **nullable}
        return {**own, "anyOf": [{"type": kind} for kind in types], **nullable}

    def kept(self, key: str, own: Schema, at: Pointer) -> Iterator[Any]:
        """The value of a keyword as the format holds it; nothing where it does not."""
        value = own[key]
        if key == "properties":
            yield self.named(own, (*at, key))
        elif key == "items" or (key == "additionalProperties" and isinstance(value, dict)):
            yield self.description(value, (*at, key))
        elif key in BRANCHES:
            outer = own.get("type", "")
            yield from (
                [
                    [
                        self.description(branch, (*at, key, index), outer=outer)
                        for index, branch in enumerate(value)
                    ]
                ]
                if value
                else []
            )
        elif key in ("enum", "examples"):
            yield from self.choice(key, value, at)
        elif key in _HELD and holdable(value, len(at) + 2):
            yield value
        elif key != "required":
            self.lose(
                (*at, key),
                f"`{key}`" if key not in _HELD else f"`{key}` that YAML as read here cannot hold",
            )

    def choice(self, key: str, values: list[Any], at: Pointer) -> Iterator[list[Any]]:
        """A list of values without those that a file cannot hold."""
        kept = [value for value in values if holdable(value, len(at) + 3)]
        if len(kept) < len(values):
            self.lose((*at, key), f"a value of `{key}` that YAML as read here cannot hold")
        if kept or not values:
            yield kept


def _without_type_of_branches(answer: dict[str, Any]) -> dict[str, Any]:
    """A description without the type that the API gives it beside its branches: the API will give
    it again.
    """
    rest = {key: value for key, value in answer.items() if key != "type"}
    return rest if parameters.type_of(rest) == answer.get("type") else answer
