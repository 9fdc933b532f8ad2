"""Tests of `keys.api_keys`: API keys are redacted wherever a client writes them."""

from urllib.parse import quote

import pytest

from toolcatalog.keys.api_keys import generate_secret, redact

SECRET = generate_secret()


@pytest.mark.parametrize(
    "before",
    ["", "x", "tc_", "tc_" + "a" * 18, "tc_" + "a" * 34, SECRET[:-6], SECRET],
    ids=["nothing", "a letter", "a prefix", "18 letters", "34 letters", "most of a key", "a key"],
)
@pytest.mark.parametrize("after", ["", "&a=b", SECRET], ids=["nothing", "a parameter", "a key"])
def test_no_part_of_a_key_is_left(before: str, after: str) -> None:
    """Also directly after another one, or after one that lacks its end."""
    text = redact(f"/tools?key={before}{SECRET}{after}")
    assert SECRET[3:12] not in text
    assert SECRET[-8:] not in text
    assert text.startswith("/tools?key=")


def test_key_without_its_end_is_redacted() -> None:
    """The end is a checksum, which anyone can compute."""
    assert redact(f"{SECRET[:-6]} {SECRET[:25]}") == "tc_[redacted] tc_[redacted]"


def test_encoded_key_is_redacted() -> None:
    encoded = "".join(f"%{ord(char):02X}" for char in SECRET)
    for text in (encoded, encoded.lower(), quote(encoded)):
        assert redact(text) == "tc_[redacted]"


def test_words_are_kept() -> None:
    assert redact("tc_timeout /tc_/etc_hosts") == "tc_timeout /tc_/etc_hosts"
