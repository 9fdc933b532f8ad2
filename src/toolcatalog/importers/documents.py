"""JSON and YAML documents to import: typed reads with locations, and `$ref` resolution."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, TypeVar
from urllib.parse import unquote

from toolcatalog.catalog import yaml_reader
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Pointer, UsageError, raise_all

# nesting levels of mappings and lists; other documents may be deeper than catalog files
MAX_DEPTH = 200
# key of the root under which `importers.bundle` puts the other files of a document
BUNDLE_KEY = "x-bundled-files"
_MIN_COUNTED_SIZE = 1024 * 1024  # bytes; smaller documents get the limit of this size
# minimum average bytes per value; typical documents use 18 or more
_BYTES_PER_VALUE = 8
_MAX_SHOWN_FAULTS = 10

Position = tuple[int, int]  # line and column from 1; 0 if unknown


class SourceDocument(NamedTuple):
    """A source document: its display name, its parsed value, and the bytes it was parsed from.

    `files` are the other files of a bundled document, by their path relative to this one.
    `unreadable` maps references to other files to the reason why they cannot be followed.
    """

    name: str
    value: Any
    data: bytes
    files: "Mapping[str, SourceDocument]" = MappingProxyType({})
    unreadable: Mapping[str, str] = MappingProxyType({})

    def locate(self, pointers: Sequence[Pointer]) -> list[Position]:
        """Return the line and column of the value at each pointer.

        Both are 0 if the position cannot be determined.
        """
        try:
            # the YAML parser also reads JSON
            node = self._parse_with_positions() if self.data else None
        except RecursionError:
            node = None
        if node is None:
            return [(0, 0)] * len(pointers)
        return [yaml_reader.locate_value(node, pointer, False)[:2] for pointer in pointers]

    def _parse_with_positions(self) -> yaml_reader.Node | None:
        return yaml_reader.parse(self.data, MAX_DEPTH, _max_values(self.data)).root

    def file_of(self, pointer: Pointer) -> "tuple[SourceDocument, Pointer]":
        """Return the file that contains the value at a pointer, and the pointer in that file."""
        if len(pointer) > 1 and pointer[0] == BUNDLE_KEY and pointer[1] in self.files:
            return self.files[str(pointer[1])], pointer[2:]
        return self, pointer


def read_document(data: bytes, name: str) -> SourceDocument:
    """Parse a document: JSON if the bytes begin with a brace, otherwise YAML.

    Raises UsageError, with line and column, if the bytes are not valid.
    """
    if not data.lstrip().startswith(b"{"):
        return SourceDocument(name, _parse_yaml(data, name), data)
    try:
        return SourceDocument(name, parse_json(data), data)
    except ValueError as error:
        raise UsageError(f"{name} is not JSON ({error}).") from None


def parse_json(data: bytes) -> Any:
    """Parse JSON strictly, so that no value is silently changed or dropped.

    Raises ValueError for invalid JSON, duplicate keys, and the constants NaN and Infinity.
    """
    return json.loads(
        data, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant
    )


def _parse_yaml(data: bytes, name: str) -> Any:
    """Return the value of a YAML document.

    Numbers beyond 64 bits are kept: what the catalog cannot hold is left out later and reported.
    """
    try:
        return yaml_reader.parse_fast(data, MAX_DEPTH, _max_values(data))
    except yaml_reader.NeedsFullParse:
        result = yaml_reader.parse(data, MAX_DEPTH, _max_values(data), keep_large_numbers=True)
    if result.faults:
        sentences = [
            f"{name}:{fault.line}:{fault.column}: {fault.message}: {fault.help}"
            for fault in result.faults[:_MAX_SHOWN_FAULTS]
        ]
        raise UsageError("\n".join(sentences))
    return result.value


def _max_values(data: bytes) -> int:
    """Return the maximum number of values to read from a document.

    The limit holds for YAML, and for JSON when its line numbers are needed.
    """
    return max(len(data), _MIN_COUNTED_SIZE) // _BYTES_PER_VALUE


def _reject_duplicate_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {key!r} occurs twice in one object")
            seen.add(key)
    return value


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


T = TypeVar("T")
_TYPE_NAMES = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false"}
_MAX_REFERENCES = 50  # in a chain
_MAX_REFERENCE_LENGTH = 10_000  # characters; a long one may be parsed at each of its uses
_SHOWN_LENGTH = 100  # characters of a reference shown in a message


@dataclass(slots=True)
class DocumentReader:
    """A reader for a document whose value is a mapping.

    `faults` maps the message of each error, without duplicates, to the pointer of its value.
    """

    source: SourceDocument
    faults: dict[str, Pointer] = field(default_factory=dict)

    def add_fault(self, pointer: Pointer, sentence: str) -> None:
        """Record an error in the value at a pointer.

        Raises UsageError as soon as there are more errors than anyone would read.
        """
        _, local_pointer = self.source.file_of(pointer)
        self.faults.setdefault(f"{format_reference(local_pointer)}: {sentence}", pointer)
        if len(self.faults) > MAX_FINDINGS_PER_FILE:
            self.raise_faults()

    def raise_faults(self) -> None:
        """Raise UsageError if there are errors, with a sentence for each of the first few."""
        if self.faults:
            raise_all([sentence for _, _, sentence in sorted(self._locate_faults())])

    def _locate_faults(self) -> Iterator[tuple[str, Position, str]]:
        """Yield the file name, the position and the whole sentence of each error."""
        by_file: dict[str, list[tuple[SourceDocument, Pointer, str]]] = {}
        for sentence, pointer in self.faults.items():
            file, local_pointer = self.source.file_of(pointer)
            by_file.setdefault(file.name, []).append((file, local_pointer, sentence))
        for name, rows in by_file.items():
            positions = rows[0][0].locate([pointer for _, pointer, _ in rows])
            for position, (_, _, sentence) in zip(positions, rows, strict=True):
                place = ":".join([name, *(str(number) for number in position if number)])
                yield name, position, f"{place}: {sentence}"

    @property
    def root(self) -> dict[str, Any]:
        """The document's value."""
        value: dict[str, Any] = self.source.value
        return value

    def get(self, parent: Mapping[str, Any], pointer: Pointer, key: str, kind: type[T]) -> T:
        """Return the value of a key, or an empty value of type `kind`.

        The result is empty if the key is missing or its value is of another type. A value of
        another type is recorded as an error.
        """
        value = parent.get(key)
        if isinstance(value, kind):
            return value
        if value is not None:
            self.add_fault((*pointer, key), f"`{key}` is not {_TYPE_NAMES[kind]}.")
        return kind()

    def get_texts(self, parent: Mapping[str, Any], pointer: Pointer, key: str) -> list[str]:
        """Return the strings in the list at a key."""
        items = self.get(parent, pointer, key, list)
        for index, item in enumerate(items):
            if not isinstance(item, str):
                self.add_fault((*pointer, key, index), f"an item of `{key}` is not a text.")
        return [item for item in items if isinstance(item, str)]

    def get_mapping(
        self, value: Any, pointer: Pointer, description: str
    ) -> tuple[dict[str, Any], Pointer]:
        """Return a mapping and its pointer, following references.

        Returns an empty mapping and records an error if there is no mapping. `description` names
        the value in the message, such as `a parameter`.
        """
        followed = 0
        while isinstance(value, dict) and isinstance(ref := value.get("$ref"), str):
            followed += 1
            fault = self.reference_fault(ref, followed)
            if fault:
                self.add_fault(
                    pointer, f"{description} refers to `{ref[:_SHOWN_LENGTH]}`, {fault}."
                )
                return {}, pointer
            value, pointer = resolve_reference(self.root, ref), parse_reference(ref)
        if not isinstance(value, dict):
            self.add_fault(pointer, f"{description} is not a mapping.")
            return {}, pointer
        return value, pointer

    def reference_fault(self, ref: str, followed: int) -> str:
        """Return why a reference cannot be followed, or an empty string if it can."""
        if not is_local_reference(ref):
            return self.source.unreadable.get(
                ref, "which is another document: save it next to this one and refer to the file"
            )
        if resolve_reference(self.root, ref) is None:
            return "which does not exist"
        if followed > _MAX_REFERENCES:
            return "after too many references, or one that leads back to itself"
        return ""


def is_local_reference(ref: str) -> bool:
    """Return whether a reference points into its own document.

    References to other documents and to anchors are not local.
    """
    return ref == "#" or ref.startswith("#/")


def parse_reference(ref: str) -> Pointer:
    """Return the steps of a local reference from the root of its document.

    For example, `#/paths/~1pets/get` gives `paths`, `/pets`, `get`.
    """
    return tuple(unquote(step).replace("~1", "/").replace("~0", "~") for step in ref.split("/")[1:])


def format_reference(pointer: Pointer) -> str:
    """Return the local reference for these steps."""
    return "/".join(["#", *(str(step).replace("~", "~0").replace("/", "~1") for step in pointer)])


def resolve_reference(root: Any, ref: str) -> Any:
    """Return the value that a reference points to.

    Returns None if there is no such value, or if the reference is not local or very long.
    """
    if len(ref) > _MAX_REFERENCE_LENGTH or not is_local_reference(ref):
        return None
    value = root
    for step in parse_reference(ref):
        if isinstance(value, list):
            value = _get_item(value, str(step))
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _get_item(items: Sequence[Any], step: str) -> Any:
    """Return the item of a list that a step of a reference names, or None."""
    if not (step.isascii() and step.isdigit() and len(step) < 8):
        return None
    return items[int(step)] if int(step) < len(items) else None
