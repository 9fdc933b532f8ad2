"""What must hold between files. What each rule finds in a file is shown in tests/rejects; here is
what the rules see of each other.
"""

import pytest

from modelling import catalog, meta_tool, session, tool
from toolcatalog.errors import MOST, Finding
from toolcatalog.model import UNKNOWN, AuthConfig, Catalog, Choice, ToolChoice, Toolkit
from toolcatalog.rules import check

SOUND = catalog(
    tool("MAIL_SEND"),
    tool("MAIL_SEND", "20250601_00", deprecation={"replaced_by": "CHAT_POST"}),
    tool("CHAT_POST"),
    meta_tools=(
        meta_tool("FIND"),
        meta_tool("FIND", "20250601_00", deprecation={"replaced_by": "RUN"}),
        meta_tool("RUN"),
    ),
    auth_configs=(AuthConfig(path="", id="ac_1", toolkit="mail", tools=("MAIL_SEND",)),),
    sessions=(
        session(
            toolkits=Choice(enable=("mail",)),
            tools={
                "mail": ToolChoice(tools=Choice(disable=())),
                "chat": ToolChoice(tools=Choice(enable=("CHAT_POST",))),
            },
            auth_configs={"mail": "ac_1"},
            toolkit_versions={"mail": "20250601_00"},
            meta_tools=("RUN",),
        ),
    ),
)


def test_a_sound_catalog() -> None:
    """Several versions of a tool are one tool; everything that is named is there."""
    assert check(SOUND, set()) == []


def told(checked: Catalog, *broken: str) -> list[str]:
    return [f"{finding.path} {finding.rule}" for finding in check(checked, broken)]


def test_nothing_more_is_said_of_a_broken_file() -> None:
    """A stub stands for a broken file, and what the stub lacks is not told."""
    broken = catalog(
        tool("MAIL_SEND"),
        auth_configs=(AuthConfig(path="auth_configs/ac_1.yaml", id="ac_1", toolkit=UNKNOWN),),
        sessions=(session(auth_configs={"mail": "ac_1"}),),
    )
    assert told(broken, "auth_configs/ac_1.yaml") == []
    assert told(broken) == ["auth_configs/ac_1.yaml reference"]


def test_totals_wait_until_every_file_is_read() -> None:
    """Whether a session is left without tools is not known while some file is broken."""
    empty = catalog(tool("MAIL_SEND"), sessions=(session(tags=Choice(enable=("none",))),))
    assert told(empty) == ["sessions/trs_one.yaml session-empty"]
    assert told(empty, "toolkits/mail/MAIL_SEND/20250101_00.yaml") == []


def test_a_session_that_names_what_is_not_there_is_not_also_empty() -> None:
    """One mistake, one problem; another session's is told beside it."""
    sessions = (
        session(toolkits=Choice(enable=("mial",))),
        session("trs_two", toolkits=Choice(enable=())),
    )
    assert told(catalog(tool("MAIL_SEND"), sessions=sessions)) == [
        "sessions/trs_one.yaml reference",
        "sessions/trs_two.yaml session-empty",
    ]


def test_each_further_folder_of_a_taken_slug_is_told_once() -> None:
    """However many versions it has; the first folder by name keeps the slug."""
    taken = catalog(
        tool("X", toolkit="b"),
        tool("X", "20250601_00", toolkit="b"),
        tool("X", toolkit="a"),
        tool("X", toolkit="c"),
    )
    assert told(taken) == [
        "toolkits/b/X/20250101_00.yaml slug-taken",
        "toolkits/c/X/20250101_00.yaml slug-taken",
    ]


@pytest.mark.parametrize("toolkit", ["router", "mail"])
def test_router(toolkit: str) -> None:
    """The meta tools' toolkit has its slug for itself, also in a catalog without meta tools."""
    described = Toolkit(slug=toolkit, name="X", logo="https://x.example")
    assert told(catalog(toolkits=(described,))) == (
        ["toolkits/router/toolkit.yaml slug-taken"] if toolkit == "router" else []
    )


def test_a_message_lists_few_names_and_counts_many() -> None:
    """What was expected is written out where that helps."""

    def expected(number: int) -> str:
        tools = [tool(f"MAIL_{index}") for index in range(number)]
        config = AuthConfig(path="a", id="ac_1", toolkit="mail", tools=("OTHER",))
        (finding,) = check(catalog(*tools, auth_configs=(config,)), set())
        return finding.expected

    assert expected(2) == "one of MAIL_0, MAIL_1"
    assert expected(1234) == "one of the 1,234 that are there"


def test_looking_up_near_names_stops_where_nobody_would_read_on() -> None:
    """A session file with thousands of unknown names is told of as far as anybody reads, in
    moments.
    """
    unknown = tuple(f"MAIL_{number}" for number in range(20_000))
    found: list[Finding] = check(
        catalog(tool("MAIL_SEND"), sessions=(session(meta_tools=unknown),)), set()
    )
    assert len(found) == MOST + 1
