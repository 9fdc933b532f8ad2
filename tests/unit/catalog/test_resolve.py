"""Tests of `catalog.resolve`: records as written to records as served."""

import json
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from support.models import make_catalog, make_meta_tool, make_session, make_tool
from toolcatalog.build import compiler
from toolcatalog.catalog import resolve
from toolcatalog.catalog.model import About, AuthConfig, Selection, Session, Toolkit, ToolVersion
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import Tool

NAMES = {"type": "string", "enum": {"$session": "tools"}}


def tools_in(selected: Session, *metas: Any, **fields: Any) -> tuple[Tool, ...]:
    """What the session serves in a catalog of two toolkits and these meta tools."""
    contents = resolve.resolve_catalog(
        make_catalog(
            make_tool("CHAT_POST"),
            make_tool("MAIL_SEND"),
            meta_tools=metas,
            sessions=(selected,),
            **fields,
        )
    )
    return next(iter(contents.sessions)).tools


def documents_of(*tools: ToolVersion) -> list[dict[str, Any]]:
    """The documents of tools, by slug and version."""
    part = compiler.compile_tools(tools, make_catalog(*tools).toolkits)
    documents = json.loads(b"[" + b",".join(filter(None, (part.newest, part.older))) + b"]")
    return sorted(documents, key=lambda document: (document["slug"], document["version"]))


def test_available_versions() -> None:
    """Of a tool, oldest first, on each version; of a toolkit, those of all its tools."""
    tools = (
        make_tool("MAIL_SEND", "20250601_00"),
        make_tool("MAIL_SEND"),
        make_tool("MAIL_LIST", "20250301_00"),
        make_tool("CHAT_POST"),
    )
    assert [
        (toolkit["slug"], toolkit["version"], tuple(toolkit["available_versions"]))
        for toolkit in documents_of(*tools)
    ] == [
        ("CHAT_POST", "20250101_00", ("20250101_00",)),
        ("MAIL_LIST", "20250301_00", ("20250301_00",)),
        ("MAIL_SEND", "20250101_00", ("20250101_00", "20250601_00")),
        ("MAIL_SEND", "20250601_00", ("20250101_00", "20250601_00")),
    ]
    assert [
        (toolkit.slug, toolkit.versions)
        for toolkit in resolve.resolve_catalog(make_catalog(*tools)).toolkits
    ] == [
        ("chat", ("20250101_00",)),
        ("mail", ("20250101_00", "20250301_00", "20250601_00")),
    ]


@pytest.mark.parametrize(
    ("own", "toolkits", "expected"),
    [(None, True, True), (None, False, False), (False, True, False), (True, False, True)],
)
def test_no_auth_of_the_tool_overrides_its_toolkit(
    own: bool | None, toolkits: bool, expected: bool
) -> None:
    toolkit = Toolkit(
        slug="mail", name="Mail", logo="https://mail.example/logo.png", no_auth=toolkits
    )
    text: dict[str, Any] = {} if own is None else {"no_auth": own}
    assert (
        resolve.resolve_tool(make_tool("MAIL_SEND", **text), toolkit, ("20250101_00",)).no_auth
        is expected
    )


def test_deprecation_key_means_deprecated() -> None:
    """Even if it is empty."""
    tools = (
        make_tool("MAIL_SEND", deprecation={}),
        make_tool("MAIL_SEND", "20250601_00"),
        make_tool("MAIL_LIST", deprecation={"reason": "Old."}),
    )
    mail = Toolkit(slug="mail", name="Mail", logo="")
    assert [resolve.resolve_tool(item, mail, (item.version,)).deprecation for item in tools] == [
        {"reason": "", "since": "", "sunset": "", "replaced_by": ""},
        None,
        {"reason": "Old.", "since": "", "sunset": "", "replaced_by": ""},
    ]
    assert [item["is_deprecated"] for item in documents_of(*tools)] == [True, True, False]


def test_placeholders_are_filled_per_session() -> None:
    """With its toolkits, tools, auth configs, id and user."""
    find = make_meta_tool(
        "FIND",
        description={"$session": "session_id"},
        tags=["a"],
        input_parameters={
            "toolkit": {"type": "string", "enum": {"$session": "toolkits"}, "required": True},
            "tools": {"type": "array", "items": NAMES},
            "user": {"type": "string", "default": {"$session": "user_id"}},
            "account": {"type": "string", "enum": {"$session": "auth_configs"}},
        },
    )
    config = AuthConfig(path="", id="ac_mail", toolkit="mail")
    selected = make_session(
        "trs_x",
        user_id="ann",
        toolkits=Selection(enable=("mail",)),
        auth_configs={"mail": "ac_mail"},
    )
    (served,) = tools_in(selected, find, auth_configs=(config,))
    assert (served.slug, served.toolkit, served.version, served.description, served.tags) == (
        "FIND",
        "router",
        "20250101_00",
        "trs_x",
        ("a",),
    )
    assert served.input_parameters == {
        "toolkit": {"type": "string", "description": "", "required": True, "enum": ["mail"]},
        "tools": {
            "type": "array",
            "description": "",
            "required": False,
            "items": {"type": "string", "description": "", "enum": ["MAIL_SEND"]},
        },
        "user": {"type": "string", "description": "", "required": False, "default": "ann"},
        "account": {"type": "string", "description": "", "required": False, "enum": ["ac_mail"]},
    }


def test_sessions_are_resolved_one_at_a_time() -> None:
    """All of them with a large meta tool would not fit into memory."""
    parameters = {f"p{number}": {"type": "string"} for number in range(1000)}
    selected = tuple(make_session(f"trs_{number}") for number in range(20))
    catalog = make_catalog(
        make_tool("MAIL_SEND"),
        meta_tools=(make_meta_tool("FIND", input_parameters=parameters),),
        sessions=selected,
    )
    tracemalloc.start()
    try:
        contents = resolve.resolve_catalog(catalog)
        before, _ = tracemalloc.get_traced_memory()
        first = next(iter(contents.sessions))
        size = tracemalloc.get_traced_memory()[0] - before
        del first
        tracemalloc.reset_peak()
        assert len([session.id for session in contents.sessions]) == len(contents.sessions) == 20
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 4 * size


EMPTY = {"type": "string", "enum": {"$session": "auth_configs"}}
PLAIN = {"type": "string"}
SERVED = {"type": "string", "description": ""}


@pytest.mark.parametrize(
    ("parameter", "remaining"),
    [
        ({"a": EMPTY, "b": PLAIN}, ["b"]),
        ({"a": {"type": "array", "items": EMPTY}}, []),
        ({"a": {"type": "object", "properties": {"b": EMPTY, "c": PLAIN}}}, ["a", "a.c"]),
        (
            {
                "a": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"b": EMPTY, "c": PLAIN}},
                }
            },
            ["a", "a[].c"],
        ),
        ({"a": {"anyOf": [EMPTY, PLAIN]}}, ["a"]),
        ({"a": {"anyOf": [EMPTY]}}, []),
        ({"a": {"oneOf": [EMPTY]}}, []),
    ],
)
def test_parameter_without_choices_is_removed(
    parameter: dict[str, Any], remaining: list[str]
) -> None:
    """At any level, because no value fits an empty `enum`."""
    (served,) = tools_in(
        make_session(),
        make_meta_tool("FIND", input_parameters=parameter, output_parameters=parameter),
    )

    def names(parameters: dict[str, Any], previous: str = "") -> list[str]:
        results = []
        for name, description in parameters.items():
            results.append(f"{previous}{name}")
            results += names(description.get("properties", {}), f"{previous}{name}.")
            results += names(
                description.get("items", {}).get("properties", {}), f"{previous}{name}[]."
            )
        return results

    assert names(dict(served.input_parameters)) == remaining
    assert names(dict(served.output_parameters)) == remaining
    assert '"enum": []' not in str(served)
    assert "'enum': []" not in str(served)


@pytest.mark.parametrize(
    ("description", "remaining"),
    [
        ({"type": "object", "additionalProperties": EMPTY}, {"additionalProperties": False}),
        (
            {
                "type": "object",
                "additionalProperties": {"type": "object", "properties": {"b": EMPTY, "c": PLAIN}},
            },
            {
                "additionalProperties": {
                    "type": "object",
                    "description": "",
                    "properties": {"c": {**SERVED, "required": False}},
                }
            },
        ),
        ({"type": "object", "additionalProperties": True}, {"additionalProperties": True}),
        ({"anyOf": [EMPTY, PLAIN]}, {"anyOf": [SERVED]}),
        ({"oneOf": [EMPTY, PLAIN]}, {"oneOf": [SERVED]}),
    ],
)
def test_remaining_branches_and_properties(
    description: dict[str, Any], remaining: dict[str, Any]
) -> None:
    """Other branches stay; `additionalProperties` may not allow the removed name."""
    (served,) = tools_in(
        make_session(), make_meta_tool("FIND", input_parameters={"a": description})
    )
    assert {
        key: value for key, value in served.input_parameters["a"].items() if key in remaining
    } == remaining


def test_other_records_are_copied() -> None:
    """The catalog without severities, the router, auth configs and sessions."""
    config = AuthConfig(
        path="auth_configs/ac_mail.yaml",
        id="ac_mail",
        toolkit="mail",
        tools=("MAIL_SEND",),
        scopes=("send",),
    )
    value = make_catalog(
        make_tool("MAIL_SEND"),
        auth_configs=(config,),
        sessions=(make_session("trs_x", project="support"),),
    )
    contents = resolve.resolve_catalog(
        replace(value, about=About(title="Ours", description="All.", rules={"secret": "off"}))
    )
    assert contents.about == {"title": "Ours", "description": "All.", "home": "", "repository": ""}
    assert contents.router is not None
    assert (contents.router.name, contents.router.logo, contents.router.versions) == (
        "Router",
        "https://router.example/logo.png",
        (),
    )
    assert resolve.resolve_catalog(replace(value, router=None, sessions=())).router is None
    assert contents.auth_configs == (
        snapshot_format.AuthConfig(
            id="ac_mail", toolkit="mail", tools=("MAIL_SEND",), scopes=("send",)
        ),
    )
    assert [(session.id, session.project) for session in contents.sessions] == [
        ("trs_x", "support")
    ]


def test_tool_has_the_fields_of_its_file() -> None:
    text: dict[str, Any] = {
        "name": "Send",
        "description": "Send a mail.",
        "scopes": ["send", "read"],
        "tags": ["mail"],
    }
    served = resolve.resolve_tool(
        make_tool("MAIL_SEND", **text), Toolkit(slug="mail", name="Mail", logo=""), ("20250101_00",)
    )
    assert (served.slug, served.toolkit, served.version) == ("MAIL_SEND", "mail", "20250101_00")
    assert (served.name, served.description, served.scopes, served.tags) == (
        "Send",
        "Send a mail.",
        ("send", "read"),
        ("mail",),
    )


METAS = (
    make_meta_tool("FIND"),
    make_meta_tool("LINK", when="manage_connections"),
    make_meta_tool("RUN"),
    make_meta_tool("RUN", "20250601_00"),
)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ["FIND 20250101_00", "RUN 20250601_00"]),
        ({"manage_connections": True}, ["FIND 20250101_00", "LINK 20250101_00", "RUN 20250601_00"]),
        ({"meta_tools": ("RUN", "FIND")}, ["RUN 20250601_00", "FIND 20250101_00"]),
        ({"meta_tools": ("LINK",)}, []),
        ({"meta_tools": ()}, []),
    ],
)
def test_meta_tools_of_a_session(fields: dict[str, Any], expected: list[str]) -> None:
    """All by default, or the named ones in order; the newest version; `when` is applied."""
    assert [
        f"{item.slug} {item.version}" for item in tools_in(make_session(**fields), *METAS)
    ] == expected


def test_available_versions_of_a_meta_tool() -> None:
    assert tools_in(make_session(meta_tools=("RUN",)), *METAS)[0].available_versions == (
        "20250101_00",
        "20250601_00",
    )


def test_theme_is_part_of_the_texts() -> None:
    """Keys that are set; a line per link with address and text."""
    about = About(
        title="Ours", accent="#0a6146", links={"Help\nhere": "https://a.example", "B": "https://b"}
    )
    contents = resolve.resolve_catalog(replace(make_catalog(), about=about))
    assert contents.about == {
        "title": "Ours",
        "description": "",
        "home": "",
        "repository": "",
        "accent": "#0a6146",
        "links": "https://a.example Help here\nhttps://b B",
    }


def test_source_is_not_in_the_document() -> None:
    """Method and path are in the toolkit's index."""
    source = {"method": "POST", "path": "/mail"}
    plain, sourced = make_tool("MAIL_SEND"), make_tool("MAIL_SEND", source=source)
    assert documents_of(sourced) == documents_of(plain)
    toolkits = make_catalog(plain).toolkits
    rows = [json.loads(compiler.compile_tools([tool], toolkits).rows) for tool in (plain, sourced)]
    assert rows[1] == {**rows[0], "source": source}
    assert "source" not in rows[0]


@pytest.mark.parametrize(
    ("logo", "file", "home", "public"),
    [
        ("", "", "https://example.com", ""),
        ("", "toolkits/mail/logo.svg", "", ""),
        (
            "",
            "toolkits/mail/logo.svg",
            "https://e.com/a/",
            "https://e.com/a/toolkits/mail/logo.svg",
        ),
        ("https://e.com/b.svg", "toolkits/mail/logo.svg", "https://e.com", "https://e.com/b.svg"),
    ],
)
def test_public_logo(logo: str, file: str, home: str, public: str) -> None:
    """The URL, else the address of the file in the site, else nothing."""
    toolkit = Toolkit(slug="mail", name="Mail", logo=logo, logo_file=file)
    assert resolve.with_public_logo(toolkit, home).logo == public
