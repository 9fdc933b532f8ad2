"""The MCP registry API: the servers of toolkits."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.command import run_successfully, run_toolcatalog
from support.openapi_judge import Judge
from support.server import Server, create_key, start_server, wait_until
from toolcatalog import openapi

JUDGE = Judge(json.loads(json.dumps(openapi.build_document())))
OFFICIAL = "io.modelcontextprotocol.registry/official"
SERVERS = {
    "alpha": {"name": "com.example/alpha", "version": "1.2.0", "url": "https://a.example/mcp"},
    "beta": {
        "name": "com.example/Beta",
        "version": "v2.0.0-rc.1",
        "url": "https://b.example/sse",
        "transport": "sse",
        "package": {"registry": "npm", "identifier": "@example/beta", "version": "3.1.4"},
    },
    "gamma": {
        "name": "io.github.someone/gamma",
        "version": "0.1.0",
        "package": {"registry": "oci", "identifier": "ghcr.io/someone/gamma:0.1.0"},
    },
    "delta": None,
    "epsilon": {
        "name": "org.example/epsilon",
        "version": "5",
        "package": {"registry": "pypi", "identifier": "epsilon-server"},
    },
}
DESCRIPTIONS = {"alpha": "Reads letters. And more.", "beta": "word " * 50}


def write_catalog(folder: Path) -> Path:
    """A catalog of one tool for each toolkit; that of `gamma` is deprecated."""
    catalog = folder / "catalog"
    for slug, server in SERVERS.items():
        home = catalog / "toolkits" / slug
        tool = home / f"{slug.upper()}_READ"
        tool.mkdir(parents=True)
        about = {
            "name": slug.title(),
            "description": DESCRIPTIONS.get(slug, ""),
            **({"mcp_server": server} if server else {}),
            **({"homepage": "https://a.example"} if slug == "alpha" else {}),
        }
        (home / "toolkit.yaml").write_text(json.dumps(about))
        deprecation: dict[str, Any] = {"deprecation": {}} if slug == "gamma" else {}
        value = json.dumps({"name": "Read", "description": "Read it.", **deprecation})
        for version in ("20250101_00", "20250601_00"):
            (tool / f"{version}.yaml").write_text(value)
    (catalog / "catalog.yaml").write_text(json.dumps({"title": "Servers"}))
    return catalog


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of that catalog."""
    folder = tmp_path_factory.mktemp("registry")
    catalog = write_catalog(folder)
    run_successfully("build", "--catalog", catalog, "--out", folder / "b", "--no-site")
    with start_server(folder / "b", folder) as server:
        yield server


def ask(server: Server, path: str, key: str = "", **headers: str) -> httpx.Response:
    """An answer, which is as the document says."""
    answer = httpx.get(
        f"{server.url}/v0.1/servers{path}", headers={"x-api-key": key or server.key, **headers}
    )
    JUDGE(answer)
    return answer


def names(answer: httpx.Response) -> list[str]:
    """The names of the servers in a list."""
    assert answer.status_code == 200
    result = [item["server"]["name"] for item in answer.json()["servers"]]
    assert answer.json()["metadata"]["count"] == len(result)
    return result


EVERY = ["com.example/Beta", "com.example/alpha", "io.github.someone/gamma", "org.example/epsilon"]


def test_all_servers_are_listed(server: Server) -> None:
    """Each toolkit with a server, sorted by name; the last page has no cursor."""
    answer = ask(server, "")
    assert names(answer) == EVERY
    assert "nextCursor" not in answer.json()["metadata"]


def test_server_fields(server: Server) -> None:
    """Addresses and packages as in `server.json`; texts and dates of the toolkit."""
    items: dict[str, Any] = {
        item["server"]["name"]: item for item in ask(server, "").json()["servers"]
    }
    alpha = items["com.example/alpha"]
    assert alpha == {
        "server": {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": "com.example/alpha",
            "title": "Alpha",
            "description": "Reads letters.",
            "version": "1.2.0",
            "websiteUrl": "https://a.example",
            "remotes": [{"type": "streamable-http", "url": "https://a.example/mcp"}],
        },
        "_meta": {
            OFFICIAL: {
                "status": "active",
                "publishedAt": "2025-01-01T00:00:00Z",
                "updatedAt": "2025-06-01T00:00:00Z",
                "isLatest": True,
            }
        },
    }
    beta = items["com.example/Beta"]["server"]
    assert beta["remotes"] == [{"type": "sse", "url": "https://b.example/sse"}]
    assert beta["packages"] == [
        {
            "registryType": "npm",
            "identifier": "@example/beta",
            "version": "3.1.4",
            "transport": {"type": "stdio"},
        }
    ]
    assert beta["description"].endswith("word...")
    assert len(beta["description"]) <= 100
    gamma = items["io.github.someone/gamma"]
    assert gamma["_meta"][OFFICIAL]["status"] == "deprecated"
    assert gamma["server"]["description"] == "Gamma"
    assert "version" not in gamma["server"]["packages"][0]
    assert items["org.example/epsilon"]["server"]["packages"][0]["version"] == "5"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?search=EXAMPLE/", [EVERY[0], EVERY[1], EVERY[3]]),
        ("?search=nothing", []),
        ("?version=latest", EVERY),
        ("?version=5", [EVERY[3]]),
        ("?updated_since=2025-06-01T00:00:00Z", EVERY),
        ("?updated_since=2025-06-01T00:00:01Z", []),
        ("?include_deleted=true", EVERY),
    ],
)
def test_filters(server: Server, query: str, expected: list[str]) -> None:
    """By a part of the name, a version or a time."""
    assert names(ask(server, query)) == expected


def test_pages_contain_each_server_once(server: Server) -> None:
    listed_names, cursor = list[str](), ""
    while True:
        answer = ask(server, f"?limit=3&cursor={cursor}")
        listed_names += names(answer)
        cursor = answer.json()["metadata"].get("nextCursor", "")
        if not cursor:
            break
    assert listed_names == EVERY


@pytest.mark.parametrize("name", ["com.example%2Falpha", "com.example/alpha"])
@pytest.mark.parametrize("version", ["latest", "1.2.0"])
def test_one_server(server: Server, name: str, version: str) -> None:
    """By name, with an encoded slash or not, and version; the version list has one entry."""
    every = {item["server"]["name"]: item for item in ask(server, "").json()["servers"]}
    url = f"{server.url}/v0.1/servers/{name}/versions"
    headers = {"x-api-key": server.key}
    result = httpx.get(f"{url}/{version}", headers=headers)
    assert result.json() == every["com.example/alpha"]
    assert httpx.get(url, headers=headers).json()["servers"] == [result.json()]
    again = httpx.get(
        f"{url}/{version}", headers={**headers, "if-none-match": result.headers["etag"]}
    )
    assert again.status_code == 304


@pytest.mark.parametrize(
    ("path", "slug", "fix"),
    [
        ("/com.example%2Falpa/versions", "server_not_found", "Did you mean com.example/alpha?"),
        ("/x%2Fy/versions/latest", "server_not_found", "List all of them"),
        ("/com.example%2Falpha/versions/2", "server_version_not_found", "Use latest, or 1.2.0."),
    ],
)
def test_unknown_server_is_404(server: Server, path: str, slug: str, fix: str) -> None:
    answer = ask(server, path)
    assert (answer.status_code, answer.json()["error"]["slug"]) == (404, slug)
    assert fix in answer.json()["error"]["suggested_fix"]


def test_limited_key_sees_only_its_servers(server: Server) -> None:
    key = create_key(server.keys_file, "--toolkit", "alpha")
    wait_until(
        lambda: httpx.get(f"{server.url}/v0.1/servers", headers={"x-api-key": key}).is_success
    )
    assert names(ask(server, "", key)) == ["com.example/alpha"]
    hidden = ask(server, "/com.example%2FBeta/versions/latest", key)
    assert hidden.status_code == 404
    assert "Beta" not in hidden.json()["error"]["suggested_fix"]
    assert names(ask(server, "?search=beta", key)) == []


def test_browsers_may_read_the_registry(server: Server) -> None:
    """With CORS as the rest of the API; other methods are refused."""
    answer = ask(server, "", origin="https://host.example")
    assert answer.headers["access-control-allow-origin"] == "*"
    for path in ("", "/com.example%2Falpha/versions", "/com.example/alpha/versions/latest"):
        assert httpx.post(f"{server.url}/v0.1/servers{path}").status_code == 405


@pytest.mark.parametrize(
    ("mcp_server", "rule", "words"),
    [
        ({"name": "alpha"}, "wrong-value", "a name in reverse-DNS form"),
        ({"name": "../x/y"}, "wrong-value", "a name in reverse-DNS form"),
        ({"version": "latest"}, "wrong-value", "not a range"),
        ({"version": "^1.2"}, "wrong-value", "not a range"),
        ({"url": "http://a.example"}, "wrong-value", "the https URL"),
        ({"url": "https://127.0.0.1/mcp"}, "wrong-value", "a host with a name"),
        ({"transport": "stdio"}, "wrong-value", "streamable-http (default) or sse"),
        ({"package": {"registry": "npm"}}, "missing-key", "add a line `identifier: ...`"),
        ({"url": None}, "missing-key", "neither `url` nor `package`"),
        ({"name": "com.example/BETA"}, "slug-taken", "MCP server of toolkit `beta`"),
    ],
)
def test_invalid_server_field_is_reported(
    tmp_path: Path, mcp_server: dict[str, Any], rule: str, words: str
) -> None:
    """With place and expectation."""
    catalog = write_catalog(tmp_path)
    value = {**SERVERS["alpha"], **mcp_server}  # type: ignore[dict-item]
    about = {
        "name": "Delta",
        "mcp_server": {key: text for key, text in value.items() if text is not None},
    }
    (catalog / "toolkits/alpha/toolkit.yaml").write_text('{"name": "Alpha"}')
    (catalog / "toolkits/delta/toolkit.yaml").write_text(json.dumps(about))
    result = run_toolcatalog("check", "--catalog", catalog)
    assert result.returncode == 1
    assert "toolkits/delta/toolkit.yaml:1:" in result.stdout
    assert f"error[{rule}]" in result.stdout
    assert words in result.stdout
