"""What goes over the wire as a body, in an OpenAPI document: the request's and the answer's
schemas, and their fields. Pure.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
from toolcatalog.importers.dialects import BRANCHES, Normalizer, Schema
from toolcatalog.importers.operations import Operation, list_parameters
from toolcatalog.importers.paper import DocumentReader

INPUTS, OUTPUTS = "input_parameters", "output_parameters"
FILE_SCHEMA = {"type": "string", "format": "binary"}
_JSON = re.compile(r"application/(json|[^;]*\+json)\s*(;.*)?", re.IGNORECASE)
_FORM = re.compile(r"application/x-www-form-urlencoded\b|multipart/", re.IGNORECASE)
_SUCCESS = re.compile("2([0-9]{2}|XX)")


class Body(NamedTuple):
    """A body: its schema as it stands, whether it must be there, and examples of the whole of it."""

    schema: Any
    required: bool = False
    examples: tuple[Any, ...] = ()


def read_request_body(
    document: DocumentReader, operation: Operation, normalizer: Normalizer
) -> Body | None:
    """The body of a request; None where there is none."""
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
    """The schema of the first answer that says that all went well and has one; None where there is
    none.
    """
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
    """What is said of one of the media types in a `content`: JSON if it is there, else a form, else
    the first; with its name.
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
    """The values of `example` and `examples` beside a schema."""
    found = [definition["example"]] if "example" in definition else []
    for name, one in document.get(definition, pointer, "examples", dict).items():
        example, _ = document.get_mapping(one, (*pointer, "examples", name), "an example")
        found += [example["value"]] if "value" in example else []
    return found


def body_to_object(normalizer: Normalizer, body: Body, field: str, name: str) -> Schema:
    """The plain schema of an object that has the fields of a body; of one with the single field
    `name` where the body has none.
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
    del normalizer.losses[before:]  # they are told again, at their right places
    single = normalizer.normalize(body.schema, (field, name))
    if single is None:
        return {}
    more = {"examples": [*body.examples, *single.get("examples", [])]} if body.examples else {}
    return {"properties": {name: {**single, **more}}, "required": [name] if body.required else []}


def _distribute_examples(whole: Schema, found: list[Any]) -> Schema:
    """An object with the examples of the whole of it given to those of its fields that have none."""
    fields = dict(whole["properties"])
    for name, one in fields.items():
        values = [
            example[name] for example in found if isinstance(example, Mapping) and name in example
        ]
        if values and "examples" not in one:
            fields[name] = {**one, "examples": values}
    return {**{key: whole[key] for key in whole if key != "examples"}, "properties": fields}
