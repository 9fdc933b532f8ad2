"""Differences of texts: by word and by line."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.site import text_diff
from toolcatalog.textutils import escape_hidden


def test_words() -> None:
    """What was removed, then what was added; what is equal stays."""
    assert text_diff.diff_words(
        "Send a <b> message.", "Send the <b> message now.", text_diff.Budget()
    ) == ("Send <del>a</del><ins>the</ins> &lt;b&gt; message<ins> now</ins>.")


def test_lines() -> None:
    """With two equal lines around a difference, and an ellipsis for the others."""
    old = "\n".join("abcdefghij")
    assert text_diff.diff_lines(old, old, text_diff.Budget()) == ""
    assert text_diff.diff_lines(old, old.replace("e", "E\n<"), text_diff.Budget()) == (
        "…\nc\nd\n<del>e</del>\n<ins>E\n&lt;</ins>\nf\ng\n…"
    )


@given(st.text(max_size=60), st.text(max_size=60))
def test_both_texts_can_be_read_from_a_difference(old: str, new: str) -> None:
    """Without the added parts it is the old text, and without the removed parts the new one."""
    html = text_diff.diff_words(old, new, text_diff.Budget())
    without_added = re.sub("<ins>[^<]*</ins>|</?del>", "", html)
    without_removed = re.sub("<del>[^<]*</del>|</?ins>", "", html)
    assert unescape(without_added) == escape_hidden(old)
    assert unescape(without_removed) == escape_hidden(new)


def test_very_long_texts_are_not_compared() -> None:
    """They are shown as removed and added, and equal beginnings and ends stay."""
    old, new = ("<p> " + f"{word} " * 3_000 + "end" for word in ("a", "b"))
    html = text_diff.diff_words(old, new, text_diff.Budget())
    assert html.count("<del>") == html.count("<ins>") == 1
    assert html.startswith("&lt;p&gt; <del>a a")
    assert html.endswith("</ins> end")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("old", "new"),
    [("!" * 1990, "?!" * 990), (".," * 990, ",,." * 660), ("a b " * 480, "b c " * 480)],
    ids=["marks", "pairs", "words"],
)
def test_repetitive_texts_take_little_time(old: str, new: str) -> None:
    """Ten comparisons that are not bounded take minutes. The new text is complete."""
    for _ in range(9):
        text_diff.diff_words(old, new, text_diff.Budget())
    html = text_diff.diff_words(old, new, text_diff.Budget())
    assert re.sub("</?ins>", "", re.sub("<del>.*?</del>", "", html, flags=re.DOTALL)) == new


def test_long_texts_are_compared_word_by_word() -> None:
    """Sixty sentences with a change in each tenth."""
    words = [f"The tool number {number} reads the list of the day." for number in range(60)]
    old = " ".join(words)
    new = " ".join(w.replace("reads", "writes") if n % 10 == 0 else w for n, w in enumerate(words))
    html = text_diff.diff_words(old, new, text_diff.Budget())
    assert html.count("<del>reads</del><ins>writes</ins>") == 6
    assert html.count("<del>") == 6


def test_a_page_has_one_budget() -> None:
    """When it is spent, texts are shown as removed and added as a whole."""
    budget = text_diff.Budget()
    budget.comparisons = 10
    assert text_diff.diff_words("a b c", "a x c", budget) == "a <del>b</del><ins>x</ins> c"
    assert budget.comparisons < 10
    for _ in range(10):
        html = text_diff.diff_words("b 1 a", "c 1 d", budget)
    assert html == "<del>b 1 a</del><ins>c 1 d</ins>"
