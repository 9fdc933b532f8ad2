"""The room `spelling`: what differs by a letter."""

from hypothesis import given
from hypothesis import strategies as st

from naive import one_letter_off
from toolcatalog.spelling import edits


def test_each_kind_of_slip() -> None:
    """A letter left out, put in, changed, or two exchanged; nothing else, and not the word itself."""
    found = edits("gihtb")
    assert {"ihtb", "github"} & found == {"ihtb"}
    assert "github" in edits("gihub") & edits("githhub") & edits("gothub") & edits("gihtub")
    assert "github" not in edits("github") | edits("gtihbu")


@given(st.text(st.sampled_from("abcé"), max_size=6))
def test_as_another_reading_has_it(word: str) -> None:
    """What is put in, or instead, is a letter from a to z."""
    assert edits(word) == one_letter_off(word)


def test_a_long_word_has_some_fifty_for_each_letter() -> None:
    """Looking them all up stays cheap."""
    assert len(edits("abcdefghijklmnopqrstuvwx")) < 24 * 54 + 54
