"""The room `search`: what a word is, which tools a query finds, and in which order."""

import json

import pytest

from toolcatalog import search

TOOLS = [
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


def ranking(query: str) -> list[str]:
    scores = search.scores(search.load(search.index(TOOLS)), query)
    return [TOOLS[number][0] for number in sorted(scores, key=lambda number: -scores[number])]


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
    fields = [("A_B", "c d", "e zebra"), ("A_ZEBRA", "c d", "e f"), ("A_B", "c zebra", "e f")]
    scores = search.scores(search.load(search.index(fields)), "zebra")
    assert sorted(scores, key=lambda number: -scores[number]) == [2, 1, 0]


def test_a_word_asked_twice_counts_once() -> None:
    """Saying a word again changes no score, and neither does the order of the words."""
    postings = search.load(search.index(TOOLS))
    assert search.scores(postings, "issue issue ISSUE create") == pytest.approx(search.scores(postings, "create issue"))


def test_every_posting_is_a_tool_and_a_positive_impact() -> None:
    """The index names each tool once under each of its words, in order, and no match scores nothing."""
    postings = json.loads(search.index(TOOLS))
    assert [*postings] == sorted(postings)
    for numbers, impacts in postings.values():
        assert numbers == sorted({*numbers})
        assert len(impacts) == len(numbers)
        assert min(impacts) > 0
    for number, texts in enumerate(TOOLS):
        assert {word for word in postings if number in postings[word][0]} == {*search.words(" ".join(texts))}


@pytest.mark.parametrize("fields", [[], [("", "", "")], [("", "", ""), ("A", "", "")]])
def test_empty_catalogs_and_texts(fields: list[tuple[str, str, str]]) -> None:
    """No tools, or tools without a word, make an index in which nothing is found and nothing fails."""
    postings = search.load(search.index(fields))
    assert search.scores(postings, "nothing") == {}
    assert [*search.scores(postings, "a")] == ([1] if len(fields) == 2 else [])
