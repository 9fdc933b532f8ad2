"""Parameter nodes: every parameter description of a tool with its location, for lint rules."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
from toolcatalog.parameters import children

Description = Mapping[str, Any]


class ParameterNode(NamedTuple):
    """One parameter description and its pointer from the file's root.

    `name` is empty for a value without a name: items, additional properties, a branch. `depth`
    counts the objects that contain the value; the arguments object is the first.
    """

    pointer: Pointer
    name: str
    description: Description
    depth: int


def collect_nodes(parameters: Mapping[str, Description], root: str) -> Sequence[ParameterNode]:
    """Return the nodes of all descriptions in a map of parameters, parents before children."""
    nodes: list[ParameterNode] = []
    for name, description in parameters.items():
        _add_nodes(nodes, ParameterNode((root, name), name, description, 1))
    return nodes


def _add_nodes(nodes: list[ParameterNode], node: ParameterNode) -> None:
    """Append a node and all nodes below it. Only properties of an object are one level deeper."""
    nodes.append(node)
    for steps, name, description in children(node.description):
        level = node.depth + (steps[0] == "properties")
        _add_nodes(nodes, ParameterNode((*node.pointer, *steps), name, description, level))
