"""A document of another maker while it is read: each value of the kind that it should have, and
what is wrong with its place. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Pointer, raise_all
from toolcatalog.importers.documents import SourceDocument
from toolcatalog.importers.references import (
    format_reference,
    is_local_reference,
    parse_reference,
    resolve_reference,
)

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
