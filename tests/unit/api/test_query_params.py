"""Tests of `api.query_params`: parsing of query strings and request bodies."""

import base64
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.profile import example_settings
from toolcatalog.api import query_params
from toolcatalog.api.query_params import ListParams, Page, SessionParams, ToolParams
from toolcatalog.store.store import Filters, VersionPins

PLAIN = ListParams(None, Filters(), VersionPins(), Page(1, 20), "slug", False)
TEXTS = st.text(st.characters(codec="utf-8"))
WORDS = st.text(st.characters(codec="utf-8", exclude_characters=","), min_size=1).filter(
    lambda text: text == text.strip()
)


def filtered(**filters: Any) -> ListParams:
    """The plain question, with these filters."""
    return PLAIN._replace(filters=Filters(**filters))


def asked(query: str | bytes) -> ListParams:
    """The list question of a query string that is well formed."""
    question, refusals = query_params.parse_list_params(
        query if isinstance(query, bytes) else query.encode()
    )
    assert refusals == ()
    return question


def wrong(query: str | bytes) -> list[str]:
    """What is wrong with a query string of list: a line each."""
    refusals = query_params.parse_list_params(
        query if isinstance(query, bytes) else query.encode()
    )[1]
    assert {(refusal.status, refusal.slug) for refusal in refusals} <= {(400, "invalid_request")}
    assert all(refusal.fix for refusal in refusals)
    return [refusal.message for refusal in refusals]


def cursor(text: str) -> str:
    """Any text as a cursor, ready for a query string."""
    return quote(base64.b64encode(text.encode()).decode())


@pytest.mark.parametrize(
    "query",
    [
        "",
        "&&",
        "?",
        "limit=&cursor=&tags=&scopes=&tool_slugs=&toolkit_slug=&auth_config_ids=&query=&search=",
        "important=&include_deprecated=&toolkit_versions=&sort_by=&order=",
        "important=false",
        "tags=%2C&scopes=,,&tool_slugs=%20,%20",
        "tags%5B%5D=&toolkit_versions%5Bgithub%5D=",
        "toolkit_versions=latest",
        "limit=20",
        "sort_by=slug&order=asc",
        (
            "unknown=1&managed_by=all&LIMIT=5&Tags=a&toolkit_versions_x=1&"
            "toolkit_versions%5Bgithub%5D%5B0%5D=nonsense"
        ),
        "query=%20%09%0A&search=+",
        "query",
    ],
)
def test_what_is_absent_empty_or_unknown_asks_for_nothing(query: str) -> None:
    """An empty value is an absent one, an unknown parameter is ignored, and the defaults are those
    of the decisions.
    """
    assert asked(query) == PLAIN


@pytest.mark.parametrize(
    "query",
    [
        "tags=a%2Cb%2Cc",
        "tags=a,b,c",
        "tags=a&tags=b&tags=c",
        "tags[]=a&tags[]=b&tags[]=c",
        "tags%5B%5D=a&tags%5B%5D=b%2Cc",
        "tags[0]=a&tags[1]=b&tags[2]=c",
        "tags=a,b&tags%5B%5D=c&tags=",
        "tags=a&other=x&tags[]=b,a&tags%5B7%5D=c,b",
        "tags=%20a%20,+b&tags=c",
    ],
)
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("tags", "tags"),
        ("scopes", "scopes"),
        ("auth_config_ids", "auth_configs"),
        ("toolkit_slug", "toolkits"),
        ("tool_slugs", "slugs"),
    ],
)
def test_a_list_is_read_alike_in_every_spelling(query: str, name: str, field: str) -> None:
    """A list may mix commas, repetition and brackets; the result has each word once, in order."""
    question = asked(query.replace("tags", name))
    expected = (
        PLAIN._replace(slugs=("a", "b", "c"))
        if field == "slugs"
        else filtered(**{field: ("a", "b", "c")})
    )
    assert question == expected


@example_settings(33)
@given(st.lists(WORDS, min_size=1), st.data())
def test_any_words_arrive_in_any_mixture_of_spellings(
    words: list[str], data: st.DataObject
) -> None:
    """However the words of a list are spread over commas, repetition and brackets, they arrive
    whole, once and in order.
    """
    parts, rest = [], words
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        parts.append(
            (
                data.draw(st.sampled_from(["tags", "tags[]", "tags[0]", "tags[12]"])),
                ",".join(rest[:size]),
            )
        )
        rest = rest[size:]
    assert asked(urlencode(parts)).filters.tags == (*dict.fromkeys(words),)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("1", 1),
        ("20", 20),
        ("50.0", 50),
        ("50.", 50),
        ("1e2", 100),
        ("1.5e1", 15),
        ("%2B7", 7),
        ("007", 7),
        ("999", 999),
        ("1000", 1000),
        ("1001", 1000),
        ("9999", 1000),
        ("9999.0", 1000),
        ("1e20", 1000),
        ("1e400", 1000),
        ("1e99999999", 1000),
        ("9" * 400, 1000),
        ("9" * 5000, 1000),
    ],
)
def test_a_limit_is_a_whole_number_and_at_most_1000(value: str, size: int) -> None:
    """A limit may be written as a float and in any length; more than 1000 counts as 1000."""
    assert asked(f"limit={value}").page == Page(1, size)


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "-1",
        "-0",
        "0.0",
        "-1e3",
        "1.5",
        "0.5",
        "50.01",
        "1e-400",
        "1e-1",
        "abc",
        "nan",
        "NaN",
        "inf",
        "Infinity",
        "-inf",
        "1_000",
        "0x10",
        "1,2",
        "10;",
        "e5",
        ".",
        "+",
        "-",
        "1e",
        "1e+",
        "None",
        "true",
        "[]",
        "\uff11\uff10",
        "\u0665",
        "1 0",
        "1\n",
        "1\x00",
        "½",
        "1" * 50 + "a",
        "0.99999999999999999999",
        "1.00000000000000000000000001",
        "1e-99",
        "1e1234567890",
    ],
)
def test_any_other_limit_is_refused(value: str) -> None:
    """What is no whole number from 1 is refused in one line that names it, in whatever alphabet."""
    line = wrong(urlencode({"limit": value}))
    assert len(line) == 1
    assert line[0].startswith("limit: ")
    assert line[0].endswith(" is not a whole number from 1.")


@example_settings(33)
@given(st.integers(1, 10**17), st.integers(1, 1000), st.integers(1, 5000))
def test_a_cursor_round_trips_and_wins_over_limit(number: int, size: int, limit: int) -> None:
    """The cursor of a page is read back as that page, also where a limit says otherwise."""
    page = Page(number, size)
    assert (
        asked(f"limit={limit}&cursor={quote(query_params.encode_cursor(number, size))}").page
        == page
    )
    assert base64.b64decode(query_params.encode_cursor(number, size)) == b"%d:%d" % (number, size)


@given(st.integers(1, 10**12), st.integers(1, 1000), st.data())
def test_a_damaged_cursor_is_refused_or_another_one(
    number: int, size: int, data: st.DataObject
) -> None:
    """A cursor with a character gone, changed or too many: 400, or the very text that is the cursor
    of the page that is read of it.
    """
    whole = query_params.encode_cursor(number, size).decode()
    at, more = (
        data.draw(st.integers(0, len(whole) - 1)),
        data.draw(st.sampled_from(["", *"AZaz09+/=-_ \n:", "é"])),
    )
    damaged = whole[:at] + more + whole[at + data.draw(st.integers(0, 1)) :]
    question, refusals = query_params.parse_list_params(urlencode({"cursor": damaged}).encode())
    if refusals:
        assert [(refusal.status, refusal.message.split(":")[0]) for refusal in refusals] == [
            (400, "cursor")
        ]
    else:
        assert query_params.encode_cursor(*question.page).decode() == damaged or not damaged


def test_what_is_no_cursor_is_reported_in_words() -> None:
    """The sentence names what was sent, and says what to do; a page of 1000 is the largest that
    there is.
    """
    (refusal,) = query_params.parse_list_params(b"cursor=abc")[1]
    assert refusal.message == "cursor: 'abc' is not a cursor of this API."
    assert (
        refusal.fix == "Use next_cursor of the page before, or leave cursor out for the first page."
    )
    assert asked(f"cursor={cursor('3:1000')}").page == Page(3, 1000)


def test_a_cursor_is_the_text_that_it_always_was() -> None:
    """The cursor of page 2 with 20 items is base64 of `2:20`: clients keep cursors, so it must not
    change.
    """
    assert query_params.encode_cursor(2, 20) == b"MjoyMA=="
    assert asked("cursor=MjoyMA%3D%3D").page == Page(2, 20)


@pytest.mark.parametrize(
    "value",
    [
        *map(
            cursor,
            [
                "0:20",
                "-1:20",
                "1:0",
                "1:1001",
                "1:9999",
                "1:-5",
                "1",
                ":",
                "1:",
                ":20",
                "1:20:3",
                "01:20",
                "1:020",
                "1.0:20",
            ],
        ),
        *map(
            cursor,
            [
                "1:20\n",
                " 1:20",
                "x:y",
                "+1:20",
                "1e3:20",
                "\uff11:20",
                "1_0:20",
                '{"page":1}',
                "9" * 400 + ":20",
            ],
        ),
        "MjoyMA",  # no padding
        "MjoyMA%3D",
        "MjoyMB%3D%3D",  # other bits than the encoder leaves
        "Mjoy MA%3D%3D",
        "MjoyMA%3D%3DMjoyMA%3D%3D",
        "2:20",
        "%C3%A9",
        "____",
        "null",
        "abc",
    ],
)
def test_any_other_cursor_is_refused(value: str) -> None:
    """A cursor that this API did not make is refused: page below 1, size above 1000, other bytes,
    another spelling of the same.
    """
    assert [line.split(":")[0] for line in wrong(f"cursor={value}")] == ["cursor"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", True),
        ("TRUE", True),
        ("True", True),
        ("1", True),
        ("false", False),
        ("False", False),
        ("fALSE", False),
        ("0", False),
    ],
)
def test_a_boolean_in_any_case(value: str, expected: bool) -> None:
    """`include_deprecated` takes true, false, 1 and 0 in any case."""
    assert asked(f"include_deprecated={value}") == filtered(include_deprecated=expected)


@pytest.mark.parametrize(
    "value", ["yes", "no", "on", "2", "-1", "t", "null", "TRUE%20", "\uff54\uff52\uff55\uff45"]
)
def test_any_other_boolean_is_refused(value: str) -> None:
    """What is none of those is refused."""
    assert [line.split(":")[0] for line in wrong(f"include_deprecated={value}")] == [
        "include_deprecated"
    ]


def test_important_is_true_or_false_to_the_letter() -> None:
    """`important` has two values and no others; `false` is no filter."""
    assert asked("important=true") == filtered(only_important=True)
    assert asked("important=false") == PLAIN
    for value in ("1", "0", "TRUE", "yes"):
        assert wrong(f"important={value}") == [f"important: '{value}' is not one of true, false."]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("query=send+mail", "send mail"),
        ("query=%20send%20mail%0A", "send mail"),
        ("search=mail", "mail"),
        ("query=&search=mail", "mail"),
        ("query=%20&search=mail", "mail"),
        ("query=send&search=mail", "send"),
        ("search=mail&query=send", "send"),
        ("query=a%2Cb%3Bc%26d%00", "a,b;c&d\x00"),
        ("query=%E2%9C%89", "✉"),
        ("query=" + "é" * 4000, "é" * 4000),
        ("query=%20" + "x" * 4000 + "%20", "x" * 4000),
    ],
)
def test_the_text_searched_for(query: str, text: str) -> None:
    """`query` goes before the older `search`; white space around counts for nothing; a query is
    sorted by relevance.
    """
    assert asked(query) == filtered(query=text)._replace(sort_by="relevance", descending=True)


@pytest.mark.parametrize("name", ["query", "search"])
def test_a_query_has_at_most_1000_characters(name: str) -> None:
    """One character more is refused: characters are counted, not bytes."""
    assert wrong(f"{name}=" + "é" * 4001) == [f"{name}: 4001 characters, at most 4000 are allowed."]


@pytest.mark.parametrize(
    ("query", "sort_by", "descending"),
    [
        ("sort_by=name", "name", False),
        ("sort_by=version", "version", True),
        ("sort_by=relevance", "relevance", True),
        ("sort_by=name&order=desc", "name", True),
        ("sort_by=version&order=asc", "version", False),
        ("order=desc", "slug", True),
        ("query=x", "relevance", True),
        ("query=x&order=asc", "relevance", False),
        ("query=x&sort_by=slug", "slug", False),
    ],
)
def test_the_order(query: str, sort_by: str, descending: bool) -> None:
    """By relevance where there is a query, else by slug; relevance and version start with the
    greatest.
    """
    question = asked(query)
    assert (question.sort_by, question.descending) == (sort_by, descending)


@pytest.mark.parametrize(
    ("query", "pins"),
    [
        ("toolkit_versions=20251027_00", VersionPins(default="20251027_00")),
        ("toolkit_versions[github]=20251027_00", VersionPins(toolkits={"github": "20251027_00"})),
        (
            "toolkit_versions%5Bgithub%5D=20251027_00",
            VersionPins(toolkits={"github": "20251027_00"}),
        ),
        (
            "toolkit_versions%5bgithub%5d=00000000_00",
            VersionPins(toolkits={"github": "00000000_00"}),
        ),
        (
            "toolkit_versions[a]=20251027_00&toolkit_versions[b]=latest",
            VersionPins(toolkits={"a": "20251027_00", "b": None}),
        ),
        (
            "toolkit_versions[a]=latest&toolkit_versions=20251027_01",
            VersionPins(default="20251027_01", toolkits={"a": None}),
        ),
        (
            "toolkit_versions[a]=&toolkit_versions[b]=20251027_00",
            VersionPins(toolkits={"b": "20251027_00"}),
        ),
    ],
)
def test_toolkit_versions_in_every_spelling(query: str, pins: VersionPins) -> None:
    """`latest`, a version for every toolkit, or one for each by brackets, percent-encoded or not;
    get and list read them alike.
    """
    assert asked(query).pins == pins
    assert query_params.parse_tool_params(query.encode()) == (ToolParams(None, pins), ())


@pytest.mark.parametrize(
    "value",
    [
        "20251027",
        "2025-10-27",
        "20251027_0",
        "20251027_000",
        "x",
        "LATEST",
        "null",
        "\uff12\uff10\uff12\uff15\uff11\uff10\uff12\uff17_00",
        "20251027_00 ",
    ],
)
@pytest.mark.parametrize("name", ["toolkit_versions", "toolkit_versions[github]"])
def test_a_malformed_version_is_refused(name: str, value: str) -> None:
    """What is neither `latest` nor eight digits, an underscore and two digits is refused, on list
    and on get.
    """
    query = urlencode({name: value})
    assert wrong(query) == [f"{name}: {value!r} is not a version."]
    for asked_of_get in (name, "version"):
        (refusal,) = query_params.parse_tool_params(urlencode({asked_of_get: value}).encode())[1]
        assert (refusal.status, refusal.message) == (
            400,
            f"{asked_of_get}: {value!r} is not a version.",
        )
        assert refusal.fix == "Use `latest`, or a version like 20251027_00."


@pytest.mark.parametrize(
    ("query", "version", "pins"),
    [
        ("", None, VersionPins()),
        ("version=", None, VersionPins()),
        ("version=latest", None, VersionPins()),
        ("version=20251027_00", "20251027_00", VersionPins()),
        (
            "version=20251027_00&toolkit_versions[a]=20250101_00",
            "20251027_00",
            VersionPins(toolkits={"a": "20250101_00"}),
        ),
        ("version=latest&toolkit_versions[a]=20250101_00", None, VersionPins()),
        (
            "version=&toolkit_versions[a]=20250101_00",
            None,
            VersionPins(toolkits={"a": "20250101_00"}),
        ),
        ("limit=abc&tags=x", None, VersionPins()),
    ],
)
def test_the_version_asked_of_get(query: str, version: str | None, pins: VersionPins) -> None:
    """`version` wins over `toolkit_versions`, also where it says `latest`; parameters of list mean
    nothing here.
    """
    assert query_params.parse_tool_params(query.encode()) == (ToolParams(version, pins), ())


@pytest.mark.parametrize(
    ("slug", "fix"),
    [
        ("github_create_issue", "try GITHUB_CREATE_ISSUE."),
        ("a b", "try A_B."),
        ("../x", "as in"),
        ("A" * 201, "as in"),
        ("É", "as in"),
    ],
)
def test_a_malformed_slug_is_refused_with_an_example(slug: str, fix: str) -> None:
    """The error suggests a slug if only case or blanks are wrong; otherwise it has an example."""
    refusal = query_params.invalid_slug_error(slug)
    assert (refusal.status, refusal.message.split(":")[0]) == (400, "tool_slug")
    assert fix in refusal.fix


def test_1000_slugs_and_no_more() -> None:
    """A request may name 1000 different slugs; duplicates do not count."""
    slugs = [f"A{number}" for number in range(1000)]
    assert asked("tool_slugs=" + ",".join([*slugs, *slugs])).slugs == (*slugs,)
    assert wrong("tool_slugs=" + ",".join([*slugs, "B"])) == [
        "tool_slugs: 1001 values, at most 1000 are allowed."
    ]


@pytest.mark.parametrize(
    "name", ["tool_slugs", "toolkit_slug", "auth_config_ids", "tags", "scopes"]
)
def test_each_list_has_at_most_1000_values(name: str) -> None:
    """A longer list is refused once, with what to send instead, and none of its values is kept."""
    values = [f"v{number}" for number in range(1001)]
    assert wrong(f"{name}=" + ",".join(values[:1000])) == []
    question, refusals = query_params.parse_list_params(f"{name}={','.join(values)}".encode())
    assert [(refusal.message, refusal.fix) for refusal in refusals] == [
        (
            f"{name}: 1001 values, at most 1000 are allowed.",
            f"Send at most 1000 values of {name} in a request.",
        )
    ]
    assert question == PLAIN


def test_at_most_1000_toolkits_are_pinned() -> None:
    """So it is with brackets, however wrong their versions are."""
    pins = [f"toolkit_versions[kit{number}]=20250101_00" for number in range(1001)]
    assert len(asked("&".join(pins[:1000])).pins.toolkits) == 1000
    assert wrong("&".join(pins)) == ["toolkit_versions: 1001 values, at most 1000 are allowed."]
    assert len(wrong("&".join(pins).replace("2025", "x"))) == 1


def test_all_lists_together_have_at_most_1000_values() -> None:
    """One error counts the values of all lists and pins, and names the parameters to shorten."""
    half = ",".join(f"v{number}" for number in range(500))
    pins = "&".join(f"toolkit_versions[kit{number}]=latest" for number in range(500))
    assert wrong(f"tags={half}&scopes={half}") == []
    assert wrong(f"tags={half}&{pins}") == []
    question, refusals = query_params.parse_list_params(
        f"toolkit_slug={half}&tags={half}&scopes=a,b&{pins}".encode()
    )
    lists = "toolkit_slug, tags, scopes, toolkit_versions"
    assert [(refusal.message, refusal.fix) for refusal in refusals] == [
        (
            f"{lists}: 1502 values, at most 1000 are allowed.",
            f"Send at most 1000 values of {lists} in a request.",
        )
    ]
    assert len(question.filters.toolkits or ()) == 500
    assert question.filters.scopes == ()
    assert question.pins.toolkits == {}


def test_a_get_pins_at_most_1000_toolkits() -> None:
    """The same limit holds where one tool is read."""
    pins = "&".join(f"toolkit_versions[kit{number}]=latest" for number in range(1001))
    _, refusals = query_params.parse_tool_params(pins.encode())
    assert [refusal.message for refusal in refusals] == [
        "toolkit_versions: 1001 values, at most 1000 are allowed."
    ]


def test_a_scalar_may_be_repeated_but_not_contradicted() -> None:
    """The same value twice is one value; two values are a question without an answer."""
    assert asked("limit=5&limit=5&limit=").page == Page(1, 5)
    assert wrong("limit=5&limit=6") == ["limit: given 2 times with different values."]
    twice = "toolkit_versions[a]=20250101_00&toolkit_versions%5Ba%5D=20250102_00"
    assert wrong(twice) == ["toolkit_versions[a]: given 2 times with different values."]


def test_every_problem_is_reported_at_once() -> None:
    """Each wrong parameter has its own line; a value is shown shortened."""
    query = (
        f"limit=0&cursor=x&sort_by=a&order=b&important=c&include_deprecated=d&"
        f"toolkit_versions=e&toolkit_versions[f]=g&query={'h' * 4001}"
    )
    lines = wrong(query)
    assert sorted(line.split(":")[0] for line in lines) == [
        "cursor",
        "important",
        "include_deprecated",
        "limit",
        "order",
        "query",
        "sort_by",
        "toolkit_versions",
        "toolkit_versions[f]",
    ]
    assert max(map(len, wrong("limit=" + "x" * 9000))) < 200


@pytest.mark.parametrize(
    "query",
    [
        b"tags=%FF",
        b"%C3%28=1",
        b"tags=\xff",
        b"\x80",
        b"query=%ED%A0%80",
        b"limit=5&x=%F0%28%8C%BC",
    ],
)
def test_a_query_string_that_is_not_utf_8_is_refused(query: bytes) -> None:
    """Bytes that are no UTF-8, percent-encoded or raw, also a lone surrogate, make one problem, and
    nothing is guessed.
    """
    assert wrong(query) == ["query string: not UTF-8."]


def test_more_than_5000_parameters_are_refused() -> None:
    """5000 parameters are read, one more is too many to look at."""
    assert asked("&".join(["tags=a"] * 5000)).filters.tags == ("a",)
    assert wrong("&".join(["tags=a"] * 5001)) == ["query string: more than 5000 parameters."]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b' {"a": [1, null]}\n',
        b'{"limit": 3}',
        b'{"a":"' + b"x" * (64 * 1024 - 8) + b'"}',
    ],
)
def test_a_body_that_is_fine(body: bytes) -> None:
    """No body, and any JSON object of up to 64 KiB, is fine, and its fields mean nothing."""
    assert query_params.parse_session_params("trs_a", b"", body) == (
        SessionParams("trs_a", None),
        [],
    )


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"1", "not a JSON object"),
        (b'"{}"', "not a JSON object"),
        (b"{", "not JSON"),
        (b"{}{}", "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b" ", "not JSON"),
        (b"[" * 60000, "not JSON"),
        (b'{"a":"' + b"x" * (64 * 1024 - 7) + b'"}', "more than 64 KiB"),
    ],
)
def test_a_body_that_is_wrong(body: bytes, fault: str) -> None:
    """An array, a scalar, bad JSON and a byte over 64 KiB are refused, each by its name."""
    (refusal,) = query_params.parse_session_params("trs_a", b"", body)[1]
    assert (refusal.status, refusal.slug, refusal.message) == (
        400,
        "invalid_request",
        f"body: {fault}.",
    )


@pytest.mark.parametrize(
    ("query", "page"),
    [
        (b"", None),
        (b"limit=&cursor=", None),
        (b"limit=3", Page(1, 3)),
        (b"limit=2000", Page(1, 1000)),
        (b"cursor=MjoyMA%3D%3D", Page(2, 20)),
        (b"tags=x", None),
    ],
)
def test_the_page_asked_of_a_session(query: bytes, page: Page | None) -> None:
    """All meta tools come unless a limit or a cursor is there."""
    assert query_params.parse_session_params("trs_a", query, b"") == (
        SessionParams("trs_a", page),
        [],
    )


def test_every_problem_of_a_session_is_reported_at_once() -> None:
    """The id, the body, the limit and the cursor each have their line."""
    refusals = query_params.parse_session_params("ses_a", b"limit=0&cursor=x", b"[]")[1]
    assert [refusal.message.split(":")[0] for refusal in refusals] == [
        "session_id",
        "body",
        "limit",
        "cursor",
    ]


NAMES = st.sampled_from(
    [
        "toolkit_slug",
        "tool_slugs",
        "auth_config_ids",
        "important",
        "tags",
        "scopes",
        "query",
        "search",
        "include_deprecated",
        "toolkit_versions",
        "toolkit_versions[a]",
        "toolkit_versions[",
        "toolkit_versions[]",
        "limit",
        "cursor",
        "sort_by",
        "order",
        "version",
        "tags[]",
        "tags[",
        "[]",
    ]
)


@example_settings(100)
@given(
    st.one_of(
        st.binary(),
        st.lists(st.tuples(st.one_of(NAMES, TEXTS), TEXTS)).map(
            lambda pairs: urlencode(pairs).encode()
        ),
    ),
    TEXTS,
    st.binary(),
)
def test_nothing_makes_it_fault(query: bytes, name: str, body: bytes) -> None:
    """Whatever bytes come as query string, path and body: an answer, or refusals with status 400
    that say what to do.
    """
    refusals = [
        *query_params.parse_list_params(query)[1],
        *query_params.parse_tool_params(query)[1],
        query_params.invalid_slug_error(name),
        *query_params.parse_session_params(name, query, body)[1],
    ]
    for refusal in refusals:
        assert (refusal.status, refusal.slug) == (400, "invalid_request")
        assert refusal.message
        assert refusal.fix
    page = query_params.parse_list_params(query)[0].page
    assert page.number >= 1
    assert 1 <= page.size <= 1000
