"""YAML text to JSON values, safely; the only room that knows YAML.

The files are untrusted, so this reads less than YAML offers: libyaml's events go into a constructor
of our own that types nothing but JSON literals (`no`, `012`, `1:30`, `2025-01-01` and `20250909_00`
stay the strings that they look like), keeps the place of every value, and reports duplicate keys,
anchors, tags, further documents and deep nesting. It never makes a Python object, never expands an
alias and stops at 32 levels and at 20,000 values. Keys are always strings.

Nearly every file is sound, so there are two ways. `value` gives the value and nothing else, and
gives up at the first thing that it does not take; `read` takes nearly twice the time, keeps the
places and knows the words. Whoever gets no `value` asks `read` why.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from toolcatalog.errors import MOST, Pointer

DEEPEST = 32  # mappings and lists within each other
MOST_VALUES = 20_000  # in a file, without keys: fifteen times what the largest real definition has
_LITERALS = {"": None, "null": None, "true": True, "false": False}
# what a literal that is not empty begins with; the empty string is found in any
_FIRST = "-0123456789ntf"
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# Also the line ends that YAML counts and editors do not: every line number given must be the one
# that an editor shows.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]|\r(?!\n)")
_BOM = "\ufeff"
_HARMLESS = bytes(range(0x20, 0x7F)) + b"\n"  # most bytes of most files, which need no closer look
# each value but the outermost one stands behind one of these, and no two behind the same
_BEFORE_VALUES = b":?,-[{"
# JSON writes a character beyond U+FFFF as two escapes. libyaml refuses them, YAML 1.2 holds every
# JSON text.
_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)
_BAD_ESCAPE = "invalid Unicode character escape code"
_REFUSED = (
    (
        _CONTROL,
        "yaml-control-character",
        "control character",
        "remove it, or write it as an escape in a double-quoted string",
    ),
    (
        re.compile(_BOM),
        "yaml-byte-order-mark",
        "byte-order mark",
        "remove it: it may only be the first character of a file",
    ),
)
_SYNTAX_HELP = {  # what libyaml says: what most often is the cause
    "mapping values are not allowed in this context": "put the whole value in quotes if it holds `: `, or mend the indentation",
    "found character that cannot start any token": "indent with spaces, not tabs; quote values that start with `@`, `%` or a backtick",
    "could not find expected ':'": "write `key: value`; a value that goes on in the next line is indented",
    "did not find expected key": "line the keys up; close quotes, and write a quote within quotes as `''`",
    "did not find expected ',' or ']'": "close the list with `]`; put values with brackets, commas or `: ` in quotes",
    "did not find expected ',' or '}'": "close the mapping with `}`; put values with brackets, commas or `: ` in quotes",
    "found unexpected end of stream": "close the quote that starts here",
    "found unknown escape character": "use single quotes, or double the backslash",
}
# what is wrong is where the key or quote starts
_BEGAN_BEFORE = {"could not find expected ':'", "found unexpected end of stream"}


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
    """A file as read: its JSON value (None where there is none), the marks of all its values, and
    what is wrong with it.
    """

    value: Any
    mark: Mark | None
    faults: tuple[Fault, ...]


class Doubtful(Exception):
    """There is a fault in a file, or something that only a closer look can tell from one: `read`
    it.
    """


def value(data: bytes, deepest: int = DEEPEST, most: int = MOST_VALUES) -> Any:
    """The JSON value of a file in which `read` finds no fault, and the same as `read` finds. Raises
    Doubtful where it cannot tell.
    """
    if _may_have_more(data, most):  # so that nothing need be counted while it is read
        raise Doubtful
    try:
        _look_through(data)
        take = yaml.CSafeLoader(data).get_event
        take()  # the stream's start
        if not isinstance(take(), DocumentStartEvent):
            raise Doubtful
        found = _node(take, take(), deepest)
        take()  # the document's end
        if not isinstance(take(), StreamEndEvent):
            raise Doubtful
    except (UnicodeDecodeError, yaml.YAMLError, _TooLarge):
        raise Doubtful from None
    return found


def _may_have_more(data: bytes, most: int) -> bool:
    """Tell, without reading a file, whether there may be more values in it; where this says no,
    there are none.
    """
    return len(data) >= most and 1 + len(data) - len(data.translate(None, _BEFORE_VALUES)) > most


def _look_through(data: bytes) -> None:
    """Refuse what must not stand anywhere in a file. What can be printed is none of it, and that is
    told much faster.
    """
    text = data.decode("utf-8")
    if not data.translate(None, _HARMLESS).decode("utf-8").isprintable() and any(
        pattern.search(text) for pattern, *_ in _REFUSED
    ):
        raise Doubtful


def _node(take: Callable[[], Any], event: Any, depth: int) -> Any:
    """The value that begins with `event`, in which mappings and lists may nest `depth` levels deep."""
    if event.anchor or event.tag:  # an alias has an anchor too: the one that it stands for
        raise Doubtful
    kind = type(event)
    if kind is ScalarEvent:
        text = event.value
        return text if event.style or text[:1] not in _FIRST else _typed(text)
    if not depth:
        raise Doubtful
    return _mapping(take, depth - 1) if kind is MappingStartEvent else _sequence(take, depth - 1)


def _mapping(take: Callable[[], Any], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    keys = 0
    while type(event := take()) is ScalarEvent:
        if event.anchor or event.tag:
            raise Doubtful
        found[event.value] = _node(take, take(), depth)
        keys += 1
    if type(event) is not MappingEndEvent or keys != len(found):
        raise Doubtful
    return found


def _sequence(take: Callable[[], Any], depth: int) -> list[Any]:
    found: list[Any] = []
    while type(event := take()) is not SequenceEndEvent:
        found.append(_node(take, event, depth))
    return found


class _TooLarge(Exception):
    """A number that JSON readers do not hold: what it is, the help, and a number to stand in its
    place.
    """


def _typed(text: str) -> Any:
    """The value of a plain scalar: a string, unless it is a JSON literal. Raises _TooLarge."""
    if text in _LITERALS:
        return _LITERALS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
            raise _TooLarge(
                "a whole number beyond 64 bits",
                "quote it to make it a string: JSON readers lose its last digits",
                0,
            )
        return int(text)
    if _NUMBER.fullmatch(text):
        if not math.isfinite(number := float(text)):
            raise _TooLarge(
                "a number too large for JSON",
                "write a smaller number, or quote it to make it a string",
                0.0,
            )
        return number
    return text


def read(data: bytes, deepest: int = DEEPEST, most: int = MOST_VALUES) -> Reading:
    """Read one YAML document. A file with faults still gives what could be read of it, so that all
    is reported at once.
    """
    text, faults = _decode(data)
    if faults:
        return Reading(None, None, tuple(faults))
    reading = _Constructor(text, deepest, most).read()
    if any(_BAD_ESCAPE in fault.message for fault in reading.faults) and _PAIR.search(text):
        return _Constructor(_PAIR.sub(_joined, text), deepest, most, joined=True).read()
    return reading


def _joined(pair: re.Match[str]) -> str:
    """A surrogate pair as JSON escapes it, in the one escape that libyaml takes for the same
    character.
    """
    high, low = int(pair[2], 16), int(pair[3], 16)
    return f"{pair[1]}\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


def has_too_many(value: Any) -> bool:
    """Tell whether a file that holds this JSON value would have more values than are read."""
    found, left = 0, [value]
    while left and found <= MOST_VALUES:
        one = left.pop()
        found += 1
        left.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
    return found > MOST_VALUES


def place(mark: Mark, pointer: Pointer, at_key: bool) -> tuple[int, int, int]:
    """Line, column (both from 1) and length of the value at `pointer`, or of the nearest value
    around it that is written down.
    """
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
    return (
        start.line + 1,
        start.column + 1,
        max(1, end.column - start.column) if end.line == start.line else 1,
    )


def _decode(data: bytes) -> tuple[str, list[Fault]]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _at(data[: error.start].decode("utf-8"))
        return "", [
            Fault(
                line,
                column,
                "yaml-encoding",
                f"byte 0x{data[error.start]:02x} is not UTF-8",
                "save the file as UTF-8",
            )
        ]
    text = text.removeprefix(_BOM)
    faults = []
    for pattern, rule, what, help in _REFUSED:
        if found := pattern.search(text):
            more = len(pattern.findall(text, found.end()))
            also = f" (and {more} more in this file)" if more else ""
            faults.append(
                Fault(
                    *_at(text[: found.start()]), rule, f"{what} U+{ord(found[0]):04X}{also}", help
                )
            )
    return text, faults


def _at(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


class _Unreadable(Exception):
    """What follows in this file cannot be given a value."""


class _Constructor:
    """Events to values. One object reads one file."""

    def __init__(self, text: str, deepest: int, most: int, joined: bool = False) -> None:
        self.next: Callable[[], Any] = yaml.CSafeLoader(text).get_event
        self.faults: list[Fault] = []
        self.deepest = deepest
        self.most = most
        self.values = 0
        self.joined = joined

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
        self.next()  # the stream's start
        event = self.next()
        if isinstance(event, StreamEndEvent):
            self.refuse(
                event,
                "yaml-empty",
                "the file has no content",
                "write the fields of this kind of file, or delete it",
            )
        value, mark = self.node(self.next(), None, 1)
        self.next()  # the document's end
        event = self.next()
        if not isinstance(event, StreamEndEvent):
            self.fault(
                event,
                "yaml-documents",
                "a second document starts here",
                "keep one document in a file and remove the `---`",
            )
        return value, mark

    def node(self, event: Any, key: Event | None, depth: int) -> tuple[Any, Mark]:
        self.values += 1
        if self.values > self.most:
            help = "shorten the lists, or leave out what a tool of its own can look up"
            self.refuse(event, "yaml-values", f"more than {self.most:,} values in this file", help)
        if isinstance(event, ScalarEvent):
            self.extras(event)
            return self.scalar(event), Mark(event, key, {})
        if isinstance(event, AliasEvent):
            help = "write the value out: aliases are not read, because they can expand without end"
            self.fault(event, "yaml-alias", f"alias `*{event.anchor}`", help)
            return None, Mark(event, key, {})
        if depth > self.deepest:
            self.refuse(
                event,
                "yaml-depth",
                f"nested more than {self.deepest} levels deep",
                "flatten the structure",
            )
        self.extras(event)
        return (
            self.mapping(event, key, depth)
            if isinstance(event, MappingStartEvent)
            else self.sequence(event, key, depth)
        )

    def mapping(self, start: Event, key: Event | None, depth: int) -> tuple[dict[str, Any], Mark]:
        value: dict[str, Any] = {}
        children: dict[str | int, Mark] = {}
        while not isinstance(event := self.next(), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                self.refuse(
                    event,
                    "yaml-key",
                    "a key that is not a plain word",
                    "write keys as single words or quoted strings",
                )
            self.extras(event)
            item, mark = self.node(self.next(), event, depth + 1)
            if event.value in value:
                first = children[event.value].key
                where = f", first on line {_span(first)[0]}" if first else ""
                self.fault(
                    event,
                    "yaml-duplicate-key",
                    f"key `{event.value}` stands here again{where}",
                    "keep one of the two",
                )
            else:
                value[event.value], children[event.value] = item, mark
        return value, Mark(start, key, children)

    def sequence(self, start: Event, key: Event | None, depth: int) -> tuple[list[Any], Mark]:
        value: list[Any] = []
        children: dict[str | int, Mark] = {}
        while not isinstance(event := self.next(), SequenceEndEvent):
            item, children[len(value)] = self.node(event, None, depth + 1)
            value.append(item)
        return value, Mark(start, key, children)

    def scalar(self, event: ScalarEvent) -> Any:
        """The value of a scalar: a string, unless it is plain and a JSON literal."""
        text: str = event.value
        if event.style or not event.implicit[0]:
            return text
        try:
            return _typed(text)
        except _TooLarge as refusal:
            message, help, instead = refusal.args
            self.fault(event, "yaml-number", message, help)
            return instead

    def extras(self, event: Any) -> None:
        if event.anchor:
            self.fault(
                event,
                "yaml-anchor",
                f"anchor `&{event.anchor}`",
                "remove it: aliases are not read, so nothing can refer to it",
            )
        if event.tag:
            short = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.fault(
                event,
                "yaml-tag",
                f"tag `{short}`",
                "remove it: only JSON values are read; quotes make a value a string",
            )
        if (
            self.joined
            and isinstance(event, ScalarEvent)
            and event.style != '"'
            and "\\U000" in event.value
        ):
            help = (
                "write the character itself: outside double quotes a backslash is only a backslash"
            )
            self.refuse(event, "yaml-syntax", "a surrogate pair outside double quotes", help)

    def refuse(self, event: Event, rule: str, message: str, help: str) -> NoReturn:
        self.fault(event, rule, message, help)
        raise _Unreadable

    def fault(self, event: Event, rule: str, message: str, help: str) -> None:
        line, column, length = _span(event)
        self.faults.append(Fault(line, column, rule, message, help, length))
        if len(self.faults) > MOST:
            raise _Unreadable


def _syntax(error: yaml.YAMLError) -> Fault:
    problem = str(getattr(error, "problem", ""))
    marks = [getattr(error, name, None) for name in ("problem_mark", "context_mark")]
    mark = marks[1] if problem in _BEGAN_BEFORE and marks[1] else marks[0] or marks[1]
    said = [
        part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part
    ]
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    help = _SYNTAX_HELP.get(problem, "check indentation, colons and quotes around this place")
    return Fault(line, column, "yaml-syntax", ", ".join(said) or "not YAML", help)
