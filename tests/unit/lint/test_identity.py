"""Tests of `lint.identity`: slugs, similar names and references."""

import time
from typing import Any

import pytest

from support.models import make_catalog, make_tool
from toolcatalog.catalog.model import ROUTER, Toolkit, ToolVersion
from toolcatalog.lint import identity, quality
from toolcatalog.lint.views import ToolView


def check(item: ToolVersion) -> list[str]:
    return [finding.rule for lint in identity.TOOL_RULES for finding in lint.check(ToolView(item))]


@pytest.mark.parametrize(
    ("slug", "toolkit", "expected"),
    [
        ("MAIL_SEND", "mail", []),
        ("MAIL-SEND", "mail", []),
        ("WEB_MAIL_SEND", "web-mail", []),
        ("WEB-MAIL_SEND", "web_mail", []),
        ("MAILBOX_SEND", "mail", ["slug-prefix"]),
        ("MAIL", "mail", ["slug-prefix"]),
        ("WEBMAIL_SEND", "web-mail", ["slug-prefix"]),
        ("SEND", ROUTER, []),
        ("MAIL_" + "X" * 59, "mail", []),
        ("MAIL_" + "X" * 60, "mail", ["slug-long"]),
    ],
)
def test_slug(slug: str, toolkit: str, expected: list[str]) -> None:
    """It starts with its toolkit's slug as a whole word, and has at most 64 characters."""
    assert check(make_tool(slug, toolkit=toolkit)) == expected


def similar(*slugs: str, **fields: Any) -> list[tuple[str, str]]:
    """Which of the tools, all of one toolkit, are taken for which."""
    existing = make_catalog(*(make_tool(slug, toolkit="mail", **fields) for slug in slugs))
    results = [finding for survey in identity.CATALOG_RULES for finding in survey.check(existing)]
    assert all(finding.rule == "slug-similar" for finding in results)
    return [(finding.message.split("`")[1], finding.message.split("`")[3]) for finding in results]


@pytest.mark.parametrize(
    ("item", "other"),
    [
        ("MAIL_ISSUE_SEARCH", "MAIL_SEARCH_ISSUES"),
        ("MAIL_GET_AN_ENTRY", "MAIL_GET_ENTRIES"),
        ("MAIL_GET_THE_BOX", "MAIL_GET_BOXES"),
        ("MAIL_LIST_CLASS", "MAIL_LIST_CLASSES"),
        ("MAIL-SEND_ALL", "MAIL_SENDALL"),
        ("MAIL_ADD_LICENCE", "MAIL_ADD_LICENSE"),
        ("MAIL_ADD_RECIEVER", "MAIL_ADD_RECEIVER"),
        ("MAIL_ADD_COMENT_TO_IT", "MAIL_ADD_COMMENT_TO_IT"),
    ],
)
def test_similar_slugs(item: str, other: str) -> None:
    """Each pair is reported at the later slug, unless a tool is deprecated."""
    first, second = sorted((item, other))
    assert similar(item, other) == [(second, first)]
    assert similar(item, other, deprecation={"reason": "Old."}) == []


@pytest.mark.parametrize(
    ("item", "other"),
    [
        ("MAIL_ADD_USER_TO_GROUP", "MAIL_ADD_GROUP_TO_USER"),
        ("MAIL_GET_RULE", "MAIL_SET_RULE"),
        ("MAIL_CLOSE_ISSUE", "MAIL_CLONE_ISSUE"),
        ("MAIL_LIST_V1", "MAIL_LIST_V2"),
        ("MAIL_LIST_BUS", "MAIL_LIST_BU"),
        ("MAIL_IMPORT_FILE", "MAIL_EXPORT_FILE"),
        ("MAIL_ADD_LICENCE", "MAIL_DROP_LICENSE"),
    ],
)
def test_slugs_that_are_not_similar(item: str, other: str) -> None:
    """Words with an order, short words, numbers, two differences."""
    assert similar(item, other) == []


def test_slugs_of_two_toolkits_may_be_similar() -> None:
    existing = make_catalog(
        make_tool("MAIL_SEARCH_ISSUES", toolkit="mail"),
        make_tool("MAIL_ISSUE_SEARCH", toolkit="chat"),
    )
    assert [*identity.check_similar_slugs(existing)] == []


def test_many_slugs_are_compared_quickly() -> None:
    """Twenty thousand tools of one toolkit, with a few similar pairs."""
    words = [
        "ALPHA",
        "BRAVOS",
        "CHARLY",
        "DELTAS",
        "ECHOES",
        "FOXTROT",
        "GOLFER",
        "HOTELS",
        "INDIAN",
        "JULIET",
    ]
    slugs = [f"MAIL_{a}_{b}_{number}" for number in range(200) for a in words for b in words]
    started = time.process_time()
    result = similar(*slugs)
    assert time.process_time() - started < 10
    assert len(result) == 200 * 45  # of two words in either order the later


@pytest.mark.parametrize(("length", "is_compared"), [(40, True), (41, False)])
def test_very_long_words_are_not_compared(length: int, is_compared: bool) -> None:
    """A word of 195 letters took 75 KB of memory."""
    assert bool(similar("MAIL_" + "A" * length, f"MAIL_{'A' * (length - 1)}B")) is is_compared


def test_toolkits_that_differ_in_separators() -> None:
    toolkits = tuple(
        Toolkit(slug=slug, name="X", logo="https://x.example")
        for slug in ("web-mail", "web_mail", "webmail", "webmails")
    )
    results = [*identity.check_similar_toolkits(make_catalog(toolkits=toolkits))]
    assert [finding.path for finding in results] == [
        "toolkits/web_mail/toolkit.yaml",
        "toolkits/webmail/toolkit.yaml",
    ]
    assert "`web-mail`" in results[1].message


def test_similar_parameters() -> None:
    """Within one object, at every level, ignoring case and separators."""
    text = {"type": "string"}
    inner = {"type": "object", "properties": {"ID": text, "to": text, "t-o": text}}
    item = make_tool(
        "MAIL_SEND", input_parameters={"id": text, "user_id": text, "in": inner, "User.Id": text}
    )
    results = [*identity.check_similar_parameters(ToolView(item))]
    assert [(finding.pointer[-1], finding.at_key) for finding in results] == [
        ("t-o", True),
        ("User.Id", True),
    ]


def test_deprecated_replacements() -> None:
    """Reported at each version that names one, with the end of the chain."""
    existing = make_catalog(
        make_tool("A", "20250101_00", deprecation={"replaced_by": "B"}),
        make_tool("A", "20250201_00", deprecation={"replaced_by": "B"}),
        make_tool("B", "20250101_00", deprecation={"replaced_by": "C"}),
        make_tool("C", "20250101_00", deprecation={"reason": "Was not ready."}),
        make_tool("C", "20250201_00"),
        make_tool("D", deprecation={"replaced_by": "E"}),
        make_tool("E", deprecation={"replaced_by": "D"}),
        make_tool("F", deprecation={"replaced_by": "G"}),
        make_tool("G", deprecation={"reason": "Nobody used it."}),
        make_tool("H", deprecation={"replaced_by": "H"}),
        make_tool("I", deprecation={"replaced_by": "NOT_THERE"}),
    )
    results = [*quality.check_replacement_not_deprecated(existing)]
    assert [finding.path.split("/", 2)[2].removesuffix(".yaml") for finding in results] == [
        "A/20250101_00",
        "A/20250201_00",
        "D/20250101_00",
        "E/20250101_00",
        "F/20250101_00",
    ]
    assert ["`C`" in finding.help for finding in results] == [True, True, False, False, False]
    assert {finding.pointer for finding in results} == {("deprecation", "replaced_by")}
