"""JSON and YAML documents to import: typed reads with locations, and `$ref` resolution."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from toolcatalog.catalog import yaml_reader
from toolcatalog.errors import Pointer, UsageError

# mappings and lists within each other: a catalog's files are less deep, but not all documents
MAX_DEPTH = 200
_MIN_COUNTED_SIZE = 1024 * 1024  # bytes: as many as a smaller document might have count for it
# bytes that a value takes at least, on the average; those that we know take 18 and more
_BYTES_PER_VALUE = 8
_MAX_SHOWN_FAULTS = 10


class SourceDocument(NamedTuple):
    """A document: what people call it, its value, and the bytes that it was read from."""

    name: str
    value: Any
    data: bytes

    def locate(self, pointers: Sequence[Pointer]) -> list[tuple[int, int]]:
        """Line and column of the values at these pointers; 0 where the bytes do not tell."""
        try:
            # JSON is YAML too
            mark = (
                yaml_reader.parse(self.data, MAX_DEPTH, _max_values(self.data)).root
                if self.data
                else None
            )
        except RecursionError:
            mark = None
        return [
            yaml_reader.locate_value(mark, pointer, False)[:2] if mark else (0, 0)
            for pointer in pointers
        ]


def read_document(data: bytes, name: str) -> SourceDocument:
    """The document in these bytes: JSON where they begin with a brace, else YAML. Raises
    UsageError, with line and column.
    """
    if not data.lstrip().startswith(b"{"):
        return SourceDocument(name, _parse_yaml(data, name), data)
    try:
        return SourceDocument(name, parse_json(data), data)
    except ValueError as error:
        raise UsageError(f"{name} is not JSON ({error}).") from None


def parse_json(data: bytes) -> Any:
    """The JSON value in these bytes, with nothing in it silently changed or dropped. Raises
    ValueError.
    """
    return json.loads(
        data, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant
    )


def _parse_yaml(data: bytes, name: str) -> Any:
    try:
        return yaml_reader.parse_fast(data, MAX_DEPTH, _max_values(data))
    except yaml_reader.NeedsFullParse:
        found = yaml_reader.parse(data, MAX_DEPTH, _max_values(data))
    if found.faults:
        told = [
            f"{name}:{fault.line}:{fault.column}: {fault.message}: {fault.help}"
            for fault in found.faults[:_MAX_SHOWN_FAULTS]
        ]
        raise UsageError("\n".join(told))
    return found.value


def _max_values(data: bytes) -> int:
    """How many values are read of a YAML document, or of a JSON one whose lines are told."""
    return max(len(data), _MIN_COUNTED_SIZE) // _BYTES_PER_VALUE


def _reject_duplicate_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {key!r} stands twice in one object")
            seen.add(key)
    return value


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
