"""Operations of an OpenAPI document: their location, name, parameters and required scopes.

`security` is a list of alternatives, each of which names everything that is required together. A
tool has one list of scopes, so the first alternative is used. An empty list or an empty alternative
means that no credentials are needed; so does a document without `security`.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
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
        given = self.definition.get("operationId")
        return (
            given
            if isinstance(given, str) and to_snake_case(given)
            else f"{self.method} {self.path}"
        )

    @property
    def hints(self) -> list[str]:
        """The tags that the method implies."""
        return [_METHOD_HINTS[self.method]] if self.method in _METHOD_HINTS else []


def list_operations(document: DocumentReader) -> list[Operation]:
    """Return all operations of a document, in document order.

    Errors outside the operations are recorded in the document's faults.
    """
    paths = document.get(document.root, (), "paths", dict)
    return [
        one
        for path, item in paths.items()
        if not path.startswith("x-")
        for one in _path_operations(document, path, item)
    ]


def _path_operations(document: DocumentReader, path: str, value: Any) -> Iterator[Operation]:
    at: Pointer = ("paths", path)
    if not path.startswith("/"):
        document.add_fault(at, "a path that does not begin with `/`.")
    item, around = document.get_mapping(value, at, "a path item")
    for method in _METHODS:
        if method in item:
            said, place = document.get_mapping(item[method], (*around, method), "an operation")
            yield Operation(method, path, said, place, item, around)


def list_parameters(
    document: DocumentReader, operation: Operation, report_loss: Callable[..., None]
) -> list[tuple[dict[str, Any], Pointer]]:
    """Return the parameters of an operation with their pointers.

    A parameter of the operation replaces the parameter of the path item with the same name and
    location.
    """
    found: dict[tuple[str, str], tuple[dict[str, Any], Pointer]] = {}
    for holder, at in (
        (operation.path_item, operation.path_pointer),
        (operation.definition, operation.pointer),
    ):
        own = set()
        for index, value in enumerate(document.get(holder, at, "parameters", list)):
            one, place = document.get_mapping(value, (*at, "parameters", index), "a parameter")
            key = document.get(one, place, "name", str), document.get(one, place, "in", str)
            if one and not all(key):
                document.add_fault(place, "a parameter needs `name` and `in`.")
            if key in own:
                report_loss(
                    ("input_parameters", key[0]),
                    "a parameter that stands twice: the last one counts",
                    key[1],
                )
            own.add(key)
            found[key] = one, place
    return [pair for key, pair in found.items() if all(key)]


def read_security(
    document: DocumentReader, operation: dict[str, Any], pointer: Pointer
) -> tuple[dict[str, Any], list[Loss]]:
    """Return the `scopes` and `no_auth` fields of an operation's tool, and the losses.

    Fields without a value are left out.
    """
    holder, place = (operation, pointer) if "security" in operation else (document.root, ())
    said = document.get(holder, place, "security", list)
    if holder.get("security") is None:
        return {"no_auth": True}, [
            Loss(("security",), "no `security` in the source: taken as needing none")
        ]
    needs = [
        document.get_mapping(one, (*place, "security", index), "a security requirement")
        for index, one in enumerate(said)
    ]
    losses = (
        [Loss(("security",), "alternatives of `security` other than the first")]
        if len(needs) > 1
        else []
    )
    if not all(need for need, _ in needs) or not needs:
        return {"no_auth": True}, losses
    first, where = needs[0]
    scopes = [
        *dict.fromkeys(
            scope for scheme in first for scope in document.get_texts(first, where, scheme)
        )
    ]
    return {"scopes": scopes} if scopes else {}, losses
