"""Tests of `catalog.sessions`: toolkits, tools, tags, auth configs and pinned versions."""

from typing import Any

import pytest

from support.models import make_catalog, make_session, make_tool
from toolcatalog.catalog.model import AuthConfig, Selection, Session, Toolkit, ToolSelection
from toolcatalog.catalog.sessions import (
    make_usability_check,
    select_toolkits,
    select_tools,
    select_versions,
)

TOOLS = (
    make_tool("MAIL_LIST", tags=["read"]),
    make_tool("MAIL_SEND", tags=["write", "important"], scopes=["send"]),
    make_tool("MAIL_SEND", "20250601_00", tags=["write"], scopes=["send", "label"]),
    make_tool("CHAT_POST", "20250301_00", tags=["write"], scopes=["chat"]),
    make_tool("CHAT_READ", "20250101_00", tags=["read"]),
)
EMPTY = Toolkit(slug="zip", name="Zip", logo="https://zip.example/logo.png")
CONFIGS = (
    AuthConfig(path="", id="ac_few", toolkit="mail", tools=("MAIL_LIST",)),
    AuthConfig(path="", id="ac_send", toolkit="mail", scopes=("send",)),
    AuthConfig(path="", id="ac_all", toolkit="mail"),
)
CATALOG = make_catalog(*TOOLS, toolkits=(EMPTY,), auth_configs=CONFIGS)
ALL = ["CHAT_POST", "CHAT_READ", "MAIL_LIST", "MAIL_SEND"]


def enable(*names: str) -> Selection:
    return Selection(enable=names)


def disable(*names: str) -> Selection:
    return Selection(disable=names)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Selection(), ["chat", "mail", "zip"]),
        (enable("mail"), ["mail"]),
        (enable("zip", "chat"), ["chat", "zip"]),
        (enable(), []),
        (disable("mail"), ["chat", "zip"]),
    ],
)
def test_toolkits_of_a_session(choice: Selection, expected: list[str]) -> None:
    """All, the enabled or all but the disabled ones; sorted, also without tools."""
    assert select_toolkits(CATALOG, make_session(toolkits=choice)) == expected


CHOICES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing said": ({}, ALL),
    "a toolkit enabled": ({"toolkits": enable("chat")}, ["CHAT_POST", "CHAT_READ"]),
    "a toolkit without tools": ({"toolkits": enable("zip")}, []),
    "tools enabled in one toolkit": (
        {"tools": {"mail": ToolSelection(tools=enable("MAIL_LIST"))}},
        ["CHAT_POST", "CHAT_READ", "MAIL_LIST"],
    ),
    "tools disabled in one toolkit": (
        {"tools": {"chat": ToolSelection(tools=disable("CHAT_READ"))}},
        ["CHAT_POST", "MAIL_LIST", "MAIL_SEND"],
    ),
    "tools of a toolkit that is not": (
        {"toolkits": enable("chat"), "tools": {"mail": ToolSelection(tools=enable("MAIL_LIST"))}},
        ALL[:2],
    ),
    "tags enabled": ({"tags": enable("read")}, ["CHAT_READ", "MAIL_LIST"]),
    "tags disabled": ({"tags": disable("write")}, ["CHAT_READ", "MAIL_LIST"]),
    "tags enabled and disabled": (
        {"tags": Selection(enable=("read", "write"), disable=("write",))},
        ["CHAT_READ", "MAIL_LIST"],
    ),
    "a toolkit's tags in place of the session's": (
        {"tags": enable("read"), "tools": {"mail": ToolSelection(tags=enable("write"))}},
        ["CHAT_READ", "MAIL_SEND"],
    ),
    "a toolkit's empty tags lift the session's": (
        {"tags": enable("read"), "tools": {"mail": ToolSelection(tags=Selection())}},
        ALL[1:],
    ),
    "a toolkit's tools keep the session's tags": (
        {"tags": enable("read"), "tools": {"mail": ToolSelection(tools=disable())}},
        ["CHAT_READ", "MAIL_LIST"],
    ),
    "an auth config with tools": (
        {"auth_configs": {"mail": "ac_few"}},
        ["CHAT_POST", "CHAT_READ", "MAIL_LIST"],
    ),
    "an auth config with too few scopes": (
        {"auth_configs": {"mail": "ac_send"}},
        ["CHAT_POST", "CHAT_READ", "MAIL_LIST"],
    ),
    "an auth config without limits": ({"auth_configs": {"mail": "ac_all"}}, ALL),
    "scopes of the effective version": (
        {"auth_configs": {"mail": "ac_send"}, "toolkit_versions": {"mail": "20250101_00"}},
        ALL,
    ),
    "tags of the effective version": (
        {"tags": enable("important"), "toolkit_versions": {"mail": "20250101_00"}},
        ["MAIL_SEND"],
    ),
    "tags of the newest version": ({"tags": enable("important")}, []),
    "a version before a tool was there": (
        {"toolkits": enable("chat"), "toolkit_versions": {"chat": "20250101_00"}},
        ["CHAT_READ"],
    ),
}


@pytest.mark.parametrize(("fields", "expected"), CHOICES.values(), ids=CHOICES)
def test_tools_of_a_session(fields: dict[str, Any], expected: list[str]) -> None:
    """Toolkits, tools, tags, auth configs and versions all filter."""
    assert [item.slug for item in select_tools(CATALOG, make_session(**fields))] == expected


@pytest.mark.parametrize(
    ("pinned", "expected"),
    [
        ({}, ["20250301_00", "20250101_00", "20250101_00", "20250601_00"]),
        ({"mail": "20250101_00"}, ["20250301_00", "20250101_00", "20250101_00", "20250101_00"]),
        (
            {"mail": "20250531_99", "chat": "20250101_00"},
            ["20250101_00", "20250101_00", "20250101_00"],
        ),
    ],
)
def test_versions_of_a_session(pinned: dict[str, str], expected: list[str]) -> None:
    """The newest, or the newest at the pinned version of the toolkit."""
    selected: Session = make_session(toolkit_versions=pinned)
    assert [item.version for item in select_versions(CATALOG.tools, selected)] == expected


@pytest.mark.parametrize(
    ("config", "slug", "scopes", "expected"),
    [
        (CONFIGS[0], "MAIL_LIST", ["any"], True),
        (CONFIGS[0], "MAIL_SEND", [], False),
        (CONFIGS[1], "MAIL_SEND", ["send"], True),
        (CONFIGS[1], "MAIL_SEND", ["send", "label"], False),
        (CONFIGS[1], "MAIL_LIST", [], True),
        (
            AuthConfig(path="", id="ac", toolkit="mail", tools=("A",), scopes=("s",)),
            "A",
            ["s"],
            True,
        ),
        (
            AuthConfig(path="", id="ac", toolkit="mail", tools=("A",), scopes=("s",)),
            "A",
            ["t"],
            False,
        ),
    ],
)
def test_usable_tools_of_an_auth_config(
    config: AuthConfig, slug: str, scopes: list[str], expected: bool
) -> None:
    """Listed tools, if there is a list, and granted scopes, if there are any."""
    assert make_usability_check(config)(slug, scopes) is expected
