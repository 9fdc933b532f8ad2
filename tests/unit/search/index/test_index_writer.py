"""Tests of `term_counts` and `index_writer`: the values of terms are those of the formulas in
docs/explanation/search.md.
"""

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from support.profile import example_settings
from support.reference_model import are_related, extract_terms
from toolcatalog.search import bm25
from toolcatalog.search.analysis import name_checksum
from toolcatalog.search.index import index_writer, term_counts
from toolcatalog.search.index.index_reader import TextIndex
from toolcatalog.search.index.index_writer import Lexicon
from toolcatalog.search.index.term_counts import ToolFields
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.tables import Table

WEIGHTS, LENGTHS = (1.5, 2, 0.4, 0.8, 0.7, 0.3), (0.3, 0.75, 0.4, 0.4, 0.75, 0.75)

TOOLS = [
    term_counts.extract_fields(
        "GITHUB_CREATE_ISSUE",
        "Create an issue",
        "Open a new issue. Not for pulls.",
        ("github", "GitHub"),
        {},
        is_newest=True,
    ),
    term_counts.extract_fields(
        "GITHUB_LIST_PULLS",
        "List pulls",
        "All pulls of a repository",
        ("github", "GitHub"),
        {"repo": {"description": "Which repository"}},
        is_newest=False,
    ),
    term_counts.extract_fields(
        "GITHUB_LIST_PULLS",
        "List pulls",
        "Pulls, repositories and issues",
        ("github", "GitHub"),
        {"repo": {}, "state": {"items": {"description": "open"}}},
        is_newest=True,
    ),
    term_counts.extract_fields(
        "GMAIL_SEND",
        "Send e-mail",
        "Write mail",
        ("gmail", "Google Mail"),
        {"to": {"properties": {"address": {"description": "Mail address"}}}},
        is_newest=True,
    ),
]


def opened(*batches: Sequence[ToolFields]) -> TextIndex:
    """The index of these batches, opened."""
    counts = [(str(number), term_counts.count_terms(batch)) for number, batch in enumerate(batches)]
    files = {
        path: b"".join(pieces)
        for path, pieces in index_writer.build_index(lambda: counts, Lexicon()).items()
    }
    return TextIndex(Table(files[snapshot_format.WORDS]), files, sum(map(len, batches)))


class Plain(NamedTuple):
    """What an index must say of a term: its rarity and, of each tool that holds it, the impact and
    where it stands.
    """

    rarity: float
    tools: dict[int, tuple[float, bool, bool]]


def plain(tools: Sequence[ToolFields]) -> dict[str, Plain]:
    """The same worked out one by one."""
    counts = [[Counter(extract_terms(" ".join(field))) for field in tool.fields] for tool in tools]
    lengths = [[sum(count.values()) for count in fields] for fields in counts]
    usual = []
    for field in range(6):
        filled = [
            length[field]
            for length, tool in zip(lengths, tools, strict=True)
            if tool.is_newest and length[field]
        ]
        usual.append(sum(filled) / len(filled) if filled else 1)
    newest, result = sum(tool.is_newest for tool in tools), {}
    for term in {term for fields in counts for count in fields for term in count}:
        stored = sum(
            tool.is_newest and any(term in count for count in fields)
            for tool, fields in zip(tools, counts, strict=True)
        )
        impacts = {}
        for number, fields in enumerate(counts):
            if any(term in count for count in fields):
                frequency = sum(
                    weight
                    * min(255, fields[field][term])
                    / (1 - share + share * lengths[number][field] / usual[field])
                    for field, (weight, share) in enumerate(zip(WEIGHTS, LENGTHS, strict=True))
                )
                impacts[number] = (
                    frequency * 2.6 / (frequency + 1.6) + 0.7,
                    term in fields[0],
                    term in fields[1],
                )
        result[term] = Plain(math.log(1 + (newest - stored + 0.5) / (stored + 0.5)), impacts)
    return result


def matches(index: TextIndex, tools: Sequence[ToolFields]) -> None:
    """Hold an index against what it must say."""
    expected = plain(tools)
    all_values = [index.term_at(number) for number in range(len(index._terms))]
    assert [term.text for term in all_values] == sorted(expected)
    numbers = [*range(len(tools))]
    for term in all_values:
        rarity, impacts = expected[term.text]
        assert term.idf == pytest.approx(rarity, rel=1e-6)
        assert term == index.find_term(term.text)
        values = index.term_values(term, array(numbers)).tolist()
        assert {number for number, value in enumerate(values) if value} == {*impacts}
        for number, (impact, in_name, in_toolkit) in impacts.items():
            assert values[number] >> 2 == pytest.approx(
                impact / bm25.MAX_IMPACT * snapshot_format.MAX_ENCODED_IMPACT, abs=0.51
            )
            assert (bool(values[number] & 1), bool(values[number] & 2)) == (in_name, in_toolkit)
        related = sorted(
            (abs(len(other) - len(term.text)), other)
            for other in expected
            if are_related(term.text, other)
        )
        assert [index.term_at(number).text for number in term.related] == [
            other for _, other in related
        ]
    for position, (column, group) in enumerate(zip(index.name_idf_sums, (1, 2), strict=True)):
        for number in numbers:
            total = sum(
                output.rarity
                for output in expected.values()
                if number in output.tools and output.tools[number][group]
            )
            assert column[number] == pytest.approx(total, rel=1e-5), position
    assert index.name_checksums.tolist() == [name_checksum(tool.name) for tool in tools]


def array(numbers: Sequence[int]) -> NDArray[np.uint32]:
    return np.array(numbers, np.uint32)


def test_the_fields_of_a_tool() -> None:
    """A slug counts as far as it says more than name and toolkit; parameters count at every level,
    under their names.
    """
    fields = [extract_terms(" ".join(field)) for field in TOOLS[3].fields]
    assert fields == [
        ["send", "e", "mail"],
        ["googl", "mail", "gmail"],
        ["write", "mail"],
        ["write", "mail"],
        ["address"],
        ["mail", "address"],
    ]
    nested = term_counts.extract_fields(
        "X_PULL_IT",
        "Pull",
        "",
        ("x", "X"),
        {"properties": {"additionalProperties": {"description": "free"}}},
        is_newest=True,
    )
    assert [extract_terms(" ".join(field)) for field in nested.fields] == [
        ["pull"],
        ["x"],
        [],
        [],
        ["properti"],
        ["free"],
    ]


def test_impacts_rarities_and_relatives() -> None:
    """Each number is the one that the formulas give, however the tools are put in batches."""
    matches(opened(TOOLS), TOOLS)
    for cut in (1, 2, 3):
        matches(opened(TOOLS[:cut], TOOLS[cut:]), TOOLS)


def test_no_tools() -> None:
    """An index of nothing has nothing."""
    index = opened()
    assert index.find_term("issue") is None
    assert index.terms_with_prefix("i", 5) == index.similar_terms("issue") == []
    matches(opened([]), [])


LETTERS = st.text(st.sampled_from("abcde"), min_size=1, max_size=7)
PIECES = st.lists(st.text(st.sampled_from("abcdeB1"), min_size=1, max_size=7), max_size=6)
SAIDS = st.builds(ToolFields, st.tuples(*[PIECES] * 6), LETTERS, st.booleans())


@example_settings(20)
@given(st.lists(st.lists(SAIDS, max_size=5), max_size=4))
def test_any_tools(batches: list[list[ToolFields]]) -> None:
    """Whatever tools say, common and rare terms alike."""
    matches(opened(*batches), [tool for batch in batches for tool in batch])


def test_adding_up_is_the_same_for_rows_and_pairs() -> None:
    """A term of many tools is kept as a row, one of few as pairs; both add the same."""
    draw = random.Random(5)  # noqa: S311 - nothing secret
    tools = [
        ToolFields(
            (
                [f"common{'' if draw.random() < 0.6 else 's'}", f"w{draw.randrange(30)}"],
                [],
                [],
                [],
                [],
                [],
            ),
            "",
            True,
        )
        for _ in range(200)
    ]
    index = opened(tools[:90], tools[90:])
    all_values = [index.term_at(number) for number in range(len(index._terms))]
    assert {term.is_dense for term in all_values} == {True, False}
    for term in all_values:
        scores = np.zeros(200, np.float32)
        index.add_scores(term, np.float32(0.5), scores)
        values = index.term_values(term, array([*range(200)]))
        assert scores.tolist() == pytest.approx((values * 0.5).tolist())


def test_a_term_is_reported_in_its_shortest_spelling() -> None:
    """Of those of all batches, in whatever order they come; of spellings of one length the first by
    letters.
    """
    batches = [
        [ToolFields(([word], [], [], [], [], []), "", True)]
        for word in ("studying", "studies", "study", "studied")
    ]
    for items in (batches, batches[::-1], [[tool for (tool,) in batches]]):
        result = opened(*items).find_term("studi")
        assert result
        assert result.spelling == "study"
    result = opened(batches[1], batches[3]).find_term("studi")
    assert result
    assert result.spelling == "studied"


@pytest.mark.parametrize("at_once", [1, 100, 5000])
def test_no_more_postings_are_held_than_fit(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few are made at a time, the files have the same bytes."""
    draw = random.Random(6)  # noqa: S311 - nothing secret
    tools = [
        ToolFields(
            ([f"w{draw.randrange(1, 2 + number)}" for number in range(9)], ["kit"], [], [], [], []),
            "",
            True,
        )
        for _ in range(90)
    ]
    counts = [
        ("one", term_counts.count_terms(tools[:50])),
        ("two", term_counts.count_terms(tools[50:])),
    ]
    document = {
        path: b"".join(pieces)
        for path, pieces in index_writer.build_index(lambda: counts, Lexicon()).items()
    }
    monkeypatch.setattr(index_writer, "_MAX_BLOCK_SIZE", at_once)
    pieces = {
        path: [*pieces]
        for path, pieces in index_writer.build_index(lambda: counts, Lexicon()).items()
    }
    assert {path: b"".join(items) for path, items in pieces.items()} == document
    assert len(pieces[snapshot_format.POSTINGS]) > 2 or at_once > len(
        document[snapshot_format.POSTINGS]
    )
