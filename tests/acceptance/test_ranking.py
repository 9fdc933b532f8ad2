"""Tests of `search.query.ranking` through a store and a server."""

import random
from pathlib import Path
from urllib.parse import quote, unquote

import httpx
import orjson
import pytest

from support.catalogs import add_tool, generate_catalog
from support.paths import DATA
from support.server import Server
from toolcatalog.build.pipeline import build
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Filters, Store, VersionPins

FIRST = [line.split("\t") for line in (DATA / "first.tsv").read_text().splitlines()]
LIST = "/api/v3/tools"


@pytest.fixture(scope="module")
def store(shipped_build: Path) -> Store:
    return open_build(shipped_build)


def search_slugs(
    store: Store,
    query: str,
    filters: Filters = Filters(),  # noqa: B008 - it is immutable
    pins: VersionPins = VersionPins(),  # noqa: B008 - both are immutable
) -> list[str]:
    """Return the slugs that a query finds, best first."""
    matching = store.search(filters._replace(query=query), pins)
    numbers = store.select_page(matching, "relevance", True, 0, len(matching.tool_ids))
    return [orjson.loads(store.read_document(int(number))[0])["slug"] for number in numbers]


@pytest.mark.parametrize(("query", "slug"), FIRST)
def test_expected_tool_is_first(store: Store, query: str, slug: str) -> None:
    """For the queries of tests/data/first.tsv: sentences, keywords, typos, slugs and names."""
    assert search_slugs(store, query)[0] == slug


def test_one_matching_word_is_enough(store: Store) -> None:
    """Words that no tool contains do not change the result."""
    items = search_slugs(store, "refund")
    assert {*items} <= {
        *search_slugs(store, "could the quizzaciously glockenspiel refund zzyzx please")
    }


def test_correctly_spelled_word_is_not_corrected(store: Store) -> None:
    """`change` differs from `charge` by a letter, and matches only its own forms."""
    assert search_slugs(store, "charge") == search_slugs(store, "charges")
    assert "STRIPE_CREATE_CHARGE" not in search_slugs(store, "change")


def test_correction_has_a_length_limit(tmp_path: Path) -> None:
    """Each letter of an unknown word costs some fifty lookups: 48 letters per query."""
    catalog = generate_catalog(tmp_path / "catalog", 1)
    words = [letter * 3 + "ybcdfghklmnprtvwxz" for letter in "aeiou"]
    for number, word in enumerate(words):
        add_tool(catalog, "kit0", f"KIT0_{word.upper()}", number)
    build(catalog, tmp_path / "build", None)
    store = open_build(tmp_path / "build")
    misspelled = [f"{word[:-1]}q" for word in words]
    slugs = [f"KIT0_{word.upper()}" for word in words]
    assert {*search_slugs(store, " ".join(misspelled))} == {*slugs[:2]}
    assert {*search_slugs(store, " ".join(misspelled[::-1]))} == {*slugs[3:]}


def test_queries_with_two_intents_find_both(store: Store) -> None:
    both = search_slugs(
        store, "Get the weather forecast for Oslo. Then send an email with it to Anna."
    )
    assert {"OPENMETEO_GET_FORECAST", "GMAIL_SEND_EMAIL"} <= {*both[:4]}


def test_filters_and_pins_apply_before_ranking(store: Store) -> None:
    """Excluded tools are neither found nor counted."""
    assert (
        search_slugs(store, "create an issue on github", Filters(toolkits=["linear"]))[0]
        == "LINEAR_CREATE_ISSUE"
    )
    assert {
        slug.partition("_")[0] for slug in search_slugs(store, "issue", Filters(toolkits=["jira"]))
    } == {"JIRA"}
    pins = VersionPins(default="20240101_00")
    assert (
        {*search_slugs(store, "message", pins=pins)}
        <= {*search_slugs(store, "", pins=pins)}
        < {*search_slugs(store, "")}
    )


HOSTILE = [
    "😀",
    "a",
    "ß",
    "the of and",
    "日本語",
    "שלום עולם",
    "مرحبا",
    "e\u0301\u0301\u0301",
    "\u202eissue",
    "(a+)+$",
    "issue AND (NOT x) OR *:*",
    "NEAR(a b)",
    '"',
    "'; DROP TABLE tools; --",
    "%00",
    "\\",
    "[",
    "*",
    "a" * 4000,
    "ab " * 1333,
    "é" * 4000,
    "create remove " * 285,
    "_" * 200,
    "A_" * 100,
    "١٢٣",
    "issue\u0000",
    "\ud7ff\ue000",
    " ".join(f"w{number}x" for number in range(150)),
    "issues." * 570,
    "'a" * 2000,
    "github " * 570,
    "GITHUB_" + "X" * 190,
]


@pytest.mark.parametrize("query", HOSTILE)
def test_every_query_has_a_stable_result(shipped: Server, query: str) -> None:
    """No query is an error, and pages add up to the whole."""
    headers = {"x-api-key": shipped.key}
    url = f"{shipped.url}{LIST}?limit=1000&query={quote(query)}"
    answers = [httpx.get(url, headers=headers) for _ in range(2)]
    assert answers[0].status_code == 200, answers[0].text
    assert answers[0].content == answers[1].content
    page = answers[0].json()
    assert len(page["items"]) == page["total_items"]


@pytest.mark.parametrize(
    ("query", "suggested"),
    [
        # known words like it, but nothing there with them
        ("query=karrma&toolkit_slug=slack", None),
        ("query=mesagges&toolkit_slug=slack", "message"),
        ("query=emmaaill %E2%98%83%25", "email %E2%98%83%25"),
        ("query=qqqqzzzz", None),
        ("query=issue&toolkit_slug=gmail&tags=important", None),
        ("query=mesage", None),  # found as it is
        ("query=", None),
    ],
)
def test_corrected_query_is_suggested_without_matches(
    shipped: Server, query: str, suggested: str | None
) -> None:
    """In a header, with the same filters, by dispatcher and application."""
    for headers in (
        {"accept-encoding": "identity"},
        {"accept-encoding": "gzip"},
        {"accept-encoding": "identity", "origin": "https://a.example"},
    ):
        for _ in range(3):
            answer = httpx.get(
                f"{shipped.url}{LIST}?{query}", headers={"x-api-key": shipped.key, **headers}
            )
            assert answer.status_code == 200
            assert answer.headers.get("x-suggested-query") == suggested
    if suggested:
        assert answer.json()["total_items"] == 0
        repeated = httpx.get(
            f"{shipped.url}{LIST}",
            params={"query": unquote(suggested)},
            headers={"x-api-key": shipped.key},
        ).json()
        assert repeated["total_items"] > 0


def test_pages_of_many_matches_are_complete(tmp_path: Path) -> None:
    """Each tool once, in both directions, also beyond the tools that are scored exactly."""
    root, draw = generate_catalog(tmp_path / "catalog", 0, 1), random.Random(2)  # noqa: S311
    for number in range(260):
        add_tool(root, "kit0", f"KIT0_{draw.choice(['PAGE', 'SHEET'])}_{number}", draw.randrange(6))
    build(root, tmp_path / "build", None)
    store = open_build(tmp_path / "build")
    matching = store.search(Filters(query="page sheet tool"), VersionPins())
    all_ids = store.select_page(matching, "relevance", True, 0, 1000).tolist()
    assert len(all_ids) == len({*all_ids}) == len(matching.tool_ids) == 260
    for descending in (True, False):
        pages = [
            store.select_page(matching, "relevance", descending, start, 7).tolist()
            for start in range(0, 280, 7)
        ]
        assert sorted(number for page in pages for number in page) == sorted(all_ids)
        assert (
            pages[0] == store.select_page(matching, "relevance", descending, 0, 1000).tolist()[:7]
        )
