"""Parameter nodes: every parameter description of a tool with its location, for lint rules."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
from toolcatalog.parameters import children

Description = Mapping[str, Any]


class ParameterNode(NamedTuple):
    """One parameter description and how to come to it from the file's root.

    `name` is empty where the value has none: items, other properties, a branch. `level` counts the
    objects that it lies in.
    """

    pointer: Pointer
    name: str
    description: Description
    depth: int


def collect_nodes(parameters: Mapping[str, Description], root: str) -> Sequence[ParameterNode]:
    """List all descriptions of a map of parameters, each before those within it."""
    places: list[ParameterNode] = []
    for name, description in parameters.items():
        _add_nodes(places, ParameterNode((root, name), name, description, 1))
    return places


def _add_nodes(nodes: list[ParameterNode], node: ParameterNode) -> None:
    """Append a description and all within it. Only the properties of an object are a level deeper."""
    nodes.append(node)
    for steps, name, description in children(node.description):
        level = node.depth + (steps[0] == "properties")
        _add_nodes(nodes, ParameterNode((*node.pointer, *steps), name, description, level))
