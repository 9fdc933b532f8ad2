"""YAML comments: suppression comments and schema comments of a catalog file.

# toolcatalog: ignore[rule-id, rule-id] the reason
    # yaml-language-server: $schema=../../../.schemas/v1/tool.json

A suppression comment names the lint rules to suppress. It applies to its own line or, if it is
alone on its line, to the next line that is not a comment. Text in a string that looks like one
suppresses nothing. A schema comment comes before all YAML content and names the schema that editors
use for completion and help.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import yaml

from toolcatalog import textutils
from toolcatalog.catalog import yaml_reader

PREFIX = b"# toolcatalog:"
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))# toolcatalog:")
_ANY = re.compile(r"#.*")  # a comment may follow a quote or a bracket without a space
_SCHEMA = re.compile(r"#\s*(?:yaml-language-server:\s*\$schema\s*=|\$schema\s*:)\s*(\S*)")
_HEAD_SIZE = 2000  # bytes at the start of a file that are searched for schema comments
_IGNORE = re.compile(r"ignore\[(?P<rules>[^\]]*)\]\s*(?P<reason>.*)")


@dataclass(frozen=True, slots=True)
class Suppression:
    """A suppression comment, valid or not.

    `line` and `column` (from 1) are its position, `target_line` is the line that it applies to.
    `is_valid` is False if the comment cannot be parsed. `excerpt` is the whole source line.
    """

    line: int
    column: int
    target_line: int
    rules: tuple[str, ...] = ()
    reason: str = ""
    is_valid: bool = True
    excerpt: str = ""


class SchemaComment(NamedTuple):
    """A schema comment: its line, from 1, and the schema that it names, or an empty string."""

    line: int
    target: str


def split_lines(data: bytes) -> list[str]:
    """Return the lines of a file, without a byte order mark; only `\\n` ends a line."""
    return data.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")


def find_schema_comments(data: bytes) -> tuple[SchemaComment, ...]:
    """Return the schema comments at the head of a file.

    Both forms are recognized: that of the YAML language server and that of JetBrains.
    """
    if b"$schema" not in data[:_HEAD_SIZE]:
        return ()
    lines = split_lines(data[:_HEAD_SIZE])
    matches = (
        (number, _SCHEMA.fullmatch(line.strip()))
        for number, line in enumerate(takewhile(_is_blank_or_comment, lines), 1)
    )
    return tuple(SchemaComment(number, match[1]) for number, match in matches if match)


def find_hidden(data: bytes) -> tuple[tuple[int, str], ...]:
    """Return the lines whose comments contain hidden characters, from 1, with those characters.

    Text in a scalar that looks like a comment counts too.
    """
    if data.isascii():
        return ()
    text = data.decode("utf-8", "replace")
    if not textutils.may_have_hidden(text):
        return ()
    lines = enumerate(text.removeprefix("\ufeff").split("\n"), 1)
    matches = ((number, _ANY.search(line.rstrip("\r"))) for number, line in lines)
    characters = ((number, textutils.find_hidden(match[0])) for number, match in matches if match)
    return tuple(
        (number, "".join(dict.fromkeys(hidden))) for number, hidden in characters if hidden
    )


def _is_blank_or_comment(line: str) -> bool:
    return not line.strip() or _is_comment(line)


def find_suppressions(data: bytes) -> tuple[Suppression, ...]:
    """Return the suppression comments in the bytes of a file, in order; none of invalid YAML."""
    if PREFIX not in data:
        return ()
    try:
        lines, strings = split_lines(data), _StringPositions.parse(data)
    except yaml.YAMLError:
        return ()
    following, suppressions = _next_code_lines(lines), []
    for number, line in enumerate(lines, 1):
        matches = _COMMENT.finditer(line.rstrip("\r"))
        comments = (match for match in matches if not strings.contain(number, match.start()))
        if match := next(comments, None):
            suppressions.append(_parse_suppression(line, number, following[number - 1], match))
    return tuple(suppressions)


_Position = tuple[int, int]  # line, from 1, and column, from 0


class _StringPositions(NamedTuple):
    """Where the quoted and block strings of a file start and end. Others contain no ` #`."""

    starts: list[_Position]
    ends: list[_Position]

    @classmethod
    def parse(cls, data: bytes) -> "_StringPositions":
        """Return the positions. Raises YAMLError."""
        spans = [*_iter_string_spans(data)]
        return cls([start for start, _ in spans], [end for _, end in spans])

    def contain(self, line: int, column: int) -> bool:
        """Return whether a position is within a string."""
        index = bisect_right(self.starts, (line, column)) - 1
        return index >= 0 and (line, column) < self.ends[index]


def _iter_string_spans(data: bytes) -> Iterator[tuple[_Position, _Position]]:
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    text = yaml_reader.SURROGATE_PAIR.sub(_fill, text)
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        start, end = event.start_mark, event.end_mark
        if isinstance(event, yaml.ScalarEvent) and event.style and start and end:
            is_block = event.style in "|>"  # its first line may end with a comment
            first = (start.line + 2, 0) if is_block else (start.line + 1, start.column)
            yield first, (end.line + 1, end.column)


def _fill(match: re.Match[str]) -> str:
    """Return letters in place of a text, which libyaml may not accept."""
    return "x" * len(match[0])


def _next_code_lines(lines: Sequence[str]) -> list[int]:
    """Return for each line the number of the next line that is not a comment.

    A line that no such line follows gets its own number.
    """
    numbers, next_number = [], 0
    for number in range(len(lines), 0, -1):
        numbers.append(next_number or number)
        next_number = next_number if _is_comment(lines[number - 1]) else number
    return numbers[::-1]


def _parse_suppression(text: str, line: int, next_line: int, match: re.Match[str]) -> Suppression:
    target_line = line if text[: match.start()].strip() else next_line
    suppression = _IGNORE.fullmatch(text[match.end() :].strip())
    if suppression is None:
        return Suppression(line, match.start() + 1, target_line, is_valid=False, excerpt=text)
    rules = (rule.strip() for rule in suppression["rules"].split(","))
    return Suppression(
        line,
        match.start() + 1,
        target_line,
        tuple(rule for rule in rules if rule),
        suppression["reason"],
        excerpt=text,
    )


def _is_comment(line: str) -> bool:
    return line.lstrip(" \t").startswith("#")


def suppressed_lines(comments: Iterable[Suppression]) -> set[tuple[str, int]]:
    """Return the suppressed (rule, line) pairs. A comment without a reason suppresses nothing."""
    return {
        (rule, comment.target_line)
        for comment in comments
        if comment.reason
        for rule in comment.rules
    }
