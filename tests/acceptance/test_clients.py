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
def test_every_page(
    client: ApiClient, newest: list[ReferenceVersion], limit: Args, size: int
) -> None:
    """Followed from cursor to cursor, the pages hold every tool of the YAML files once, by slug,
    whole and in full pages.
    """
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


def test_the_cursor_says_page_and_size_and_wins_over_limit(
    client: ApiClient, newest: list[ReferenceVersion]
) -> None:
    """A cursor is the base64 of the page number and the page size; a limit beside it does not
    count; past the end there is nothing.
    """
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


def test_every_version_of_every_tool(client: ApiClient, catalog: ReferenceModel) -> None:
    """Each version file comes out by `version`, all thirteen fields as the file says, parameters in
    the author's order.
    """
    entries = [entry for versions in catalog.tools.values() for entry in versions]
    assert len(entries) >= 190
    for entry in entries:
        tool = client.call_ok("tool", {"tool_slug": entry.slug, "version": entry.version})
        expected = json.loads(entry.body)
        assert tool == expected
        assert set(tool) == FIELDS
        for field in ("input_parameters", "output_parameters"):
            assert json.dumps(tool[field]) == json.dumps(expected[field])


def test_a_tool_at_the_versions_of_its_toolkit(client: ApiClient, catalog: ReferenceModel) -> None:
    """`toolkit_versions` gives the newest version not newer than the toolkit's; a tool that had
    none yet is not found; `version` wins.
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


def test_the_newest_version(client: ApiClient, catalog: ReferenceModel) -> None:
    """Without a version, and with `latest` in each spelling, the newest comes: by get, and in the
    list.
    """
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


def test_every_toolkit_at_every_version(client: ApiClient, catalog: ReferenceModel) -> None:
    """A list pinned by a dictionary holds each tool of the toolkit as of that version, and no tool
    that came later.
    """
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


def test_pins_of_several_toolkits_and_of_all(client: ApiClient, catalog: ReferenceModel) -> None:
    """Two pins hold for their two toolkits and the newest for the others; a plain version holds for
    every toolkit.
    """
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


def filtered(
    client: ApiClient,
    newest: list[ReferenceVersion],
    args: Args,
    keep: Callable[[ReferenceVersion], bool],
) -> None:
    """A list narrowed by these arguments holds just the tools to keep, and there are some, but not
    all.
    """
    expected = [entry.slug for entry in newest if keep(entry)]
    assert 0 < len(expected) < len(newest), args
    page = client.call_ok("tools", {**args, **ALL})
    assert (got(page), page["total_items"]) == (expected, len(expected)), args


def test_toolkit_slug(
    client: ApiClient, catalog: ReferenceModel, newest: list[ReferenceVersion]
) -> None:
    """Every toolkit's tools by its slug, and those of several by slugs joined with commas."""
    for toolkit in catalog.toolkits:
        filtered(
            client,
            newest,
            {"toolkit_slug": toolkit},
            lambda entry, toolkit=toolkit: entry.toolkit == toolkit,  # type: ignore[misc]
        )
    several = sorted(catalog.toolkits)[1:9:3]
    filtered(
        client, newest, {"toolkit_slug": ",".join(several)}, lambda entry: entry.toolkit in several
    )


@pytest.mark.parametrize("parameter", ["tags", "scopes"])
def test_tags_and_scopes(client: ApiClient, newest: list[ReferenceVersion], parameter: str) -> None:
    """Each tag, each scope and a list of them find the tools with at least one; a word that no tool
    has finds none and spoils nothing.
    """
    existing = sorted({word for entry in newest for word in getattr(entry, parameter)})
    assert len(existing) > 30
    for word in existing:
        filtered(
            client,
            newest,
            {parameter: [word]},
            lambda entry, word=word: word in getattr(entry, parameter),  # type: ignore[misc]
        )
    items = existing[::7]
    filtered(
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


def test_auth_config_ids(
    client: ApiClient, catalog: ReferenceModel, newest: list[ReferenceVersion]
) -> None:
    """The tools usable with each auth config, and with any of several, given as a list or as a
    string with commas.
    """
    assert len(catalog.configs) > 1
    for id, config in catalog.configs.items():
        filtered(
            client,
            newest,
            {"auth_config_ids": [id]},
            lambda entry, config=config: usable(entry, config),  # type: ignore[misc]
        )
    several = sorted(catalog.configs)[:3]
    for ids in (several, ",".join(several)):
        filtered(
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


def test_important_and_include_deprecated(
    client: ApiClient, newest: list[ReferenceVersion]
) -> None:
    """`important` narrows only as "true", also with a toolkit, as one SDK sends it; deprecated
    tools go only where that is asked for.
    """
    filtered(client, newest, {"important": "true"}, lambda entry: "important" in entry.tags)
    filtered(client, newest, {"include_deprecated": False}, lambda entry: not entry.deprecated)
    filtered(
        client,
        newest,
        {"important": "true", "toolkit_slug": "github"},
        lambda e: "important" in e.tags and e.toolkit == "github",
    )
    for args in ({"important": "false"}, {"include_deprecated": True}):
        assert got(client.call_ok("tools", {**args, **ALL})) == slugs(newest)


def test_filters_together(
    client: ApiClient, catalog: ReferenceModel, newest: list[ReferenceVersion]
) -> None:
    """Filters of different kinds must all hold, in the version in force."""
    args = {"toolkit_slug": "github,slack", "tags": ["readOnlyHint"], "include_deprecated": False}
    filtered(
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
def test_query_and_search(
    client: ApiClient, catalog: ReferenceModel, newest: list[ReferenceVersion], parameter: str
) -> None:
    """Both spellings find the tools that share a term with the text, the same ones in the same
    order, the tool meant before all others.
    """
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


def test_query_is_soft_and_wins_over_search(
    client: ApiClient, catalog: ReferenceModel, newest: list[ReferenceVersion]
) -> None:
    """The other filters choose what a query looks at; beside `query`, `search` does not count; a
    word that is nowhere finds nothing.
    """
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


def test_tool_slugs(client: ApiClient, newest: list[ReferenceVersion]) -> None:
    """Exactly the tools named come, in that order, each once, unknown ones left out, whatever the
    other filters say; pages still count.
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


def test_tool_slugs_at_a_version(client: ApiClient, catalog: ReferenceModel) -> None:
    """`toolkit_versions` counts for tools fetched by their slugs; a tool that the toolkit did not
    have then is left out.
    """
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


def test_nothing_said_is_nothing_asked(client: ApiClient) -> None:
    """An empty text, list or object and a null, as each client sends it, is as if the parameter
    were not there.
    """
    usual = client.call_ok("tools")
    for args in EMPTY:
        assert client.call_ok("tools", args) == usual, args


def test_unknown_and_further_parameters(client: ApiClient, newest: list[ReferenceVersion]) -> None:
    """An unknown parameter is ignored; `sort_by` and `order`, which the clients do not know, go
    through as extra query parameters.
    """
    assert client.call_ok("tools", query={"colour": "red"}) == client.call_ok("tools")
    page = client.call_ok("tools", dict(ALL), query={"sort_by": "name", "order": "desc"})
    by_slug = sorted(newest, key=lambda entry: entry.slug)
    assert got(page) == slugs(sorted(by_slug, key=lambda entry: entry.name, reverse=True))


# Sessions


def test_every_session(
    client: ApiClient,
    catalog: ReferenceModel,
    sessions: dict[str, Any],
    keys: dict[str, str | None],
) -> None:
    """Each session gives its owner the meta tools that its file enables, in the newest version, and
    their schemas hold its own names.
    """
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


def test_a_session_in_pages(
    client: ApiClient, sessions: dict[str, Any], keys: dict[str, str | None]
) -> None:
    """With a limit a session's tools come in pages like a list, typed as the newer client declares
    them.
    """
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
def known(
    catalog: ReferenceModel, sessions: dict[str, Any], seen: tuple[str, ...]
) -> dict[str, str]:
    """Names of the catalog for those in brackets in the table above; what is hidden, the limited
    key may not see.
    """
    config, toolkit = next(
        (id, config["toolkit"])
        for id, config in catalog.configs.items()
        if config["toolkit"] not in seen
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
def test_every_error(
    client: ApiClient,
    keys: dict[str, str | None],
    known: dict[str, str],
    op: str,
    args: Args,
    who: str,
    raised: tuple[str, int, str],
    lines: list[str],
) -> None:
    """Each error is the exception that the client has for it, with the whole envelope: a line for
    each problem, and what to do.
    """
    text = json.dumps(args)
    for bracket, name in known.items():
        text = text.replace(bracket, name)
    answer = client.call(op, json.loads(text), key=keys[who])
    name, status, slug = raised
    assert (answer.get("error"), answer.get("status")) == (name, status), answer
    enveloped(answer, status, slug, lines)


def enveloped(answer: Any, status: int, slug: str, lines: list[str]) -> None:
    """What was raised carries the error envelope, all seven fields of it; each of its lines begins
    as said, in any order.
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
def test_what_the_interface_does_not_have(
    client: ApiClient, method: str, path: str, status: int, slug: str, begins: str
) -> None:
    """Other operations of the family are not found, and other methods are refused, both with the
    envelope.
    """
    answer = client.call("call", {"method": method, "path": client.library.prefix + path})
    assert answer["error"] in {404: ("NotFoundError",), 405: ("APIStatusError", "APIError")}[status]
    error = answer["body"]["error"]
    assert (answer["status"], set(error), error["slug"]) == (status, ENVELOPE, slug)
    assert error["errors"] == [error["message"]]
    assert error["message"].startswith(begins)


def test_the_fix_names_what_is_meant(client: ApiClient, catalog: ReferenceModel) -> None:
    """A typing error in a name is answered with the name that was meant, a version that is not
    there with those that are.
    """
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


def test_a_limited_key_sees_its_toolkits_only(
    client: ApiClient,
    newest: list[ReferenceVersion],
    keys: dict[str, str | None],
    seen: tuple[str, ...],
) -> None:
    """A key limited to toolkits lists and gets the tools of these; asked for by slug, the others
    are as if they were not there.
    """
    expected = [entry for entry in newest if entry.toolkit in seen]
    hidden = [entry for entry in newest if entry.toolkit not in seen]
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


def test_one_text_for_every_bad_key(client: ApiClient) -> None:
    """A key that is unknown, malformed or not sent at all is refused in the same words: they tell a
    guesser nothing.
    """
    rejected = [
        client.call("tools", key=key)["body"]["error"] for key in ("tc_" + "0" * 36, "secret")
    ]
    assert len({json.dumps({**error, "request_id": ""}) for error in rejected}) == 1


# Headers


def test_the_prefix_of_each_client(client: ApiClient) -> None:
    """The clients call where they always do, the newer one under /api/v3.1, and are answered in
    JSON, large answers compressed.
    """
    paths = {"tool": "tools/GITHUB_CREATE_ISSUE", "tools": "tools?limit=100"}
    for op, args in (("tool", {"tool_slug": "GITHUB_CREATE_ISSUE"}), ("tools", {"limit": 100})):
        answer = client.call(op, args, raw=True)
        assert answer["url"].partition("://")[2].partition("/")[
            2
        ] == f"{client.library.prefix}/{paths[op]}".removeprefix("/")
        assert answer["headers"]["content-type"] == "application/json"
        assert answer["headers"]["content-encoding"] == "gzip"


def test_request_ids(
    client: ApiClient, sessions: dict[str, Any], keys: dict[str, str | None]
) -> None:
    """The caller's own X-Request-Id comes back, from each operation and in an error's envelope;
    without one, each answer has a new one.
    """
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
