"""Tests of `catalog.yaml_writer`: values round-trip, and the text is readable."""

import json

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from support.profile import example_settings
from toolcatalog.catalog import yaml_reader
from toolcatalog.catalog.yaml_writer import to_yaml

TRICKY = [
    "",
    " ",
    "null",
    "Null",
    "~",
    "true",
    "True",
    "no",
    "on",
    "012",
    "1",
    "-0",
    "1e5",
    "1E+5",
    "1.0",
    ".5",
    "1_000",
    "0x1F",
    "0o17",
    "1:30",
    "+1",
    ".inf",
    "2025-01-01",
    "2025-03-04T10:21:00Z",
    "20250909_00",
    "=",
    "<<",
    "-",
    "- a",
    "? a",
    ": a",
    "a: b",
    "a #b",
    "#",
    "&a",
    "*a",
    "!a",
    "!!str a",
    "%TAG",
    "---",
    "...",
    "--- a",
    "...\n",
    "@a",
    "`a`",
    "[a]",
    "{a}",
    "a, b",
    "'",
    '"',
    "\\",
    "\\n",
    "a\n",
    "\na",
    "a\nb",
    "a\n\nb\n\n",
    " a\nb",
    "a \nb",
    "a\n b",
    "a\n# b",
    "a\n---\nb",
    "\n",
    "\n\n",
    "\t",
    "a\tb",
    "\ta\n",
    "a\n\tb",
    "\r",
    "a\r\nb",
    "\x00",
    "\x1b",
    "\x7f",
    "\x85",
    "\xa0",
    "\u2028",
    "a\u2029\nb",
    "\ufeff",
    "a\ufeff",
    "\ufffe",
    "\uffff",
    "é",
    "日本語",
    "😀",
    "😀\nx",
    "\ud7ff",
    "x" * 300,
    "x " * 300,
    "x\n" * 100,
]
CHARACTERS = st.one_of(
    st.characters(codec="utf-8"),
    st.sampled_from(
        "\n\r\t\x00\x85\u2028\u2029\ufeff :#-?[]{},&*!|>'\"%@`=<~.0123456789eEtrufalsn_\\"
    ),
)
TEXTS = st.one_of(st.text(CHARACTERS), st.sampled_from(TRICKY))
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXTS, inner)),
    max_leaves=30,
)


def same(remaining: object, right: object) -> bool:
    """Equal as JSON with the order of the keys, so that neither 1, 1.0 and true nor 0.0 and -0.0
    pass for each other.
    """
    return json.dumps(remaining) == json.dumps(right)


@example_settings(83)
@given(VALUES)
@example({"": None})
@example([[], {}, [[]], [{}], {"a": []}])
def test_json_values_round_trip(value: object) -> None:
    reading = yaml_reader.parse(to_yaml(value))
    assert reading.faults == ()
    assert same(reading.value, value)


@pytest.mark.parametrize("text", TRICKY)
def test_ambiguous_strings_stay_strings(text: str) -> None:
    """At the root, in lists, as values and as keys."""
    for value in (
        text,
        [text],
        [[text, 1]],
        {"key": text},
        {"key": [text]},
        {text: 1},
        {"a": {text: [1]}},
    ):
        assert same(yaml_reader.parse(to_yaml(value)).value, value)


@pytest.mark.parametrize("text", TRICKY)
def test_yaml_1_1_reader_reads_the_same_strings(text: str) -> None:
    """PyYAML's own loader types dates, `no` and `012`."""
    assert yaml.safe_load(to_yaml({"key": [text]})) == {"key": [text]}


@example_settings(33)
@given(VALUES)
def test_output_is_deterministic(value: object) -> None:
    """With a final line end and without document markers."""
    data = to_yaml(value)
    assert data == to_yaml(json.loads(json.dumps(value)))
    assert data.endswith(b"\n")
    assert b"..." not in data.splitlines()


def test_output_is_readable() -> None:
    """Keys keep their order, short lists are on one line, multi-line text is a block; no folding or
    anchors.
    """
    shared = {"type": "string"}
    value = {
        "name": "Create an issue",
        "description": "First line.\n\nSecond: it's one.",
        "scopes": [],
        "tags": ["issues", "important", "no", "a, b"],
        "input_parameters": {
            "b": {**shared, "default": None, "examples": ["word " * 30]},
            "a": {**shared, "maximum": 1e16, "enum": ["1e5", "😀"]},
        },
        "shared": [shared, shared],
        "empty": {},
    }
    assert to_yaml(value).decode() == (
        """\
name: Create an issue
description: |-
  First line.

  Second: it's one.
scopes: []
tags: [issues, important, 'no', 'a, b']
input_parameters:
  b:
    type: string
    default: null
    examples:
    - '"""
        + "word " * 30
        + """'
  a:
    type: string
    maximum: 1e+16
    enum: ['1e5', "\\U0001F600"]
shared:
- type: string
- type: string
empty: {}
"""
    )


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -float("inf"), 2**63, -(2**63) - 1, "\ud800", "a\udfff"]
)
@pytest.mark.parametrize("place", [lambda value: value, lambda value: {"key": [value]}])
def test_unsupported_values_are_refused(value: object, place: object) -> None:
    """Numbers that JSON loses, and surrogates: ValueError."""
    assert callable(place)
    with pytest.raises(ValueError, match=r".+"):
        to_yaml(place(value))
