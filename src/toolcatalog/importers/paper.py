"""A document of another maker while it is read: each value of the kind that it should have, and
what is wrong with its place. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from toolcatalog.errors import MOST, Pointer
from toolcatalog.importers.additions import stop
from toolcatalog.importers.documents import Source
from toolcatalog.importers.references import is_local, led_to, steps, written

T = TypeVar("T")
_KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false"}
_LONGEST_WAY = 50  # references that follow one another
_SHOWN = 100  # characters of a reference in a sentence


@dataclass(slots=True)
class Paper:
    """A document whose value is a mapping. `faults` gathers what is wrong, each once, with its
    pointer.
    """

    source: Source
    faults: dict[str, Pointer] = field(default_factory=dict)

    def fault(self, at: Pointer, sentence: str) -> None:
        """Tell what is wrong with the value at a pointer. Raises UsageError where so much is wrong
        that nobody would read on.
        """
        self.faults.setdefault(f"{written(at)}: {sentence}", at)
        if len(self.faults) > MOST:
            self.stop()

    def stop(self) -> None:
        """Raise UsageError where anything is wrong: a sentence for each of the first few."""
        found = (
            sorted(zip(self.source.places([*self.faults.values()]), self.faults, strict=True))
            if self.faults
            else []
        )
        stop(
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

    def held(self, holder: Mapping[str, Any], at: Pointer, key: str, kind: type[T]) -> T:
        """The value of a key, which is of this kind; an empty one where there is none, or what
        stands there is of another.
        """
        value = holder.get(key)
        if isinstance(value, kind):
            return value
        if value is not None:
            self.fault((*at, key), f"`{key}` is not {_KINDS[kind]}.")
        return kind()

    def texts(self, holder: Mapping[str, Any], at: Pointer, key: str) -> list[str]:
        """The texts in a list."""
        said = self.held(holder, at, key, list)
        for index, text in enumerate(said):
            if not isinstance(text, str):
                self.fault((*at, key, index), f"an item of `{key}` is not a text.")
        return [text for text in said if isinstance(text, str)]

    def found(self, value: Any, at: Pointer, what: str) -> tuple[dict[str, Any], Pointer]:
        """A mapping, which stands there or where a reference leads, and its pointer; empty, and a
        fault, where it is none.

        `what` names it: `a parameter`.
        """
        way = 0
        while isinstance(value, dict) and isinstance(ref := value.get("$ref"), str):
            way += 1
            wrong = self.astray(ref, way)
            if wrong:
                self.fault(at, f"{what} is said to be `{ref[:_SHOWN]}`, {wrong}.")
                return {}, at
            value, at = led_to(self.root, ref), steps(ref)
        if not isinstance(value, dict):
            self.fault(at, f"{what} is not a mapping.")
            return {}, at
        return value, at

    def astray(self, ref: str, way: int) -> str:
        """Why a reference is not followed; empty where it is."""
        if not is_local(ref):
            return "which is in another document, and none is fetched: bundle all into one document first"
        if led_to(self.root, ref) is None:
            return "and there is nothing of this name"
        return (
            "at the end of too many references, or of one that leads back to itself"
            if way > _LONGEST_WAY
            else ""
        )
