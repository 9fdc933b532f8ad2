"""Tests of `catalog.comments`: suppression comments and their lines."""

import time

import pytest

from toolcatalog.catalog import yaml_reader
from toolcatalog.catalog.comments import (
    Suppression,
    find_hidden,
    find_suppressions,
    suppressed_lines,
)

CASES = {
    "at the end of its line": (
        b"name: A # toolcatalog: ignore[some-rule] it is so",
        [(1, 9, 1, ("some-rule",), "it is so")],
    ),
    "above the next line that is none": (
        b"# toolcatalog: ignore[a] one\n  # a comment\n  # toolcatalog: ignore[b] two\n  name: A\n",
        [(1, 1, 4, ("a",), "one"), (3, 3, 4, ("b",), "two")],
    ),
    "several rules": (b"a: 1 # toolcatalog: ignore[ a , b,] why", [(1, 6, 1, ("a", "b"), "why")]),
    "no reason": (b"a: 1 # toolcatalog: ignore[a]  \r\n", [(1, 6, 1, ("a",), "")]),
    "after a byte-order mark": (
        b"\xef\xbb\xbf# toolcatalog: ignore[a] b\nname: A",
        [(1, 1, 2, ("a",), "b")],
    ),
    "the last line": (b"a: 1\n# toolcatalog: ignore[a] b", [(2, 1, 2, ("a",), "b")]),
    "after the head of a block": (
        b"a: | # toolcatalog: ignore[a] b\n  text\n",
        [(1, 6, 1, ("a",), "b")],
    ),
    "between blocks": (
        b"a: >\n  text\n# toolcatalog: ignore[a] b\nc: |-\n  text\n\n",
        [(3, 1, 4, ("a",), "b")],
    ),
    "after a string with one": (
        b"a: 'b # toolcatalog: ignore[b] c' # toolcatalog: ignore[a] d\n",
        [(1, 35, 1, ("a",), "d")],
    ),
    "in strings": (
        b"""a: "b # toolcatalog: ignore[a] b"
c: 'd
  # toolcatalog: ignore[a] b'
e: |
  # toolcatalog: ignore[a] b

  f # toolcatalog: ignore[a] b
g: >-
  f # toolcatalog: ignore[a] b""",
        [],
    ),
    "in a string after characters beyond U+FFFF": (
        b'a: "\\ud83d\\ude00"\nb: "c # toolcatalog: ignore[a] d"\n',
        [],
    ),
    "after a no-break space": ("a: b\xa0# toolcatalog: ignore[a] c\n".encode(), []),
    "in invalid YAML": (b"a: 'b\nc: 1 # toolcatalog: ignore[a] d\n", []),
    "no comment at all": (b"name: it's '#toolcatalog: ignore[a] b' here", []),
    "another one's": (b"a: 1 # toolcatalogs: ignore[a] b", []),
}


@pytest.mark.parametrize(("data", "expected"), CASES.values(), ids=CASES)
def test_comment_applies_to_its_line(
    data: bytes, expected: list[tuple[int, int, int, tuple[str, ...], str]]
) -> None:
    """Or, on a line of its own, to the next line without a comment."""
    assert [
        (item.line, item.column, item.target_line, item.rules, item.reason)
        for item in find_suppressions(data)
    ] == expected
    assert all(item.is_valid for item in find_suppressions(data))


@pytest.mark.parametrize("text", ["ignore", "ignore a", "ignore [a] b", "skip[a] b", ""])
def test_invalid_comments_are_kept(text: str) -> None:
    """So that they can be reported."""
    (comment,) = find_suppressions(f"name: A # toolcatalog: {text}".encode())
    assert not comment.is_valid
    assert comment.excerpt.startswith("name: A")


def test_suppression_needs_a_reason() -> None:
    comments = [Suppression(1, 1, 2, ("a", "b"), "why"), Suppression(3, 1, 4, ("c",), "")]
    assert suppressed_lines(comments) == {("a", 2), ("b", 2)}


def test_comments_in_a_string_take_linear_time() -> None:
    """A string of a million characters, which took ten seconds."""
    data = b'a: "' + b" # toolcatalog: ignore[a] b" * 40_000 + b'" # toolcatalog: ignore[a] b\n'
    start = time.process_time()
    (suppression,) = find_suppressions(data)
    assert time.process_time() - start < 4
    assert suppression.is_valid


@pytest.mark.parametrize(
    "text",
    [
        "# @\na: 1\n",
        "a: 1 # @\n",
        'a: "x"#@\n',
        "a: 'x'#@\n",
        "a: [x]#@\n",
        "a: {b: x}#@\n",
        'a: ["x",#@\n "y"]\n',
        "a: [#@\n x]\n",
        "a: {#@\n b: x}\n",
        "a: >-#@\n  x\n",
        "a: |2#@\n  x\n",
        "a: 1\n...\n#@\n",
    ],
)
def test_hidden_characters_of_comments_are_found(text: str) -> None:
    """Also where no space comes before the comment."""
    data = text.replace("@", "a\u200b").encode()
    assert "\u200b" not in str(yaml_reader.parse_fast(data))
    assert [characters for _, characters in find_hidden(data)] == ["\u200b"]
