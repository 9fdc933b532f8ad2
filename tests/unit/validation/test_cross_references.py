"""Tests of `validation.cross_references` with several files; tests/data/rejects has the rules."""

from dataclasses import replace
from typing import Any

import pytest

from support.models import make_catalog, make_meta_tool, make_session, make_tool
from toolcatalog.catalog.model import (
    UNKNOWN_TOOLKIT,
    About,
    AuthConfig,
    Catalog,
    Selection,
    Toolkit,
    ToolSelection,
)
from toolcatalog.errors import MAX_FINDINGS_PER_FILE, Finding
from toolcatalog.validation import cross_references, severity
from toolcatalog.validation.cross_references import check_all, check_session_contents

SOUND = make_catalog(
    make_tool("MAIL_SEND"),
    make_tool("MAIL_SEND", "20250601_00", deprecation={"replaced_by": "CHAT_POST"}),
    make_tool("CHAT_POST"),
    meta_tools=(
        make_meta_tool("FIND"),
        make_meta_tool("FIND", "20250601_00", deprecation={"replaced_by": "RUN"}),
        make_meta_tool("RUN"),
    ),
    auth_configs=(AuthConfig(path="", id="ac_1", toolkit="mail", tools=("MAIL_SEND",)),),
    sessions=(
        make_session(
            toolkits=Selection(enable=("mail",)),
            tools={
                "mail": ToolSelection(tools=Selection(disable=())),
                "chat": ToolSelection(tools=Selection(enable=("CHAT_POST",))),
            },
            auth_configs={"mail": "ac_1"},
            toolkit_versions={"mail": "20250601_00"},
            meta_tools=("RUN",),
        ),
    ),
)


def test_valid_catalog() -> None:
    """Several versions are one tool, and all references exist."""
    assert check_all(SOUND, set()) == []


def check(checked: Catalog, *broken: str) -> list[str]:
    return [f"{finding.path} {finding.rule}" for finding in check_all(checked, broken)]


def test_invalid_file_has_no_other_problems() -> None:
    """A stub replaces it."""
    broken = make_catalog(
        make_tool("MAIL_SEND"),
        auth_configs=(
            AuthConfig(path="auth_configs/ac_1.yaml", id="ac_1", toolkit=UNKNOWN_TOOLKIT),
        ),
        sessions=(make_session(auth_configs={"mail": "ac_1"}),),
    )
    assert check(broken, "auth_configs/ac_1.yaml") == []
    assert check(broken) == ["auth_configs/ac_1.yaml reference"]


@pytest.mark.parametrize(
    "url",
    [
        "https://good.example",
        "https://good.example:8443/",
        "https://good.example/a/b/",
        "https://1.good.example/",
        "https://0x7f.example./",
        "https://7zip:7000",
        "https://good.example/.well-known/a..b/...",
        "https://bücher.example/%C3%BC/a=1&b=2/@team;v=1",
    ],
)
def test_valid_base_addresses(url: str) -> None:
    """Links may start with them."""
    assert check_all(replace(SOUND, about=About(title="T", home=url, repository=url)), set()) == []


@pytest.mark.parametrize(
    "rest",
    [
        "good.example//evil.example",
        "good.example/a//evil.example",
        "good.example//",
        "good.example/%2Fevil.example",
        "good.example/%2f/evil.example",
        "good.example/%5Cevil.example",
        "good.example/..",
        "good.example/../a",
        "good.example/./a",
        "good.example/%2e%2e/a",
        "good.example/a?b",
        "good.example/a#b",
        "good.example\\evil.example",
        "good.example/\\evil.example",
        "good.example@evil.example",
        "good.example:secret@evil.example/",
        "good.example%2F@evil.example",
        "/good.example",
        "127.0.0.1",
        "127.0.0.1./a/",
        "10.1:8443/",
        "2130706433/",
        "0x7f.1",
        "0X7F000001/",
        "0177.0.0.01",
        "good.0x",
        "[::1]/",
        "[::ffff:127.0.0.1]:80",
        "\uff11\uff12\uff17.1/",
        "127\u30020\u30020\u30021",
        "127\uff0e1",
        "good.example\uff0fevil.example/",
        "good.example\uff20evil.example/",
        "good.example\uff1a80",
        "good.example\u2100",
        "good.example\u2044evil.example/",
        "good.example:x/",
        "good.example;evil.example",
        "\uff47ood.example",
        "good..example",
        ".",
    ],
)
def test_ambiguous_base_addresses_are_refused(rest: str) -> None:
    """`home`, `repository` or `api` with a path that browsers read as a host, or with a
    hidden host.
    """
    for key in ("home", "repository", "api"):
        fields: dict[str, Any] = {key: f"https://{rest}"}
        [finding] = check_all(replace(SOUND, about=About(title="T", **fields)), set())
        assert (finding.path, finding.pointer, finding.rule) == (
            "catalog.yaml",
            (key,),
            "wrong-value",
        )


@pytest.mark.parametrize("key", ["logo", "homepage"])
def test_toolkit_links_show_their_host(key: str) -> None:
    """Their paths may be anything."""
    fine, hidden = "https://a.example/x//y?z=1#a@b", "https://a.example\\@b.example/"
    for url, rules in ((fine, []), (hidden, ["wrong-value"])):
        fields: dict[str, Any] = {"logo": "https://a.example/", key: url}
        kit = Toolkit(slug="mail", name="Mail", **fields)
        checked = replace(SOUND, toolkits={**SOUND.toolkits, "mail": kit})
        assert [finding.rule for finding in check_all(checked, set())] == rules
        routed = replace(SOUND, router=replace(kit, slug="router"))
        assert [finding.rule for finding in check_all(routed, set())] == rules


def test_punycode_host_is_a_warning() -> None:
    """Unicode is fine."""
    kit = Toolkit(slug="mail", name="Mail", logo="https://XN--bcher-kva.example/l.svg")
    catalog = replace(
        SOUND,
        about=About(title="T", home="https://a.xn--pypal-4ve.example:80/xn--"),
        toolkits={**SOUND.toolkits, "mail": kit},
    )
    result = severity.iter_catalog_findings(catalog, {"lookalike-letters"})
    assert {(finding.path, finding.pointer) for finding in result} == {
        ("catalog.yaml", ("home",)),
        ("toolkits/mail/toolkit.yaml", ("logo",)),
    }
    open_url = About(title="T", home="https://b\u00fccher.example/xn--a", repository="")
    fine = replace(SOUND, about=open_url)
    assert [*severity.iter_catalog_findings(fine, {"lookalike-letters"})] == []


def test_ids_differ_in_more_than_case() -> None:
    """Of sessions and of auth configs; a session and an auth config may be equal."""
    session_of = SOUND.sessions[0]
    twins = replace(
        SOUND,
        sessions=(session_of, replace(session_of, id="trs_ONE", path="sessions/trs_ONE.yaml")),
        auth_configs=(
            *SOUND.auth_configs,
            *(
                AuthConfig(path=f"auth_configs/{id}.yaml", id=id, toolkit="mail")
                for id in ("ac_x", "ac_X")
            ),
        ),
    )
    assert check(twins) == ["sessions/trs_one.yaml slug-taken", "auth_configs/ac_x.yaml slug-taken"]


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
        (finding,) = check_session_contents(catalog)
        assert (finding.rule, finding.expected) == ("too-many", "at most 512 MiB in all sessions")
        few = replace(catalog, sessions=catalog_sessions[:100])
        assert [*check_session_contents(few)] == []


def test_toolkits_of_all_sessions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session lists the toolkits that it allows; the test uses a small limit."""
    monkeypatch.setattr(cross_references, "_MAX_SESSIONS_SIZE", 5 << 20)
    catalog = make_catalog(
        make_tool("MAIL_SEND"),
        sessions=tuple(make_session(f"trs_{number}") for number in range(10)),
    )
    toolkits = {f"{'x' * 190}{number}": catalog.toolkits["mail"] for number in range(3000)}
    (finding,) = check_session_contents(replace(catalog, toolkits={**catalog.toolkits, **toolkits}))
    assert (finding.rule, finding.expected) == ("too-many", "at most 5 MiB in all sessions")


def test_meta_tools_of_a_session_are_limited() -> None:
    """A server sends them in one answer."""
    meta_tools = tuple(
        make_meta_tool(f"FIND_{number}", description="x" * 700_000) for number in range(100)
    )
    catalog = make_catalog(
        make_tool("MAIL_SEND"), meta_tools=meta_tools, sessions=(make_session(),)
    )
    (finding,) = check_session_contents(catalog)
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


def test_duplicate_slug_is_reported_per_folder() -> None:
    """For any number of versions; the first folder by name keeps the slug."""
    taken = make_catalog(
        make_tool("X", toolkit="b"),
        make_tool("X", "20250601_00", toolkit="b"),
        make_tool("X", toolkit="a"),
        make_tool("X", toolkit="c"),
    )
    assert check(taken) == [
        "toolkits/b/X/20250101_00.yaml slug-taken",
        "toolkits/c/X/20250101_00.yaml slug-taken",
    ]


@pytest.mark.parametrize("toolkit", ["router", "mail"])
def test_router_slug_is_reserved(toolkit: str) -> None:
    """Also without meta tools."""
    described = Toolkit(slug=toolkit, name="X", logo="https://x.example")
    assert check(make_catalog(toolkits=(described,))) == (
        ["toolkits/router/toolkit.yaml slug-taken"] if toolkit == "router" else []
    )


def test_message_lists_few_names_and_counts_many() -> None:

    def expected(number: int) -> str:
        tools = [make_tool(f"MAIL_{index}") for index in range(number)]
        config = AuthConfig(path="a", id="ac_1", toolkit="mail", tools=("OTHER",))
        (finding,) = check_all(make_catalog(*tools, auth_configs=(config,)), set())
        return finding.expected

    assert expected(2) == "one of MAIL_0, MAIL_1"
    assert expected(1234) == "one of the 1,234 that are there"


def test_suggestions_are_limited() -> None:
    """A session file with thousands of unknown names is checked quickly."""
    unknown = tuple(f"MAIL_{number}" for number in range(20_000))
    result: list[Finding] = check_all(
        make_catalog(make_tool("MAIL_SEND"), sessions=(make_session(meta_tools=unknown),)), set()
    )
    assert len(result) == MAX_FINDINGS_PER_FILE + 1


def test_nearest_names_are_looked_up_for_100_findings_of_a_rule() -> None:
    """Not for 100 of each file: looking up one of thousands of names takes milliseconds."""
    unknown = tuple(f"MAIL_SENT{number}" for number in range(60))
    configs = [
        AuthConfig(path=f"{number}", id=f"ac_{number}", toolkit="mail", tools=unknown)
        for number in range(3)
    ]
    session = make_session(toolkits=Selection(enable=("mial",)))
    findings = check_all(
        make_catalog(make_tool("MAIL_SEND"), auth_configs=configs, sessions=(session,)), set()
    )
    helps = [finding.help for finding in findings if finding.path != session.path]
    assert (
        helps
        == ["did you mean `MAIL_SEND`?"] * 100 + ["add the tool, or name an existing one"] * 80
    )
    others = [finding.help for finding in findings if finding.path == session.path]
    assert "did you mean `mail`?" in others
