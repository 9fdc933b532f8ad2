"""Where the rules look: every parameter description of a tool with its place, and the tools that
are in use. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from toolcatalog.errors import Pointer
from toolcatalog.model import Catalog, Listed
from toolcatalog.parameters import children

Description = Mapping[str, Any]


class Place(NamedTuple):
    """One parameter description and how to come to it from the file's root.

    `name` is empty where the value has none: items, other properties, a branch. `level` counts the
    objects that it lies in.
    """

    pointer: Pointer
    name: str
    description: Description
    level: int


def places(parameters: Mapping[str, Description], root: str) -> Sequence[Place]:
    """List all descriptions of a map of parameters, each before those within it."""
    places: list[Place] = []
    for name, description in parameters.items():
        _add(places, Place((root, name), name, description, 1))
    return places


def _add(places: list[Place], place: Place) -> None:
    """Append a description and all within it. Only the properties of an object are a level deeper."""
    places.append(place)
    for steps, name, description in children(place.description):
        level = place.level + (steps[0] == "properties")
        _add(places, Place((*place.pointer, *steps), name, description, level))


def newest(catalog: Catalog) -> Iterator[Listed]:
    """Each tool in its newest version."""
    for tool, following in zip_longest(catalog.tools, islice(catalog.tools, 1, None)):
        if following is None or following.slug != tool.slug:
            yield tool


def living(catalog: Catalog) -> Iterator[Listed]:
    """Each tool in its newest version, but those that are deprecated in it."""
    return (tool for tool in newest(catalog) if tool.replaced_by is None)
