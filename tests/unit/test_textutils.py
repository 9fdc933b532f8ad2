"""Tests of `textutils`: invisible characters that do harm, and those that a script needs."""

import pytest

from toolcatalog import textutils

HARMFUL = (
    "\0",
    "\x1b",
    "\x7f",
    "\xad",
    "\u200b",
    "\u200e",
    "\u202e",
    "\u2066",
    "\u2060",
    "\ufeff",
    "\U000e0041",
    "\ud800",
    "\u2028",
)
FINE = (
    "plain",
    "tab\tand\nline",
    "caf\xe9 \u2014 na\xefve",
    "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "\u2764\ufe0f",
)


@pytest.mark.parametrize("character", HARMFUL, ids=lambda item: f"U+{ord(item):04X}")
def test_invisible_characters_are_named(character: str) -> None:
    text = f"a{character}b"
    assert textutils.find_hidden(text) == [character]
    assert textutils.escape_hidden(text) == f"aU+{ord(character):04X}b"


@pytest.mark.parametrize("text", FINE)
def test_visible_characters_are_kept(text: str) -> None:
    assert textutils.find_hidden(text) == []
    assert textutils.escape_hidden(text) == text


def test_joiner_in_a_wrong_place_is_named() -> None:
    """Between Latin letters it hides something; a variation selector needs a character before it
    that varies.
    """
    assert textutils.find_hidden("a\u200db\ufe0fc") == ["\u200d", "\ufe0f"]


@pytest.mark.parametrize("pair", ["\u2003\ufe05", "0\ufe01", "\u2500\u200d\u2500", "\u4e00\ufe0f"])
def test_no_text_is_encoded_in_what_nobody_sees(pair: str) -> None:
    """Sixteen selectors after spaces, or two joiners between lines, could encode any text."""
    assert len(textutils.find_hidden(pair * 3)) == 3


@pytest.mark.parametrize(
    "text", ["1\ufe0f\u20e3", "\u5203\ufe00", "\u2295\ufe00", "\U0001f408\u200d\u2b1b"]
)
def test_standard_variants_are_kept(text: str) -> None:
    assert textutils.find_hidden(text) == []


def test_invisible_characters_with_another_format() -> None:
    assert textutils.escape_hidden("a\u202eb\n", r"\u{}".format) == "a\\u202Eb\n"


def test_plurals() -> None:
    assert textutils.pluralize(1, "tool") == "1 tool"
    assert textutils.pluralize(0, "tool") == "0 tools"
    assert textutils.pluralize(1200, "tool") == "1,200 tools"
