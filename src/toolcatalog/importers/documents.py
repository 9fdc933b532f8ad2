"""JSON and YAML documents to import: typed reads with locations, and `$ref` resolution."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeVar
from urllib.parse import unquote

from toolcatalog.catalog import yaml_reader
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Pointer, UsageError, raise_all

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


T = TypeVar("T")
_TYPE_NAMES = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false"}
_MAX_REFERENCES = 50  # references that follow one another
_SHOWN_LENGTH = 100  # characters of a reference in a sentence


@dataclass(slots=True)
class DocumentReader:
    """A document whose value is a mapping. `faults` gathers what is wrong, each once, with its
    pointer.
    """

    source: SourceDocument
    faults: dict[str, Pointer] = field(default_factory=dict)

    def add_fault(self, pointer: Pointer, sentence: str) -> None:
        """Tell what is wrong with the value at a pointer. Raises UsageError where so much is wrong
        that nobody would read on.
        """
        self.faults.setdefault(f"{format_reference(pointer)}: {sentence}", pointer)
        if len(self.faults) > MAX_FINDINGS_PER_FILE:
            self.raise_faults()

    def raise_faults(self) -> None:
        """Raise UsageError where anything is wrong: a sentence for each of the first few."""
        found = (
            sorted(zip(self.source.locate([*self.faults.values()]), self.faults, strict=True))
            if self.faults
            else []
        )
        raise_all(
            [
                ":".join(
                    [self.source.name, *(str(number) for number in place if number), f" {fault}"]
                )
                for place, fault in found
            ]
        )

    @property
    def root(self) -> dict[str, Any]:
        """The document's value."""
        value: dict[str, Any] = self.source.value
        return value

    def get(self, holder: Mapping[str, Any], pointer: Pointer, key: str, kind: type[T]) -> T:
        """The value of a key, which is of this kind; an empty one where there is none, or what
        stands there is of another.
        """
        value = holder.get(key)
        if isinstance(value, kind):
            return value
        if value is not None:
            self.add_fault((*pointer, key), f"`{key}` is not {_TYPE_NAMES[kind]}.")
        return kind()

    def get_texts(self, holder: Mapping[str, Any], pointer: Pointer, key: str) -> list[str]:
        """The texts in a list."""
        said = self.get(holder, pointer, key, list)
        for index, text in enumerate(said):
            if not isinstance(text, str):
                self.add_fault((*pointer, key, index), f"an item of `{key}` is not a text.")
        return [text for text in said if isinstance(text, str)]

    def get_mapping(
        self, value: Any, pointer: Pointer, what: str
    ) -> tuple[dict[str, Any], Pointer]:
        """A mapping, which stands there or where a reference leads, and its pointer; empty, and a
        fault, where it is none.

        `what` names it: `a parameter`.
        """
        way = 0
        while isinstance(value, dict) and isinstance(ref := value.get("$ref"), str):
            way += 1
            wrong = self.reference_fault(ref, way)
            if wrong:
                self.add_fault(pointer, f"{what} is said to be `{ref[:_SHOWN_LENGTH]}`, {wrong}.")
                return {}, pointer
            value, pointer = resolve_reference(self.root, ref), parse_reference(ref)
        if not isinstance(value, dict):
            self.add_fault(pointer, f"{what} is not a mapping.")
            return {}, pointer
        return value, pointer

    def reference_fault(self, ref: str, followed: int) -> str:
        """Why a reference is not followed; empty where it is."""
        if not is_local_reference(ref):
            return "which is in another document, and none is fetched: bundle all into one document first"
        if resolve_reference(self.root, ref) is None:
            return "and there is nothing of this name"
        return (
            "at the end of too many references, or of one that leads back to itself"
            if followed > _MAX_REFERENCES
            else ""
        )


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
