"""Parameter descriptions: the form in a file, the served form, and the JSON Schema of the value.

A description is a JSON Schema with two differences: `required` is a boolean on the parameter
itself, and `properties` contains descriptions of the same form. The served form is always complete
and uniform, because one unusual schema can break a whole page in a client library.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer

Description = Mapping[str, Any]

TYPES = ("string", "number", "integer", "boolean", "object", "array")
LOWER_BOUNDS = ("minimum", "exclusiveMinimum", "minLength", "minItems")
UPPER_BOUNDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")
LIMITS = (
    "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "minLength", "maxLength", "minItems", "maxItems", "uniqueItems",
)  # fmt: skip
BRANCHES = ("anyOf", "oneOf")
NESTING = frozenset(("properties", "items", "additionalProperties", *BRANCHES))
CHILD_LABELS = {
    "items": "each item",
    "additionalProperties": "each other value",
    "anyOf": "any of",
    "oneOf": "one of",
}
_CONSTRAINTS = ("enum", *LIMITS)
_MAX_CHOICES = 200  # enum values that are compared one by one
_PLAIN_KEYWORDS = {
    "type",
    "description",
    "title",
    "examples",
    "default",
    "required",
    "nullable",
    "enum",
    "properties",
    "items",
    "additionalProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
}
_PYTHON_TYPES = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def type_of(description: Description) -> str:
    """Return the single type to serve.

    It is the stated type, or the common type of the branches, or the first branch's if they differ.
    """
    if "type" in description:
        return str(description["type"])
    kinds = [type_of(branch) for key in BRANCHES for branch in description.get(key, ())]
    return "number" if {*kinds} == {"integer", "number"} else kinds[0]


def to_served_inputs(parameters: Mapping[str, Description]) -> dict[str, Any]:
    """Return the served form of inputs: every named parameter at every level has `required`."""
    return {
        name: _to_served(description, to_served_inputs, bool(description.get("required", False)))
        for name, description in parameters.items()
    }


def to_served_outputs(parameters: Mapping[str, Description]) -> dict[str, Any]:
    """Return the served form of outputs: no parameter has `required`."""
    return {
        name: _to_served(description, to_served_outputs, None)
        for name, description in parameters.items()
    }


def _to_served(description: Description, convert: Any, required: bool | None) -> dict[str, Any]:
    served: dict[str, Any] = {"type": type_of(description), "description": "", "required": required}
    served.update(description)  # existing keys keep their order
    if required is None:
        del served["required"]
    else:
        served["required"] = required
    if not NESTING.isdisjoint(description):
        for key in NESTING & description.keys():
            served[key] = _to_served_child(key, description[key], convert)
    return served


def _to_served_child(key: str, value: Any, convert: Any) -> Any:
    if key == "properties":
        return convert(value)
    if key in BRANCHES:
        return [_to_served(branch, convert, None) for branch in value]
    return _to_served(value, convert, None) if isinstance(value, dict) else value


def to_value_schema(description: Description, with_enum: bool = True) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a value of this description, without annotations.

    `with_enum` False leaves out the outermost `enum`.
    """
    schema: dict[str, Any] = {
        key: description[key]
        for key in _CONSTRAINTS
        if key in description and (with_enum or key != "enum")
    }
    if "type" in description:
        schema["type"] = description["type"]
    for key in BRANCHES:
        if key in description:
            schema[key] = [to_value_schema(branch) for branch in description[key]]
    if "items" in description:
        schema["items"] = to_value_schema(description["items"])
    if "properties" in description:
        schema["properties"] = {
            name: to_value_schema(inner) for name, inner in description["properties"].items()
        }
        schema["required"] = [
            name for name, inner in description["properties"].items() if inner.get("required")
        ]
    if "additionalProperties" in description:
        others = description["additionalProperties"]
        schema["additionalProperties"] = (
            to_value_schema(others) if isinstance(others, Mapping) else others
        )
        # without it the validator does not report which property is invalid
        schema.setdefault("properties", {})
    return _allow_null(schema) if description.get("nullable") else schema


def _allow_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema extended by null, as a second type if possible.

    Validators report errors in an `anyOf` with little detail.
    """
    if "type" not in schema or any(key in schema for key in BRANCHES):
        return {"anyOf": [schema, {"type": "null"}]}
    return {
        **schema,
        "type": [schema["type"], "null"],
        **({"enum": [*schema["enum"], None]} if "enum" in schema else {}),
    }


def has_plainly_valid_values(description: Description, constraint: Description) -> bool:
    """Return whether enum, examples and default of a description certainly fit `constraint`.

    `constraint` is the description, without choices that are not known yet. This is the case if
    `to_value_schema` only needs types, bounds, and strings of an enum. False only means that a
    validator is needed. Nearly all descriptions are this plain, and creating a validator for each
    would take more time than all other checks together.
    """
    if not _is_plain(constraint):
        return False
    samples = (
        [*description.get("examples", ()), description["default"]]
        if "default" in description
        else description.get("examples", ())
    )
    return _are_plainly_valid(
        constraint, description.get("enum", ()), enum=False
    ) and _are_plainly_valid(constraint, samples)


def _is_plain(description: Description) -> bool:
    """Return whether `to_value_schema` certainly gives a schema of simple keywords only.

    This must hold at all levels.
    """
    if (
        not description.keys() <= _PLAIN_KEYWORDS
        or "type" not in description
        or len(description.get("enum", ())) > _MAX_CHOICES
    ):
        return False
    if NESTING.isdisjoint(description):
        return True
    inner = [
        *description.get("properties", {}).values(),
        description.get("items"),
        description.get("additionalProperties"),
    ]
    return all(_is_plain(child) for child in inner if isinstance(child, dict))


def _are_plainly_valid(description: Description, values: Iterable[Any], enum: bool = True) -> bool:
    kind = description["type"]
    kinds = _PYTHON_TYPES[kind]
    choices = description.get("enum") if enum else None
    for value in values:
        if value is None and description.get("nullable"):
            continue
        if type(value) not in kinds or (
            choices is not None and (kind != "string" or value not in choices)
        ):
            # equality of other values, such as 1 and 1.0, is left to the validator
            return False
        if not _is_within_bounds(description, kind, value):
            return False
        if (
            kind == "array"
            and "items" in description
            and not _are_plainly_valid(description["items"], value)
        ):
            return False
        if kind == "object" and not NESTING.isdisjoint(description):
            return False
    return True


def _is_within_bounds(description: Description, kind: str, value: Any) -> bool:
    """Return whether a value of this kind is within the bounds of its description.

    Lists and objects have no such bounds.
    """
    if kind == "string":
        return bool(
            description.get("minLength", 0)
            <= len(value)
            <= description.get("maxLength", len(value))
        )
    if kind in ("number", "integer"):
        return bool(description.get("minimum", value) <= value <= description.get("maximum", value))
    return True


class Child(NamedTuple):
    """A description directly within another one.

    `steps` lead to it from the outer description. `name` is that of a property, empty for items,
    other properties and branches.
    """

    steps: Pointer
    name: str
    description: Description


def children(description: Description) -> Iterable[Child]:
    """Return the descriptions directly within one, of which most have none.

    They are properties, items, other properties and branches, in this order.
    """
    return () if NESTING.isdisjoint(description) else _iter_children(description)


def _iter_children(description: Description) -> Iterator[Child]:
    for name, inner in description.get("properties", {}).items():
        yield Child(("properties", name), name, inner)
    for key in ("items", "additionalProperties"):
        if isinstance(description.get(key), Mapping):
            yield Child((key,), "", description[key])
    for key in BRANCHES:
        for index, branch in enumerate(description.get(key, ())):
            yield Child((key, index), "", branch)


def walk_descriptions(
    parameters: Mapping[str, Description], pointer: Pointer
) -> Iterator[tuple[Pointer, Description]]:
    """Yield every description of a map of parameters, at every level.

    Each comes with its pointer from the file's root.
    """
    for name, description in parameters.items():
        yield from _walk_description(description, (*pointer, name))


def _walk_description(
    description: Description, pointer: Pointer
) -> Iterator[tuple[Pointer, Description]]:
    yield pointer, description
    for child in children(description):
        yield from _walk_description(child.description, (*pointer, *child.steps))


def iter_texts(parameters: Mapping[str, Description]) -> Iterator[tuple[str, str]]:
    """Yield name and description text of every parameter, at every level.

    The name is empty for values that have none.
    """
    for name, description in parameters.items():
        yield from _iter_description_texts(name, description)


def _iter_description_texts(name: str, description: Description) -> Iterator[tuple[str, str]]:
    yield name, description.get("description", "")
    for child in children(description):
        yield from _iter_description_texts(child.name, child.description)
