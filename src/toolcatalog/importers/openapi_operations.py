"""Operations of an OpenAPI document: their location, name, tags and parameters."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from toolcatalog.errors import Pointer
from toolcatalog.exports.definitions import PARTIAL_HINTS
from toolcatalog.importers.documents import DocumentReader
from toolcatalog.importers.json_schema import Loss
from toolcatalog.importers.slugs import to_snake_case

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_METHOD_HINTS = {
    "get": "readOnlyHint",
    "head": "readOnlyHint",
    "delete": "destructiveHint",
    "put": "idempotentHint",
}
_PATH_CHARACTERS = re.sub('[ "<>]', "", bytes(range(0x20, 0x7F)).decode())
_FEATURED_TAG = "important"  # has a meaning in the catalog that a source cannot know


class Operation(NamedTuple):
    """An operation and its pointer, and the path item that contains it and its pointer."""

    method: str
    path: str
    definition: dict[str, Any]
    pointer: Pointer
    path_item: dict[str, Any]
    path_pointer: Pointer

    @property
    def identity(self) -> str:
        """The method and path, which are unique in the document."""
        return f"{self.method.upper()} {self.path}"

    @property
    def title(self) -> str:
        """The name that the tool's slug is made of: the operationId, or else method and path."""
        name = self.definition.get("operationId")
        if isinstance(name, str) and to_snake_case(name):
            return name
        return f"{self.method} {self.path}"

    @property
    def source(self) -> dict[str, str]:
        """The `source` field of the tool: what a platform needs to call the operation.

        Characters that a URL cannot have are percent-encoded in the path.
        """
        return {
            "method": self.method.upper(),
            "path": quote(self.path, _PATH_CHARACTERS, errors="replace"),
        }

    @property
    def hints(self) -> list[str]:
        """The tags that the method implies; it says nothing about the other hints."""
        return [_METHOD_HINTS[self.method], PARTIAL_HINTS] if self.method in _METHOD_HINTS else []


def list_operations(document: DocumentReader) -> list[Operation]:
    """Return all operations of a document, in document order.

    Errors outside the operations are recorded in the document's faults.
    """
    paths = document.get(document.root, (), "paths", dict)
    return [
        operation
        for path, item in paths.items()
        if not path.startswith("x-")
        for operation in _path_operations(document, path, item)
    ]


def _path_operations(document: DocumentReader, path: str, value: Any) -> Iterator[Operation]:
    pointer: Pointer = ("paths", path)
    if not path.startswith("/"):
        document.add_fault(pointer, "a path that does not start with `/`.")
    item, item_pointer = document.get_mapping(value, pointer, "a path item")
    for method in _METHODS:
        if method in item:
            definition, operation_pointer = document.get_mapping(
                item[method], (*item_pointer, method), "an operation"
            )
            yield Operation(method, path, definition, operation_pointer, item, item_pointer)


def list_parameters(
    document: DocumentReader, operation: Operation, report_loss: Callable[..., None]
) -> list[tuple[dict[str, Any], Pointer]]:
    """Return the parameters of an operation with their pointers.

    A parameter of the operation replaces the parameter of the path item with the same name and
    location.
    """
    parameters: dict[tuple[str, str], tuple[dict[str, Any], Pointer]] = {}
    for parent, pointer in (
        (operation.path_item, operation.path_pointer),
        (operation.definition, operation.pointer),
    ):
        keys = set()
        for index, value in enumerate(document.get(parent, pointer, "parameters", list)):
            parameter, parameter_pointer = document.get_mapping(
                value, (*pointer, "parameters", index), "a parameter"
            )
            key = _parameter_key(document, parameter, parameter_pointer)
            if key in keys:
                kind = "a parameter that occurs twice: the last one counts"
                report_loss(("input_parameters", key[0]), kind, key[1])
            keys.add(key)
            parameters[key] = parameter, parameter_pointer
    return [parameter for key, parameter in parameters.items() if all(key)]


def _parameter_key(
    document: DocumentReader, parameter: dict[str, Any], pointer: Pointer
) -> tuple[str, str]:
    """Return the name and the location of a parameter."""
    name = document.get(parameter, pointer, "name", str)
    location = document.get(parameter, pointer, "in", str)
    if parameter and not (name and location):
        document.add_fault(pointer, "a parameter needs `name` and `in`.")
    return name, location


def read_tags(document: DocumentReader, operation: Operation) -> tuple[list[str], list[Loss]]:
    """Return the tags of an operation in the form of the catalog, and the losses.

    Tags are lower-case words with hyphens, such as `pull-requests`. The hints of the method follow.
    """
    tags, losses = [], []
    for index, name in enumerate(
        document.get_texts(operation.definition, operation.pointer, "tags")
    ):
        tag = normalize_tag(name)
        if tag in ("", _FEATURED_TAG):
            losses.append(Loss(("tags", index), "a tag that the catalog cannot have", name))
        else:
            tags.append(tag)
            if tag != name:
                losses.append(Loss(("tags", index), "a tag in another spelling", name))
    return [*dict.fromkeys([*tags, *operation.hints])], losses


def normalize_tag(name: str) -> str:
    """Return a tag as lower-case words with hyphens; empty if the name has no letters or digits."""
    return re.sub(r"[^\w]+|_+", "-", name.strip().lower()).strip("-")
