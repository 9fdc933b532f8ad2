"""YAML text to JSON values, safely; the only room that knows YAML.

The files are untrusted, so this reads less than YAML offers: libyaml's events go into a constructor of our own that types nothing
but JSON literals (`no`, `012`, `1:30`, `2025-01-01` and `20250909_00` stay the strings that they look like), keeps the place of
every value, and reports duplicate keys, anchors, tags, further documents and deep nesting. It never makes a Python object, never
expands an alias and stops at 32 levels. Keys are always strings.

Serves: "Reading YAML safely" of the catalog format.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from toolcatalog.errors import Pointer

DEEPEST = 32  # levels of nesting
_LITERALS = {"": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# Also the line ends that YAML counts and editors do not: every line number given must be the one that an editor shows.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]|\r(?!\n)")
_BOM = "\ufeff"
_REFUSED = (
    (_CONTROL, "yaml-control-character", "control character", "remove it, or write it as an escape in a double-quoted string"),
    (re.compile(_BOM), "yaml-byte-order-mark", "byte-order mark", "remove it: it may only be the first character of a file"),
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that this room refuses: `line` and `column` from 1, `length` in characters."""

    line: int
    column: int
    rule: str
    message: str
    help: str
    length: int = 1


@dataclass(frozen=True, slots=True)
class Mark:
    """Where one value stands: its event, the event of its key, and the marks of what it holds."""

    event: Event
    key: Event | None
    children: "dict[str | int, Mark]"


@dataclass(frozen=True, slots=True)
class Reading:
    """A file as read: its JSON value (None where there is none), the marks of all its values, and what is wrong with it."""

    value: Any
    mark: Mark | None
    faults: tuple[Fault, ...]


def read(data: bytes) -> Reading:
    """Read one YAML document. A file with faults still gives what could be read of it, so that all is reported at once."""
    text, faults = _decode(data)
    return Reading(None, None, tuple(faults)) if faults else _Constructor(text).read()


def place(mark: Mark, pointer: Pointer, at_key: bool) -> tuple[int, int, int]:
    """Line, column (both from 1) and length of the value at `pointer`, or of the nearest value around it that is written down."""
    whole = True
    for step in pointer:
        child = mark.children.get(step)
        if child is None:
            whole = False
            break
        mark = child
    event = mark.key if at_key and whole and mark.key is not None else mark.event
    return _span(event)


def _span(event: Event) -> tuple[int, int, int]:
    start, end = event.start_mark, event.end_mark
    assert start is not None
    assert end is not None
    return start.line + 1, start.column + 1, max(1, end.column - start.column) if end.line == start.line else 1


def _decode(data: bytes) -> tuple[str, list[Fault]]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _at(data[: error.start].decode("utf-8"))
        return "", [Fault(line, column, "yaml-encoding", f"byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8")]
    text = text.removeprefix(_BOM)
    faults = []
    for pattern, rule, what, help in _REFUSED:
        if found := pattern.search(text):
            more = len(pattern.findall(text, found.end()))
            also = f" (and {more} more in this file)" if more else ""
            faults.append(Fault(*_at(text[: found.start()]), rule, f"{what} U+{ord(found[0]):04X}{also}", help))
    return text, faults


def _at(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


class _Unreadable(Exception):
    """What follows in this file cannot be given a value."""


class _Constructor:
    """Events to values. One object reads one file."""

    def __init__(self, text: str) -> None:
        self.events: Iterator[Event] = iter(yaml.parse(text, Loader=yaml.CSafeLoader))
        self.faults: list[Fault] = []

    def read(self) -> Reading:
        try:
            value, mark = self.document()
        except _Unreadable:
            value, mark = None, None
        except yaml.YAMLError as error:
            self.faults.append(_syntax(error))
            value, mark = None, None
        return Reading(value, mark, tuple(self.faults))

    def document(self) -> tuple[Any, Mark]:
        next(self.events)  # the stream's start
        event = next(self.events)
        if isinstance(event, StreamEndEvent):
            self.refuse(event, "yaml-empty", "the file has no content", "write the fields of this kind of file, or delete it")
        value, mark = self.node(next(self.events), None, 1)
        next(self.events)  # the document's end
        event = next(self.events)
        if not isinstance(event, StreamEndEvent):
            self.fault(event, "yaml-documents", "a second document starts here", "keep one document in a file and remove the `---`")
        return value, mark

    def node(self, event: Event, key: Event | None, depth: int) -> tuple[Any, Mark]:
        if isinstance(event, AliasEvent):
            help = "write the value out: aliases are not read, because they can expand without end"
            self.refuse(event, "yaml-alias", f"alias `*{event.anchor}`", help)
        if depth > DEEPEST:
            self.refuse(event, "yaml-depth", f"nested more than {DEEPEST} levels deep", "flatten the structure")
        self.extras(event)
        if isinstance(event, MappingStartEvent):
            return self.mapping(event, key, depth)
        if isinstance(event, SequenceStartEvent):
            return self.sequence(event, key, depth)
        assert isinstance(event, ScalarEvent)
        return self.scalar(event), Mark(event, key, {})

    def mapping(self, start: Event, key: Event | None, depth: int) -> tuple[dict[str, Any], Mark]:
        value: dict[str, Any] = {}
        children: dict[str | int, Mark] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                self.refuse(event, "yaml-key", "a key that is not a plain word", "write keys as single words or quoted strings")
            self.extras(event)
            item, mark = self.node(next(self.events), event, depth + 1)
            if event.value in value:
                first = children[event.value].key
                where = f", first on line {_span(first)[0]}" if first else ""
                self.fault(event, "yaml-duplicate-key", f"key `{event.value}` stands here again{where}", "keep one of the two")
            else:
                value[event.value], children[event.value] = item, mark
        return value, Mark(start, key, children)

    def sequence(self, start: Event, key: Event | None, depth: int) -> tuple[list[Any], Mark]:
        value: list[Any] = []
        children: dict[str | int, Mark] = {}
        while not isinstance(event := next(self.events), SequenceEndEvent):
            item, children[len(value)] = self.node(event, None, depth + 1)
            value.append(item)
        return value, Mark(start, key, children)

    def scalar(self, event: ScalarEvent) -> Any:
        """The value of a scalar: a string, unless it is plain and a JSON literal."""
        text: str = event.value
        if event.style or not event.implicit[0]:
            return text
        if text in _LITERALS:
            return _LITERALS[text]
        if _INTEGER.fullmatch(text):
            return self.integer(event, text)
        if _NUMBER.fullmatch(text):
            return self.number(event, float(text))
        return text

    def integer(self, event: Event, text: str) -> int:
        if len(text) > 19 or not -(2**63) <= int(text) < 2**63:
            help = "quote it to make it a string: JSON readers lose its last digits"
            self.fault(event, "yaml-number", "a whole number beyond 64 bits", help)
            return 0
        return int(text)

    def number(self, event: Event, value: float) -> float:
        if not math.isfinite(value):
            self.fault(event, "yaml-number", "a number too large for JSON", "write a smaller number, or quote it to make it a string")
        return value

    def extras(self, event: Event) -> None:
        if anchor := getattr(event, "anchor", None):
            self.fault(event, "yaml-anchor", f"anchor `&{anchor}`", "remove it: aliases are not read, so nothing can refer to it")
        if tag := getattr(event, "tag", None):
            short = tag.replace("tag:yaml.org,2002:", "!!")
            self.fault(event, "yaml-tag", f"tag `{short}`", "remove it: only JSON values are read; quotes make a value a string")

    def refuse(self, event: Event, rule: str, message: str, help: str) -> NoReturn:
        self.fault(event, rule, message, help)
        raise _Unreadable

    def fault(self, event: Event, rule: str, message: str, help: str) -> None:
        self.faults.append(Fault(*_span(event)[:2], rule, message, help, _span(event)[2]))


def _syntax(error: yaml.YAMLError) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = [part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part]
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return Fault(line, column, "yaml-syntax", ", ".join(said) or "not YAML", "check indentation, colons and quotes around this place")
