"""One contract, three client libraries: what a user of the API family sees when the base URL of an
unmodified client is ours.

The shipped catalog, read by `support.reference_model`, says what must come. Every answer is
compared as the client hands it out: attributes of its typed models in Python, objects in
JavaScript, and the exceptions that it raises.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from support.api_clients import ApiClient
from support.paths import SHIPPED_CATALOG
from support.reference_model import ReferenceModel, ReferenceVersion, read_yaml

pytestmark = pytest.mark.xdist_group("clients")

Args = dict[str, Any]

FIELDS = {
    "slug",
    "name",
    "description",
    "toolkit",
    "input_parameters",
    "output_parameters",
    "no_auth",
    "available_versions",
    "version",
    "scopes",
    "tags",
    "is_deprecated",
    "deprecated",
}
ENVELOPE = {"message", "code", "slug", "status", "request_id", "suggested_fix", "errors"}
ALL = {"limit": 1000}


def documents(entries: Iterable[ReferenceVersion]) -> list[Any]:
    return [json.loads(entry.body) for entry in entries]


def slugs(entries: Iterable[ReferenceVersion]) -> list[str]:
    return [entry.slug for entry in entries]


def got(page: Any) -> list[str]:
    return [item["slug"] for item in page["items"]]


def at_version(entries: list[ReferenceVersion], version: str) -> list[ReferenceVersion]:
    """What is in force of one tool's versions (oldest first) at a version of its toolkit: one entry
    or none.
    """
    return [entry for entry in entries if entry.version <= version][-1:]


# Pages


@pytest.mark.parametrize(
    ("limit", "size"),
    [
        ({}, 20),
        ({"limit": 3}, 3),
        ({"limit": 7}, 7),
        ({"limit": 50.0}, 50),
        ({"limit": 1000}, 1000),
        ({"limit": 9999}, 1000),
    ],
    ids=str,
)
def test_pages_contain_every_tool_once(
    client: ApiClient, newest: list[ReferenceVersion], limit: Args, size: int
) -> None:
    """Followed by cursor, in the order of slugs, with all fields."""
    total = -(-len(newest) // size)
    result, cursor = [], None
    for number in range(1, total + 1):
        page = client.call_ok("tools", limit if cursor is None else {"cursor": cursor})
        assert (page["current_page"], page["total_pages"], page["total_items"]) == (
            number,
            total,
            len(newest),
        )
        assert len(page["items"]) == size or number == total
        result += page["items"]
        cursor = page["next_cursor"]
        assert (cursor is None) == (number == total)
    assert result == documents(newest)


def test_cursor_has_page_and_size_and_overrides_limit(
    client: ApiClient, newest: list[ReferenceVersion]
) -> None:
    """It is base64 of both; past the end, a page is empty."""
    page = client.call_ok("tools", {"limit": 9})
    assert base64.b64decode(page["next_cursor"]) == b"2:9"
    assert (
        got(client.call_ok("tools", {"cursor": page["next_cursor"], "limit": 50}))
        == slugs(newest)[9:18]
    )
    beyond = client.call_ok("tools", {"cursor": base64.b64encode(b"999:9").decode()})
    assert (beyond["items"], beyond["next_cursor"], beyond["total_items"]) == (
        [],
        None,
        len(newest),
    )


# Versions


def test_get_returns_every_version(client: ApiClient, catalog: ReferenceModel) -> None:
    """All fields as in the file, parameters in the author's order."""
    entries = [entry for versions in catalog.tools.values() for entry in versions]
    assert len(entries) >= 190
    for entry in entries:
        tool = client.call_ok("tool", {"tool_slug": entry.slug, "version": entry.version})
        expected = json.loads(entry.body)
        assert tool == expected
        assert set(tool) == FIELDS
        for field in ("input_parameters", "output_parameters"):
            assert json.dumps(tool[field]) == json.dumps(expected[field])


def test_get_with_toolkit_versions(client: ApiClient, catalog: ReferenceModel) -> None:
    """The newest version not newer than the toolkit's; 404 if there was none; `version` has
    priority.
    """
    changed = {slug: entries for slug, entries in catalog.tools.items() if len(entries) > 1}
    assert changed
    for slug, entries in changed.items():
        toolkit = entries[0].toolkit
        for version in catalog.toolkits[toolkit]:
            answer = client.call(
                "tool",
                {
                    "tool_slug": slug,
                    "toolkit_versions": {toolkit: version, "another": "20010101_00"},
                },
            )
            expected = at_version(entries, version)
            assert [answer.get("result")] == (documents(expected) or [None])
            assert answer.get("error") == (None if expected else "NotFoundError")
        first = {"version": entries[0].version, "toolkit_versions": {toolkit: entries[-1].version}}
        assert client.call_ok("tool", {"tool_slug": slug, **first})["version"] == entries[0].version


def test_newest_version_is_the_default(client: ApiClient, catalog: ReferenceModel) -> None:
    """Also for `latest` in every spelling, in get and list."""
    entries = next(entries for entries in catalog.tools.values() if len(entries) > 1)
    spellings: list[Args] = [
        {},
        {"toolkit_versions": "latest"},
        {"toolkit_versions": {}},
        {"toolkit_versions": {entries[0].toolkit: "latest"}},
    ]
    for pins in spellings:
        assert client.call_ok("tool", {"tool_slug": entries[0].slug, **pins}) == json.loads(
            entries[-1].body
        )
        assert client.call_ok("tools", {"tool_slugs": entries[0].slug, **pins})[
            "items"
        ] == documents(entries[-1:])
    assert client.call_ok(
        "tool", {"tool_slug": entries[0].slug, "version": "latest"}
    ) == json.loads(entries[-1].body)


def test_list_with_pinned_toolkit(client: ApiClient, catalog: ReferenceModel) -> None:
    """Each tool as of the pinned version, without tools that came later."""
    for toolkit, versions in catalog.toolkits.items():
        own = [
            catalog.tools[slug]
            for slug in sorted(catalog.tools)
            if catalog.tools[slug][0].toolkit == toolkit
        ]
        for version in versions:
            expected = [entry for entries in own for entry in at_version(entries, version)]
            pinned = client.call_ok(
                "tools", {"toolkit_slug": toolkit, "toolkit_versions": {toolkit: version}, **ALL}
            )
            assert pinned["items"] == documents(expected)


def test_list_with_several_pins(client: ApiClient, catalog: ReferenceModel) -> None:
    """Each pin counts for its toolkit; a plain version counts for all."""
    first, second, *_ = [
        toolkit for toolkit, versions in catalog.toolkits.items() if len(versions) > 1
    ]
    pins = {first: catalog.toolkits[first][0], second: catalog.toolkits[second][1]}
    everything = [catalog.tools[slug] for slug in sorted(catalog.tools)]
    expected = [
        entry
        for entries in everything
        for entry in at_version(entries, pins.get(entries[0].toolkit, "99999999_99"))
    ]
    assert client.call_ok("tools", {"toolkit_versions": pins, **ALL})["items"] == documents(
        expected
    )
    plain = catalog.toolkits[first][0]
    expected = [entry for entries in everything for entry in at_version(entries, plain)]
    assert client.call_ok("tools", {"toolkit_versions": plain, **ALL})["items"] == documents(
        expected
    )


# Filters


def assert_filtered(
    client: ApiClient,
    newest: list[ReferenceVersion],
    args: Args,
    keep: Callable[[ReferenceVersion], bool],
) -> None:
    """Check that a filtered list has exactly the expected tools: some, but not all."""
    expected = [entry.slug for entry in newest if keep(entry)]
    assert 0 < len(expected) < len(newest), args
    page = client.call_ok("tools", {**args, **ALL})
    assert (got(page), page["total_items"]) == (expected, len(expected)), args


def test_filter_by_toolkit(
    client: ApiClient, catalog: ReferenceModel, newest: list[ReferenceVersion]
) -> None:
    """One slug, or several separated by commas."""
    for toolkit in catalog.toolkits:
        assert_filtered(
            client,
            newest,
            {"toolkit_slug": toolkit},
            lambda entry, toolkit=toolkit: entry.toolkit == toolkit,  # type: ignore[misc]
        )
    several = sorted(catalog.toolkits)[1:9:3]
    assert_filtered(
        client, newest, {"toolkit_slug": ",".join(several)}, lambda entry: entry.toolkit in several
    )


@pytest.mark.parametrize("parameter", ["tags", "scopes"])
def test_filter_by_tags_and_scopes(
    client: ApiClient, newest: list[ReferenceVersion], parameter: str
) -> None:
    """Tools with at least one of them; an unknown word matches nothing."""
    existing = sorted({word for entry in newest for word in getattr(entry, parameter)})
    assert len(existing) > 30
    for word in existing:
        assert_filtered(
            client,
            newest,
            {parameter: [word]},
            lambda entry, word=word: word in getattr(entry, parameter),  # type: ignore[misc]
        )
    items = existing[::7]
    assert_filtered(
        client,
        newest,
        {parameter: [*items, "no such word"]},
        lambda entry: any(word in getattr(entry, parameter) for word in items),
    )
    assert client.call_ok("tools", {parameter: ["no such word"]}) == {
        "items": [],
        "next_cursor": None,
        "total_pages": 0,
        "current_page": 1,
        "total_items": 0,
    }


def test_filter_by_auth_config_ids(
    client: ApiClient, catalog: ReferenceModel, newest: list[ReferenceVersion]
) -> None:
    """As a list or separated by commas."""
    assert len(catalog.configs) > 1
    for id, config in catalog.configs.items():
        assert_filtered(
            client,
            newest,
            {"auth_config_ids": [id]},
            lambda entry, config=config: usable(entry, config),  # type: ignore[misc]
        )
    several = sorted(catalog.configs)[:3]
    for ids in (several, ",".join(several)):
        assert_filtered(
            client,
            newest,
            {"auth_config_ids": ids},
            lambda entry: any(usable(entry, catalog.configs[id]) for id in several),
        )


def usable(entry: ReferenceVersion, config: Mapping[str, Any]) -> bool:
    return (
        entry.toolkit == config["toolkit"]
        and entry.slug in config.get("tools", [entry.slug])
        and set(entry.scopes) <= set(config.get("scopes", entry.scopes))
    )


def test_filter_by_important_and_deprecated(
    client: ApiClient, newest: list[ReferenceVersion]
) -> None:
    """`important` filters only as "true"; deprecated tools are left out only on request."""
    assert_filtered(client, newest, {"important": "true"}, lambda entry: "important" in entry.tags)
    assert_filtered(
        client, newest, {"include_deprecated": False}, lambda entry: not entry.deprecated
    )
    assert_filtered(
        client,
        newest,
        {"important": "true", "toolkit_slug": "github"},
        lambda e: "important" in e.tags and e.toolkit == "github",
    )
    for args in ({"important": "false"}, {"include_deprecated": True}):
        assert got(client.call_ok("tools", {**args, **ALL})) == slugs(newest)


def test_filters_combine_with_and(
    client: ApiClient, catalog: ReferenceModel, newest: list[ReferenceVersion]
) -> None:
    """In the version that the pins select."""
    args = {"toolkit_slug": "github,slack", "tags": ["readOnlyHint"], "include_deprecated": False}
    assert_filtered(
        client,
        newest,
        args,
        lambda e: (
            e.toolkit in ("github", "slack") and "readOnlyHint" in e.tags and not e.deprecated
        ),
    )
    version = catalog.toolkits["github"][0]
    older = [entry for entries in catalog.tools.values() for entry in at_version(entries, version)]
    expected = sorted(
        e.slug
        for e in older
        if e.toolkit == "github" and "readOnlyHint" in e.tags and not e.deprecated
    )
    args = {
        "toolkit_slug": "github",
        "toolkit_versions": {"github": version},
        "tags": ["readOnlyHint"],
        "include_deprecated": False,
    }
    assert got(client.call_ok("tools", {**args, **ALL})) == expected != []


@pytest.mark.parametrize("parameter", ["query", "search"])
def test_query_and_search_are_equal(
    client: ApiClient, catalog: ReferenceModel, newest: list[ReferenceVersion], parameter: str
) -> None:
    """Both return the tools that share a term, in the same order, the best match first."""
    for text, first in (
        ("open an issue", None),
        ("GITHUB_CREATE_ISSUE", "GITHUB_CREATE_ISSUE"),
        ("café & e-mail +1/é", None),
    ):
        page, expected = (
            client.call_ok("tools", {parameter: text, **ALL}),
            catalog.expand_query(text),
        )
        assert sorted(got(page)) == [entry.slug for entry in newest if entry.terms & expected] != []
        assert page == client.call_ok("tools", {"query": text, **ALL})
        assert first is None or got(page)[0] == first
    pages = [client.call_ok("tools", {parameter: "open an issue", "limit": 5})]
    while pages[-1]["next_cursor"]:
        pages.append(
            client.call_ok(
                "tools", {parameter: "open an issue", "cursor": pages[-1]["next_cursor"]}
            )
        )
    assert [slug for page in pages for slug in got(page)] == got(
        client.call_ok("tools", {"query": "open an issue", **ALL})
    )


def test_query_combines_with_filters_and_overrides_search(
    client: ApiClient, catalog: ReferenceModel, newest: list[ReferenceVersion]
) -> None:
    """An unknown word matches nothing."""
    narrow = client.call_ok("tools", {"query": "inbox", "toolkit_slug": "gmail", **ALL})
    expected = catalog.expand_query("inbox")
    assert (
        sorted(got(narrow))
        == [e.slug for e in newest if e.toolkit == "gmail" and e.terms & expected]
        != []
    )
    both = client.call_ok("tools", {"query": "weather", "search": "invoice", **ALL})
    assert (
        both
        == client.call_ok("tools", {"query": "weather", **ALL})
        != client.call_ok("tools", {"query": "invoice", **ALL})
    )
    assert client.call_ok("tools", {"query": "qqqzzzxxx"})["total_items"] == 0


def test_tool_slugs_returns_the_named_tools(
    client: ApiClient, newest: list[ReferenceVersion]
) -> None:
    """In the given order, each once, without unknown ones, and regardless of other filters; still
    in pages.
    """
    expected = slugs(newest)[40:0:-4]
    args = {"tool_slugs": ",".join([*expected, "NO_SUCH_TOOL", expected[0]]), "limit": 9999}
    page = client.call_ok("tools", args)
    assert (got(page), page["total_items"]) == (expected, len(expected))
    deaf = {
        "toolkit_slug": "no-such-toolkit",
        "tags": ["no such tag"],
        "scopes": ["no"],
        "important": "true",
        "query": "zzzz",
    }
    assert (
        client.call_ok(
            "tools", {**args, **deaf, "auth_config_ids": ["ac_none"], "include_deprecated": False}
        )
        == page
    )
    shortened = client.call_ok("tools", {**args, "limit": 4})
    remaining = client.call_ok("tools", {**args, "cursor": shortened["next_cursor"]})
    assert [*got(shortened), *got(remaining)] == expected[:8]
    assert shortened["total_pages"] == -(-len(expected) // 4)


def test_tool_slugs_with_toolkit_versions(client: ApiClient, catalog: ReferenceModel) -> None:
    """A tool that the toolkit did not have then is left out."""
    version = catalog.toolkits["github"][0]
    own = [
        entries for slug, entries in sorted(catalog.tools.items()) if entries[0].toolkit == "github"
    ]
    expected = [entry for entries in own for entry in at_version(entries, version)]
    assert 0 < len(expected) < len(own)
    request = {
        "tool_slugs": ",".join(entries[0].slug for entries in own),
        "toolkit_versions": {"github": version},
        **ALL,
    }
    assert client.call_ok("tools", request)["items"] == documents(expected)


EMPTY: list[Args] = [
    {"limit": None},
    {"cursor": ""},
    {"cursor": None},
    {"tags": []},
    {"tags": [""]},
    {"scopes": []},
    {"scopes": None},
    {"auth_config_ids": []},
    {"auth_config_ids": ""},
    {"query": ""},
    {"query": "   "},
    {"search": ""},
    {"search": None},
    {"tool_slugs": ""},
    {"toolkit_slug": ""},
    {"important": ""},
    {"include_deprecated": None},
    {"toolkit_versions": {}},
    {"toolkit_versions": ""},
    {"toolkit_versions": {"github": ""}},
]


def test_empty_parameters_are_ignored(client: ApiClient) -> None:
    """An empty string, list or object and null, as each client sends it."""
    usual = client.call_ok("tools")
    for args in EMPTY:
        assert client.call_ok("tools", args) == usual, args


def test_unknown_parameters_are_ignored(client: ApiClient, newest: list[ReferenceVersion]) -> None:
    """`sort_by` and `order` work as extra query parameters."""
    assert client.call_ok("tools", query={"colour": "red"}) == client.call_ok("tools")
    page = client.call_ok("tools", dict(ALL), query={"sort_by": "name", "order": "desc"})
    by_slug = sorted(newest, key=lambda entry: entry.slug)
    assert got(page) == slugs(sorted(by_slug, key=lambda entry: entry.name, reverse=True))


# Sessions


def test_get_session(
    client: ApiClient,
    catalog: ReferenceModel,
    sessions: dict[str, Any],
    keys: dict[str, str | None],
) -> None:
    """Its meta tools in the newest version, with the session's names in their schemas."""
    answers = {}
    for id, session in sessions.items():
        answers[id] = client.call_ok(
            "session",
            {"session_id": id},
            key=keys[session.get("project", "default")],
            strict=client.library.requires_session_pages,
        )
        assert set(answers[id]) == {"items"}
        templates = meta_tools(session)
        assert [(item["slug"], item["version"]) for item in answers[id]["items"]] == [
            (slug, version) for slug, version, _ in templates
        ]
        names = {
            "session_id": id,
            "user_id": session.get("user_id", "default"),
            **allowed(catalog, session),
        }
        filled = [
            one
            for item, (_, _, template) in zip(answers[id]["items"], templates, strict=True)
            for one in fillings(template, item)
        ]
        assert {name for name, _ in filled} >= {"toolkits", "tools"}
        assert [value for _, value in filled] == [names[name] for name, _ in filled]
        assert all(
            set(item) == FIELDS and item["toolkit"]["slug"] == "router"
            for item in answers[id]["items"]
        )
    assert len({json.dumps(answer) for answer in answers.values()}) == len(sessions) > 2


def meta_tools(session: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """Slug, newest version and file of each meta tool of a session."""
    newest = {
        path.parent.name: path for path in sorted(SHIPPED_CATALOG.glob("meta_tools/*/*.yaml"))
    }
    results = [
        (slug, newest[slug].stem, read_yaml(newest[slug]))
        for slug in session.get("meta_tools", newest)
    ]
    connects = session.get("manage_connections", {}).get("enable", False)
    return [
        (slug, version, template)
        for slug, version, template in results
        if connects or "when" not in template
    ]


def allowed(catalog: ReferenceModel, session: Mapping[str, Any]) -> dict[str, list[str]]:
    """Toolkits, tools and auth configs of a session."""
    toolkits = [
        toolkit
        for toolkit in sorted(catalog.toolkits)
        if chosen(session.get("toolkits", {}), [toolkit])
    ]
    configs = session.get("auth_configs", {})
    tools = []
    for slug, entries in sorted(catalog.tools.items()):
        toolkit = entries[0].toolkit
        fields = session.get("tools", {}).get(toolkit, {})
        for entry in at_version(
            entries, session.get("toolkit_versions", {}).get(toolkit, "99999999_99")
        ):
            fits = chosen(fields, [slug]) and chosen(
                fields.get("tags", session.get("tags", {})), entry.tags
            )
            if (
                toolkit in toolkits
                and fits
                and (toolkit not in configs or usable(entry, catalog.configs[configs[toolkit]]))
            ):
                tools.append(slug)
    return {"toolkits": toolkits, "tools": tools, "auth_configs": sorted(configs.values())}


def chosen(choice: Mapping[str, Any], is_present: list[str]) -> bool:
    return not set(is_present) & set(choice.get("disable", [])) and (
        "enable" not in choice or bool(set(is_present) & set(choice["enable"]))
    )


def fillings(template: Any, served: Any) -> Iterator[tuple[str, Any]]:
    """Each placeholder's name and what was served in its place; a parameter that has nothing to
    choose from is not served.
    """
    if isinstance(template, dict) and "$session" in template:
        yield template["$session"], served
    elif isinstance(template, dict):
        for key in template.keys() & served.keys():
            yield from fillings(template[key], served[key])
    elif isinstance(template, list):
        for item, other in zip(template, served, strict=True):
            yield from fillings(item, other)


def test_list_session_tools_in_pages(
    client: ApiClient, sessions: dict[str, Any], keys: dict[str, str | None]
) -> None:
    """With the types of the newer client."""
    id, session = next(
        (id, session) for id, session in sessions.items() if len(meta_tools(session)) > 4
    )
    key = keys[session.get("project", "default")]
    document = client.call_ok(
        "session", {"session_id": id}, key=key, strict=client.library.requires_session_pages
    )["items"]
    result, page = [], {"limit": 3}
    for number in range(1, -(-len(document) // 3) + 1):
        by_itself, further = (page, {}) if client.library.has_session_pages else ({}, page)
        answer = client.call_ok("session", {"session_id": id, **by_itself}, key=key, query=further)
        assert (answer["current_page"], answer["total_items"], answer["total_pages"]) == (
            number,
            len(document),
            -(-len(document) // 3),
        )
        result += answer["items"]
        page = {"cursor": answer["next_cursor"]}
    assert page == {"cursor": None}
    assert result == document


# Errors

UNAUTHORIZED = ("AuthenticationError", 401, "unauthorized")
FORBIDDEN = ("PermissionDeniedError", 403, "forbidden")
INVALID = ("BadRequestError", 400, "invalid_request")


def missing(label: str) -> tuple[str, int, str]:
    return ("NotFoundError", 404, f"{label}_not_found")


ERRORS: list[tuple[str, Args, str, tuple[str, int, str], list[str]]] = [
    ("tools", {}, "unknown", UNAUTHORIZED, ["x-api-key"]),
    ("tools", {}, "none", UNAUTHORIZED, ["x-api-key"]),
    ("tool", {"tool_slug": "NO_SUCH_TOOL"}, "unknown", UNAUTHORIZED, ["x-api-key"]),
    ("session", {"session_id": "trs_none"}, "unknown", UNAUTHORIZED, ["x-api-key"]),
    ("session", {"session_id": "(session)"}, "nobody", FORBIDDEN, ["session_id"]),
    ("tools", {"toolkit_slug": "(hidden toolkit)"}, "limited", FORBIDDEN, ["toolkit_slug"]),
    ("tools", {"toolkit_slug": "github,(hidden toolkit)"}, "limited", FORBIDDEN, ["toolkit_slug"]),
    ("tools", {"auth_config_ids": ["(hidden config)"]}, "limited", FORBIDDEN, ["auth_config_ids"]),
    ("tool", {"tool_slug": "(hidden tool)"}, "limited", missing("tool"), ["tool_slug"]),
    ("tool", {"tool_slug": "NO_SUCH_TOOL"}, "default", missing("tool"), ["tool_slug"]),
    (
        "tool",
        {"tool_slug": "GITHUB_CREATE_ISSUE", "version": "19990101_00"},
        "default",
        missing("tool_version"),
        ["version"],
    ),
    (
        "tool",
        {"tool_slug": "GITHUB_CREATE_ISSUE", "toolkit_versions": {"github": "19990101_00"}},
        "default",
        missing("tool_version"),
        ["toolkit_versions"],
    ),
    ("tools", {"toolkit_slug": "gihtub"}, "default", missing("toolkit"), ["toolkit_slug"]),
    (
        "tools",
        {"auth_config_ids": ["ac_none"]},
        "default",
        missing("auth_config"),
        ["auth_config_ids"],
    ),
    ("session", {"session_id": "trs_none"}, "default", missing("session"), ["session_id"]),
    ("tool", {"tool_slug": "get repo?"}, "default", INVALID, ["tool_slug"]),
    (
        "tool",
        {"tool_slug": "GITHUB_CREATE_ISSUE", "version": "1.0"},
        "default",
        INVALID,
        ["version"],
    ),
    (
        "tool",
        {"tool_slug": "NO_SUCH_TOOL", "version": "1.0"},
        "default",
        INVALID,
        ["version", "tool_slug"],
    ),
    ("tools", {"limit": 0}, "default", INVALID, ["limit"]),
    ("tools", {"limit": -1}, "default", INVALID, ["limit"]),
    ("tools", {"limit": 1.5}, "default", INVALID, ["limit"]),
    ("tools", {"cursor": "nonsense"}, "default", INVALID, ["cursor"]),
    ("tools", {"important": "yes"}, "default", INVALID, ["important"]),
    ("tools", {"include_deprecated": "perhaps"}, "default", INVALID, ["include_deprecated"]),
    ("tools", {"query": "a" * 4001}, "default", INVALID, ["query"]),
    ("tools", {"search": "a" * 4001}, "default", INVALID, ["search"]),
    ("tools", {"toolkit_versions": "newest"}, "default", INVALID, ["toolkit_versions"]),
    (
        "tools",
        {"toolkit_versions": {"github": "newest"}},
        "default",
        INVALID,
        ["toolkit_versions[github]"],
    ),
    (
        "tools",
        {"toolkit_versions": {"github": "19990101_00"}},
        "default",
        INVALID,
        ["toolkit_versions"],
    ),
    (
        "tools",
        {"toolkit_versions": {"gihtub": "20251027_00"}},
        "default",
        INVALID,
        ["toolkit_versions"],
    ),
    (
        "tools",
        {"tool_slugs": ",".join(f"TOOL_{number}" for number in range(1001))},
        "default",
        INVALID,
        ["tool_slugs"],
    ),
    (
        "tools",
        {
            "limit": 0,
            "cursor": "x",
            "important": "1",
            "toolkit_slug": "no",
            "auth_config_ids": ["ac_no"],
        },
        "default",
        INVALID,
        ["limit", "cursor", "important", "toolkit_slug", "auth_config_ids"],
    ),
    ("session", {"session_id": "not-a-session"}, "default", INVALID, ["session_id"]),
]


@pytest.fixture(scope="session")
def catalog_names(
    catalog: ReferenceModel, sessions: dict[str, Any], visible_toolkits: tuple[str, ...]
) -> dict[str, str]:
    """Names for the placeholders of the table above; the limited key may not see hidden ones."""
    config, toolkit = next(
        (id, config["toolkit"])
        for id, config in catalog.configs.items()
        if config["toolkit"] not in visible_toolkits
    )
    tool = next(slug for slug, entries in catalog.tools.items() if entries[0].toolkit == toolkit)
    return {
        "(hidden config)": config,
        "(hidden toolkit)": toolkit,
        "(hidden tool)": tool,
        "(session)": next(iter(sessions)),
    }


@pytest.mark.parametrize(
    ("op", "args", "who", "raised", "lines"),
    ERRORS,
    ids=[f"{slug}-{'+'.join(lines)}-{who}" for _, _, who, (_, _, slug), lines in ERRORS],
)
def test_errors_map_to_client_exceptions(
    client: ApiClient,
    keys: dict[str, str | None],
    catalog_names: dict[str, str],
    op: str,
    args: Args,
    who: str,
    raised: tuple[str, int, str],
    lines: list[str],
) -> None:
    """With the whole error body: a line per problem, and a fix."""
    text = json.dumps(args)
    for bracket, name in catalog_names.items():
        text = text.replace(bracket, name)
    answer = client.call(op, json.loads(text), key=keys[who])
    name, status, slug = raised
    assert (answer.get("error"), answer.get("status")) == (name, status), answer
    assert_error_body(answer, status, slug, lines)


def assert_error_body(answer: Any, status: int, slug: str, lines: list[str]) -> None:
    """Check that an exception has all seven fields of the error body, and these lines in
    any order.
    """
    assert set(answer["body"]) == {"error"}
    error = answer["body"]["error"]
    assert set(error) == ENVELOPE
    assert (error["status"], error["code"], error["slug"]) == (status, 1000 + status, slug)
    assert error["request_id"] == answer["request_id"] != ""
    assert error["message"]
    assert error["suggested_fix"]
    assert len(error["errors"]) == len(lines)
    assert all(
        line.startswith(f"{begins}:")
        for line, begins in zip(sorted(error["errors"]), sorted(lines), strict=True)
    ), error["errors"]


@pytest.mark.parametrize(
    ("method", "path", "status", "slug", "begins"),
    [
        ("post", "/tools", 405, "method_not_allowed", "POST is not "),
    ],
)
def test_unsupported_operations_are_refused(
    client: ApiClient, method: str, path: str, status: int, slug: str, begins: str
) -> None:
    """404 for other paths and 405 for other methods, both with an error body."""
    answer = client.call("call", {"method": method, "path": client.library.prefix + path})
    assert answer["error"] in {404: ("NotFoundError",), 405: ("APIStatusError", "APIError")}[status]
    error = answer["body"]["error"]
    assert (answer["status"], set(error), error["slug"]) == (status, ENVELOPE, slug)
    assert error["errors"] == [error["message"]]
    assert error["message"].startswith(begins)


def test_error_suggests_the_right_name(client: ApiClient, catalog: ReferenceModel) -> None:
    """For a typo in a name, or an unknown version."""
    slug, entries = next(
        (slug, entries) for slug, entries in catalog.tools.items() if len(entries) > 1
    )
    typing_error = client.call("tool", {"tool_slug": slug[:-2] + slug[-1]})
    assert slug in typing_error["body"]["error"]["suggested_fix"]
    assert (
        "github"
        in client.call("tools", {"toolkit_slug": "gihtub"})["body"]["error"]["suggested_fix"]
    )
    no_version = client.call("tool", {"tool_slug": slug, "version": "19990101_00"})
    assert all(entry.version in no_version["body"]["error"]["suggested_fix"] for entry in entries)


def test_limited_key_sees_only_its_toolkits(
    client: ApiClient,
    newest: list[ReferenceVersion],
    keys: dict[str, str | None],
    visible_toolkits: tuple[str, ...],
) -> None:
    """Other tools look as if they did not exist."""
    expected = [entry for entry in newest if entry.toolkit in visible_toolkits]
    hidden = [entry for entry in newest if entry.toolkit not in visible_toolkits]
    assert got(client.call_ok("tools", dict(ALL), key=keys["limited"])) == slugs(expected)
    assert client.call_ok(
        "tool", {"tool_slug": expected[0].slug}, key=keys["limited"]
    ) == json.loads(expected[0].body)
    both = {"tool_slugs": f"{hidden[0].slug},{expected[0].slug}"}
    assert got(client.call_ok("tools", both, key=keys["limited"])) == [expected[0].slug]
    results = {
        key: got(client.call_ok("tools", {"query": hidden[0].name, **ALL}, key=keys[key]))
        for key in ("default", "limited")
    }
    assert hidden[0].slug in results["default"]
    assert set(results["limited"]) == set(results["default"]) & set(slugs(expected))


def test_all_bad_keys_get_the_same_error(client: ApiClient) -> None:
    """Unknown, malformed and missing keys."""
    rejected = [
        client.call("tools", key=key)["body"]["error"] for key in ("tc_" + "0" * 36, "secret")
    ]
    assert len({json.dumps({**error, "request_id": ""}) for error in rejected}) == 1


# Headers


def test_both_prefixes_work(client: ApiClient) -> None:
    """The older clients use /api/v3, the newer ones /api/v3.1; large responses are compressed."""
    paths = {"tool": "tools/GITHUB_CREATE_ISSUE", "tools": "tools?limit=100"}
    for op, args in (("tool", {"tool_slug": "GITHUB_CREATE_ISSUE"}), ("tools", {"limit": 100})):
        answer = client.call(op, args, raw=True)
        assert answer["url"].partition("://")[2].partition("/")[
            2
        ] == f"{client.library.prefix}/{paths[op]}".removeprefix("/")
        assert answer["headers"]["content-type"] == "application/json"
        assert answer["headers"]["content-encoding"] == "gzip"


def test_request_id_is_echoed(
    client: ApiClient, sessions: dict[str, Any], keys: dict[str, str | None]
) -> None:
    """In each response and error body; without one, the server creates one."""
    id, session = next(iter(sessions.items()))
    calls: list[tuple[str, Args, str]] = [
        ("tool", {"tool_slug": "GITHUB_CREATE_ISSUE"}, "default"),
        ("tools", {"limit": 1}, "default"),
        ("session", {"session_id": id}, session.get("project", "default")),
    ]
    for op, args, project in calls:
        answers = [
            client.call(
                op,
                args,
                key=keys[project],
                strict=client.library.requires_session_pages,
                raw=True,
                headers=headers,
            )
            for headers in ({"X-Request-Id": "my-1"}, {}, {})
        ]
        value, first, second = (answer["headers"]["x-request-id"] for answer in answers)
        assert value == "my-1"
        assert len({value, first, second, ""}) == 4
    raised = client.call("tool", {"tool_slug": "NO_SUCH_TOOL"}, headers={"X-Request-Id": "my-2"})
    assert (raised["request_id"], raised["body"]["error"]["request_id"]) == ("my-2", "my-2")
    insane = client.call(
        "tool", {"tool_slug": "NO_SUCH_TOOL"}, headers={"X-Request-Id": "not <sane>"}
    )
    assert insane["request_id"] == insane["body"]["error"]["request_id"] not in ("", "not <sane>")
