"""Tests of `lint.hints`: verbs, hints and the share of important tools."""

import pytest

from support.models import make_catalog, make_tool
from toolcatalog.catalog.model import ToolVersion
from toolcatalog.lint import hints
from toolcatalog.lint.views import ToolView


def check(item: ToolVersion) -> list[str]:
    return [finding.rule for lint in hints.TOOL_RULES for finding in lint.check(ToolView(item))]


@pytest.mark.parametrize(
    ("slug", "name", "destroys"),
    [
        ("MAIL_DELETE_ALL", "Empty", True),
        ("MAIL_FOLDERS_REMOVE", "Tidy", True),
        ("MAIL-PURGE", "Tidy", True),
        ("MAIL_FOLDERS", "Delete folders", True),
        ("DELETE_DELETE_ALL", "Empty", True),  # of the toolkit `delete`
        ("DELETE_ALL", "Empty", False),
        ("MAIL_CREATE_REMOVE_TOKEN", "Token", False),
        ("MAIL_GET_DELETE_RULES", "Delete rules", False),
        ("MAIL_DELETED_FOLDERS", "Folders", False),
        ("MAIL_SEND", "Send and delete", False),
    ],
)
def test_first_verb_is_the_action(slug: str, name: str, destroys: bool) -> None:
    """Of the slug after the toolkit's words, else of the name; later verbs are objects."""
    item = make_tool(slug, name=name, toolkit="delete" if slug.startswith("DELETE") else "mail")
    assert check(item) == (["hint-missing"] if destroys else [])
    assert check(make_tool(slug, name=name, toolkit=item.toolkit, tags=["destructiveHint"])) == (
        ["hint-contradiction"] if slug == "MAIL_GET_DELETE_RULES" else []
    )


@pytest.mark.parametrize(
    ("slug", "tags", "expected"),
    [
        ("MAIL_LIST", ["readOnlyHint", "idempotentHint"], []),
        ("MAIL_LIST", [], []),
        ("MAIL_LIST", ["destructiveHint"], ["hint-contradiction"]),
        ("MAIL_ERASE", ["readOnlyHint"], ["hint-missing", "hint-contradiction"]),
        ("MAIL_ERASE", ["readOnlyHint", "destructiveHint"], ["hint-contradiction"]),
        ("MAIL_SEND", ["readOnlyHint", "destructiveHint"], ["hint-contradiction"]),
        ("MAIL_SEND", ["destructiveHint"], []),
        ("MAIL_SEND", ["readOnlyHint"], []),
    ],
)
def test_hints(slug: str, tags: list[str], expected: list[str]) -> None:
    """Each contradiction is reported once."""
    assert check(make_tool(slug, tags=tags)) == expected


@pytest.mark.parametrize(
    ("tools", "important", "expected"),
    [
        (5, 0, []),
        (6, 0, ["important-none"]),
        (6, 1, []),
        (6, 3, []),
        (6, 4, ["important-many"]),
        (5, 5, []),
        (7, 4, ["important-many"]),
    ],
)
def test_important(tools: int, important: int, expected: list[str]) -> None:
    """At least one of more than a few tools, and at most half."""
    existing = make_catalog(
        *(
            make_tool(f"MAIL_{number}", tags=["important"] if number < important else [])
            for number in range(tools)
        )
    )
    results = [finding for survey in hints.CATALOG_RULES for finding in survey.check(existing)]
    assert [finding.rule for finding in results] == expected
    assert {finding.path for finding in results} <= {"toolkits/mail/toolkit.yaml"}


def test_only_current_tools_count_as_important() -> None:
    """Newest versions that are not deprecated."""
    tools = [make_tool(f"MAIL_{number}") for number in range(6)]
    once = make_tool("MAIL_0", "20240101_00", tags=["important"])
    gone = make_tool("MAIL_GONE", tags=["important"], deprecation={})
    assert [
        finding.rule
        for survey in hints.CATALOG_RULES
        for finding in survey.check(make_catalog(*tools, once, gone))
    ] == ["important-none"]
