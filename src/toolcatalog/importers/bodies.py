"""What goes over the wire as a body, in an OpenAPI document: the request's and the answer's
schemas, and their fields. Pure.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
from toolcatalog.importers.dialects import BRANCHES, Reader, Schema
from toolcatalog.importers.operations import Operation, parameters
from toolcatalog.importers.paper import Paper

INPUTS, OUTPUTS = "input_parameters", "output_parameters"
FILE = {"type": "string", "format": "binary"}
_JSON = re.compile(r"application/(json|[^;]*\+json)\s*(;.*)?", re.IGNORECASE)
_FORM = re.compile(r"application/x-www-form-urlencoded\b|multipart/", re.IGNORECASE)
_GOOD = re.compile("2([0-9]{2}|XX)")


class Body(NamedTuple):
    """A body: its schema as it stands, whether it must be there, and examples of the whole of it."""

    schema: Any
    required: bool = False
    examples: tuple[Any, ...] = ()


def requested(paper: Paper, operation: Operation, reader: Reader) -> Body | None:
    """The body of a request; None where there is none."""
    for one, at in parameters(paper, operation, reader.lose) if "swagger" in paper.root else ():
        if one["in"] == "body":
            return Body(one.get("schema", {}), paper.held(one, at, "required", bool))
    if operation.said.get("requestBody") is None or "swagger" in paper.root:
        return None
    said, at = paper.found(
        operation.said["requestBody"], (*operation.at, "requestBody"), "a request body"
    )
    media, where, kind = _media(paper, said, at, reader, INPUTS)
    if not kind:
        return None
    for key in media:
        if key not in ("schema", "example", "examples"):
            reader.lose((INPUTS,), f"`{key}` of a body")
    schema = media.get("schema", {} if _JSON.match(kind) or _FORM.match(kind) else FILE)
    return Body(
        schema, paper.held(said, at, "required", bool), tuple(examples(paper, media, where))
    )


def answered(paper: Paper, operation: Operation, reader: Reader) -> Any:
    """The schema of the first answer that says that all went well and has one; None where there is
    none.
    """
    responses = paper.held(operation.said, operation.at, "responses", dict)
    for code in sorted(code for code in responses if _GOOD.fullmatch(code)):
        response, at = paper.found(
            responses[code], (*operation.at, "responses", code), "a response"
        )
        media = (
            response if "swagger" in paper.root else _media(paper, response, at, reader, OUTPUTS)[0]
        )
        for key in ("headers", "links"):
            if response.get(key):
                reader.lose((OUTPUTS,), f"`{key}` of a response")
        if "example" in media or media.get("examples"):
            reader.lose((OUTPUTS,), "examples of a whole response")
        if media.get("schema") is not None:
            _tell_others(responses, code, reader)
            schema = media["schema"]
            return FILE if isinstance(schema, Mapping) and schema.get("type") == "file" else schema
    _tell_others(responses, "", reader)
    return None


def _tell_others(responses: Mapping[str, Any], code: str, reader: Reader) -> None:
    others = [other for other in responses if other != code and not other.startswith("x-")]
    if others:
        reader.lose(
            (OUTPUTS,), "responses other than the first that succeeds", ", ".join(sorted(others))
        )


def _media(
    paper: Paper, holder: dict[str, Any], at: Pointer, reader: Reader, field: str
) -> tuple[dict[str, Any], Pointer, str]:
    """What is said of one of the media types in a `content`: JSON if it is there, else a form, else
    the first; with its name.
    """
    content = paper.held(holder, at, "content", dict)
    ranked = sorted(content, key=lambda kind: (not _JSON.match(kind), not _FORM.match(kind), kind))
    if not ranked:
        return {}, at, ""
    if ranked[1:]:
        reader.lose((field,), "media types other than one", ", ".join(ranked[1:]))
    said, where = paper.found(content[ranked[0]], (*at, "content", ranked[0]), "a media type")
    return said, where, ranked[0]


def examples(paper: Paper, said: dict[str, Any], at: Pointer) -> list[Any]:
    """The values of `example` and `examples` beside a schema."""
    found = [said["example"]] if "example" in said else []
    for name, one in paper.held(said, at, "examples", dict).items():
        example, _ = paper.found(one, (*at, "examples", name), "an example")
        found += [example["value"]] if "value" in example else []
    return found


def unfolded(reader: Reader, body: Body, field: str, name: str) -> Schema:
    """The plain schema of an object that has the fields of a body; of one with the single field
    `name` where the body has none.
    """
    before = len(reader.losses)
    whole = reader.plain(body.schema, (field,)) or {}
    own = whole.get("examples", [])
    if (
        whole.get("properties")
        and whole.get("type", "object") == "object"
        and not any(key in whole for key in BRANCHES)
    ):
        if whole.get("required") and not body.required and field == INPUTS:
            reader.lose(
                (field,), "a body that may be left out: what it needs is needed always here"
            )
        return {**_with_examples(whole, [*body.examples, *own])}
    del reader.losses[before:]  # they are told again, at their right places
    single = reader.plain(body.schema, (field, name))
    if single is None:
        return {}
    more = {"examples": [*body.examples, *single.get("examples", [])]} if body.examples else {}
    return {"properties": {name: {**single, **more}}, "required": [name] if body.required else []}


def _with_examples(whole: Schema, found: list[Any]) -> Schema:
    """An object with the examples of the whole of it given to those of its fields that have none."""
    fields = dict(whole["properties"])
    for name, one in fields.items():
        values = [
            example[name] for example in found if isinstance(example, Mapping) and name in example
        ]
        if values and "examples" not in one:
            fields[name] = {**one, "examples": values}
    return {**{key: whole[key] for key in whole if key != "examples"}, "properties": fields}
