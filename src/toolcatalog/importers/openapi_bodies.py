"""Inputs of an OpenAPI operation: parameters, request bodies and response bodies.

Inputs are identified by name only, so if two have the same name, the second is renamed. The fields
of an object body become inputs next to the parameters; any other body is a single input.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
from toolcatalog.importers.documents import DocumentReader
from toolcatalog.importers.json_schema import BRANCHES, Normalizer, Schema
from toolcatalog.importers.openapi_operations import Operation, list_parameters

# in order of priority: of two inputs with the same name, the one listed first here keeps it
_LOCATIONS = ("path", "query", "header", "cookie", "formData", "body")
_IGNORED_HEADERS = (
    "accept",
    "content-type",
    "authorization",
)  # headers that OpenAPI says to ignore
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
# how an input is sent
_SERIALIZATION_FIELDS = (
    "collectionFormat",
    "allowEmptyValue",
    "style",
    "explode",
    "allowReserved",
    "deprecated",
)


class Input(NamedTuple):
    """An input: its name, location, plain schema, and whether callers must provide it."""

    name: str
    location: str
    schema: Schema
    required: bool


def collect_inputs(
    document: DocumentReader, operation: Operation, normalizer: Normalizer
) -> Schema:
    """Return the plain schema of the object that contains all inputs."""
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
    """Yield the input for a parameter, or nothing if it is left out."""
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
    """Return the original schema of a parameter; Swagger 2.0 has it in the parameter itself."""
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
    """Return the plain schema of a parameter with the parameter's own description and examples."""
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
    """Return the fields of a body that callers may provide."""
    fields = body.get("properties", {})
    for name in [name for name, one in fields.items() if one.get("readOnly") is True]:
        normalizer.report_loss((INPUTS, name), "a field of a body that is only to be read")
    return {
        name: {key: one[key] for key in one if key != "readOnly"}
        for name, one in fields.items()
        if one.get("readOnly") is not True
    }


def _make_names_unique(inputs: list[Input], normalizer: Normalizer) -> Iterator[Input]:
    """Yield the inputs with unique names.

    A name that is taken gets its location as a prefix, so the result does not depend on the order
    in the document.
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


INPUTS, OUTPUTS = "input_parameters", "output_parameters"
FILE_SCHEMA = {"type": "string", "format": "binary"}
_JSON = re.compile(r"application/(json|[^;]*\+json)\s*(;.*)?", re.IGNORECASE)
_FORM = re.compile(r"application/x-www-form-urlencoded\b|multipart/", re.IGNORECASE)
_SUCCESS = re.compile("2([0-9]{2}|XX)")


class Body(NamedTuple):
    """A body: its original schema, whether it is required, and examples of the whole body."""

    schema: Any
    required: bool = False
    examples: tuple[Any, ...] = ()


def read_request_body(
    document: DocumentReader, operation: Operation, normalizer: Normalizer
) -> Body | None:
    """Return the body of a request, or None if it has none."""
    for one, at in (
        list_parameters(document, operation, normalizer.report_loss)
        if "swagger" in document.root
        else ()
    ):
        if one["in"] == "body":
            return Body(one.get("schema", {}), document.get(one, at, "required", bool))
    if operation.definition.get("requestBody") is None or "swagger" in document.root:
        return None
    said, at = document.get_mapping(
        operation.definition["requestBody"], (*operation.pointer, "requestBody"), "a request body"
    )
    media, where, kind = _choose_media_type(document, said, at, normalizer, INPUTS)
    if not kind:
        return None
    for key in media:
        if key not in ("schema", "example", "examples"):
            normalizer.report_loss((INPUTS,), f"`{key}` of a body")
    schema = media.get("schema", {} if _JSON.match(kind) or _FORM.match(kind) else FILE_SCHEMA)
    return Body(
        schema,
        document.get(said, at, "required", bool),
        tuple(read_examples(document, media, where)),
    )


def read_response_schema(
    document: DocumentReader, operation: Operation, normalizer: Normalizer
) -> Any:
    """Return the schema of the first successful response that has one, or None."""
    responses = document.get(operation.definition, operation.pointer, "responses", dict)
    for code in sorted(code for code in responses if _SUCCESS.fullmatch(code)):
        response, at = document.get_mapping(
            responses[code], (*operation.pointer, "responses", code), "a response"
        )
        media = (
            response
            if "swagger" in document.root
            else _choose_media_type(document, response, at, normalizer, OUTPUTS)[0]
        )
        for key in ("headers", "links"):
            if response.get(key):
                normalizer.report_loss((OUTPUTS,), f"`{key}` of a response")
        if "example" in media or media.get("examples"):
            normalizer.report_loss((OUTPUTS,), "examples of a whole response")
        if media.get("schema") is not None:
            _report_other_responses(responses, code, normalizer)
            schema = media["schema"]
            return (
                FILE_SCHEMA
                if isinstance(schema, Mapping) and schema.get("type") == "file"
                else schema
            )
    _report_other_responses(responses, "", normalizer)
    return None


def _report_other_responses(
    responses: Mapping[str, Any], code: str, normalizer: Normalizer
) -> None:
    others = [other for other in responses if other != code and not other.startswith("x-")]
    if others:
        normalizer.report_loss(
            (OUTPUTS,), "responses other than the first that succeeds", ", ".join(sorted(others))
        )


def _choose_media_type(
    document: DocumentReader,
    holder: dict[str, Any],
    pointer: Pointer,
    normalizer: Normalizer,
    field: str,
) -> tuple[dict[str, Any], Pointer, str]:
    """Return the definition of one media type in `content`, its pointer, and its name.

    JSON is preferred, then a form, then the first name in sorted order.
    """
    content = document.get(holder, pointer, "content", dict)
    ranked = sorted(content, key=lambda kind: (not _JSON.match(kind), not _FORM.match(kind), kind))
    if not ranked:
        return {}, pointer, ""
    if ranked[1:]:
        normalizer.report_loss((field,), "media types other than one", ", ".join(ranked[1:]))
    said, where = document.get_mapping(
        content[ranked[0]], (*pointer, "content", ranked[0]), "a media type"
    )
    return said, where, ranked[0]


def read_examples(
    document: DocumentReader, definition: dict[str, Any], pointer: Pointer
) -> list[Any]:
    """Return the values of `example` and `examples` next to a schema."""
    found = [definition["example"]] if "example" in definition else []
    for name, one in document.get(definition, pointer, "examples", dict).items():
        example, _ = document.get_mapping(one, (*pointer, "examples", name), "an example")
        found += [example["value"]] if "value" in example else []
    return found


def body_to_object(normalizer: Normalizer, body: Body, field: str, name: str) -> Schema:
    """Return the plain schema of an object with the fields of a body.

    If the body has no fields, the object has the single field `name`.
    """
    before = len(normalizer.losses)
    whole = normalizer.normalize(body.schema, (field,)) or {}
    own = whole.get("examples", [])
    if (
        whole.get("properties")
        and whole.get("type", "object") == "object"
        and not any(key in whole for key in BRANCHES)
    ):
        if whole.get("required") and not body.required and field == INPUTS:
            normalizer.report_loss(
                (field,), "a body that may be left out: what it needs is needed always here"
            )
        return {**_distribute_examples(whole, [*body.examples, *own])}
    del normalizer.losses[before:]  # reported again below, with the right pointers
    single = normalizer.normalize(body.schema, (field, name))
    if single is None:
        return {}
    more = {"examples": [*body.examples, *single.get("examples", [])]} if body.examples else {}
    return {"properties": {name: {**single, **more}}, "required": [name] if body.required else []}


def _distribute_examples(whole: Schema, found: list[Any]) -> Schema:
    """Return an object schema with the examples of the whole object moved to its fields.

    Fields that have examples of their own keep them.
    """
    fields = dict(whole["properties"])
    for name, one in fields.items():
        values = [
            example[name] for example in found if isinstance(example, Mapping) and name in example
        ]
        if values and "examples" not in one:
            fields[name] = {**one, "examples": values}
    return {**{key: whole[key] for key in whole if key != "examples"}, "properties": fields}
