"""Tests of `validation.limits`: what a catalog has at most, and that sessions have tools."""

from dataclasses import replace

import pytest

from support.models import make_catalog, make_meta_tool, make_session, make_tool
from toolcatalog.catalog.model import AuthConfig, Catalog, Selection
from toolcatalog.validation import limits
from toolcatalog.validation.cross_references import check_all


def check(checked: Catalog, *broken: str) -> list[str]:
    return [f"{finding.path} {finding.rule}" for finding in check_all(checked, broken)]


def test_counting_rules_need_valid_files() -> None:
    """A session may look empty because a file is invalid."""
    empty = make_catalog(
        make_tool("MAIL_SEND"), sessions=(make_session(tags=Selection(enable=("none",))),)
    )
    assert check(empty) == ["sessions/trs_one.yaml session-empty"]
    assert check(empty, "toolkits/mail/MAIL_SEND/20250101_00.yaml") == []


def test_tool_has_at_most_500_versions() -> None:
    """Each lists all, so that a small catalog could make a huge snapshot."""
    versions = [f"{20200101 + number}_00" for number in range(501)]
    tools = [make_tool("MAIL_SEND", version) for version in versions]
    assert check(make_catalog(*tools[:500], make_tool("MAIL_READ"))) == []
    path = f"toolkits/mail/MAIL_SEND/{versions[-1]}.yaml"
    assert check(make_catalog(*tools)) == [f"{path} too-many"]


def test_toolkit_has_at_most_15000_versions() -> None:
    """A server reads all of them for one request."""
    tools = [
        make_tool(f"MAIL_{number}", f"{20000101 + number // 100}_{number % 100:02}")
        for number in range(15_001)
    ]
    assert check(make_catalog(*tools[:-1])) == []
    assert check(make_catalog(*tools)) == ["toolkits/mail/toolkit.yaml too-many"]


def test_number_of_sessions_and_auth_configs_is_limited() -> None:
    """Each of them is compared with all tools."""
    sessions = tuple(make_session(f"trs_{number}") for number in range(5001))
    configs = tuple(
        AuthConfig(path=f"auth_configs/ac_{number}.yaml", id=f"ac_{number}", toolkit="mail")
        for number in range(5001)
    )
    tool = make_tool("MAIL_SEND")
    assert check(make_catalog(tool, sessions=sessions[:-1], auth_configs=configs[:-1])) == []
    assert check(make_catalog(tool, sessions=sessions, auth_configs=configs)) == [
        "sessions/trs_5000.yaml too-many",
        "auth_configs/ac_5000.yaml too-many",
    ]


def test_meta_tools_of_all_sessions_are_limited() -> None:
    """Also by the values of sessions, and by what is added when they are served."""
    tools = [make_tool(f"MAIL_SEND_{number}") for number in range(100)]
    catalog_sessions = tuple(
        make_session(f"trs_{number}", user_id="x" * 1000) for number in range(1000)
    )
    choices = {
        f"p{number}": {"type": "string", "enum": {"$session": "tools"}} for number in range(800)
    }
    users = {
        f"p{number}": {"type": "string", "default": {"$session": "user_id"}}
        for number in range(800)
    }
    branches = {"p": {"anyOf": [{"type": "null"}] * 20_000}}
    for template in (
        {"description": "x" * 600_000},
        {"input_parameters": choices},
        {"input_parameters": users},
        {"input_parameters": branches},
    ):
        meta_tool = make_meta_tool("FIND", **template)
        catalog = make_catalog(*tools, meta_tools=(meta_tool,), sessions=catalog_sessions)
        (finding,) = limits.check_session_contents(catalog)
        assert (finding.rule, finding.expected) == ("too-many", "at most 512 MiB in all sessions")
        few = replace(catalog, sessions=catalog_sessions[:100])
        assert [*limits.check_session_contents(few)] == []


def test_toolkits_of_all_sessions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session lists the toolkits that it allows; the test uses a small limit."""
    monkeypatch.setattr(limits, "_MAX_SESSIONS_SIZE", 5 << 20)
    catalog = make_catalog(
        make_tool("MAIL_SEND"),
        sessions=tuple(make_session(f"trs_{number}") for number in range(10)),
    )
    toolkits = {f"{'x' * 190}{number}": catalog.toolkits["mail"] for number in range(3000)}
    (finding,) = limits.check_session_contents(
        replace(catalog, toolkits={**catalog.toolkits, **toolkits})
    )
    assert (finding.rule, finding.expected) == ("too-many", "at most 5 MiB in all sessions")


def test_meta_tools_of_a_session_are_limited() -> None:
    """A server sends them in one answer."""
    meta_tools = tuple(
        make_meta_tool(f"FIND_{number}", description="x" * 700_000) for number in range(100)
    )
    catalog = make_catalog(
        make_tool("MAIL_SEND"), meta_tools=meta_tools, sessions=(make_session(),)
    )
    (finding,) = limits.check_session_contents(catalog)
    assert (finding.message, finding.expected) == (
        "the session has 66 MiB of meta tools",
        "at most 64 MiB",
    )


@pytest.mark.parametrize(("size", "is_reported"), [(100, False), (1900, True)])
def test_links_at_the_end_of_pages_are_limited(size: int, is_reported: bool) -> None:
    """They are repeated on each page of a site."""
    links = {"Help": "https://a.example/" + "a" * size, "x" * 100: "https://b.example"}
    catalog = make_catalog(make_tool("MAIL_SEND"))
    limited = replace(catalog, about=replace(catalog.about, links=links))
    assert check(limited) == ["catalog.yaml too-many"] * is_reported


def test_session_with_unknown_names_is_not_also_empty() -> None:
    """One problem for one mistake."""
    sessions = (
        make_session(toolkits=Selection(enable=("mial",))),
        make_session("trs_two", toolkits=Selection(enable=())),
    )
    assert check(make_catalog(make_tool("MAIL_SEND"), sessions=sessions)) == [
        "sessions/trs_one.yaml reference",
        "sessions/trs_two.yaml session-empty",
    ]
