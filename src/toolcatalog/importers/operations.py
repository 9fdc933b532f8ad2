"""The operations of an OpenAPI document: where each stands, and what it is called. Pure."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
from toolcatalog.importers.paper import Paper
from toolcatalog.importers.slugs import words

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_HINTS = {
    "get": "readOnlyHint",
    "head": "readOnlyHint",
    "delete": "destructiveHint",
    "put": "idempotentHint",
}


class Operation(NamedTuple):
    """An operation: its mapping and pointer, and the mapping and pointer of the path item around
    it.
    """

    method: str
    path: str
    said: dict[str, Any]
    at: Pointer
    item: dict[str, Any]
    around: Pointer

    @property
    def identity(self) -> str:
        """What tells it from all others in its document."""
        return f"{self.method.upper()} {self.path}"

    @property
    def title(self) -> str:
        """Its name, which is that of its tool in other letters: the operationId, else method and
        path.
        """
        given = self.said.get("operationId")
        return given if isinstance(given, str) and words(given) else f"{self.method} {self.path}"

    @property
    def hints(self) -> list[str]:
        """The tags that its method stands for."""
        return [_HINTS[self.method]] if self.method in _HINTS else []


def operations(paper: Paper) -> list[Operation]:
    """All operations of a document, in its order. What is wrong with the document around them is
    among its faults.
    """
    paths = paper.held(paper.root, (), "paths", dict)
    return [
        one
        for path, item in paths.items()
        if not path.startswith("x-")
        for one in _of_path(paper, path, item)
    ]


def _of_path(paper: Paper, path: str, value: Any) -> Iterator[Operation]:
    at: Pointer = ("paths", path)
    if not path.startswith("/"):
        paper.fault(at, "a path that does not begin with `/`.")
    item, around = paper.found(value, at, "a path item")
    for method in _METHODS:
        if method in item:
            said, place = paper.found(item[method], (*around, method), "an operation")
            yield Operation(method, path, said, place, item, around)


def parameters(
    paper: Paper, operation: Operation, lose: Callable[..., None]
) -> list[tuple[dict[str, Any], Pointer]]:
    """The parameters of an operation with their pointers: those of its path, each unless the
    operation has one of its own instead.
    """
    found: dict[tuple[str, str], tuple[dict[str, Any], Pointer]] = {}
    for holder, at in ((operation.item, operation.around), (operation.said, operation.at)):
        own = set()
        for index, value in enumerate(paper.held(holder, at, "parameters", list)):
            one, place = paper.found(value, (*at, "parameters", index), "a parameter")
            key = paper.held(one, place, "name", str), paper.held(one, place, "in", str)
            if one and not all(key):
                paper.fault(place, "a parameter needs `name` and `in`.")
            if key in own:
                lose(
                    ("input_parameters", key[0]),
                    "a parameter that stands twice: the last one counts",
                    key[1],
                )
            own.add(key)
            found[key] = one, place
    return [pair for key, pair in found.items() if all(key)]
