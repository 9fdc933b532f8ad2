"""The lock file: which tools an application uses, in which version, with a digest of each.

A published version must not change. With the digest, an application detects if it did: otherwise a
changed description would reach the model without the user's knowledge. The digest covers the
definition alone, so that other data may change under the same version. It is the same whether the
document comes from a build, a catalog or a server. The order of parameters counts, because a model
reads them in that order.

Lock files of format 1 are read and verified too. Their digests sort all keys and do not cover the
order. New files have format 2.

    {
      "format": 2,
      "tools": {
        "GITHUB_CREATE_ISSUE": {"version": "20250715_00", "digest": "sha256:..."}
      }
    }
"""

import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

import orjson

from toolcatalog import names, versions
from toolcatalog.encoding import sha256_hex
from toolcatalog.errors import UsageError

FORMAT = 2
_SORTED = 1  # the format with digests of sorted keys
FIELDS = (
    "slug",
    "version",
    "name",
    "description",
    "input_parameters",
    "output_parameters",
    "no_auth",
    "scopes",
    "tags",
)  # and the slug of the toolkit
_ALGORITHM = "sha256:"
_DIGEST = len(_ALGORITHM) + 64

Document = Mapping[str, Any]


class MissingReason(Enum):
    """Why a source has no document of a locked tool."""

    TOOL = "tool-gone"
    VERSION = "version-gone"


# slug and version of a tool to its document
DocumentSource = Callable[[str, str], Document | MissingReason]


class LockedTool(NamedTuple):
    """The entry of a tool in a lock; `is_sorted`: its digest is of format 1."""

    version: str
    digest: str
    is_sorted: bool = False


class Difference(NamedTuple):
    """A difference from the lock.

    Its severity is "note" if an application may continue, otherwise "error".
    """

    slug: str
    version: str
    rule: str
    severity: str
    message: str
    help: str


Lock = Mapping[str, LockedTool]


def lock_tool(document: Document, is_sorted: bool = False) -> LockedTool:
    """Return the entry of a tool from its API document; `is_sorted`: with a digest of format 1.

    Raises UsageError if the document has hundreds of nested levels, which no catalog allows.
    """
    definition = {field: document[field] for field in FIELDS} | {
        "toolkit": document["toolkit"]["slug"]
    }
    try:
        data = orjson.dumps(definition, option=orjson.OPT_SORT_KEYS if is_sorted else None)
    except orjson.JSONEncodeError:
        raise UsageError(
            f"{document['slug']} {document['version']} is nested more deeply than any tool of a "
            "catalog, so it has no digest: find out who changed it."
        ) from None
    return LockedTool(document["version"], _ALGORITHM + sha256_hex(data), is_sorted)


def dump(lock: Lock) -> bytes:
    """Return the text of a lock file, with a line per tool, sorted by slug.

    So a change of one tool is a change of one line. No entry may be of format 1.
    """
    assert not is_old(lock)
    lines = ",\n".join(
        f"    {_to_json(slug)}: {_to_json({'version': entry.version, 'digest': entry.digest})}"
        for slug, entry in sorted(lock.items())
    )
    return f'{{\n  "format": {FORMAT},\n  "tools": {{\n{lines}\n  }}\n}}\n'.encode()


def is_old(lock: Lock) -> bool:
    """Return whether a lock has entries of format 1."""
    return any(entry.is_sorted for entry in lock.values())


def load(data: bytes, file: str) -> dict[str, LockedTool]:
    """Parse a lock file; `file` is its name in messages.

    Raises UsageError if it is not one that this program wrote.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _invalid_file(f"{file} is not JSON ({error})") from None
    if not _is_unambiguous(data):
        raise _invalid_file(f"{file} has a key twice, and only the last of them would count")
    if not _has_known_format(value):
        raise _invalid_file(
            f'{file} is not a lock file of format {FORMAT} (`{{"format": {FORMAT}, "tools": ...}}`)'
        )
    for slug, entry in value["tools"].items():
        if not _is_entry(slug, entry):
            raise _invalid_file(
                f"{file} has an entry {slug!r} that is invalid (expected a slug with version and "
                f"digest)"
            )
    is_sorted = value["format"] == _SORTED
    return {
        slug: LockedTool(entry["version"], entry["digest"], is_sorted)
        for slug, entry in value["tools"].items()
    }


def _invalid_file(problem: str) -> UsageError:
    help = "make it again with `toolcatalog lock`, or take it from version control."
    return UsageError(f"{problem}: {help}")


def _has_known_format(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and type(value.get("format")) is int
        and value["format"] in (_SORTED, FORMAT)
        and isinstance(value.get("tools"), dict)
    )


def find_difference(
    slug: str, entry: LockedTool, document: Document | MissingReason
) -> Difference | None:
    """Return the difference of a tool from its lock entry; None if there is none."""
    if document is MissingReason.TOOL:
        rule, severity, message = document.value, "error", "There is no such tool any more."
        help = "See why it was removed, and lock its replacement."
    elif document is MissingReason.VERSION:
        rule, severity = document.value, "error"
        message = f"Version {entry.version} is no longer there."
        help = "See why it was removed, and lock its replacement."
    elif lock_tool(document, entry.is_sorted) != entry:
        rule, severity = "changed", "error"
        message = (
            f"Version {entry.version} does not match the lock: its definition changed under the "
            f"same version."
        )
        help = (
            "Do not give it to a model before you have reviewed it. To accept it, remove its "
            "entry and lock it again."
        )
    elif document["is_deprecated"]:
        rule, severity = "deprecated", "note"
        message = f"Version {entry.version} is deprecated."
        help = "Its page on the site names a replacement, if there is one."
    else:
        return None
    return Difference(slug, entry.version, rule, severity, message, help)


def _is_unambiguous(data: bytes) -> bool:
    """Return whether no object of a JSON text has a duplicate key.

    A person who reads the file would take the first one for the effective one.
    """

    def check_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(value := dict(pairs)) < len(pairs):
            raise ValueError
        return value

    try:
        json.loads(data, object_pairs_hook=check_pairs)
    except (ValueError, RecursionError):
        return False
    return True


def _is_entry(slug: str, entry: Any) -> bool:
    return (
        names.is_valid(names.TOOL_SLUG, slug)
        and isinstance(entry, dict)
        and all(isinstance(entry.get(field), str) for field in ("version", "digest"))
        and versions.is_version(entry["version"])
        and entry["digest"].startswith(_ALGORITHM)
        and len(entry["digest"]) == _DIGEST
    )


def _to_json(value: Any) -> str:
    return orjson.dumps(value).decode()
