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
from toolcatalog.validation import severity
from toolcatalog.validation.cross_references import check_all

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
