"""Tests of `search.analysis`: texts to terms."""

import sys
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.reference_model import STOP_WORDS, extract_terms, extract_words
from toolcatalog import textutils
from toolcatalog.search import analysis


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("", []),
        (" .,;-_/ \n", []),
        ("GITHUB_CREATE_ISSUE", ["github", "create", "issue"]),
        ("GITHUB-CREATE.issue", ["github", "create", "issue"]),
        ("createIssueV2", ["create", "issue", "v", "2"]),
        ("HTTPServer2Go", ["http", "server", "2", "go"]),
        ("what is the weather like for me", ["weather", "like"]),
        ("it's an e-mail", ["e", "mail"]),
        ("Zürich ZÜRICH Straße STRASSE café", ["zurich", "zurich", "strasse", "strasse", "cafe"]),
        ("cafe\u0301 o\u0308ffnen", ["cafe", "offnen"]),
        ("天気API 日本語", ["天気", "api", "日本", "本語"]),
        ("搜", ["搜"]),
        ("\uff27\uff29\uff34\uff28\uff35\uff22 \ufb01le", ["github", "file"]),
        ("Ελλάδα ΕΛΛΆΔΑΣ", ["ελλαδα", "ελλαδασ"]),
        ("한국어 שלום", ["한국어", "שלום"]),
        ("3.14 ٣٤", ["3", "14", "٣٤"]),
        ("😀 \u202eabc", ["abc"]),
    ],
)
def test_words(text: str, spelt: list[str]) -> None:
    """Runs of letters or digits, camelCase and snake_case apart, folded; Chinese and Japanese in
    pairs; silent words left out.
    """
    assert [word.spelling for word in analysis.extract_words(text)] == spelt


def test_forms_of_a_word_are_one_term() -> None:
    """English endings do not matter."""
    assert {
        word.term for word in analysis.extract_words("translate translates translating Translated")
    } == {"translat"}


@given(
    st.text()
    | st.text(st.characters(codec="ascii"))
    | st.text(st.sampled_from("aAbBßéÉ日本語ひ1٣_- .\u0301ﬁ\ufdfa"))
)
def test_as_another_reading_has_it(text: str) -> None:
    """Words and terms are those that docs/explanation/search.md describes."""
    result = analysis.extract_words(text)
    assert [word.spelling for word in result] == extract_words(text)
    assert [word.term for word in result] == extract_terms(text)
    assert [
        word for piece in analysis.split_pieces(text) for word in analysis.words_in_piece(piece)
    ] == result


def test_each_different_word_of_a_long_piece_is_read_once() -> None:
    """A million words run together are a million times the same few objects, in their order."""
    result = analysis.words_in_piece("0xThe" * 200_000)
    assert result[:4] == (*analysis.extract_words("0xThe0xThe"),)
    assert len(result) == 400_000
    assert len({*map(id, result)}) == 2


def test_long_runs_and_runs_of_many_words_are_not_cached() -> None:
    """A client could fill the memory with them."""
    analysis.extract_words("mail openIssues")
    assert {"mail", "openIssues"} <= analysis._cached_words.keys()
    runs = ["\u4eac\u6771" * 50, "\u4eac\u6771" * 20, "x" * 65, "aBcDeFgH"]
    analysis.extract_words(" ".join(runs))
    assert analysis._cached_words.keys().isdisjoint(runs)
    analysis.extract_all_words(" ".join(["the", *runs]))
    assert "the" in analysis._cached_runs
    assert analysis._cached_runs.keys().isdisjoint(runs)


def test_caches_have_a_maximum_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "_cached_words", {})
    monkeypatch.setattr(analysis, "_cached_runs", {})
    monkeypatch.setattr(analysis, "_WORD_CACHE_SIZE", 100)
    analysis.extract_words(" ".join(f"word{number}" for number in range(1000)))
    analysis.extract_all_words(" ".join(f"word{number}" for number in range(1000)))
    assert len(analysis._cached_words) <= 100
    assert len(analysis._cached_runs) <= 100
    analysis.split_runs("".join(map(chr, range(0x4E00, 0x9FFF))))
    assert len(analysis._MARK_TABLE) <= analysis._MAX_MARK_TABLE_SIZE


def test_the_parts_of_a_query_cost_as_much_as_it_is_long() -> None:
    """White space without end is looked through once, and not from each of its characters."""
    began = time.process_time()
    for space in (" ", " \n", "\t"):
        assert " ".join(analysis.split_query(f"a{space * 20_000}b")).split() == ["a", "b"]
    assert time.process_time() - began < 0.5
    assert analysis.split_query(f"a{' ' * 20}and then{' ' * 20}b") == ["a", "b"]


def test_silent_words_are_those_of_the_page() -> None:
    """docs/explanation/search.md lists them, and each of them is silent."""
    assert {*analysis.STOP_WORDS} == STOP_WORDS
    assert analysis.extract_words(" ".join(STOP_WORDS)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("One. Two!  Three?\nFour", ["One.", "Two!", "Three?", "Four"]),
        ("v1.2 is out", ["v1.2 is out"]),
        ("", []),
    ],
)
def test_sentences(text: str, message: list[str]) -> None:
    """A sentence ends with a mark and a blank, or a line."""
    assert [*textutils.split_sentences(text)] == message


def test_names_are_called_alike_whatever_is_between_their_words() -> None:
    """Case, blanks and marks do not matter; letters do."""
    assert (
        analysis.name_checksum("Create an Issue")
        == analysis.name_checksum("create_AN-issue ")
        != analysis.name_checksum("create a issue")
    )


@pytest.mark.parametrize(
    ("term", "is_word"),
    [("mail", True), ("map", False), ("2024", False), ("日本語で", False), ("ελλαδ", True)],
)
def test_what_can_be_misspelt(term: str, is_word: bool) -> None:
    """Four letters at least, no number, nothing that is written without blanks."""
    assert analysis.is_word(term) is is_word


@pytest.mark.timeout(60)
@pytest.mark.parametrize("run", ["\u0345\u0301\u0327", "\u0f73", "\u0f75\u0f81", "\uff9e\u0327"])
def test_long_runs_of_combining_marks(run: str) -> None:
    """The time is linear: to sort the marks of this run would take minutes."""
    assert analysis.split_runs("a" + run * 200_000 + "b") == ["ab"]


def test_no_other_character_begins_with_a_mark() -> None:
    """So no run of marks is left to sort."""
    mixed = [
        char
        for char in map(chr, range(sys.maxunicode + 1))
        if unicodedata.combining(unicodedata.normalize("NFKD", char)[0])
        and analysis._MARK_TABLE[ord(char)] is not None
    ]
    assert mixed == []


def test_marks_are_deleted_before_they_are_sorted() -> None:
    """As if the text had been decomposed first."""
    for text in ("e\u0301\u0327", "\u0327e\u0301", "\u1e69", "s\u0323\u0307", "\u0958", "\uac01"):
        assert analysis.split_runs(f"x{text}y") == analysis.split_runs(
            unicodedata.normalize("NFD", f"x{text}y")
        )
