"""The MCP server, over stdio and HTTP, with the SDK's client and with raw messages."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import jsonschema
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ToolsListChanged
from mcp.types import ToolListChangedNotification

from support.catalogs import generate_catalog
from support.command import run_successfully, run_toolcatalog
from support.paths import ROOT, SHIPPED_CATALOG
from support.server import Server, create_key, start_server
from toolcatalog.build.pipeline import build
from toolcatalog.keys.api_keys import KeyRing
from toolcatalog.search.embeddings import model_files
from toolcatalog.server.app import create_app
from toolcatalog.server.limits.rate_limit import LocalRateLimiter, Rate
from toolcatalog.server.mcp import protocol, route, tools
from toolcatalog.server.mcp.tools import CallResult, CatalogAccess
from toolcatalog.server.state import AppState, LocalFlag
from toolcatalog.store.open import open_build
from toolcatalog.system import files

SESSION = "trs_issue_triage"  # of project `default`
FOREIGN = "trs_support_desk"  # of project `support`
OWN = ["search_tools", "get_tool", "list_toolkits", "list_session_tools"]
ASK = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
MCP = {"accept": "application/json, text/event-stream"}
LISTEN = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {}}
PATIENCE = 60.0  # seconds
Talk = Callable[[Client], Awaitable[None]]


async def wait_until(happens: Callable[[], Awaitable[object]]) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + PATIENCE
    while not await happens():
        assert time.monotonic() < end
        await anyio.sleep(0.1)


async def call(client: Client, name: str, **arguments: Any) -> tuple[bool, str, Any]:
    """What a call is answered: whether it went well, the words, the value."""
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    assert content.type == "text"
    return not result.is_error, content.text, result.structured_content


async def listed(client: Client) -> list[str]:
    """The names of the tools that are listed."""
    return [tool.name for tool in (await client.list_tools()).tools]


# The tools, without any transport


@pytest.fixture(scope="module")
def shipped_access(shipped_build: Path) -> CatalogAccess:
    """Access to the whole shipped catalog."""
    return CatalogAccess(open_build(shipped_build))


def call_text(access: CatalogAccess, name: str, session: str = "", **arguments: Any) -> CallResult:
    """Return the text that a tool call returns."""
    result = tools.call_tool(access, name, arguments, session)
    assert result
    return result


def value(access: CatalogAccess, name: str, **arguments: Any) -> dict[str, Any]:
    """The answer to a call that goes well; it is what the tool promises."""
    result = call_text(access, name, **arguments).value
    assert result is not None
    jsonschema.validate(
        result,
        next(tool["outputSchema"] for tool in tools.TOOL_DEFINITIONS if tool["name"] == name),
    )
    return result


def test_search_result_is_short(shipped_access: CatalogAccess) -> None:
    """What is needed to choose; text and structured content agree."""
    result = call_text(shipped_access, "search_tools", query="create an issue", limit=3)
    assert result.value
    assert len(result.value["tools"]) == 3 < result.value["total"]
    for tool, line in zip(result.value["tools"], result.text.splitlines()[1:], strict=True):
        assert [*tool] == ["slug", "name", "description", "toolkit", "version", "deprecated"]
        assert line == f"{tool['slug']} ({tool['version']}) {tool['name']}: {tool['description']}"
    assert len(result.text) < 600


def test_search_marks_deprecated_tools(shipped_access: CatalogAccess) -> None:
    document = next(tool for tool in documents(shipped_access) if tool["is_deprecated"])
    result = call_text(shipped_access, "search_tools", query=document["slug"], limit=1)
    assert result.value
    assert result.value["tools"][0]["deprecated"] is True
    assert f"{document['slug']} ({document['version']}, deprecated) " in result.text


def documents(access: CatalogAccess) -> list[dict[str, Any]]:
    """The newest version of every tool."""
    results = [
        access.store.get_tool(slug)
        for toolkit in access.store.list_toolkits()
        for slug in slugs(access, toolkit)
    ]
    return [
        json.loads(bytes(access.store.read_document(tool.tool_id(tool.versions[-1]))[0]))
        for tool in results
        if tool
    ]


def slugs(access: CatalogAccess, toolkit: str) -> list[str]:
    """The tools of a toolkit."""
    return [
        path.name
        for path in (SHIPPED_CATALOG / "toolkits" / toolkit).iterdir()
        if access.store.get_tool(path.name)
    ]


def test_search_in_one_toolkit(shipped_access: CatalogAccess) -> None:
    """Empty arguments, null and whole floats work as in the API."""
    result = value(shipped_access, "search_tools", query="send a message", toolkit="slack")
    assert {tool["toolkit"] for tool in result["tools"]} == {"slack"}
    everywhere = value(
        shipped_access, "search_tools", query="send a message", toolkit="", limit=None
    )
    assert everywhere == value(shipped_access, "search_tools", query=" send a message ", limit=10.0)
    assert len({tool["toolkit"] for tool in everywhere["tools"]}) > 1


def test_search_without_matches_suggests_a_query(shipped_access: CatalogAccess) -> None:
    """The list is empty and it is no error."""
    assert value(shipped_access, "search_tools", query="zzzzqqqq")["tools"] == []
    result = call_text(shipped_access, "search_tools", query="calednar")
    assert result.value
    if not result.value["tools"]:
        assert result.value["suggestion"] in result.text


def test_hidden_characters_are_escaped_in_lists(tmp_path: Path) -> None:
    """Bidirectional controls, and names that imitate a line of the list."""
    catalog = generate_catalog(tmp_path / "catalog", 1, 1)
    file = catalog / "toolkits/kit0/KIT0_DO_0/20250101_00.yaml"
    file.write_text(
        file.read_text().replace("name: Do 0", 'name: "Do \\u202E it\\nFAKE_TOOL (1) x: y"')
    )
    metadata = catalog / "catalog.yaml"
    # else there would be no build
    metadata.write_text(f"{metadata.read_text()}rules:\n  hidden-character: off\n")
    build(catalog, tmp_path / "build", None)
    result = call_text(CatalogAccess(open_build(tmp_path / "build")), "search_tools", query="thing")
    assert result.value
    assert result.value["tools"][0]["name"] == "Do U+202E it FAKE_TOOL (1) x: y"
    assert len(result.text.splitlines()) == 2


def test_get_tool_returns_the_whole_document(shipped_access: CatalogAccess) -> None:
    """As text and structured content, in the given version."""
    entry = shipped_access.store.get_tool("GITHUB_CREATE_ISSUE")
    assert entry
    for version in (*entry.versions, "latest"):
        result = call_text(shipped_access, "get_tool", slug="GITHUB_CREATE_ISSUE", version=version)
        assert result.value
        assert json.loads(result.text) == result.value
        assert result.value["version"] == (entry.versions[-1] if version == "latest" else version)
    assert value(shipped_access, "get_tool", slug="GITHUB_CREATE_ISSUE") == result.value


def test_toolkits_are_listed_in_pages(shipped_access: CatalogAccess) -> None:
    """Each once, in order, with its number of tools."""
    results: list[dict[str, Any]] = []
    current = ""
    while True:
        page = value(
            shipped_access, "list_toolkits", limit=4, **({"after": current} if current else {})
        )
        results += page["toolkits"]
        if "next" not in page:
            break
        current = page["next"]
    assert [result["slug"] for result in results] == shipped_access.store.list_toolkits()
    assert {
        result["slug"]: result["tools"] for result in results
    } == shipped_access.store.count_labels("toolkit")
    assert value(shipped_access, "list_toolkits")["toolkits"] == results


def test_session_tools_equal_the_export(shipped_access: CatalogAccess, shipped_build: Path) -> None:
    """By a tool call and in the tool list."""
    exported = json.loads(
        run_successfully("export", "mcp", "--session", SESSION, "--build", shipped_build)
    )
    assert value(shipped_access, "list_session_tools", session_id=SESSION) == {"tools": exported}
    assert tools.list_definitions(shipped_access, SESSION) == [*tools.TOOL_DEFINITIONS, *exported]
    assert tools.list_definitions(shipped_access) == [*tools.TOOL_DEFINITIONS]


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("search_tools", {}, 'arguments: "query" is a required property.'),
        ("search_tools", {"query": "   "}, "arguments.query: "),
        (
            "search_tools",
            {"query": "a", "limit": 51},
            "arguments.limit: 51 is greater than the maximum of 50.",
        ),
        (
            "search_tools",
            {"query": "a", "limit": "5"},
            'arguments.limit: "5" is not of type "integer".',
        ),
        ("search_tools", {"query": "a", "tags": []}, "'tags' was unexpected"),
        ("search_tools", {"query": "a" * 5000}, "is longer than 4000 characters."),
        ("search_tools", {"query": "\ud800"}, "arguments: str is not valid UTF-8"),
        (
            "search_tools",
            {"query": "a", "limit": 10**30},
            "arguments: Integer exceeds 64-bit range.",
        ),
        ("nothing\ud800", {}, "arguments: str is not valid UTF-8"),
        (
            "search_tools",
            {"query": "a", "toolkit": "githb"},
            "There is no toolkit githb. Did you mean github?",
        ),
        (
            "search_tools",
            {"query": "a", "toolkit": "qqqqqq"},
            "There is no toolkit qqqqqq. See list_toolkits for all of them.",
        ),
        (
            "get_tool",
            {"slug": "GITHUB_CREATE_ISSU"},
            "There is no tool GITHUB_CREATE_ISSU. Did you mean GITHUB_CREATE_ISSUE",
        ),
        ("get_tool", {"slug": "QQQQ"}, "There is no tool QQQQ. Find tools with search_tools."),
        ("get_tool", {"slug": "github_create_issue"}, "try GITHUB_CREATE_ISSUE."),
        (
            "get_tool",
            {"slug": "GITHUB_CREATE_ISSUE", "version": "1"},
            "GITHUB_CREATE_ISSUE has no version 1. Use latest, or one of ",
        ),
        (
            "list_session_tools",
            {"session_id": "trs_no"},
            "There is no session trs_no. Check the id with its owner.",
        ),
        (
            "GITHUB_CREATE_ISSUE",
            {"title": "x"},
            "GITHUB_CREATE_ISSUE was not run: this catalog describes tools and does not run them.",
        ),
    ],
)
def test_invalid_argument_is_a_short_error(
    shipped_access: CatalogAccess, name: str, arguments: dict[str, Any], sentence: str
) -> None:
    """A model can correct it."""
    result = call_text(shipped_access, name, **arguments)
    assert result.value is None
    assert sentence in result.text
    assert len(result.text) < 400


def test_all_invalid_arguments_are_reported(shipped_access: CatalogAccess) -> None:
    assert len(call_text(shipped_access, "search_tools", limit=0, more=1).text.splitlines()) == 3


def test_limited_key_cannot_see_other_tools(shipped_build: Path) -> None:
    """In search, get, lists and suggestions."""
    access = CatalogAccess(open_build(shipped_build), ("slack",), "default")
    assert {
        tool["toolkit"]
        for tool in value(access, "search_tools", query="create an issue", limit=50)["tools"]
    } <= {"slack"}
    assert [item["slug"] for item in value(access, "list_toolkits")["toolkits"]] == ["slack"]
    assert (
        call_text(access, "get_tool", slug="GITHUB_CREATE_ISSUE").text
        == "There is no tool GITHUB_CREATE_ISSUE. Find tools with search_tools."
    )
    assert call_text(access, "search_tools", query="a", toolkit="github").text.startswith(
        "This key's project may not use toolkit github."
    )
    assert call_text(
        access._replace(project=None), "search_tools", query="a", toolkit="github"
    ).text.startswith("That toolkit is not among")
    assert tools.call_tool(access, "GITHUB_CREATE_ISSUE", {}) is None
    assert call_text(access, "list_session_tools", session_id=FOREIGN).text.startswith(
        "trs_support_desk belongs to another project."
    )


# The server of the SDK, without any transport


def in_process(access: CatalogAccess, talk: Talk) -> None:
    """A conversation of the SDK's client with our server in the same process."""

    async def converse() -> None:
        async with Client(protocol.create_server(lambda: access), cache=None) as client:
            await talk(client)

    anyio.run(converse)


def test_internal_error_has_no_traceback(
    shipped_build: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged document: the agent learns that it is an internal error, the log has the reason."""
    folder = Path(
        shutil.copytree(shipped_build.parent / "build", tmp_path / "build", symlinks=True)
    )
    file = folder / "current" / "tools.json"
    file.write_bytes(file.read_bytes().replace(b"Open a new issue", b"Open a few issue"))

    async def talk(client: Client) -> None:
        assert await call(client, "get_tool", slug="GITHUB_CREATE_ISSUE") == (
            False,
            "Something went wrong on the server; its log has the reason. Try again.",
            None,
        )
        assert (await call(client, "get_tool", slug="SLACK_SEND_MESSAGE"))[0]

    in_process(CatalogAccess(open_build(folder)), talk)
    assert "is not what was written" in caplog.text


def test_semantic_search_runs_in_a_thread(tmp_path: Path) -> None:
    """Once per query, with the results of the store."""
    if not model_files.has_runtime():
        pytest.skip("the extra `semantic` is not installed")
    build(generate_catalog(tmp_path / "catalog", 6), tmp_path / "build", None, semantic=True)
    access = CatalogAccess(open_build(tmp_path / "build"))
    assert access.store.has_semantic_search

    async def talk(client: Client) -> None:
        for query in ("thing number 4", "x" * 2000, "  ", ""):
            expected = call_text(access, "search_tools", query=query)
            assert await call(client, "search_tools", query=query) == (
                expected.value is not None,
                expected.text,
                expected.value,
            )

    in_process(access, talk)


# Over HTTP


@pytest.fixture(scope="module")
def server(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the shipped catalog for agents, of two processes."""
    with start_server(
        shipped_build, tmp_path_factory.mktemp("mcp"), "--mcp", "--workers", "2"
    ) as server:
        yield server


def post(
    server: Server,
    key: str | None = None,
    *,
    body: bytes | None = None,
    path: str = "/mcp",
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Post a message, by default one that lists the tools."""
    request = {
        **MCP,
        "content-type": "application/json",
        "x-api-key": server.key if key is None else key,
        **(headers or {}),
    }
    return httpx.post(
        server.url + path,
        headers=request,
        content=json.dumps(ASK) if body is None else body,
        timeout=PATIENCE,
    )


def over_http(
    server: Server,
    talk: Talk,
    headers: dict[str, str] | None = None,
    query: str = "",
    mode: str = "auto",
) -> None:
    """A conversation of the SDK's client with a server."""

    async def converse() -> None:
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(
                httpx2.AsyncClient(headers=headers or {"x-api-key": server.key}, timeout=PATIENCE)
            )
            transport = streamable_http_client(f"{server.url}/mcp{query}", http_client=http)
            await talk(await stack.enter_async_context(Client(transport, mode=mode, cache=None)))

    anyio.run(converse)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_agent_over_http(server: Server, mode: str) -> None:
    """With the newest protocol and with a handshake, on any worker; same results as the API."""
    request = {"query": "send a message", "limit": "5"}
    answered = httpx.get(
        f"{server.url}/api/v3/tools",
        params=request,
        headers={"x-api-key": server.key},
        timeout=PATIENCE,
    ).json()["items"]

    async def talk(client: Client) -> None:
        assert "third parties" in (client.instructions or "")
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == OWN
        assert all(
            tool.annotations
            and tool.annotations.read_only_hint
            and not tool.annotations.open_world_hint
            for tool in tools
        )
        for _ in range(5):
            good, _, result = await call(client, "search_tools", query="send a message", limit=5)
            assert good
            assert [tool["slug"] for tool in result["tools"]] == [tool["slug"] for tool in answered]
        assert (await call(client, "get_tool", slug=answered[0]["slug"]))[2] == answered[0]
        good, words, _ = await call(client, "get_tool", slug="GITHUB_CREATE_ISSU")
        assert (good, "Did you mean GITHUB_CREATE_ISSUE" in words) == (False, True)
        with pytest.raises(MCPError, match="Unknown tool: nothing"):
            await client.call_tool("nothing", {})

    over_http(server, talk, mode=mode)


@pytest.mark.parametrize(
    ("field", "value"), [("id", '"@"'), ("id", "@"), ("method", '"@"'), ("id", '"\\u0041@"')]
)
def test_long_id_or_method_is_refused(server: Server, field: str, value: str) -> None:
    """The SDK echoes both; 200 characters are the limit."""

    def send(count: int) -> httpx.Response:
        message = {"jsonrpc": '"2.0"', "id": "1", "method": '"ping"'}
        message[field] = value.replace("@", "7" * count)
        lines = (f'"{name}": {text}' for name, text in message.items())
        return post(server, body=f"{{{', '.join(lines)}}}".encode())

    assert send(199).status_code == 200
    for count in (201, 4000, 60_000):
        answer = send(count)
        assert answer.status_code == 400
        assert f"{field}: more than 200 characters." in answer.text
        assert len(answer.content) < 1000


def test_too_large_session_is_an_error(
    shipped_access: CatalogAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so; other sessions and tools are not affected."""
    monkeypatch.setattr(tools, "_MAX_SESSION_SIZE", 1000)
    result = call_text(shipped_access, "list_session_tools", session_id=SESSION)
    assert result.text.startswith(f"The meta tools of {SESSION} have 0 MiB. List them with the")
    assert call_text(shipped_access, "list_toolkits").value is not None


def test_session_tools_are_listed_over_http(server: Server) -> None:
    """After the catalog's tools; calling one says that the catalog does not run it."""

    async def talk(client: Client) -> None:
        names = await listed(client)
        assert names[:4] == OWN
        assert "ROUTER_SEARCH_TOOLS" in names
        good, words, _ = await call(client, "ROUTER_SEARCH_TOOLS", query="x")
        assert (good, f"meta tool of session {SESSION}" in words) == (False, True)

    over_http(server, talk, query=f"?session={SESSION}")


def test_keys_over_http(server: Server) -> None:
    """In either header, with any case of `Bearer`; a bad key is 401."""
    for headers in (
        {"authorization": f"Bearer {server.key}"},
        {"authorization": f"bearer {server.key}"},
    ):
        assert post(server, "", headers=headers).status_code == 200
    for key, headers in (
        ("", {}),
        ("tc_" + "0" * 36, {}),
        ("", {"authorization": f"Basic {server.key}"}),
        ("", {"authorization": "Bearer"}),
    ):
        rejected = post(server, key, path=f"/mcp?session={SESSION}", headers=headers)
        assert (rejected.status_code, rejected.json()["error"]["slug"]) == (401, "unauthorized")

    async def never_changes(_: Client) -> None:
        raise AssertionError

    with pytest.raises(BaseExceptionGroup) as error:
        over_http(server, never_changes, {"x-api-key": "tc_no"})
    assert error.value.split(AssertionError)[0] is None


def test_limited_key_over_http(server: Server) -> None:
    """Its toolkits, and sessions of its project that allow no others."""
    key = create_key(server.keys_file, "--project", "support", "--toolkit", "slack")
    until_good = time.monotonic() + PATIENCE
    # each process looks at the keys by itself
    while any(post(server, key).status_code != 200 for _ in range(8)):
        assert time.monotonic() < until_good

    async def talk(client: Client) -> None:
        assert (await call(client, "list_toolkits"))[2]["toolkits"] == [
            {"slug": "slack", "tools": len(slugs_of("slack"))}
        ]
        assert not (await call(client, "get_tool", slug="GITHUB_CREATE_ISSUE"))[0]
        good, words, _ = await call(client, "list_session_tools", session_id=FOREIGN)
        assert not good
        assert "allows toolkits that this key may not use" in words
        assert (
            "belongs to another project"
            in (await call(client, "list_session_tools", session_id=SESSION))[1]
        )

    over_http(server, talk, {"authorization": f"Bearer {key}"})


def slugs_of(toolkit: str) -> list[Path]:
    """The folders of the tools of a toolkit."""
    return [path for path in (SHIPPED_CATALOG / "toolkits" / toolkit).iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("path", "status", "slug"),
    [
        (f"/mcp?session={FOREIGN}", 403, "forbidden"),
        ("/mcp?session=trs_no", 404, "session_not_found"),
    ],
)
def test_unknown_session_over_http(server: Server, path: str, status: int, slug: str) -> None:
    rejected = post(server, path=path)
    assert (rejected.status_code, rejected.json()["error"]["slug"]) == (status, slug)


def test_other_origins_are_refused(server: Server) -> None:
    """Only pages of this host may call it."""
    for origin in (
        "https://evil.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example:80",
        "null",
    ):
        rejected = post(server, headers={"origin": origin})
        assert (rejected.status_code, rejected.json()["error"]["slug"]) == (403, "forbidden")
    for origin in ("http://localhost:6274", "http://127.0.0.1", "http://[::1]:8000"):
        assert post(server, headers={"origin": origin}).status_code == 200


def test_only_post_is_allowed(server: Server) -> None:
    for method in ("GET", "DELETE", "HEAD"):
        rejected = httpx.request(
            method, f"{server.url}/mcp", headers={**MCP, "x-api-key": server.key}
        )
        assert (rejected.status_code, rejected.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("path", "params", "line"),
    [
        ("/mcp?session=" + "%25" * 400, {}, "query: more than 1,024 bytes."),
        ("/mcp", {"inputResponses": {"a": {}}}, "inputResponses: this server asks for no input."),
        (
            "/mcp",
            {"name": "search_tools", "arguments": {"toolkits": ["a"] * 2000}},
            ("message: more than 2,000 values."),
        ),
    ],
)
def test_expensive_message_is_refused(
    server: Server, path: str, params: dict[str, Any], line: str
) -> None:
    """The SDK parses query strings and messages on the event loop."""
    body = json.dumps({**ASK, "method": "tools/call", "params": params}).encode()
    rejected = post(server, path=path, body=body)
    assert (rejected.status_code, rejected.json()["error"]["errors"]) == (400, [line])


def test_body_is_limited_to_64_kib(server: Server) -> None:
    """With and without a length."""
    large = json.dumps({**ASK, "params": {"x": "y" * 70_000}}).encode()
    assert (
        post(server, body=large).status_code,
        post(server, body=large[:60_000]).status_code,
    ) == (400, 400)
    request = httpx.post(
        f"{server.url}/mcp",
        headers={**MCP, "x-api-key": server.key},
        content=iter([large[:50_000], large[50_000:]]),
    )
    assert (request.status_code, request.json()["error"]["slug"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"5", b'{"jsonrpc":"2.0","id":1,"method":5}', b"[" * 50_000, b'"\xff"'],
    ids=["empty", "open", "list", "number", "method", "nested", "bytes"],
)
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25", "1"])
def test_invalid_messages_over_http(server: Server, body: bytes, version: str) -> None:
    """A protocol error, without a traceback in response or log."""
    rejected = post(server, body=body, headers={"mcp-protocol-version": version})
    assert rejected.status_code == 400
    assert "error" in rejected.json()
    assert "Traceback" not in rejected.text + server.log.read_text()


def test_requests_are_not_logged(server: Server) -> None:
    """And no key ever is."""
    previous = server.log.read_text()
    assert post(server).status_code == 200
    assert server.log.read_text() == previous
    assert server.key not in previous


def test_mcp_is_off_without_the_flag(shipped: Server) -> None:
    assert post(shipped).status_code in (404, 405)


async def ask(live: AppState, secret: str, message: dict[str, Any]) -> httpx.Response:
    """The answer of an application in this process to one message."""
    transport = httpx.ASGITransport(create_app(live, None, [route.create_mcp_route(live)]))
    async with httpx.AsyncClient(transport=transport) as client:
        return await client.post("http://a/mcp", json=message, headers={**MCP, "x-api-key": secret})


def test_no_snapshot_is_reported(tmp_path: Path) -> None:
    """To clients with a key."""
    key = create_key(tmp_path / "keys.json")
    live = AppState(KeyRing(tmp_path / "keys.json"), None)
    assert anyio.run(ask, live, key, ASK).status_code == 503
    assert anyio.run(ask, live, "tc_no", ASK).status_code == 401


def test_searches_count_as_lists(shipped_build: Path, tmp_path: Path) -> None:
    """Per key; the error says when to retry, and get still works."""
    item, other = create_key(tmp_path / "keys.json"), create_key(tmp_path / "keys.json")
    live = AppState(
        KeyRing(tmp_path / "keys.json"),
        open_build(shipped_build),
        rate_limiter=LocalRateLimiter(Rate(1, 3600)),
    )

    def output(key: str, name: str, **arguments: str) -> tuple[bool, str]:
        answered = anyio.run(
            ask,
            live,
            key,
            {**ASK, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
        )
        assert answered.status_code == 200
        return not answered.json()["result"]["isError"], answered.json()["result"]["content"][0][
            "text"
        ]

    assert output(item, "search_tools", query="issue")[0]
    good, words = output(item, "search_tools", query="issue")
    assert (
        good,
        words.startswith("This key may list 1 times in 3600 s, and has done so. Try again in "),
    ) == (False, True)
    assert "Retry-After" not in words
    assert output(item, "get_tool", slug="GITHUB_CREATE_ISSUE")[0]
    assert output(other, "search_tools", query="issue")[0]


# A new build


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, str]:
    """A build with two snapshots, the first in force, and the digest of the second, in which a
    session is gone and a name has changed.
    """
    catalog = Path(shutil.copytree(SHIPPED_CATALOG, tmp_path / "catalog"))
    first = build(catalog, tmp_path / "build", None).digest
    (catalog / "sessions" / f"{SESSION}.yaml").unlink()
    metadata = catalog / "toolkits/github/toolkit.yaml"
    metadata.write_text(metadata.read_text().replace("name: GitHub", "name: GitHub again", 1))
    second = build(catalog, tmp_path / "build", None).digest
    files.replace_symlink(tmp_path / "build/current", f"snapshots/{first}")
    return tmp_path / "build", second


async def toolkit_name(client: Client) -> str:
    """What the newest document says."""
    name: str = (await call(client, "get_tool", slug="GITHUB_CREATE_ISSUE"))[2]["toolkit"]["name"]
    return name


def test_reload_keeps_the_client_connected(two: tuple[Path, str], tmp_path: Path) -> None:
    """Later responses come from the new snapshot."""
    folder, second = two

    async def talk(client: Client) -> None:
        assert await toolkit_name(client) == "GitHub"
        files.replace_symlink(folder / "current", f"snapshots/{second}")

        async def is_new() -> bool:
            return await toolkit_name(client) == "GitHub again"

        await wait_until(is_new)

    with start_server(folder, tmp_path, "--mcp") as server:
        previous = post(server).headers["x-catalog-snapshot"]
        over_http(server, talk)
        assert post(server).headers["x-catalog-snapshot"] == second != previous


@pytest.mark.parametrize("session", ["", SESSION])
def test_client_is_notified_of_changes(two: tuple[Path, str], tmp_path: Path, session: str) -> None:
    """Only the client whose session changed."""
    folder, second = two

    async def talk(client: Client) -> None:
        tools = client.server_capabilities.tools
        assert tools
        assert tools.list_changed
        async with client.listen(tools_list_changed=True) as changes:
            assert changes.honored.tools_list_changed
            files.replace_symlink(folder / "current", f"snapshots/{second}")
            if session:
                with anyio.fail_after(PATIENCE):
                    assert isinstance(await anext(changes), ToolsListChanged)
                return

            async def is_new() -> bool:
                return await toolkit_name(client) == "GitHub again"

            await wait_until(is_new)
            with pytest.raises(TimeoutError), anyio.fail_after(3):
                await anext(changes)

    with start_server(folder, tmp_path, "--mcp") as server:
        over_http(server, talk, query=f"?session={session}" if session else "")


def test_stream_ends_with_its_key(shipped_build: Path, tmp_path: Path) -> None:
    """And when the server stops; both with a last message."""

    with start_server(shipped_build, tmp_path, "--mcp") as server:
        key = create_key(server.keys_file)

        async def talk(client: Client) -> None:
            async with client.listen(tools_list_changed=True) as changes:
                (id_of_key,) = (
                    item["id"]
                    for item in json.loads(server.keys_file.read_text())["keys"]
                    if item["hint"] == key[-4:]
                )
                run_successfully("keys", "revoke", id_of_key, "--keys", server.keys_file)
                with anyio.fail_after(PATIENCE), pytest.raises(StopAsyncIteration):
                    await anext(changes)

        def is_accepted() -> bool:
            return post(server, key).status_code == 200

        end = time.monotonic() + PATIENCE
        while not is_accepted():
            assert time.monotonic() < end
        over_http(server, talk, {"x-api-key": key})

        async def stop(client: Client) -> None:
            async with client.listen(tools_list_changed=True) as changes:
                server.process.terminate()
                with anyio.fail_after(PATIENCE), pytest.raises(StopAsyncIteration):
                    await anext(changes)

        over_http(server, stop)
        assert server.process.wait(PATIENCE) == 0
        assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("limit", ["MAX_STREAMS", "MAX_STREAMS_OF_KEY"])
def test_number_of_streams_is_limited(
    limit: str, shipped_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Further ones are refused, and all are while the server drains."""
    key = create_key(tmp_path / "keys.json")
    live = AppState(KeyRing(tmp_path / "keys.json"), open_build(shipped_build))
    monkeypatch.setattr(route, limit, 0)
    rejected = anyio.run(ask, live, key, LISTEN)
    assert (rejected.status_code, rejected.json()["error"]["slug"]) == (503, "too_many_connections")
    live.draining = LocalFlag()
    live.draining.set()
    rejected = anyio.run(ask, live, key, LISTEN)
    assert (rejected.status_code, rejected.json()["error"]["slug"]) == (503, "draining")


def test_no_stream_without_sessions(server: Server) -> None:
    """The client learns that no notification will come."""

    async def talk(client: Client) -> None:
        tools = client.server_capabilities.tools
        assert tools
        assert not tools.list_changed

    over_http(server, talk, mode="legacy")


def test_lists_have_a_cache_lifetime(server: Server, shipped_build: Path) -> None:
    """One minute; private with a key."""

    async def private(client: Client) -> None:
        result = await client.list_tools()
        assert (result.ttl_ms, result.cache_scope) == (60_000, "private")

    over_http(server, private)

    async def public(client: Client) -> None:
        result = await client.list_tools()
        assert (result.ttl_ms, result.cache_scope) == (60_000, "public")

    over_stdio(public, Path(os.devnull), "mcp", "--build", shipped_build)


# Over standard input and output


def over_stdio(talk: Talk, log: Path, *arguments: object, **options: Any) -> str:
    """A conversation of the SDK's client with a process; what that has written to standard
    error.
    """
    command = ["-m", "toolcatalog", *map(str, arguments)]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))

    async def converse() -> None:
        with log.open("w") as sink:
            transport = stdio_client(parameters, errlog=sink)
            async with Client(transport, cache=None, **options) as client:
                await talk(client)

    anyio.run(converse)
    return log.read_text()


def host(build: Path) -> list[str]:
    """What docs/guides/mcp.md tells a host of agents to start, for this build."""
    text = (ROOT / "docs" / "guides" / "mcp.md").read_text()
    result = json.JSONDecoder().raw_decode(text[text.index('{"mcpServers"') :])[0]["mcpServers"][
        "toolcatalog"
    ]
    assert result["command"] == "toolcatalog"
    assert "/srv/catalog/build" in result["args"]
    return [str(build) if item == "/srv/catalog/build" else item for item in result["args"]]


def test_agent_over_stdio(shipped_build: Path, tmp_path: Path) -> None:
    """Without a key; only the given toolkits and a session that allows no others."""

    async def talk(client: Client) -> None:
        assert "ROUTER_SEARCH_TOOLS" in (await listed(client))[4:]
        good, words, result = await call(client, "search_tools", query="create an issue")
        assert good
        assert {tool["toolkit"] for tool in result["tools"]} <= {"github", "linear", "slack"}
        assert "GITHUB_CREATE_ISSUE" in words
        assert (
            "That toolkit is not among"
            in (await call(client, "search_tools", query="a", toolkit="gmail"))[1]
        )
        assert (
            "That session allows toolkits that are not shown here."
            in (await call(client, "list_session_tools", session_id=FOREIGN))[1]
        )
        assert not (await call(client, "ROUTER_SEARCH_TOOLS"))[0]

    log = over_stdio(
        talk,
        tmp_path / "log",
        *host(shipped_build),
        "--session",
        SESSION,
        "--toolkit",
        "github, linear, slack",
    )
    assert "Traceback" not in log


def test_new_build_over_stdio(two: tuple[Path, str], tmp_path: Path) -> None:
    """It is loaded; a removed session is logged; a damaged build is refused."""
    folder, second = two
    third = Path(shutil.copytree(folder / "snapshots" / second, folder / "snapshots" / ("0" * 64)))
    (third / "tools.json").write_bytes(b"[]")

    async def talk(client: Client) -> None:
        assert len(await listed(client)) > 4
        files.replace_symlink(folder / "current", f"snapshots/{second}")

        async def is_gone() -> bool:
            return await listed(client) == OWN

        await wait_until(is_gone)
        assert await toolkit_name(client) == "GitHub again"
        files.replace_symlink(folder / "current", f"snapshots/{third.name}")

        async def is_refused() -> bool:
            return "is refused" in (tmp_path / "log").read_text()

        await wait_until(is_refused)
        assert await toolkit_name(client) == "GitHub again"

    log = over_stdio(talk, tmp_path / "log", "mcp", "--build", folder, "--session", SESSION)
    assert f"the tools of session {SESSION} are not listed" in log
    assert "Traceback" not in log


def test_server_json_starts_the_server(shipped_build: Path, tmp_path: Path) -> None:
    (package,) = json.loads((ROOT / "server.json").read_text())["packages"]
    values = {
        "--build": str(shipped_build),
        "--session": SESSION,
        "--toolkit": "github,linear,slack",
    }
    arguments = list[str]()
    for argument in package["packageArguments"]:
        name = argument.get("name")
        arguments += [name, values[name]] if name else [argument["value"]]

    async def talk(client: Client) -> None:
        assert (await listed(client))[:4] == OWN

    over_stdio(talk, tmp_path / "log", *arguments)


def test_client_is_notified_over_stdio(two: tuple[Path, str], tmp_path: Path) -> None:
    folder, second = two

    async def talk(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as changes:
            files.replace_symlink(folder / "current", f"snapshots/{second}")
            with anyio.fail_after(PATIENCE):
                assert isinstance(await anext(changes), ToolsListChanged)
        assert await listed(client) == OWN

    over_stdio(talk, tmp_path / "log", "mcp", "--build", folder, "--session", SESSION)


def test_older_client_is_notified(two: tuple[Path, str], tmp_path: Path) -> None:
    """After a handshake, without subscribing."""
    folder, second = two
    changed = anyio.Event()

    async def handle(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async def talk(client: Client) -> None:
        tools = client.server_capabilities.tools
        assert tools
        assert tools.list_changed
        assert len(await listed(client)) > 4
        files.replace_symlink(folder / "current", f"snapshots/{second}")
        with anyio.fail_after(PATIENCE):
            await changed.wait()
        assert await listed(client) == OWN

    log, about = tmp_path / "log", ("mcp", "--build", folder, "--session", SESSION)
    over_stdio(talk, log, *about, mode="legacy", message_handler=handle)


def test_standard_output_has_only_messages(shipped_build: Path) -> None:
    """The end of the input ends the server with 0."""
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "get_tool", "arguments": {"slug": "\0"}},
        },
        {
            "jsonrpc": "2.0",
            "id": 4,
            "method": "tools/call",
            "params": {"name": "get_tool", "arguments": {"slug": "\ud800"}},
        },
        {"jsonrpc": "2.0", "id": 3, "method": "tools/list"},
    ]
    command = [sys.executable, "-m", "toolcatalog", "mcp", "--build", str(shipped_build)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write("nonsense\n" + "".join(json.dumps(line) + "\n" for line in lines))
        process.stdin.flush()
        results: dict[Any, Any] = {}
        while not {2, 3} <= {*results}:
            message = json.loads(process.stdout.readline())
            results[message.get("id")] = message
        process.stdin.close()
        assert (process.stdout.read(), process.wait(timeout=PATIENCE)) == ("", 0)
        assert [tool["name"] for tool in results[3]["result"]["tools"]] == OWN
        assert results[2]["result"]["isError"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--session", "trs_no"], "There is no session trs_no in this build"),
        (
            ["--session", FOREIGN, "--toolkit", "slack,gmail"],
            f"Session {FOREIGN} allows toolkits that --toolkit does not name: hubspot, stripe.",
        ),
        (
            ["--toolkit", "slack,githb"],
            "There is no toolkit githb in this build. Did you mean github?",
        ),
        (["--build", "nowhere"], "There is no finished build in nowhere"),
    ],
)
def test_wrong_usage_exits_with_2(shipped_build: Path, arguments: list[str], sentence: str) -> None:
    result = run_toolcatalog(
        "mcp", *(() if "--build" in arguments else ("--build", shipped_build)), *arguments
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert sentence in result.stderr


@pytest.mark.parametrize("command", [["mcp"], ["serve", "--mcp", "--port", "0"]])
def test_missing_extra_is_reported(command: list[str], tmp_path: Path, shipped_build: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    result = run_toolcatalog(*command, "--build", shipped_build, env={"PYTHONPATH": str(tmp_path)})
    assert (result.returncode, "pip install 'toolcatalog[mcp]'" in result.stderr) == (2, True)
