"""Synonyms: the tables, and what stands for what."""

import re
from collections import Counter

import pytest

from support.paths import ROOT
from toolcatalog.search import analysis
from toolcatalog.search.query.synonyms import (
    ACTIONS,
    THINGS,
    find_synonyms,
    has_synonyms,
    parse_table,
)

LINES = [*parse_table(ACTIONS), *parse_table(THINGS)]


def terms_for(text: str) -> set[str]:
    return {synonym.term for synonym in find_synonyms(analysis.extract_all_words(text))}


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("remove a file", "delet"),
        ("post to the channel", "send"),
        ("give money back", "refund"),
        ("give the money back", "refund"),
        ("call it off", "cancel"),
        ("set up a call", "creat"),
        ("look up a person", "search"),
    ],
)
def test_users_say_other_words(text: str, term: str) -> None:
    """A word or a pair of words stands for the words of tools."""
    assert term in terms_for(text)


def test_the_words_of_a_pair_mean_nothing_alone() -> None:
    """`set up` creates; `set` alone updates, and so does a pair with more than three words in
    between.
    """
    assert "updat" in terms_for("set a value")
    assert "updat" not in terms_for("set a meeting up")
    assert "creat" not in terms_for("set one two three four up")


def test_an_action_of_tools_stands_for_itself() -> None:
    """So the name of a tool that has it shows the action."""
    assert "delet" in terms_for("delete")
    assert "eras" not in terms_for("erase")


def test_a_word_of_the_tables_is_no_misspelling() -> None:
    """Nor are its forms, and the words of pairs that come first."""
    assert all(map(has_synonyms, ("remove", "removing", "kick", "weather")))
    assert not has_synonyms("github")


def test_the_tables_are_plain_english() -> None:
    """Words in lower case, pairs of two words on the right only, and no word twice in a line."""
    for left, right in LINES:
        assert left
        assert not [word for word in left if not re.fullmatch("[a-z]+", word)]
        assert not [word for word in right if not re.fullmatch("[a-z]+(_[a-z]+)?", word)]
        assert not [word for word, count in Counter(left + right).items() if count > 1]
        stems = [analysis.stem(word) for word in left]
        assert len({*stems}) == len(stems)


def test_no_toolkit_is_in_the_tables(shipped_slugs: set[str]) -> None:
    """They serve every catalog, and so name no product."""
    words = {part for line in LINES for side in line for word in side for part in word.split("_")}
    assert not words & shipped_slugs


@pytest.fixture(scope="module")
def shipped_slugs() -> set[str]:
    return {folder.name for folder in (ROOT / "catalog" / "toolkits").iterdir()}
