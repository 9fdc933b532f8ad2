"""References within one JSON document. Pure."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from toolcatalog.errors import Pointer


def is_local_reference(ref: str) -> bool:
    """Tell whether a reference leads into its own document, and not to another one or to a name
    that only a reader of anchors knows.
    """
    return ref == "#" or ref.startswith("#/")


def parse_reference(ref: str) -> Pointer:
    """The steps of a local reference from the root of its document: `#/paths/~1pets/get` is
    `paths`, `/pets`, `get`.
    """
    return tuple(unquote(step).replace("~1", "/").replace("~0", "~") for step in ref.split("/")[1:])


def format_reference(pointer: Pointer) -> str:
    """The reference that these steps are written as."""
    return "/".join(["#", *(str(step).replace("~", "~0").replace("/", "~1") for step in pointer)])


def resolve_reference(root: Any, ref: str) -> Any:
    """What a reference leads to; None where it leads to nothing, or out of the document."""
    found = root if is_local_reference(ref) else None
    for step in parse_reference(ref):
        if (
            isinstance(found, list)
            and isinstance(step, str)
            and step.isascii()
            and step.isdigit()
            and len(step) < 8
        ):
            found = found[int(step)] if int(step) < len(found) else None
        else:
            found = found.get(step) if isinstance(found, Mapping) else None
    return found
