"""The inputs of an operation of an OpenAPI document: its parameters and its body, as one set. Pure.

An input has a name and nothing else to be known by, so of two with one name the second gets
another. The fields of a body that is an object stand beside the parameters; any other body is one
input.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
from toolcatalog.importers.bodies import FILE, INPUTS, examples, requested, unfolded
from toolcatalog.importers.dialects import Reader, Schema
from toolcatalog.importers.operations import Operation, parameters
from toolcatalog.importers.paper import Paper

# of two inputs with one name, that of the first place keeps it
_PLACES = ("path", "query", "header", "cookie", "formData", "body")
_IGNORED = ("accept", "content-type", "authorization")  # headers that OpenAPI wants left out
_READ = (
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
_WIRE = ("collectionFormat", "allowEmptyValue", "style", "explode", "allowReserved", "deprecated")


class Input(NamedTuple):
    """An input: its name, where it goes, what it is (plain), and whether the caller must give it."""

    name: str
    place: str
    schema: Schema
    required: bool


def inputs(paper: Paper, operation: Operation, reader: Reader) -> Schema:
    """The plain schema of the object that all inputs make."""
    said = [
        (one, at) for one, at in parameters(paper, operation, reader.lose) if one["in"] != "body"
    ]
    found = [made for one, at in said for made in _input(paper, one, at, reader)]
    body = requested(paper, operation, reader)
    whole = unfolded(reader, body, INPUTS, "body") if body else {}
    needed = {*whole.get("required", ())}
    found += [
        Input(name, "body", one, name in needed) for name, one in _given(whole, reader).items()
    ]
    named = [*_told_apart(found, reader)]
    required = [one.name for one in named if one.required]
    undescribed = [name for name in whole.get("required", ()) if name not in whole["properties"]]
    return {
        **whole,
        "properties": {one.name: one.schema for one in named},
        "required": [*required, *undescribed],
    }


def _input(paper: Paper, said: dict[str, Any], at: Pointer, reader: Reader) -> Iterator[Input]:
    """The input that a parameter is, if it is one."""
    name, place = said["name"], said["in"]
    if place not in _PLACES:
        paper.fault(
            (*at, "in"),
            "`in` is none of " + ", ".join(_PLACES[: 6 if "swagger" in paper.root else 4]) + ".",
        )
        return
    if place == "header" and name.lower() in _IGNORED:
        reader.lose((INPUTS, name), "a header that every request has")
        return
    plain = reader.plain(_schema(paper, said, at, reader), (INPUTS, name))
    required = paper.held(said, at, "required", bool) or place == "path"
    reader.lose((INPUTS, name, "in"), "where an input goes (`in`)", place)
    if plain is not None:
        yield Input(name, place, _described(paper, said, at, plain, reader), required)


def _schema(paper: Paper, said: dict[str, Any], at: Pointer, reader: Reader) -> Any:
    """The schema of a parameter as it stands; Swagger 2.0 writes it into the parameter itself."""
    held = said if "swagger" in paper.root else {}
    for key in said:
        if key in _WIRE or (key not in _READ and not held):
            reader.lose((INPUTS, said["name"], key), f"`{key}` of an input")
    if held:
        own = {key: value for key, value in said.items() if key not in _READ and key not in _WIRE}
        return {**own, **FILE} if own.get("type") == "file" else own
    if "schema" in said:
        return said["schema"]
    content = paper.held(said, at, "content", dict)
    if not content:
        paper.fault(at, "a parameter needs a `schema`.")
        return {}
    kind = next(iter(content))
    reader.lose(
        (INPUTS, said["name"], "content"),
        "`content` of an input: the form in which it is sent",
        kind,
    )
    return paper.found(content[kind], (*at, "content", kind), "a media type")[0].get("schema", {})


def _described(
    paper: Paper, said: dict[str, Any], at: Pointer, plain: Schema, reader: Reader
) -> Schema:
    """The plain schema of a parameter with what the parameter says beside it."""
    text = paper.held(said, at, "description", str)
    if text and plain.get("description", text) != text:
        reader.lose(
            (INPUTS, said["name"], "description"),
            "`description` of a schema other than that of its parameter",
        )
    found = [said["x-example"]] if "x-example" in said else examples(paper, said, at)
    return {
        **plain,
        **({"description": text} if text else {}),
        **({"examples": found + plain.get("examples", [])} if found else {}),
    }


def _given(body: Schema, reader: Reader) -> dict[str, Schema]:
    """The fields of a body that a caller may give."""
    fields = body.get("properties", {})
    for name in [name for name, one in fields.items() if one.get("readOnly") is True]:
        reader.lose((INPUTS, name), "a field of a body that is only to be read")
    return {
        name: {key: one[key] for key in one if key != "readOnly"}
        for name, one in fields.items()
        if one.get("readOnly") is not True
    }


def _told_apart(found: list[Input], reader: Reader) -> Iterator[Input]:
    """The inputs, each with a name of its own: the place in front of a name that is taken, which
    depends on no order.
    """
    taken: set[str] = set()
    for one in sorted(found, key=lambda one: _PLACES.index(one.place)):
        name = one.name
        while name in taken:
            name = f"{one.place.removesuffix('Data')}_{name}"
        if name != one.name:
            reader.lose(
                (INPUTS, name),
                "an input with another name, for one of its name is there already",
                f"{one.name} in {one.place}",
            )
        taken.add(name)
        yield one._replace(name=name)
