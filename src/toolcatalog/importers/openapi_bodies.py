"""Inputs of an OpenAPI operation: parameters, request bodies and response bodies.

Inputs are identified by name only, so if two have the same name, the second is renamed. The fields
of an object body become inputs next to the parameters; any other body is a single input.
Parameters that carry credentials are no inputs: a platform adds them to the request.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
from toolcatalog.importers.documents import DocumentReader
from toolcatalog.importers.json_schema import BRANCHES, Normalizer, Schema
from toolcatalog.importers.openapi_operations import Operation, list_parameters
from toolcatalog.importers.openapi_security import is_credential

INPUTS, OUTPUTS = "input_parameters", "output_parameters"
FILE_SCHEMA = {"type": "string", "format": "binary"}
# in order of priority: of two inputs with the same name, the one listed first here keeps it
_LOCATIONS = ("path", "query", "header", "cookie", "formData", "body")
_OPENAPI_3_LOCATIONS = _LOCATIONS[:4]
# headers that OpenAPI says to ignore
_IGNORED_HEADERS = ("accept", "content-type", "authorization")
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
_JSON = re.compile(r"application/(json|[^;]*\+json)\s*(;.*)?", re.IGNORECASE)
_FORM = re.compile(r"application/x-www-form-urlencoded\b|multipart/", re.IGNORECASE)
_SUCCESS = re.compile("2([0-9]{2}|XX)")


class Input(NamedTuple):
    """An input: its name, location, plain schema, and whether callers must provide it."""

    name: str
    location: str
    schema: Schema
    required: bool


class Body(NamedTuple):
    """A body: its original schema, whether it is required, and examples of the whole body."""

    schema: Any
    required: bool = False
    examples: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class OperationReader:
    """Reads the inputs and the outputs of one operation.

    `normalizer` converts its schemas and collects what is lost. `credentials` are the names and
    locations of the API keys that the document declares.
    """

    document: DocumentReader
    operation: Operation
    normalizer: Normalizer
    credentials: set[tuple[str, str]]

    @property
    def is_swagger(self) -> bool:
        """Whether the document is of Swagger 2.0."""
        return "swagger" in self.document.root

    # Inputs

    def read_inputs(self) -> Schema:
        """Return the plain schema of the object that contains all inputs."""
        parameters = [
            (parameter, pointer)
            for parameter, pointer in self.list_parameters()
            if parameter["in"] != "body"
        ]
        inputs = [
            input_
            for parameter, pointer in parameters
            for input_ in self.read_parameter(parameter, pointer)
        ]
        body = self.read_request_body()
        body_schema = body_to_object(self.normalizer, body, INPUTS, "body") if body else {}
        inputs += self.body_inputs(body_schema)
        return _merge_inputs(body_schema, [*self.make_names_unique(inputs)])

    def list_parameters(self) -> list[tuple[dict[str, Any], Pointer]]:
        """Return the parameters of the operation with their pointers."""
        return list_parameters(self.document, self.operation, self.normalizer.report_loss)

    def read_parameter(self, parameter: dict[str, Any], pointer: Pointer) -> Iterator[Input]:
        """Yield the input for a parameter, or nothing if it is left out."""
        name, location = parameter["name"], parameter["in"]
        if location not in _LOCATIONS:
            allowed = _LOCATIONS if self.is_swagger else _OPENAPI_3_LOCATIONS
            self.document.add_fault((*pointer, "in"), f"`in` is none of {', '.join(allowed)}.")
            return
        if reason := self.ignored_reason(parameter):
            self.normalizer.report_loss((INPUTS, name), reason)
            return
        schema = self.normalizer.normalize(
            self.parameter_schema(parameter, pointer), (INPUTS, name)
        )
        required = self.document.get(parameter, pointer, "required", bool) or location == "path"
        self.normalizer.report_loss((INPUTS, name, "in"), "where an input goes (`in`)", location)
        if schema is not None:
            described = self.describe_parameter(parameter, pointer, schema)
            yield Input(name, location, described, required)

    def ignored_reason(self, parameter: Mapping[str, Any]) -> str:
        """Return why a parameter is no input, or an empty string if it is one."""
        if parameter["in"] == "header" and parameter["name"].lower() in _IGNORED_HEADERS:
            return "a header that every request has"
        if is_credential(parameter, self.credentials):
            return "a parameter for authentication, which no model gives"
        return ""

    def parameter_schema(self, parameter: dict[str, Any], pointer: Pointer) -> Any:
        """Return the original schema of a parameter; Swagger 2.0 has it in the parameter itself."""
        for key in parameter:
            if key in _SERIALIZATION_FIELDS or (
                key not in _PARAMETER_FIELDS and not self.is_swagger
            ):
                field_pointer = (INPUTS, parameter["name"], key)
                self.normalizer.report_loss(field_pointer, f"`{key}` of an input")
        if self.is_swagger:
            schema = {
                key: value
                for key, value in parameter.items()
                if key not in (*_PARAMETER_FIELDS, *_SERIALIZATION_FIELDS)
            }
            return {**schema, **FILE_SCHEMA} if schema.get("type") == "file" else schema
        if "schema" in parameter:
            return parameter["schema"]
        return self.content_schema(parameter, pointer)

    def content_schema(self, parameter: dict[str, Any], pointer: Pointer) -> Any:
        """Return the schema of a parameter that has `content` instead of `schema`."""
        content = self.document.get(parameter, pointer, "content", dict)
        if not content:
            self.document.add_fault(pointer, "a parameter needs a `schema`.")
            return {}
        media_type = next(iter(content))
        kind = "`content` of an input: the form in which it is sent"
        self.normalizer.report_loss((INPUTS, parameter["name"], "content"), kind, media_type)
        media, _ = self.document.get_mapping(
            content[media_type], (*pointer, "content", media_type), "a media type"
        )
        return media.get("schema", {})

    def describe_parameter(
        self, parameter: dict[str, Any], pointer: Pointer, schema: Schema
    ) -> Schema:
        """Return the plain schema of a parameter with the parameter's description and examples."""
        text = self.document.get(parameter, pointer, "description", str)
        if text and schema.get("description", text) != text:
            kind = "`description` of a schema other than that of its parameter"
            self.normalizer.report_loss((INPUTS, parameter["name"], "description"), kind)
        if "x-example" in parameter:
            examples = [parameter["x-example"]]
        else:
            examples = read_examples(self.document, parameter, pointer)
        return {
            **schema,
            **({"description": text} if text else {}),
            **({"examples": examples + schema.get("examples", [])} if examples else {}),
        }

    def body_inputs(self, body: Schema) -> Iterator[Input]:
        """Yield the fields of a body that callers may provide."""
        required = {*body.get("required", ())}
        for name, schema in body.get("properties", {}).items():
            if schema.get("readOnly") is True:
                kind = "a field of a body that is only to be read"
                self.normalizer.report_loss((INPUTS, name), kind)
            else:
                writable = {key: schema[key] for key in schema if key != "readOnly"}
                yield Input(name, "body", writable, name in required)

    def make_names_unique(self, inputs: list[Input]) -> Iterator[Input]:
        """Yield the inputs with unique names.

        A name that is taken gets its location as a prefix, so the result does not depend on the
        order in the document.
        """
        used_names: set[str] = set()
        for item in sorted(inputs, key=lambda item: _LOCATIONS.index(item.location)):
            name = item.name
            while name in used_names:
                name = f"{item.location.removesuffix('Data')}_{name}"
            if name != item.name:
                kind = "an input with another name, because its name is taken"
                self.normalizer.report_loss((INPUTS, name), kind, f"{item.name} in {item.location}")
            used_names.add(name)
            yield item._replace(name=name)

    # Bodies

    def read_request_body(self) -> Body | None:
        """Return the body of a request, or None if it has none."""
        if self.is_swagger:
            return self.read_swagger_body()
        value = self.operation.definition.get("requestBody")
        if value is None:
            return None
        definition, pointer = self.document.get_mapping(
            value, (*self.operation.pointer, "requestBody"), "a request body"
        )
        media, media_pointer, kind = self.choose_media_type(definition, pointer, INPUTS)
        if not kind:
            return None
        for key in media:
            if key not in ("schema", "example", "examples"):
                self.normalizer.report_loss((INPUTS,), f"`{key}` of a body")
        has_fields = _JSON.match(kind) or _FORM.match(kind)
        schema = media.get("schema", {} if has_fields else FILE_SCHEMA)
        required = self.document.get(definition, pointer, "required", bool)
        return Body(schema, required, tuple(read_examples(self.document, media, media_pointer)))

    def read_swagger_body(self) -> Body | None:
        """Return the body of a request in Swagger 2.0, where it is a parameter."""
        for parameter, pointer in self.list_parameters():
            if parameter["in"] == "body":
                required = self.document.get(parameter, pointer, "required", bool)
                return Body(parameter.get("schema", {}), required)
        return None

    def read_outputs(self) -> Schema | None:
        """Return the plain schema of the object that contains all outputs, or None."""
        schema = self.read_response_schema()
        if schema is None:
            return None
        return body_to_object(self.normalizer, Body(schema), OUTPUTS, "result")

    def read_response_schema(self) -> Any:
        """Return the schema of the first successful response that has one, or None."""
        responses = self.document.get(
            self.operation.definition, self.operation.pointer, "responses", dict
        )
        for code in sorted(code for code in responses if _SUCCESS.fullmatch(code)):
            schema = self.response_schema(responses[code], code)
            if schema is not None:
                self.report_other_responses(responses, code)
                is_file = isinstance(schema, Mapping) and schema.get("type") == "file"
                return FILE_SCHEMA if is_file else schema
        self.report_other_responses(responses, "")
        return None

    def response_schema(self, value: Any, code: str) -> Any:
        """Return the schema of one response, or None."""
        response, pointer = self.document.get_mapping(
            value, (*self.operation.pointer, "responses", code), "a response"
        )
        media = (
            response if self.is_swagger else self.choose_media_type(response, pointer, OUTPUTS)[0]
        )
        for key in ("headers", "links"):
            if response.get(key):
                self.normalizer.report_loss((OUTPUTS,), f"`{key}` of a response")
        if "example" in media or media.get("examples"):
            self.normalizer.report_loss((OUTPUTS,), "examples of a whole response")
        return media.get("schema")

    def report_other_responses(self, responses: Mapping[str, Any], code: str) -> None:
        """Report the responses that are left out."""
        others = [other for other in responses if other != code and not other.startswith("x-")]
        if others:
            kind = "responses other than the first that succeeds"
            self.normalizer.report_loss((OUTPUTS,), kind, ", ".join(sorted(others)))

    def choose_media_type(
        self, parent: dict[str, Any], pointer: Pointer, field: str
    ) -> tuple[dict[str, Any], Pointer, str]:
        """Return the definition of one media type in `content`, its pointer, and its name.

        JSON is preferred, then a form, then the first name in sorted order.
        """
        content = self.document.get(parent, pointer, "content", dict)
        if not content:
            return {}, pointer, ""
        chosen, *others = sorted(
            content, key=lambda name: (not _JSON.match(name), not _FORM.match(name), name)
        )
        if others:
            kind = "media types other than one"
            self.normalizer.report_loss((field,), kind, ", ".join(others))
        content_pointer = (*pointer, "content", chosen)
        definition, media_pointer = self.document.get_mapping(
            content[chosen], content_pointer, "a media type"
        )
        return definition, media_pointer, chosen


def _merge_inputs(body: Schema, inputs: list[Input]) -> Schema:
    """Return the schema of an object with all inputs, and with what a body says as a whole."""
    undescribed = [name for name in body.get("required", ()) if name not in body["properties"]]
    return {
        **body,
        "properties": {item.name: item.schema for item in inputs},
        "required": [*(item.name for item in inputs if item.required), *undescribed],
    }


def read_examples(
    document: DocumentReader, definition: dict[str, Any], pointer: Pointer
) -> list[Any]:
    """Return the values of `example` and `examples` next to a schema."""
    values = [definition["example"]] if "example" in definition else []
    for name, value in document.get(definition, pointer, "examples", dict).items():
        example, _ = document.get_mapping(value, (*pointer, "examples", name), "an example")
        values += [example["value"]] if "value" in example else []
    return values


def body_to_object(normalizer: Normalizer, body: Body, field: str, name: str) -> Schema:
    """Return the plain schema of an object with the fields of a body.

    If the body has no fields, the object has the single field `name`.
    """
    loss_count = len(normalizer.losses)
    schema = normalizer.normalize(body.schema, (field,)) or {}
    if _has_fields(schema):
        if schema.get("required") and not body.required and field == INPUTS:
            kind = "a body that may be left out: what it needs is needed always here"
            normalizer.report_loss((field,), kind)
        return _distribute_examples(schema, [*body.examples, *schema.get("examples", [])])
    del normalizer.losses[loss_count:]  # reported again below, with the right pointers
    single = normalizer.normalize(body.schema, (field, name))
    if single is None:
        return {}
    if body.examples:
        single = {**single, "examples": [*body.examples, *single.get("examples", [])]}
    return {"properties": {name: single}, "required": [name] if body.required else []}


def _has_fields(schema: Schema) -> bool:
    """Return whether a plain schema is an object with properties and without branches."""
    return (
        bool(schema.get("properties"))
        and schema.get("type", "object") == "object"
        and not any(key in schema for key in BRANCHES)
    )


def _distribute_examples(schema: Schema, examples: list[Any]) -> Schema:
    """Return an object schema with the examples of the whole object moved to its fields.

    Fields that have examples of their own keep them.
    """
    fields = dict(schema["properties"])
    for name, inner in fields.items():
        values = [
            example[name]
            for example in examples
            if isinstance(example, Mapping) and name in example
        ]
        if values and "examples" not in inner:
            fields[name] = {**inner, "examples": values}
    remaining = {key: schema[key] for key in schema if key != "examples"}
    return {**remaining, "properties": fields}
