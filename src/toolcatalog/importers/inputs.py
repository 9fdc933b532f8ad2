"""The inputs of an operation of an OpenAPI document: its parameters and its body, as one set. Pure.

An input has a name and nothing else to be known by, so of two with one name the second gets
another. The fields of a body that is an object stand beside the parameters; any other body is one
input.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
from toolcatalog.importers.bodies import (
    FILE_SCHEMA,
    INPUTS,
    body_to_object,
    read_examples,
    read_request_body,
)
from toolcatalog.importers.dialects import Normalizer, Schema
from toolcatalog.importers.operations import Operation, list_parameters
from toolcatalog.importers.paper import DocumentReader

# of two inputs with one name, that of the first place keeps it
_LOCATIONS = ("path", "query", "header", "cookie", "formData", "body")
_IGNORED_HEADERS = (
    "accept",
    "content-type",
    "authorization",
)  # headers that OpenAPI wants left out
_PARAMETER_FIELDS = (
    "name",
    "in",
    "required",
    "description",
    "schema",
    "content",
    "example",
    "examples",
    "x-example",
)
# of how an input is sent
_SERIALIZATION_FIELDS = (
    "collectionFormat",
    "allowEmptyValue",
    "style",
    "explode",
    "allowReserved",
    "deprecated",
)


class Input(NamedTuple):
    """An input: its name, where it goes, what it is (plain), and whether the caller must give it."""

    name: str
    location: str
    schema: Schema
    required: bool


def collect_inputs(
    document: DocumentReader, operation: Operation, normalizer: Normalizer
) -> Schema:
    """The plain schema of the object that all inputs make."""
    said = [
        (one, at)
        for one, at in list_parameters(document, operation, normalizer.report_loss)
        if one["in"] != "body"
    ]
    found = [made for one, at in said for made in _parameter_inputs(document, one, at, normalizer)]
    body = read_request_body(document, operation, normalizer)
    whole = body_to_object(normalizer, body, INPUTS, "body") if body else {}
    needed = {*whole.get("required", ())}
    found += [
        Input(name, "body", one, name in needed)
        for name, one in _writable_fields(whole, normalizer).items()
    ]
    named = [*_make_names_unique(found, normalizer)]
    required = [one.name for one in named if one.required]
    undescribed = [name for name in whole.get("required", ()) if name not in whole["properties"]]
    return {
        **whole,
        "properties": {one.name: one.schema for one in named},
        "required": [*required, *undescribed],
    }


def _parameter_inputs(
    document: DocumentReader, parameter: dict[str, Any], pointer: Pointer, normalizer: Normalizer
) -> Iterator[Input]:
    """The input that a parameter is, if it is one."""
    name, place = parameter["name"], parameter["in"]
    if place not in _LOCATIONS:
        document.add_fault(
            (*pointer, "in"),
            "`in` is none of "
            + ", ".join(_LOCATIONS[: 6 if "swagger" in document.root else 4])
            + ".",
        )
        return
    if place == "header" and name.lower() in _IGNORED_HEADERS:
        normalizer.report_loss((INPUTS, name), "a header that every request has")
        return
    plain = normalizer.normalize(
        _parameter_schema(document, parameter, pointer, normalizer), (INPUTS, name)
    )
    required = document.get(parameter, pointer, "required", bool) or place == "path"
    normalizer.report_loss((INPUTS, name, "in"), "where an input goes (`in`)", place)
    if plain is not None:
        yield Input(
            name,
            place,
            _with_description(document, parameter, pointer, plain, normalizer),
            required,
        )


def _parameter_schema(
    document: DocumentReader, parameter: dict[str, Any], pointer: Pointer, normalizer: Normalizer
) -> Any:
    """The schema of a parameter as it stands; Swagger 2.0 writes it into the parameter itself."""
    held = parameter if "swagger" in document.root else {}
    for key in parameter:
        if key in _SERIALIZATION_FIELDS or (key not in _PARAMETER_FIELDS and not held):
            normalizer.report_loss((INPUTS, parameter["name"], key), f"`{key}` of an input")
    if held:
        own = {
            key: value
            for key, value in parameter.items()
            if key not in _PARAMETER_FIELDS and key not in _SERIALIZATION_FIELDS
        }
        return {**own, **FILE_SCHEMA} if own.get("type") == "file" else own
    if "schema" in parameter:
        return parameter["schema"]
    content = document.get(parameter, pointer, "content", dict)
    if not content:
        document.add_fault(pointer, "a parameter needs a `schema`.")
        return {}
    kind = next(iter(content))
    normalizer.report_loss(
        (INPUTS, parameter["name"], "content"),
        "`content` of an input: the form in which it is sent",
        kind,
    )
    return document.get_mapping(content[kind], (*pointer, "content", kind), "a media type")[0].get(
        "schema", {}
    )


def _with_description(
    document: DocumentReader,
    parameter: dict[str, Any],
    pointer: Pointer,
    schema: Schema,
    normalizer: Normalizer,
) -> Schema:
    """The plain schema of a parameter with what the parameter says beside it."""
    text = document.get(parameter, pointer, "description", str)
    if text and schema.get("description", text) != text:
        normalizer.report_loss(
            (INPUTS, parameter["name"], "description"),
            "`description` of a schema other than that of its parameter",
        )
    found = (
        [parameter["x-example"]]
        if "x-example" in parameter
        else read_examples(document, parameter, pointer)
    )
    return {
        **schema,
        **({"description": text} if text else {}),
        **({"examples": found + schema.get("examples", [])} if found else {}),
    }


def _writable_fields(body: Schema, normalizer: Normalizer) -> dict[str, Schema]:
    """The fields of a body that a caller may give."""
    fields = body.get("properties", {})
    for name in [name for name, one in fields.items() if one.get("readOnly") is True]:
        normalizer.report_loss((INPUTS, name), "a field of a body that is only to be read")
    return {
        name: {key: one[key] for key in one if key != "readOnly"}
        for name, one in fields.items()
        if one.get("readOnly") is not True
    }


def _make_names_unique(inputs: list[Input], normalizer: Normalizer) -> Iterator[Input]:
    """The inputs, each with a name of its own: the place in front of a name that is taken, which
    depends on no order.
    """
    taken: set[str] = set()
    for one in sorted(inputs, key=lambda one: _LOCATIONS.index(one.location)):
        name = one.name
        while name in taken:
            name = f"{one.location.removesuffix('Data')}_{name}"
        if name != one.name:
            normalizer.report_loss(
                (INPUTS, name),
                "an input with another name, for one of its name is there already",
                f"{one.name} in {one.location}",
            )
        taken.add(name)
        yield one._replace(name=name)
