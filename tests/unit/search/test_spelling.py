"""Tests of `search.analysis`: words that differ by a letter."""

from hypothesis import given
from hypothesis import strategies as st

from support.reference_model import list_one_edit_words
from toolcatalog.search.analysis import single_edits


def test_each_kind_of_slip() -> None:
    """A letter left out, put in, changed, or two exchanged; nothing else, and not the word
    itself.
    """
    result = single_edits("gihtb")
    assert {"gitb", "ihtb", "github"} & result == {"gitb"}
    assert "mergedog" in single_edits("xmergedog") | single_edits("nergedog")
    assert "github" in single_edits("gihub") & single_edits("githhub") & single_edits(
        "gothub"
    ) & single_edits("gihtub")
    assert "github" not in single_edits("github") | single_edits("gtihbu")


@given(st.text(st.sampled_from("abcé"), min_size=1, max_size=9))
def test_as_another_reading_has_it(word: str) -> None:
    """What is put in, or instead, is a letter from a to z."""
    assert single_edits(word) == list_one_edit_words(word)


def test_a_long_word_has_some_fifty_for_each_letter() -> None:
    """Looking them all up stays cheap."""
    assert len(single_edits("abcdefghijklmnopqrstuvwx")) < 24 * 54 + 54
