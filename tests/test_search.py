"""The room `search`: what a word is, which tools a query finds, and in which order."""

import math
from collections import Counter, defaultdict
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcatalog import search

Texts = tuple[str, str, str]

TOOLS: list[Texts] = [
    ("GITHUB_CREATE_ISSUE", "Create an issue", "Open a new issue in a repository. Not for pull requests."),
    ("GITHUB_CREATE_PULL_REQUEST", "Create a pull request", "Propose changes. An issue may be named in the text."),
    ("GITHUB_LIST_ISSUES", "List issues", "All issues of a repository."),
    ("GMAIL_SEND_EMAIL", "Send a message", "Write and send an e-mail; mention the issue if there is one."),
    ("WEATHER", "Wetter für Zürich 天気", "Nothing else."),
]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" .,;-_/ \n", []),
        ("GITHUB_CREATE_ISSUE", ["github", "create", "issue"]),
        ("GITHUB-CREATE.issue", ["github", "create", "issue"]),
        ("createIssueV2", ["create", "issue", "v", "2"]),
        ("HTTPServer2Go", ["http", "server", "2", "go"]),
        ("OAuth IDs", ["o", "auth", "i", "ds"]),
        ("it's an e-mail", ["it", "s", "an", "e", "mail"]),
        ("Zürich ZÜRICH Straße STRASSE café", ["zürich", "zürich", "strasse", "strasse", "café"]),
        ("天気API 日本語", ["天気", "api", "日本語"]),
        ("Ελλάδα ΕΛΛΆΔΑΣ", ["ελλάδα", "ελλάδασ"]),
        ("3.14 ٣٤", ["3", "14", "٣٤"]),
        ("a\u0301bc 😀", ["a", "bc"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    """Runs of letters or digits, camelCase and snake_case apart, case folded; an accent is no end of a word."""
    assert search.words(text) == words


def index(*batches: list[Texts]) -> dict[str, dict[int, float]]:
    """Of each word its tools and impacts, from tools that were counted batch by batch."""
    merged = merge(*batches)
    ends = [0, *accumulate(merged.holders)]
    assert ends[-1] == len(merged.numbers) == len(merged.impacts)
    pairs = [*zip(merged.numbers.tolist(), merged.impacts.tolist(), strict=True)]
    return {word: dict(pairs[start:end]) for word, (start, end) in zip(merged.words, pairwise(ends), strict=True)}


def merge(*batches: list[Texts]) -> search.Index:
    counts = [search.count(batch) for batch in batches]
    return search.merge(lambda: counts)


def scores(words: dict[str, dict[int, float]], query: str) -> dict[int, float]:
    """The sum of impacts of each tool that holds a word of the query."""
    found: defaultdict[int, float] = defaultdict(float)
    for word in {*search.words(query)}:
        for number, impact in words.get(word, {}).items():
            found[number] += impact
    return found


def ranking(query: str) -> list[str]:
    found = scores(index(TOOLS), query)
    return [TOOLS[number][0] for number in sorted(found, key=lambda number: -found[number])]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("issue", {"GITHUB_CREATE_ISSUE", "GITHUB_CREATE_PULL_REQUEST", "GMAIL_SEND_EMAIL"}),
        ("ISSUE zzz", {"GITHUB_CREATE_ISSUE", "GITHUB_CREATE_PULL_REQUEST", "GMAIL_SEND_EMAIL"}),
        ("wetter ZÜRICH", {"WEATHER"}),
        ("天気", {"WEATHER"}),
        ("rich", set()),
        ("iss", set()),
        ("???", set()),
        ("", set()),
    ],
)
def test_a_tool_is_found_by_one_whole_word(query: str, found: set[str]) -> None:
    """One word in common is enough, in whatever field and case; a part of a word is not."""
    assert {*ranking(query)} == found


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create an issue in my repository", "GITHUB_CREATE_ISSUE"),
        ("GITHUB_CREATE_PULL_REQUEST", "GITHUB_CREATE_PULL_REQUEST"),
        ("list all issues", "GITHUB_LIST_ISSUES"),
        ("send a mail message about an issue", "GMAIL_SEND_EMAIL"),
        ("issue", "GITHUB_CREATE_ISSUE"),
    ],
)
def test_the_tool_that_is_meant_comes_first(query: str, first: str) -> None:
    """Words in name and slug weigh more than in the description, and rare words more than common ones."""
    assert ranking(query)[0] == first


def test_fields_weigh_differently() -> None:
    """Of three tools alike the one with the word in its name comes first, then slug, then description."""
    found = scores(index([("A_B", "c d", "e zebra"), ("A_ZEBRA", "c d", "e f"), ("A_B", "c zebra", "e f")]), "zebra")
    assert sorted(found, key=lambda number: -found[number]) == [2, 1, 0]


def test_impacts_are_those_of_the_formula() -> None:
    """BM25 with fields weighted before saturation, worked out here one by one."""
    weighted = [
        Counter(word for weight, text in zip((4, 6, 1), texts, strict=True) for word in search.words(text) for _ in range(weight))
        for texts in TOOLS
    ]
    mean = sum(map(Counter.total, weighted)) / len(TOOLS)
    for word, found in index(TOOLS).items():
        holders = [number for number, words in enumerate(weighted) if word in words]
        rarity = math.log(1 + (len(TOOLS) - len(holders) + 0.5) / (len(holders) + 0.5))
        expected = {
            number: rarity * weight * 2.2 / (weight + 1.2 * (0.4 + 0.6 * weighted[number].total() / mean))
            for number in holders
            for weight in [weighted[number][word]]
        }
        assert found == pytest.approx(expected)


def test_every_posting_is_a_tool_and_a_positive_impact() -> None:
    """The index names each tool once under each of its words, in order, and no match scores nothing."""
    words = index(TOOLS)
    assert [*words] == sorted(words)
    for impacts in words.values():
        assert [*impacts] == sorted(impacts)
        assert min(impacts.values()) > 0
    for number, texts in enumerate(TOOLS):
        assert {word for word in words if number in words[word]} == {*search.words(" ".join(texts))}


TEXT = st.text("ab Cé_天٣\n", max_size=12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_batches_add_up(tools: list[Texts], cuts: list[int]) -> None:
    """However the tools were put into batches, the index has the same bytes."""
    bounds = [0, *sorted(min(cut, len(tools)) for cut in cuts), len(tools)]
    split, whole = merge(*(tools[start:end] for start, end in pairwise(bounds))), merge(tools)
    assert (split.words, split.holders) == (whole.words, whole.holders)
    assert split.numbers.tobytes() + split.impacts.tobytes() == whole.numbers.tobytes() + whole.impacts.tobytes()


@pytest.mark.parametrize("batches", [[], [[]], [[], []], [[("", "", "")]], [[("", "", "")], [], [("A", "", "")]]])
def test_empty_catalogs_and_texts(batches: list[list[Texts]]) -> None:
    """No batches, none with tools, or tools without a word make an index in which nothing is found and nothing fails."""
    assert {word: [*impacts] for word, impacts in index(*batches).items()} == ({"a": [1]} if len(batches) == 3 else {})
