"""Lint rule types, and a walk over the parameter descriptions that rules check.

A `ToolRule` looks at one version of a tool, as written; what it finds is kept in the build's cache with
the tool, so it must not depend on anything else. A `CatalogRule` looks at the whole catalog, in which
tools are no more than listed, each time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from toolcatalog.catalog.model import Catalog, ToolSummary
from toolcatalog.errors import Finding, Pointer
from toolcatalog.lint.texts import ToolView
from toolcatalog.parameters import children


class ToolRule(NamedTuple):
    """A rule for one version of a tool. `severity`: error, warning or note."""

    rule: str
    severity: str
    check: Callable[[ToolView], Iterator[Finding]]


class CatalogRule(NamedTuple):
    """A rule for the whole catalog. `severity`: error, warning or note."""

    rule: str
    severity: str
    check: Callable[[Catalog], Iterator[Finding]]


HISTORY_SEVERITIES: Mapping[str, str] = {
    "history-version-changed": "error",
    "history-version-back": "error",
    "history-version-removed": "error",
    "history-tool-removed": "error",
    "history-toolkit-removed": "error",
    "history-breaking": "warning",
    "history-not-compared": "warning",
    # the severities of the rules in `history`, which takes long to load, and without a revision to
    # compare with nobody needs it
}


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


def iter_newest(catalog: Catalog) -> Iterator[ToolSummary]:
    """Each tool in its newest version."""
    for tool, following in zip_longest(catalog.tools, islice(catalog.tools, 1, None)):
        if following is None or following.slug != tool.slug:
            yield tool


def iter_active(catalog: Catalog) -> Iterator[ToolSummary]:
    """Each tool in its newest version, but those that are deprecated in it."""
    return (tool for tool in iter_newest(catalog) if tool.replaced_by is None)
