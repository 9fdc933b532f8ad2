"""Tests of `search.index.index_writer`: term numbers that are stored between builds.

An index does not depend on them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.search.index import index_writer, term_counts
from toolcatalog.search.index.index_writer import Lexicon
from toolcatalog.search.index.term_counts import TermCounts, ToolFields

PROGRAM = "a program"
TEXTS = st.lists(
    st.sampled_from(["cat", "cats", "Cat", "dog", "dogs", "2025", "café", "猫が好き"]), max_size=4
)
BATCHES = st.lists(st.lists(TEXTS, max_size=3), min_size=1, max_size=5)


def counted(texts: Sequence[Sequence[str]]) -> tuple[str, bytes]:
    """A batch of tools that are described so: the key of its part, and its counts."""
    return repr(texts), term_counts.count_terms(
        ToolFields(([], [], [], text, [], []), "", is_newest=True) for text in texts
    )


def index(batches: Sequence[tuple[str, bytes]], words: Lexicon) -> dict[str, bytes]:
    """The files of the index of these batches."""
    return {
        path: b"".join(pieces)
        for path, pieces in index_writer.build_index(lambda: batches, words).items()
    }


@given(first=BATCHES, following=BATCHES, kept=st.integers(0, 5))
def test_an_index_is_the_same_whatever_was_known(
    first: list[list[list[str]]], following: list[list[list[str]]], kept: int
) -> None:
    """Words that came before, in another order or in batches that are gone, change no byte of
    it.
    """
    words = Lexicon()
    index([*map(counted, first)], words)
    batches = [*map(counted, [*first[:kept], *following])]
    existing = Lexicon(
        words.entries(),
        {key: words.numbers_for_batch(key, TermCounts(data)) for key, data in map(counted, first)},
    )
    assert index(batches, existing) == index(batches, Lexicon())


def test_what_was_asked_for_comes_back(tmp_path: Path) -> None:
    """The numbers of batches that are still there, and only the words that those have, given new
    numbers without a gap.
    """
    (gone, items), (stays, extra) = counted([["dog"], ["cats"]]), counted([["cat"], ["2025"]])
    previous = Lexicon()
    for key, data in ((gone, items), (stays, extra)):
        previous.numbers_for_batch(key, TermCounts(data))
    previous.save(tmp_path, PROGRAM)
    second = index_writer.load_lexicon(tmp_path, PROGRAM)
    assert (
        second.entries()
        == previous.entries()
        == ["cat\tcats", "dog\tdog", "2025\t2025", "cat\tcat"]
    )
    nobodys = TermCounts(
        term_counts.count_terms([])
    )  # its words are not asked for: the key is known
    assert second.numbers_for_batch(stays, nobodys).tolist() == [2, 3]
    second.save(tmp_path, PROGRAM)
    third = index_writer.load_lexicon(tmp_path, PROGRAM)
    assert (third.entries(), third.numbers_for_batch(stays, nobodys).tolist()) == (
        ["2025\t2025", "cat\tcat"],
        [0, 1],
    )
    assert third.numbers_for_batch(gone, TermCounts(items)).tolist() == [2, 3]


def test_nothing_is_written_where_nothing_has_changed(tmp_path: Path) -> None:
    """The same batches as before leave the file alone."""
    key, data = counted([["dog"]])
    results = []
    for _ in range(2):
        words = index_writer.load_lexicon(tmp_path, PROGRAM)
        words.numbers_for_batch(key, TermCounts(data))
        words.save(tmp_path, PROGRAM)
        results.append((tmp_path / "lexicon").stat().st_ino)
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:40] + b"x" + data[41:],
        lambda _: b"",
        lambda data: data * 2,
    ],
)
def test_what_is_damaged_is_nothing(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """So is what another program has left, or nobody."""
    assert len(index_writer.load_lexicon(tmp_path, PROGRAM)) == 0
    (key, data), words = counted([["dog"]]), Lexicon()
    words.numbers_for_batch(key, TermCounts(data))
    words.save(tmp_path, PROGRAM)
    path = tmp_path / "lexicon"
    assert len(index_writer.load_lexicon(tmp_path, PROGRAM)) == 1
    assert len(index_writer.load_lexicon(tmp_path, "another program")) == 0
    path.write_bytes(damage(path.read_bytes()))
    assert len(index_writer.load_lexicon(tmp_path, PROGRAM)) == 0
