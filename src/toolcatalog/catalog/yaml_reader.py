"""The YAML reader: YAML 1.2 text to JSON values with line and column of each.

The files are untrusted, so this reads only a subset of YAML. A constructor on top of libyaml's
events converts only JSON literals (`no`, `012`, `1:30`, `2025-01-01` and `20250909_00` stay
strings), keeps the position of every value, and reports duplicate keys, anchors, tags, further
documents and deep nesting. It never creates Python objects, never expands an alias, and stops at 32
levels and at 20,000 values. Keys are always strings.

Nearly all files are valid, so there are two parsers. `parse_fast` returns only the value and raises
NeedsFullParse at the first thing that it does not accept. `parse` takes about six times as long,
keeps positions and reports faults. Callers use `parse` when `parse_fast` gives up.
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

from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Pointer

MAX_DEPTH = 32  # levels of nested mappings and lists
_MAX_DIGITS = 400  # of an integer; longer ones do not fit into a float
MAX_VALUES = 20_000  # per file, without keys: 15 times those of the largest real definition
_LITERALS = {"": None, "null": None, "true": True, "false": False}
# first characters of nonempty literals; `in` is also true for the empty string
_LITERAL_FIRST_CHARS = "-0123456789ntf"
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# Includes the line ends that YAML counts and editors do not, so that reported line numbers are
# those that an editor shows.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]|\r(?!\n)")
_BOM = "\ufeff"
_SAFE_BYTES = (
    bytes(range(0x20, 0x7F)) + b"\n"
)  # bytes that need no further check; most files contain few others
# each value except the root follows one of these, and no two values follow the same one
_VALUE_INDICATORS = b":?,-[{"
# JSON writes a character beyond U+FFFF as two escapes. libyaml rejects these, although YAML 1.2
# includes all of JSON.
SURROGATE_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)
_BAD_ESCAPE = "invalid Unicode character escape code"
_FORBIDDEN = (
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
_SYNTAX_HELP = {  # libyaml's message: help for the most likely cause
    "mapping values are not allowed in this context": (
        "put the whole value in quotes if it contains `: `, or fix the indentation"
    ),
    "found character that cannot start any token": (
        "indent with spaces, not tabs; quote values that start with `@`, `%` or a backtick"
    ),
    "could not find expected ':'": (
        "write `key: value`; a value that continues in the next line is indented"
    ),
    "did not find expected key": (
        "line the keys up; close quotes, and write a quote within quotes as `''`"
    ),
    "did not find expected ',' or ']'": (
        "close the list with `]`; put values with brackets, commas or `: ` in quotes"
    ),
    "did not find expected ',' or '}'": (
        "close the mapping with `}`; put values with brackets, commas or `: ` in quotes"
    ),
    "found unexpected end of stream": "close the quote that starts here",
    "found unknown escape character": "use single quotes, or double the backslash",
}
# errors to be reported where the key or quote starts
_STARTED_EARLIER = {"could not find expected ':'", "found unexpected end of stream"}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a file that is not accepted.

    `line` and `column` count from 1, `length` is in characters.
    """

    line: int
    column: int
    rule: str
    message: str
    help: str
    length: int = 1


@dataclass(frozen=True, slots=True)
class Node:
    """The position of one value: its event, the event of its key, and the nodes of its children."""

    event: Event
    key: Event | None
    children: "dict[str | int, Node]"


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The result of parsing a file.

    `value` is its JSON value and `root` the node with all positions, both None if parsing stopped.
    """

    value: Any
    root: Node | None
    faults: tuple[Fault, ...]


class NeedsFullParse(Exception):
    """A file has a fault, or something that only `parse` can distinguish from one."""


def parse_fast(data: bytes, max_depth: int = MAX_DEPTH, max_values: int = MAX_VALUES) -> Any:
    """Return the JSON value of a file without faults, equal to that of `parse`.

    Raises NeedsFullParse if the file has, or may have, faults.
    """
    if _may_exceed_values(data, max_values):  # so values need not be counted below
        raise NeedsFullParse
    try:
        _check_characters(data)
        next_event = yaml.CSafeLoader(data).get_event
        next_event()  # the stream's start
        if not isinstance(next_event(), DocumentStartEvent):
            raise NeedsFullParse
        value = _parse_node(next_event, next_event(), max_depth)
        next_event()  # the document's end
        if not isinstance(next_event(), StreamEndEvent):
            raise NeedsFullParse
    except (UnicodeDecodeError, yaml.YAMLError, _NumberTooLarge):
        raise NeedsFullParse from None
    return value


def _may_exceed_values(data: bytes, max_values: int) -> bool:
    """Return whether a file may contain too many values, estimated without parsing.

    If this returns False, the file is certainly within the limit.
    """
    return (
        len(data) >= max_values
        and 1 + len(data) - len(data.translate(None, _VALUE_INDICATORS)) > max_values
    )


def _check_characters(data: bytes) -> None:
    """Raise NeedsFullParse if a file contains forbidden characters.

    Printable characters are never forbidden, and `isprintable` is much faster than the patterns.
    """
    text = data.decode("utf-8")
    if not data.translate(None, _SAFE_BYTES).decode("utf-8").isprintable() and any(
        pattern.search(text) for pattern, *_ in _FORBIDDEN
    ):
        raise NeedsFullParse


def _parse_node(next_event: Callable[[], Any], event: Any, depth: int) -> Any:
    """Return the value that begins with `event` and nests at most `depth` levels deep."""
    if event.anchor or event.tag:  # the event of an alias has an anchor too
        raise NeedsFullParse
    kind = type(event)
    if kind is ScalarEvent:
        text = event.value
        return (
            text if event.style or text[:1] not in _LITERAL_FIRST_CHARS else _resolve_scalar(text)
        )
    if not depth:
        raise NeedsFullParse
    return (
        _parse_mapping(next_event, depth - 1)
        if kind is MappingStartEvent
        else _parse_sequence(next_event, depth - 1)
    )


def _parse_mapping(next_event: Callable[[], Any], depth: int) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    keys = 0
    while type(event := next_event()) is ScalarEvent:
        if event.anchor or event.tag:
            raise NeedsFullParse
        mapping[event.value] = _parse_node(next_event, next_event(), depth)
        keys += 1
    if type(event) is not MappingEndEvent or keys != len(mapping):
        raise NeedsFullParse
    return mapping


def _parse_sequence(next_event: Callable[[], Any], depth: int) -> list[Any]:
    sequence: list[Any] = []
    while type(event := next_event()) is not SequenceEndEvent:
        sequence.append(_parse_node(next_event, event, depth))
    return sequence


class _NumberTooLarge(Exception):
    """A number that JSON readers cannot represent.

    The arguments are a description, a help text, and a number to use in its place.
    """


def _resolve_scalar(text: str) -> Any:
    """Return the value of a plain scalar: a string, unless it is a JSON literal.

    Raises _NumberTooLarge.
    """
    if text in _LITERALS:
        return _LITERALS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
            raise _NumberTooLarge(
                "a whole number beyond 64 bits",
                "quote it to make it a string: JSON readers lose its last digits",
                0,
            )
        return int(text)
    if _NUMBER.fullmatch(text):
        if not math.isfinite(number := float(text)):
            raise _NumberTooLarge(
                "a number too large for JSON",
                "write a smaller number, or quote it to make it a string",
                0.0,
            )
        return number
    return text


def _large_number(text: str) -> float:
    """Return a number beyond 64 bits: an integer, or infinity if it is too long to convert."""
    return int(text) if _INTEGER.fullmatch(text) and len(text) <= _MAX_DIGITS else float(text)


def parse(
    data: bytes,
    max_depth: int = MAX_DEPTH,
    max_values: int = MAX_VALUES,
    *,
    keep_large_numbers: bool = False,
) -> ParseResult:
    """Parse one YAML document.

    A file with faults still gives the value that could be read, so that all its problems are
    reported at once. With `keep_large_numbers`, a number beyond 64 bits is no fault.
    """
    text, faults = _decode(data)
    if faults:
        return ParseResult(None, None, tuple(faults))
    reading = _Constructor(
        text, max_depth, max_values, keeps_large_numbers=keep_large_numbers
    ).parse()
    if any(_BAD_ESCAPE in fault.message for fault in reading.faults) and SURROGATE_PAIR.search(
        text
    ):
        return _Constructor(
            SURROGATE_PAIR.sub(_join_surrogates, text),
            max_depth,
            max_values,
            joins_surrogates=True,
            keeps_large_numbers=keep_large_numbers,
        ).parse()
    return reading


def _join_surrogates(pair: re.Match[str]) -> str:
    """Return a JSON surrogate pair as the one escape that libyaml accepts for the character."""
    high, low = int(pair[2], 16), int(pair[3], 16)
    return f"{pair[1]}\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


def has_too_many_values(value: Any) -> bool:
    """Return whether a file with this JSON value would exceed MAX_VALUES."""
    count, pending = 0, [value]
    while pending and count <= MAX_VALUES:
        item = pending.pop()
        count += 1
        pending.extend(
            item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        )
    return count > MAX_VALUES


def locate_value(node: Node, pointer: Pointer, at_key: bool) -> tuple[int, int, int]:
    """Return line, column (both from 1) and length of the value at `pointer`.

    If there is no such value, use its nearest ancestor in the file.
    """
    is_found = True
    for step in pointer:
        child = node.children.get(step)
        if child is None:
            is_found = False
            break
        node = child
    event = node.key if at_key and is_found and node.key is not None else node.event
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
        line, column = _line_and_column(data[: error.start].decode("utf-8"))
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
    for pattern, rule, noun, help in _FORBIDDEN:
        if match := pattern.search(text):
            count = len(pattern.findall(text, match.end()))
            suffix = f" (and {count} more in this file)" if count else ""
            faults.append(
                Fault(
                    *_line_and_column(text[: match.start()]),
                    rule,
                    f"{noun} U+{ord(match[0]):04X}{suffix}",
                    help,
                )
            )
    return text, faults


def _line_and_column(preceding: str) -> tuple[int, int]:
    return preceding.count("\n") + 1, len(preceding) - (preceding.rfind("\n") + 1) + 1


class _StopParsing(Exception):
    """The rest of the file cannot be given a value."""


class _Constructor:
    """Constructor of values from events. Each instance parses one file."""

    def __init__(
        self,
        text: str,
        max_depth: int,
        max_values: int,
        *,
        joins_surrogates: bool = False,
        keeps_large_numbers: bool = False,
    ) -> None:
        self.next_event: Callable[[], Any] = yaml.CSafeLoader(text).get_event
        self.faults: list[Fault] = []
        self.max_depth = max_depth
        self.max_values = max_values
        self.value_count = 0
        self.joins_surrogates = joins_surrogates
        self.keeps_large_numbers = keeps_large_numbers

    def parse(self) -> ParseResult:
        try:
            value, mark = self.parse_document()
        except _StopParsing:
            value, mark = None, None
        except yaml.YAMLError as error:
            self.faults.append(_syntax_fault(error))
            value, mark = None, None
        return ParseResult(value, mark, tuple(self.faults))

    def parse_document(self) -> tuple[Any, Node]:
        self.next_event()  # the stream's start
        event = self.next_event()
        if isinstance(event, StreamEndEvent):
            self.stop(
                event,
                "yaml-empty",
                "the file has no content",
                "write the fields of this kind of file, or delete it",
            )
        value, mark = self.parse_node(self.next_event(), None, 1)
        self.next_event()  # the document's end
        event = self.next_event()
        if not isinstance(event, StreamEndEvent):
            self.add_fault(
                event,
                "yaml-documents",
                "a second document starts here",
                "keep one document in a file and remove the `---`",
            )
        return value, mark

    def parse_node(self, event: Any, key: Event | None, depth: int) -> tuple[Any, Node]:
        self.value_count += 1
        if self.value_count > self.max_values:
            help = "shorten the lists, or leave out what another tool can look up"
            self.stop(
                event, "yaml-values", f"more than {self.max_values:,} values in this file", help
            )
        if isinstance(event, ScalarEvent):
            self.check_properties(event)
            return self.parse_scalar(event), Node(event, key, {})
        if isinstance(event, AliasEvent):
            help = "write the value out: aliases are not read, because they can expand without end"
            self.add_fault(event, "yaml-alias", f"alias `*{event.anchor}`", help)
            return None, Node(event, key, {})
        if depth > self.max_depth:
            self.stop(
                event,
                "yaml-depth",
                f"nested more than {self.max_depth} levels deep",
                "flatten the structure",
            )
        self.check_properties(event)
        return (
            self.parse_mapping(event, key, depth)
            if isinstance(event, MappingStartEvent)
            else self.parse_sequence(event, key, depth)
        )

    def parse_mapping(
        self, start: Event, key: Event | None, depth: int
    ) -> tuple[dict[str, Any], Node]:
        value: dict[str, Any] = {}
        children: dict[str | int, Node] = {}
        while not isinstance(event := self.next_event(), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                self.stop(
                    event,
                    "yaml-key",
                    "a key that is not a plain word",
                    "write keys as single words or quoted strings",
                )
            self.check_properties(event)
            item, mark = self.parse_node(self.next_event(), event, depth + 1)
            if event.value in value:
                first = children[event.value].key
                location = f", first on line {_span(first)[0]}" if first else ""
                self.add_fault(
                    event,
                    "yaml-duplicate-key",
                    f"key `{event.value}` is repeated{location}",
                    "keep one of the two",
                )
            else:
                value[event.value], children[event.value] = item, mark
        return value, Node(start, key, children)

    def parse_sequence(self, start: Event, key: Event | None, depth: int) -> tuple[list[Any], Node]:
        value: list[Any] = []
        children: dict[str | int, Node] = {}
        while not isinstance(event := self.next_event(), SequenceEndEvent):
            item, children[len(value)] = self.parse_node(event, None, depth + 1)
            value.append(item)
        return value, Node(start, key, children)

    def parse_scalar(self, event: ScalarEvent) -> Any:
        """Return the value of a scalar: a string, unless it is plain and a JSON literal."""
        text: str = event.value
        if event.style or not event.implicit[0]:
            return text
        try:
            return _resolve_scalar(text)
        except _NumberTooLarge as refusal:
            if self.keeps_large_numbers:
                return _large_number(text)
            message, help, instead = refusal.args
            self.add_fault(event, "yaml-number", message, help)
            return instead

    def check_properties(self, event: Any) -> None:
        if event.anchor:
            self.add_fault(
                event,
                "yaml-anchor",
                f"anchor `&{event.anchor}`",
                "remove it: aliases are not read, so nothing can refer to it",
            )
        if event.tag:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.add_fault(
                event,
                "yaml-tag",
                f"tag `{tag}`",
                "remove it: only JSON values are read; quotes make a value a string",
            )
        if (
            self.joins_surrogates
            and isinstance(event, ScalarEvent)
            and event.style != '"'
            and "\\U000" in event.value
        ):
            help = (
                "write the character itself: outside double quotes a backslash is only a backslash"
            )
            self.stop(event, "yaml-syntax", "a surrogate pair outside double quotes", help)

    def stop(self, event: Event, rule: str, message: str, help: str) -> NoReturn:
        self.add_fault(event, rule, message, help)
        raise _StopParsing

    def add_fault(self, event: Event, rule: str, message: str, help: str) -> None:
        line, column, length = _span(event)
        self.faults.append(Fault(line, column, rule, message, help, length))
        if len(self.faults) > MAX_FINDINGS_PER_FILE:
            raise _StopParsing


def _syntax_fault(error: yaml.YAMLError) -> Fault:
    problem = str(getattr(error, "problem", ""))
    marks = [getattr(error, name, None) for name in ("problem_mark", "context_mark")]
    mark = marks[1] if problem in _STARTED_EARLIER and marks[1] else marks[0] or marks[1]
    messages = [
        part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part
    ]
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    help = _SYNTAX_HELP.get(problem, "check indentation, colons and quotes around this place")
    return Fault(line, column, "yaml-syntax", ", ".join(messages) or "not YAML", help)
