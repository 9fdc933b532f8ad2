"""YAML comments: suppression comments and schema comments of a catalog file.

# toolcatalog: ignore[rule-id, rule-id] the reason
    # yaml-language-server: $schema=../../../.schemas/v1/tool.json

The first says which advice its author does not want to hear. It speaks of its own line, or, where
it stands alone, of the next line that is none. The second stands before all else, and says which
schema completes and explains the file.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from toolcatalog import textutils

PREFIX = b"# toolcatalog:"
_COMMENT = re.compile(r"(?:^|(?<=\s))# toolcatalog:(?P<said>.*)")
_ANY = re.compile(r"(?:^|(?<=\s))#.*")
_SCHEMA = re.compile(r"#\s*(?:yaml-language-server:\s*\$schema\s*=|\$schema\s*:)\s*(\S*)")
_HEAD_SIZE = 2000  # bytes, at least, in which such a comment is looked for
_IGNORE = re.compile(r"ignore\[(?P<rules>[^\]]*)\]\s*(?P<reason>.*)")


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment: on which line and column (from 1), of which line it speaks, its rules, the reason,
    and whether it can be understood.
    """

    line: int
    column: int
    target_line: int
    rules: tuple[str, ...] = ()
    reason: str = ""
    is_valid: bool = True
    excerpt: str = ""


class SchemaComment(NamedTuple):
    """A comment that names a schema: its line, from 1, and what it names, empty for nothing."""

    line: int
    target: str


def find_schema_comments(data: bytes) -> tuple[SchemaComment, ...]:
    """The comments at the head of a file that name its schema, as the YAML language server and
    JetBrains read them.
    """
    if b"$schema" not in data[:_HEAD_SIZE]:
        return ()
    lines = data[:_HEAD_SIZE].decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    matches = (
        (number, _SCHEMA.fullmatch(line.strip()))
        for number, line in enumerate(takewhile(_is_blank_or_comment, lines), 1)
    )
    return tuple(SchemaComment(number, match[1]) for number, match in matches if match)


def hidden(data: bytes) -> tuple[tuple[int, str], ...]:
    """The lines with characters that cannot be seen in their comments, from 1, and those characters.
    What looks like a comment within a text counts too.
    """
    if data.isascii() or not textutils.may_have_hidden(text := data.decode("utf-8", "replace")):
        return ()
    lines = enumerate(text.removeprefix("\ufeff").split("\n"), 1)
    matches = ((number, _ANY.search(line.rstrip("\r"))) for number, line in lines)
    return tuple(
        (number, "".join(dict.fromkeys(characters)))
        for number, match in matches
        if match and (characters := textutils.find_hidden(match[0]))
    )


def _is_blank_or_comment(line: str) -> bool:
    return not line.strip() or _is_comment(line)


def find_suppressions(data: bytes) -> tuple[Suppression, ...]:
    """The comments of a file's bytes that are meant for us, in their order."""
    if PREFIX not in data:
        return ()
    lines = data.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    matches = ((number, _COMMENT.search(line.rstrip("\r"))) for number, line in enumerate(lines, 1))
    following = _next_code_lines(lines)
    return tuple(
        _parse_suppression(lines[number - 1], number, following[number - 1], match)
        for number, match in matches
        if match
    )


def _next_code_lines(lines: Sequence[str]) -> list[int]:
    """Of each line the number of the next one that is no comment; its own where there is none."""
    found, after = [], 0
    for number in range(len(lines), 0, -1):
        found.append(after or number)
        after = after if _is_comment(lines[number - 1]) else number
    return found[::-1]


def _parse_suppression(text: str, line: int, next_line: int, match: re.Match[str]) -> Suppression:
    of = line if text[: match.start()].strip() else next_line
    said = _IGNORE.fullmatch(match["said"].strip())
    if said is None:
        return Suppression(line, match.start() + 1, of, is_valid=False, excerpt=text)
    rules = (rule.strip() for rule in said["rules"].split(","))
    return Suppression(
        line,
        match.start() + 1,
        of,
        tuple(rule for rule in rules if rule),
        said["reason"],
        excerpt=text,
    )


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def suppressed_lines(comments: Iterable[Suppression]) -> set[tuple[str, int]]:
    """Rule and line of all that is to be passed over. A comment without a reason silences nothing."""
    return {
        (rule, comment.target_line)
        for comment in comments
        if comment.reason
        for rule in comment.rules
    }
