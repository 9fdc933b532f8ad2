"""The OpenAPI document matches the server: schemathesis, and a test for each response."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from starlette.types import ASGIApp

from support.openapi_judge import Judge
from support.paths import ROOT
from support.profile import DEEP_PROFILE
from support.server import Server, create_key, start_server
from toolcatalog import openapi
from toolcatalog.keys.api_keys import KeyRing
from toolcatalog.server import app, dispatcher, responses
from toolcatalog.server.state import AppState
from toolcatalog.store.open import open_build

SETTINGS = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 429]  # 400: contracting.py has a closer look

[phases.stateful.generation]
# other phases send invalid values; here a false or a {} would count as one
mode = "positive"
"""
QUICK = "--include-path-regex=^/(api/v3/|v0|[a-z]+z$)"  # `/api/v3.1` is the same code
PHASES = "examples,coverage,fuzzing,stateful"


@pytest.fixture(scope="module")
def limited(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server where a key may list twice an hour."""
    with start_server(shipped_build, tmp_path_factory.mktemp("limited"), "--rate", "2/h") as server:
        yield server


def run_schemathesis(
    server: Server, folder: Path, key: str | None, phases: str, maximum: int
) -> None:
    """Run schemathesis with all checks against the server, with this key."""
    (folder / "schemathesis.toml").write_text(SETTINGS)
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "--config-file",
        "schemathesis.toml",
        "run",
        f"{server.url}/openapi.json",
        "--no-color",
    ]
    command += [
        "--checks",
        "all",
        "--phases",
        PHASES if DEEP_PROFILE else phases,
        "--max-examples",
        str(100 if DEEP_PROFILE else maximum),
    ]
    command += ["--generation-deterministic", "--warnings", "off"]
    command += [] if DEEP_PROFILE else [QUICK]
    command += ["--header", f"x-api-key: {key}"] if key else []
    paths = os.pathsep.join(filter(None, [str(ROOT / "tests"), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "SCHEMATHESIS_HOOKS": "support.schemathesis_hooks", "PYTHONPATH": paths}
    result = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=1200, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{19 if DEEP_PROFILE else 12} selected" in result.stdout, result.stdout
    assert "Traceback" not in server.log.read_text()


def test_responses_match_openapi_with_a_key(shipped: Server, tmp_path: Path) -> None:
    """For valid and invalid requests."""
    run_schemathesis(shipped, tmp_path, shipped.key, "coverage,fuzzing", 2)


def test_responses_match_openapi_without_a_key(shipped: Server, tmp_path: Path) -> None:
    run_schemathesis(shipped, tmp_path, None, "fuzzing", 2)


@pytest.mark.deep
def test_responses_match_openapi_with_a_limited_key(shipped: Server, tmp_path: Path) -> None:
    key = create_key(shipped.keys_file, "--toolkit", "slack")
    wait_for_status(f"{shipped.url}/api/v3/tools?limit=1", 200, {"x-api-key": key})
    run_schemathesis(shipped, tmp_path, key, "fuzzing", 2)


@pytest.mark.deep
def test_responses_match_openapi_beyond_the_rate_limit(limited: Server, tmp_path: Path) -> None:
    run_schemathesis(limited, tmp_path, limited.key, "fuzzing", 2)
    wait_for_status(f"{limited.url}/api/v3/tools", 429, {"x-api-key": limited.key})


def wait_for_status(
    url: str, status: int, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """Return the first response with this status."""
    end = time.monotonic() + 30
    while (result := httpx.get(url, headers=headers)).status_code != status:
        assert time.monotonic() < end, result.text
        time.sleep(0.05)
    return result


# Each answer that the document names


class ContractRequest(NamedTuple):
    """A request: method, path, key (None: without) and body."""

    path: str
    key: str | None = "all"
    body: bytes = b""


TOOL, LIST, SESSION = (
    "/api/v3/tools/{tool_slug}",
    "/api/v3/tools",
    "/api/v3/tool_router/session/{session_id}/tools",
)
SLUGS, TOOLKITS, CATEGORIES, TOOLKIT = (
    "/api/v3/tools/enum",
    "/api/v3/toolkits",
    "/api/v3/toolkits/categories",
    "/api/v3/toolkits/{toolkit_slug}",
)
SERVERS, SERVER_VERSIONS, SERVER = (
    openapi.SERVERS_PATH,
    openapi.SERVER_VERSIONS_PATH,
    openapi.SERVER_PATH,
)
LISTS = (LIST, SLUGS, TOOLKITS, CATEGORIES, SERVERS)
PLAIN = {
    (TOOL, 200): ContractRequest("/api/v3/tools/GITHUB_CREATE_ISSUE"),
    (TOOL, 400): ContractRequest("/api/v3/tools/GITHUB_CREATE_ISSUE?version=no"),
    (TOOL, 401): ContractRequest("/api/v3/tools/GITHUB_CREATE_ISSUE", key=None),
    (TOOL, 404): ContractRequest("/api/v3/tools/GITHUB_CREATE_NOTHING"),
    (LIST, 200): ContractRequest("/api/v3/tools?limit=2"),
    (LIST, 400): ContractRequest("/api/v3/tools?limit=0"),
    (LIST, 401): ContractRequest("/api/v3/tools", key=None),
    (LIST, 403): ContractRequest("/api/v3/tools?toolkit_slug=github", key="slack"),
    (LIST, 404): ContractRequest("/api/v3/tools?toolkit_slug=nothing"),
    (SLUGS, 200): ContractRequest(SLUGS),
    (SLUGS, 401): ContractRequest(SLUGS, key=None),
    (TOOLKITS, 200): ContractRequest("/api/v3/toolkits?limit=2"),
    (TOOLKITS, 400): ContractRequest("/api/v3/toolkits?sort_by=size"),
    (TOOLKITS, 401): ContractRequest(TOOLKITS, key=None),
    (CATEGORIES, 200): ContractRequest(CATEGORIES),
    (CATEGORIES, 400): ContractRequest("/api/v3/toolkits/categories?cursor=x"),
    (CATEGORIES, 401): ContractRequest(CATEGORIES, key=None),
    (TOOLKIT, 200): ContractRequest("/api/v3/toolkits/github"),
    (TOOLKIT, 400): ContractRequest("/api/v3/toolkits/github?version=no"),
    (TOOLKIT, 401): ContractRequest("/api/v3/toolkits/github", key=None),
    (TOOLKIT, 404): ContractRequest("/api/v3/toolkits/github", key="slack"),
    (SERVERS, 200): ContractRequest("/v0.1/servers?limit=1"),
    (SERVERS, 400): ContractRequest("/v0.1/servers?updated_since=yesterday"),
    (SERVERS, 401): ContractRequest(SERVERS, key=None),
    (SERVER_VERSIONS, 200): ContractRequest("/v0.1/servers/com.stripe%2Fmcp/versions"),
    (SERVER_VERSIONS, 401): ContractRequest("/v0.1/servers/com.stripe%2Fmcp/versions", key=None),
    (SERVER_VERSIONS, 404): ContractRequest("/v0.1/servers/com.stripe%2Fmcp/versions", key="slack"),
    (SERVER, 200): ContractRequest("/v0.1/servers/com.stripe%2Fmcp/versions/latest"),
    (SERVER, 401): ContractRequest("/v0.1/servers/com.stripe%2Fmcp/versions/latest", key=None),
    (SERVER, 404): ContractRequest("/v0.1/servers/com.stripe%2Fmcp/versions/9.9"),
    (SESSION, 200): ContractRequest("/api/v3/tool_router/session/trs_playground/tools?limit=1"),
    (SESSION, 400): ContractRequest("/api/v3/tool_router/session/trs_playground/tools", body=b"[]"),
    (SESSION, 401): ContractRequest("/api/v3/tool_router/session/trs_playground/tools", key=None),
    (SESSION, 403): ContractRequest("/api/v3/tool_router/session/trs_open_data/tools"),
    (SESSION, 404): ContractRequest("/api/v3/tool_router/session/trs_nothing/tools"),
    ("/healthz", 200): ContractRequest("/healthz", key=None),
    ("/readyz", 200): ContractRequest("/readyz", key=None),
    ("/openapi.json", 200): ContractRequest("/openapi.json", key=None),
}
ELSEWHERE = {  # by tests of their own, below
    *(
        (path, 500)
        for path in (
            *(TOOL, *LISTS, TOOLKIT, SESSION, SERVER_VERSIONS, SERVER),
            *("/healthz", "/readyz", "/openapi.json"),
        )
    ),
    *((path, 429) for path in LISTS),
    ("/readyz", 503),
}
JUDGE = Judge(json.loads(json.dumps(openapi.build_document())))


def test_all_documented_responses_are_tested() -> None:
    names = {
        (path, int(status))
        for path, item in JUDGE.document["paths"].items()
        for status in item["get"]["responses"]
    }
    tried = {*PLAIN, *ELSEWHERE}
    assert names == tried | {(path.replace("/v3/", "/v3.1/"), status) for path, status in tried}


@pytest.mark.parametrize(("operation", "status"), [*PLAIN])
def test_response_matches_its_schema(
    shipped: Server, slack_key: str, operation: str, status: int
) -> None:
    """Each status, at both prefixes."""
    request = PLAIN[operation, status]
    key = {"all": shipped.key, "slack": slack_key}.get(request.key or "")
    for path in {request.path, request.path.replace("/v3/", "/v3.1/", 1)}:
        answer = httpx.request(
            "GET",
            shipped.url + path,
            headers={"x-api-key": key} if key else {},
            content=request.body,
        )
        assert answer.status_code == status, answer.text
        JUDGE(answer)


@pytest.fixture(scope="module")
def slack_key(shipped: Server) -> str:
    """A key that sees toolkit slack alone."""
    key = create_key(shipped.keys_file, "--toolkit", "slack")
    wait_for_status(f"{shipped.url}/api/v3/tools?limit=1", 200, {"x-api-key": key})
    return key


@pytest.mark.parametrize("prefix", openapi.API_PREFIXES)
@pytest.mark.parametrize("path", LISTS)
def test_rate_limit_response_matches_its_schema(limited: Server, path: str, prefix: str) -> None:
    """429 with the documented headers."""
    path = path.replace("/api/v3", prefix)
    answer = wait_for_status(f"{limited.url}{path}", 429, {"x-api-key": limited.key})
    JUDGE(answer)
    assert {*JUDGE.document["components"]["responses"]["RateLimited"]["headers"]} <= {
        _titled(name) for name in answer.headers
    }


def _titled(name: str) -> str:
    return {"ratelimit": "RateLimit", "ratelimit-policy": "RateLimit-Policy"}.get(
        name, name.title()
    )


def test_readyz_is_503_during_shutdown(shipped_build: Path, tmp_path: Path) -> None:
    """Other routes still work."""
    with start_server(shipped_build, tmp_path, "--drain", "60") as server:
        wait_for_status(f"{server.url}/readyz", 200)
        server.process.terminate()
        JUDGE(wait_for_status(f"{server.url}/readyz", 503))
        assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_internal_error_matches_its_schema(
    shipped: Server, shipped_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 at every operation, with a fault injected into the response builder."""
    for module in (dispatcher, responses):
        monkeypatch.setattr(module, "make_response", lambda *_: 1 / 0)
    faulty = app.create_app(AppState(KeyRing(shipped.keys_file), open_build(shipped_build)), None)
    result = asyncio.run(
        _answers(
            faulty,
            [request.path for (_, status), request in PLAIN.items() if status == 200],
            shipped.key,
        )
    )
    assert [answer.status_code for answer in result] == [500] * 13
    for answer in result:
        JUDGE(answer)


async def _answers(faulty: ASGIApp, paths: list[str], key: str) -> list[httpx.Response]:
    transport = httpx.ASGITransport(faulty, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://here", headers={"x-api-key": key}
    ) as client:
        return [await client.get(path) for path in paths]
