"""The room `server`: what stands on the wire, seen from outside a real server with plain HTTP and,
where that hides things, a socket.

Every answer to the client of these tests is also held against its schema in the server's own
OpenAPI document.
"""

import gzip
import json
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_spec_validator import validate

from support import openapi_judge, snapshot_reader
from support.command import run_successfully
from support.server import Server, create_key, start_server
from support.snapshot_reader import read_documents, read_newest_documents
from toolcatalog.keys import api_keys

TOOL = "/api/v3/tools/GITHUB_CREATE_ISSUE"
LIST = "/api/v3/tools"
SESSION = "/api/v3/tool_router/session/trs_playground/tools"
CODINGS = ("identity", "gzip")
OPEN = ("/openapi.json", "/healthz", "/readyz")
FIELDS = {"message", "code", "slug", "status", "request_id", "suggested_fix", "errors"}
ORIGIN = {"Origin": "https://somewhere.example"}


@pytest.fixture(scope="module")
def judge(shipped: Server) -> openapi_judge.Judge:
    """The judge by the shipped server's document."""
    return openapi_judge.Judge(httpx.get(f"{shipped.url}/openapi.json").json())


@pytest.fixture(scope="module")
def client(shipped: Server, judge: openapi_judge.Judge) -> Iterator[httpx.Client]:
    """A client with the key of project `default`, whose every answer is judged."""
    with httpx.Client(
        base_url=shipped.url, headers={"x-api-key": shipped.key}, event_hooks={"response": [judge]}
    ) as client:
        yield client


@pytest.fixture(scope="module")
def slack_only(client: httpx.Client, shipped: Server) -> dict[str, str]:
    """The header of a key that may see toolkit slack and no other."""
    key = create_key(shipped.keys_file, "--toolkit", "slack")
    settles(client, key, 200)
    return {"x-api-key": key}


@pytest.fixture(scope="module")
def broken(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a snapshot in which one document has been changed since, its size kept."""
    folder = tmp_path_factory.mktemp("broken")
    build = Path(shutil.copytree(shipped_build, folder / "build", symlinks=True))
    file = build / "current" / "tools.json"
    document = read_newest_documents(build / "current")["GITHUB_CREATE_ISSUE"]
    file.write_bytes(file.read_bytes().replace(document, document.replace(b"issue", b"Issue", 1)))
    assert file.stat().st_size == (shipped_build / "current" / "tools.json").stat().st_size
    with start_server(build, folder) as server:
        yield server


def error(response: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """The error of an answer, after a look at the envelope: seven fields, each of its type, none
    empty.
    """
    assert response.status_code == status
    assert [*response.json()] == ["error"]
    results: dict[str, Any] = response.json()["error"]
    assert {*results} == FIELDS
    assert (results["status"], results["code"], results["slug"]) == (status, 1000 + status, slug)
    assert results["request_id"] == response.headers["x-request-id"]
    assert all(
        isinstance(results[name], str) and results[name]
        for name in ("message", "suggested_fix", "request_id")
    )
    assert results["errors"]
    assert all(isinstance(line, str) and line for line in results["errors"])
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    return results


def send_bytes(server: Server, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes and read until the server closes; return status, headers in lower case,
    and body.
    """
    host, port = server.url.removeprefix("http://").split(":")
    answer = b""
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(request)
        while data := connection.recv(65536):
            answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    return (
        int(status.split()[1]),
        {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)},
        body,
    )


def get(path: str, *headers: str) -> bytes:
    """A GET request as bytes that ends its connection."""
    return "\r\n".join(
        [f"GET {path} HTTP/1.1", "Host: a", "Connection: close", *headers, "", ""]
    ).encode("latin-1")


def logged(server: Server, line: str) -> str:
    """Wait until the log contains a text, and return the log."""
    deadline = time.monotonic() + 5
    while line not in (log := server.log.read_text()):
        assert time.monotonic() < deadline, log
        time.sleep(0.02)
    return log


def settles(client: httpx.Client, key: str, status: int) -> float:
    """How many seconds it takes until a key gets this status."""
    start = time.monotonic()
    while client.get("/api/v3/tools?limit=1", headers={"x-api-key": key}).status_code != status:
        assert time.monotonic() - start < 5
        time.sleep(0.02)
    return time.monotonic() - start


# Errors


@pytest.mark.parametrize(
    ("path", "status", "slug", "line"),
    [
        (f"{LIST}?limit=abc", 400, "invalid_request", "limit: 'abc' is not a whole number from 1."),
        (
            f"{LIST}/github_create_issue",
            400,
            "invalid_request",
            "tool_slug: 'github_create_issue' is not a tool slug.",
        ),
        (
            f"{LIST}?toolkit_versions[github]=99999999_99",
            400,
            "invalid_request",
            "toolkit_versions: toolkit github has no version 99999999_99.",
        ),
        (
            f"{LIST}?toolkit_versions[githb]=99999999_99",
            400,
            "invalid_request",
            "toolkit_versions: there is no toolkit githb.",
        ),
        (
            "/api/v3/tool_router/session/abc/tools",
            400,
            "invalid_request",
            "session_id: 'abc' is not a session id.",
        ),
        (
            "/api/v3/tool_router/session/trs_open_data/tools",
            403,
            "forbidden",
            "session_id: trs_open_data belongs to another project.",
        ),
        (
            f"{LIST}/GITHUB_CREATE_ISSU",
            404,
            "tool_not_found",
            "tool_slug: there is no tool GITHUB_CREATE_ISSU.",
        ),
        (
            f"{TOOL}?version=99999999_99",
            404,
            "tool_version_not_found",
            "version: GITHUB_CREATE_ISSUE has no version 99999999_99.",
        ),
        (
            f"{TOOL}?toolkit_versions[github]=99999999_99",
            404,
            "tool_version_not_found",
            "toolkit_versions: toolkit github has no version 99999999_99.",
        ),
        (
            f"{LIST}?toolkit_slug=githb",
            404,
            "toolkit_not_found",
            "toolkit_slug: there is no toolkit githb.",
        ),
        (
            f"{LIST}?auth_config_ids=ac_nope",
            404,
            "auth_config_not_found",
            "auth_config_ids: there is no auth config ac_nope.",
        ),
        (
            "/api/v3/tool_router/session/trs_nope/tools",
            404,
            "session_not_found",
            "session_id: there is no session trs_nope.",
        ),
        ("/nothing/here", 404, "route_not_found", "There is no route for /nothing/here."),
    ],
)
def test_error_has_status_slug_and_message(
    client: httpx.Client, path: str, status: int, slug: str, line: str
) -> None:
    result = error(client.get(path), status, slug)
    assert result["errors"] == [line]
    assert result["message"] == line


@pytest.mark.parametrize(
    ("path", "fix"),
    [
        (f"{LIST}/GITHUB_CREATE_ISSU", "GITHUB_CREATE_ISSUE"),
        (f"{LIST}/github_create_issue", "GITHUB_CREATE_ISSUE"),
        (f"{LIST}?toolkit_slug=githb", "github"),
        (f"{LIST}?toolkit_versions[githb]=20250101_00", "github"),
        (f"{LIST}?auth_config_ids=ac_slack_defalt", "ac_slack_default"),
        ("/nothing", "/openapi.json"),
    ],
)
def test_error_suggests_the_nearest_name(client: httpx.Client, path: str, fix: str) -> None:
    """In `suggested_fix`."""
    assert fix in client.get(path).json()["error"]["suggested_fix"]


@pytest.mark.parametrize(
    "path",
    [
        f"{TOOL}?version=99999999_99",
        f"{TOOL}?toolkit_versions[github]=99999999_99",
        f"{LIST}?toolkit_versions[github]=99999999_99",
    ],
)
def test_unknown_version_error_lists_versions(client: httpx.Client, path: str) -> None:
    """In `suggested_fix`."""
    fix = client.get(path).json()["error"]["suggested_fix"]
    assert all(version in fix for version in client.get(TOOL).json()["available_versions"])


@pytest.mark.parametrize(
    ("path", "body", "status", "names"),
    [
        (
            (
                f"{LIST}?limit=0&cursor=x&sort_by=a&order=b&important=c&include_deprecated=d"
                "&toolkit_versions=e&toolkit_slug=no,nix&auth_config_ids=x"
            ),
            b"",
            400,
            [
                "auth_config_ids",
                "cursor",
                "important",
                "include_deprecated",
                "limit",
                "order",
                "sort_by",
                "toolkit_slug",
                "toolkit_slug",
                "toolkit_versions",
            ],
        ),
        (
            f"{LIST}/nope?version=1&toolkit_versions[a]=2",
            b"",
            400,
            ["tool_slug", "toolkit_versions[a]", "version"],
        ),
        (f"{LIST}/NOPE?toolkit_versions=2", b"", 400, ["tool_slug", "toolkit_versions"]),
        (
            f"{LIST}?toolkit_slug=nope&auth_config_ids=ac_nope",
            b"",
            404,
            ["auth_config_ids", "toolkit_slug"],
        ),
        (
            "/api/v3/tool_router/session/trs_nope/tools?limit=0",
            b"[]",
            400,
            ["body", "limit", "session_id"],
        ),
        (
            "/api/v3/tool_router/session/nope/tools?cursor=0",
            b"{",
            400,
            ["body", "cursor", "session_id"],
        ),
    ],
)
def test_all_problems_of_a_request_are_reported(
    client: httpx.Client, path: str, body: bytes, status: int, names: list[str]
) -> None:
    """A line each in `errors`; a malformed request has priority over unknown names."""
    response = client.request("GET", path, content=body)
    assert response.status_code == status
    assert sorted(line.split(":")[0] for line in response.json()["error"]["errors"]) == names
    assert f" {len(names)} problems" in response.json()["error"]["message"]


@pytest.mark.parametrize("path", [TOOL, LIST + "?tool_slugs=GITHUB_CREATE_ISSUE"])
def test_internal_error_shows_only_its_request_id(
    broken: Server, judge: openapi_judge.Judge, path: str
) -> None:
    """The log has the traceback under that id, and no key; browsers can read the response."""
    headers = {
        "x-api-key": broken.key,
        "X-Request-Id": f"fault-{len(path)}",
        "Accept-Encoding": "identity",  # the compressed documents are not damaged
        **ORIGIN,
    }
    response = httpx.get(broken.url + path, headers=headers)
    judge(response)
    result = error(response, 500, "internal_error")
    assert result["request_id"] == f"fault-{len(path)}"
    assert result["errors"] == ["Something went wrong on the server."]
    assert not re.search(r"SnapshotError|snapshot|Traceback|\.py|\.json|GITHUB|/", response.text)
    assert response.headers["access-control-allow-origin"] == "*"
    log = logged(
        broken, f"request fault-{len(path)}: GET '{path.partition('?')[0]}' failed\n  Traceback"
    )
    assert "SnapshotError: The document of tool version" in log[log.index(f"fault-{len(path)}") :]
    assert broken.key not in log


def test_server_survives_an_internal_error(broken: Server, judge: openapi_judge.Judge) -> None:
    """The connection, too."""
    headers = {"x-api-key": broken.key, "Accept-Encoding": "identity"}
    with httpx.Client(
        base_url=broken.url, headers=headers, event_hooks={"response": [judge]}
    ) as client:
        statuses = [
            client.get(path).status_code
            for path in (TOOL, "/api/v3/tools/SLACK_SEND_MESSAGE", TOOL, "/healthz")
        ]
    assert statuses == [500, 200, 500, 200]


def test_client_disconnect_logs_no_error(shipped: Server) -> None:
    host, port = shipped.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(
            get(SESSION, f"x-api-key: {shipped.key}", "X-Request-Id: gone", "Content-Length: 9")[
                :-2
            ]
            + b"\r\n{"
        )
        time.sleep(0.1)
    assert httpx.get(f"{shipped.url}/healthz").status_code == 200
    time.sleep(0.1)
    log = shipped.log.read_text()
    assert "request gone" not in log
    assert "Traceback" not in log


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "path", [LIST, TOOL, SESSION, "/api/v3.1/tools", *OPEN, "/", "/tools/GITHUB_CREATE_ISSUE/"]
)
def test_other_methods_are_405(client: httpx.Client, method: str, path: str) -> None:
    """With `Allow`, with and without a key."""
    for headers in ({}, {"x-api-key": ""}):
        response = client.request(method, path, headers=headers)
        assert error(response, 405, "method_not_allowed")["errors"] == [
            f"{method} is not answered at {path}."
        ]
        assert response.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/api/v3",
        "/api/v3/",
        "/api/v3/tools/",
        f"{TOOL}/",
        f"{TOOL}/x",
        "/api/v3/tools/A%2FB",
        "/api/v2/tools",
        "/api/v3.2/tools",
        "/api/v3.10/tools",
        "/api/V3/tools",
        "/API/v3/tools",
        "//api/v3/tools",
        "/api//v3/tools",
        "/api/v3/tool_router/session/trs_playground",
        "/api/v3/tool_router/session/trs_playground/tools/",
        "/api/v3/tool_router/session//tools",
        "/openapi.json/",
        "/healthz/",
        "/nothing",
        "/%00",
        "/%FF",
        "/a%0d%0ab",
        "/" + "x" * 5000,
    ],
)
def test_unknown_paths_are_404(client: httpx.Client, path: str) -> None:
    """Also with a trailing slash, and with any bytes."""
    assert len(error(client.get(path), 404, "route_not_found")["message"]) < 300


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_unknown_api_paths_are_404_for_all_methods(client: httpx.Client, method: str) -> None:
    """With and without a site."""
    error(client.request(method, "/api/v3/nothing"), 404, "route_not_found")


# Request ids


@pytest.mark.parametrize(
    "given",
    ["a", "0", "req_1", "6f1c4b1e-6a4c-4a37-9c0e-8d3f2a1b0c9d", "trace:1/2+3=@4.5", "x" * 128],
)
def test_valid_request_id_is_echoed(client: httpx.Client, given: str) -> None:
    """In the header and in error bodies."""
    for path, headers in (
        (TOOL, {}),
        (LIST + "?limit=0", {}),
        (LIST, {"x-api-key": ""}),
        ("/", {}),
        ("/nothing", {}),
    ):
        response = client.get(path, headers={"X-Request-Id": given, **headers})
        assert response.headers["x-request-id"] == given


@pytest.mark.parametrize(
    "given",
    [
        "",
        " ",
        "x" * 129,
        "a b",
        "a\tb",
        "a,b",
        "<script>",
        "a;b",
        'a"b',
        "a'b",
        "a\\b",
        "{a}",
        "%0d%0aSet-Cookie:x=1",
        "é",
        "\xa0",
        "-",
        "_a",
        "..",
    ],
)
def test_invalid_request_id_is_replaced(shipped: Server, given: str) -> None:
    """Empty, long, or with spaces or special characters."""
    status, headers, body = send_bytes(shipped, get("/nothing", f"X-Request-Id: {given}"))
    assert status == 404
    assert re.fullmatch(r"[0-9a-f]{32}", headers["x-request-id"])
    assert json.loads(body)["error"]["request_id"] == headers["x-request-id"]


def test_generated_request_ids_are_unique(client: httpx.Client) -> None:
    assert len({client.get("/healthz").headers["x-request-id"] for _ in range(20)}) == 20


# Caching, HEAD, compression


def spellings(tag: str) -> list[str]:
    """Ways to name a tag in If-None-Match."""
    return [tag, f"W/{tag}", f'"other", {tag}', f'W/"x",W/{tag} , "y"']


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(
    "path",
    [TOOL, f"{TOOL}?version=latest", f"{LIST}?limit=3", SESSION, f"{SESSION}?limit=1", *OPEN],
)
def test_matching_etag_is_304(client: httpx.Client, path: str, coding: str) -> None:
    """For every spelling of `If-None-Match`, without a body."""
    document = client.get(path, headers={"Accept-Encoding": coding})
    tag = document.headers["etag"]
    packed = "content-encoding" in document.headers
    assert re.fullmatch(f'"[0-9a-f]{{32}}{f"-{coding}" if packed else ""}"', tag)
    for header in [*spellings(tag), *([] if packed else ["*"])]:
        same = client.get(path, headers={"If-None-Match": header, "Accept-Encoding": coding})
        assert (same.status_code, same.content) == (304, b""), header
        for name in ("etag", "cache-control", "vary"):
            assert same.headers[name] == document.headers[name]
    for other in (
        {"If-None-Match": '"x"'},
        {"If-None-Match": tag[1:-1]},
        {"If-None-Match": ""},
        {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
    ):
        repeated = client.get(path, headers={**other, "Accept-Encoding": coding})
        assert (repeated.status_code, repeated.content, repeated.headers["etag"]) == (
            200,
            document.content,
            tag,
        )


def test_etag_depends_only_on_the_bytes(client: httpx.Client) -> None:
    """Under either prefix; another coding has another one."""
    both = [TOOL, TOOL.replace("v3", "v3.1")]
    tags = {
        (path, coding): client.get(path, headers={"Accept-Encoding": coding}).headers["etag"]
        for path in both
        for coding in CODINGS
    }
    assert all(tags[both[0], coding] == tags[both[1], coding] for coding in CODINGS)
    assert len({*tags.values()}) == len(CODINGS)
    assert client.get(LIST).headers["etag"] not in tags.values()


def test_etag_of_another_coding_matches(client: httpx.Client) -> None:
    """The 304 has the tag that the client sent."""
    tags = [
        client.get(TOOL, headers={"Accept-Encoding": coding}).headers["etag"] for coding in CODINGS
    ]
    for coding, tag in product(CODINGS, tags):
        headers = {"Accept-Encoding": coding, "If-None-Match": tag}
        response = client.get(TOOL, headers=headers)
        assert (response.status_code, response.headers["etag"]) == (304, tag)


def test_compressed_site_pages_have_a_weak_etag(client: httpx.Client) -> None:
    """Based on the plain bytes."""
    gzip_header = {"Accept-Encoding": "gzip"}
    tag = client.get("/", headers=gzip_header).headers["etag"]
    assert tag == "W/" + client.get("/", headers={"Accept-Encoding": "identity"}).headers["etag"]
    assert client.get("/", headers={**gzip_header, "If-None-Match": tag}).status_code == 304


def test_error_is_never_304(client: httpx.Client) -> None:
    """For `If-None-Match: *`, also without a key."""
    assert client.get(f"{LIST}/NOPE", headers={"If-None-Match": "*"}).status_code == 404
    assert client.get(TOOL, headers={"If-None-Match": "*", "x-api-key": ""}).status_code == 401


@pytest.mark.parametrize("path", [TOOL, LIST, f"{LIST}?limit=1&query=issue", SESSION, *OPEN])
def test_responses_are_private_and_revalidated(client: httpx.Client, path: str) -> None:
    """With all inputs in `Vary`."""
    headers = client.get(path, headers=ORIGIN).headers
    assert headers["cache-control"] == "private, no-cache"
    assert {"Accept-Encoding", "x-api-key"} == {*headers["vary"].split(", ")}


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
@pytest.mark.parametrize(
    "path",
    [TOOL, LIST, SESSION, *OPEN, f"{LIST}/NOPE", f"{LIST}?limit=0", "/nothing", "/api/v3/tools/"],
)
def test_head_is_get_without_a_body(shipped: Server, path: str, encoding: str) -> None:
    """Same status and headers, for errors and gzip, too."""
    request = get(
        path, f"x-api-key: {shipped.key}", "X-Request-Id: same", f"Accept-Encoding: {encoding}"
    )
    status, headers, body = send_bytes(shipped, request)
    head_status, head_headers, head_body = send_bytes(shipped, b"HEAD" + request[3:])
    assert int(headers["content-length"]) == len(body) > 0
    assert head_body == b""
    assert (head_status, without_headers(head_headers, "date")) == (
        status,
        without_headers(headers, "date"),
    )


def without_headers(headers: Mapping[str, str], *names: str) -> dict[str, str]:
    """Return the headers without these."""
    return {name: value for name, value in headers.items() if name not in names}


def test_head_of_a_page_has_no_body(shipped: Server) -> None:
    status, headers, body = send_bytes(shipped, b"HEAD" + get("/")[3:])
    assert (status, body) == (200, b"")
    assert headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "header",
    [
        "gzip",
        "GZIP",
        "gzip, deflate",
        "br;q=1.0, gzip;q=0.8, *;q=0.1",
        "gzip;q=0.001",
        "gzip ; q=1",
        "deflate,gzip",
        "gzip, deflate, br, zstd",
        "x-gzip",
        "*",
        "br, *;q=0.5",
    ],
)
@pytest.mark.parametrize("path", [LIST, SESSION, "/openapi.json", "/"])
def test_gzip_on_request(shipped: Server, path: str, header: str) -> None:
    """It unpacks to the plain bytes and has `Vary`."""
    status, headers, body = send_bytes(
        shipped, get(path, f"x-api-key: {shipped.key}", f"Accept-Encoding: {header}")
    )
    plain = send_bytes(shipped, get(path, f"x-api-key: {shipped.key}"))[2]
    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert "Accept-Encoding" in headers["vary"]
    assert gzip.decompress(body if "content-length" in headers else unchunked(body)) == plain
    assert len(body) < len(plain)


def unchunked(body: bytes) -> bytes:
    """The content of a chunked body."""
    content = b""
    while body:
        size, _, remaining = body.partition(b"\r\n")
        content, body = content + remaining[: int(size, 16)], remaining[int(size, 16) + 2 :]
    return content


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("Accept-Encoding:",),
        ("Accept-Encoding: identity",),
        ("Accept-Encoding: *;q=0",),
        ("Accept-Encoding: gzip;q=0",),
        ("Accept-Encoding: gzip;q=0.000, *;q=0",),
        ("Accept-Encoding: identity, gzip;q=0.5",),
        ("Accept-Encoding: gzip" + "," * 1000,),
        ("Accept-Encoding: deflate, br",),
        ("Accept-Encoding: gzip;q=0, *",),
        ("Accept-Encoding: identity, gzip; Q=0.0",),
    ],
)
def test_no_gzip_unless_requested(shipped: Server, headers: tuple[str, ...]) -> None:
    """Without the header, with another coding, or with `q=0`."""
    status, answered, body = send_bytes(shipped, get(LIST, f"x-api-key: {shipped.key}", *headers))
    assert status == 200
    assert "content-encoding" not in answered
    assert json.loads(body)["current_page"] == 1


def test_short_responses_are_not_compressed(client: httpx.Client) -> None:
    """Below 1 KiB."""
    assert (
        "content-encoding"
        not in client.get("/healthz", headers={"Accept-Encoding": "gzip"}).headers
    )


# Browsers


@pytest.mark.parametrize("path", [LIST, TOOL, SESSION, *OPEN])
def test_preflight_needs_no_key(shipped: Server, path: str) -> None:
    asks = {
        **ORIGIN,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "x-api-key, x-request-id, if-none-match",
    }
    response = httpx.options(shipped.url + path, headers=asks)
    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == "*"
    assert {"GET", "HEAD"} <= {*response.headers["access-control-allow-methods"].split(", ")}
    assert response.headers["access-control-allow-headers"] == "*, Authorization"
    assert response.headers["access-control-max-age"] == "86400"
    assert "access-control-allow-credentials" not in response.headers


def test_preflight_lists_allowed_methods(shipped: Server) -> None:
    response = httpx.options(
        shipped.url + LIST, headers={**ORIGIN, "Access-Control-Request-Method": "DELETE"}
    )
    assert response.status_code == 204
    assert "DELETE" not in response.headers["access-control-allow-methods"]


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        (LIST, True, 200),
        (TOOL, False, 401),
        (f"{LIST}?limit=0", True, 400),
        ("/nothing", False, 404),
        ("/", False, 200),
    ],
)
def test_any_origin_may_read_responses(
    client: httpx.Client, path: str, key: bool, status: int
) -> None:
    """Errors, and all headers that clients need."""
    response = client.get(path, headers={**ORIGIN, **({} if key else {"x-api-key": ""})})
    assert response.status_code == status
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["access-control-expose-headers"] == "*"
    assert "access-control-allow-credentials" not in response.headers


BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.mark.parametrize("extra", [{}, {"range": "bytes=0-9"}, {"if-none-match": "*"}])
@pytest.mark.parametrize("path", ["/nothing", "/tools/NO_TOOL/"])
def test_browsers_get_the_404_page(shipped: Server, path: str, extra: dict[str, str]) -> None:
    """With the headers of pages, and not cached."""
    response = httpx.get(shipped.url + path, headers={**BROWSER, **extra})
    assert response.status_code == 404
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["content-security-policy"].startswith("default-src 'self';")
    assert response.headers["x-request-id"]
    assert "<h1>Page not found</h1>" in response.text
    assert response.text == httpx.get(f"{shipped.url}/404.html").text


@pytest.mark.parametrize(
    "path", ["/api/v3/nothing", "/api/", "/.generated", "/tools/%00", f"{LIST}/NOPE"]
)
def test_api_and_asset_errors_are_json_for_browsers(client: httpx.Client, path: str) -> None:
    assert client.get(path, headers=BROWSER).json()["error"]["status"] == 404


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (LIST, "none"),
        (TOOL, "none"),
        ("/openapi.json", "none"),
        ("/", "self"),
        ("/tools/GITHUB_CREATE_ISSUE/", "self"),
        ("/nothing", "none"),
    ],
)
def test_security_headers(client: httpx.Client, path: str, source: str) -> None:
    """No content sniffing, only the site's own script, no server name."""
    headers = client.get(path).headers
    assert headers.get_list("x-content-type-options") == ["nosniff"]
    (policy,) = headers.get_list("content-security-policy")
    assert policy.startswith(f"default-src '{source}';")
    assert "unsafe" not in policy
    assert "server" not in headers


# Answers


def test_get_returns_the_document_of_the_snapshot(
    client: httpx.Client, shipped_build: Path
) -> None:
    results = {
        version: document
        for (slug, version), document in read_documents(shipped_build / "current").items()
        if slug == "GITHUB_CREATE_ISSUE"
    }
    assert len(results) > 1
    for version, document in results.items():
        assert client.get(TOOL, params={"version": version}).content == document
    assert client.get(TOOL).content == results[max(results)]


def test_list_returns_joined_documents(client: httpx.Client, shipped_build: Path) -> None:
    slugs, result = (
        ["SLACK_SEND_MESSAGE", "GITHUB_CREATE_ISSUE"],
        read_newest_documents(shipped_build / "current"),
    )
    metadata = b'"next_cursor":null,"total_pages":1,"current_page":1,"total_items":2}'
    items = b",".join(result[slug] for slug in slugs)
    assert (
        client.get(LIST, params={"tool_slugs": ",".join(slugs)}).content
        == b'{"items":[' + items + b"]," + metadata
    )


def test_session_returns_its_file(
    client: httpx.Client, shipped: Server, shipped_build: Path
) -> None:
    """Only to its owner."""
    facts = snapshot_reader.read_query_files(shipped_build / "current")["facts"]
    owners = {
        name.removeprefix("session "): group[0][0]
        for name, group in facts.items()
        if name.startswith("session ")
    }
    secrets = {
        project: create_key(shipped.keys_file, "--project", project)
        for project in {*owners.values()}
    }
    settles(client, [*secrets.values()][-1], 200)
    assert len(secrets) > 1
    for session, owner in owners.items():
        for project, key in secrets.items():
            response = client.get(
                SESSION.replace("trs_playground", session), headers={"x-api-key": key}
            )
            if project == owner:
                assert (
                    response.content
                    == (shipped_build / "current" / "sessions" / f"{session}.json").read_bytes()
                )
            else:
                error(response, 403, "forbidden")


@pytest.mark.parametrize(
    "path",
    [
        LIST,
        TOOL,
        SESSION,
        f"{LIST}?query=issue&limit=3",
        f"{LIST}?limit=0",
        f"{LIST}/NOPE",
        f"{LIST}/",
        "/api/v3/tool_router",
    ],
)
@pytest.mark.parametrize("key", [True, False])
def test_v3_1_equals_v3(client: httpx.Client, path: str, key: bool) -> None:
    """Status, headers and bytes."""
    headers = {"X-Request-Id": "same", **({} if key else {"x-api-key": ""})}
    old, new = (
        client.get(path, headers=headers),
        client.get(path.replace("/api/v3", "/api/v3.1"), headers=headers),
    )
    assert new.status_code == old.status_code
    assert without_headers(new.headers, "date", "content-length") == without_headers(
        old.headers, "date", "content-length"
    )
    assert new.content.replace(b"/api/v3.1", b"/api/v3") == old.content


def pages(client: httpx.Client, path: str, limit: int) -> list[dict[str, Any]]:
    """All pages of a list, from the first to the one without a next cursor."""
    results = [client.get(path, params={"limit": limit}).json()]
    while cursor := results[-1]["next_cursor"]:
        results.append(client.get(path, params={"cursor": cursor}).json())
    return results


@pytest.mark.parametrize(("path", "limit"), [(LIST, 37), (SESSION, 3)])
def test_pages_have_each_tool_once(client: httpx.Client, path: str, limit: int) -> None:
    """By `next_cursor`, in order, with the right counts."""
    document = client.get(path, params={"limit": 1000}).json()
    result = pages(client, path, limit)
    assert [item for page in result for item in page["items"]] == document["items"]
    assert [page["current_page"] for page in result] == [*range(1, len(result) + 1)]
    assert {(page["total_items"], page["total_pages"]) for page in result} == {
        (len(document["items"]), -(-len(document["items"]) // limit))
    }
    assert [len(page["items"]) for page in result[:-1]] == [limit] * (len(result) - 1)


def test_page_past_the_end_is_empty(client: httpx.Client) -> None:
    # 999999:1000 and 999999999999999999:1000
    for cursor in ("OTk5OTk5OjEwMDA=", "OTk5OTk5OTk5OTk5OTk5OTk5OjEwMDA="):
        for path in (
            LIST,
            SESSION,
            LIST + "?sort_by=name",
            LIST + "?tool_slugs=GITHUB_CREATE_ISSUE",
        ):
            page = client.get(
                path, params={**httpx.QueryParams(path.partition("?")[2]), "cursor": cursor}
            ).json()
            assert (page["items"], page["next_cursor"]) == ([], None)
            assert page["total_items"] > 0


def test_no_matches_have_zero_pages(client: httpx.Client) -> None:
    """`current_page` is still 1."""
    assert client.get(LIST, params={"tags": "no such tag"}).json() == {
        "items": [],
        "next_cursor": None,
        "total_pages": 0,
        "current_page": 1,
        "total_items": 0,
    }


def test_session_is_paged_only_on_request(client: httpx.Client) -> None:
    """Without limit and cursor the response has only `items`."""
    assert [*client.get(SESSION).json()] == ["items"]
    assert [*client.get(SESSION, params={"limit": ""}).json()] == ["items"]
    page = client.get(SESSION, params={"limit": 1}).json()
    assert [*page] == ["items", "next_cursor", "total_pages", "current_page", "total_items"]
    assert len(page["items"]) == 1


# The body of a GET


def chunks(*parts: bytes) -> Callable[[], Iterator[bytes]]:
    """A body that is sent in chunks, without a length."""
    return lambda: iter(parts)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"a": [1]}',
        b'{"a":"' + b"x" * (64 * 1024 - 8) + b'"}',
        chunks(),
        chunks(b"{", b'"a":', b"1}"),
        chunks(b"{}" + b" " * (64 * 1024 - 2)),
    ],
)
@pytest.mark.parametrize(
    "content_type",
    [None, "application/json", "text/plain", "application/x-www-form-urlencoded", "nonsense"],
)
def test_session_accepts_a_json_object(
    client: httpx.Client, body: bytes | Callable[[], Iterator[bytes]], content_type: str | None
) -> None:
    """No body, an empty chunked one, or an object of up to 64 KiB, of any content type."""
    headers = {"Content-Type": content_type} if content_type else {}
    response = client.request(
        "GET", SESSION, content=body if isinstance(body, bytes) else body(), headers=headers
    )
    assert response.content == client.get(SESSION).content


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"[]", "body: not a JSON object."),
        (b"null", "body: not a JSON object."),
        (b'"x"', "body: not a JSON object."),
        (b"a=b", "body: not JSON."),
        (b'{"a":"' + b"x" * (64 * 1024 - 7) + b'"}', "body: more than 64 KiB."),
        (b"[" * 60_000, "body: not JSON."),
        (b"x" * 3_000_000, "body: more than 64 KiB."),
        (chunks(b"[", b"]"), "body: not a JSON object."),
        (chunks(*[b" " * 10_000] * 7), "body: more than 64 KiB."),
        (chunks(*[b"x" * 65536] * 50), "body: more than 64 KiB."),
    ],
)
def test_session_refuses_other_bodies(
    client: httpx.Client, body: bytes | Callable[[], Iterator[bytes]], line: str
) -> None:
    """An array, a scalar, invalid JSON and more than 64 KiB are 400; the connection stays."""
    response = client.request("GET", SESSION, content=body if isinstance(body, bytes) else body())
    assert error(response, 400, "invalid_request")["errors"] == [line]
    assert client.get(SESSION).status_code == 200


def test_other_operations_ignore_bodies(client: httpx.Client) -> None:
    assert client.request("GET", TOOL, content=b"[").status_code == 200
    assert client.request("GET", LIST, content=b"x" * 100_000).status_code == 200


# The document


def test_openapi_document_is_valid(judge: openapi_judge.Judge) -> None:
    validate(judge.document)


def test_openapi_document_lists_all_errors(judge: openapi_judge.Judge) -> None:
    """Four for get, six for list, five for session, under both prefixes."""
    documented = {
        path: [*item["get"]["responses"]] for path, item in judge.document["paths"].items()
    }
    for prefix in ("/api/v3", "/api/v3.1"):
        assert documented.pop(f"{prefix}/tools/{{tool_slug}}") == [
            "200",
            "400",
            "401",
            "404",
            "500",
        ]
        assert documented.pop(f"{prefix}/tools") == [
            "200",
            "400",
            "401",
            "403",
            "404",
            "429",
            "500",
        ]
        assert documented.pop(f"{prefix}/tool_router/session/{{session_id}}/tools") == [
            "200",
            "400",
            "401",
            "403",
            "404",
            "500",
        ]
        for path, statuses in {
            "/tools/enum": "200 401 429 500",
            "/toolkits": "200 400 401 429 500",
            "/toolkits/categories": "200 400 401 429 500",
            "/toolkits/{toolkit_slug}": "200 400 401 404 500",
        }.items():
            assert documented.pop(prefix + path) == statuses.split()
    assert documented == {
        "/v0.1/servers": ["200", "400", "401", "429", "500"],
        "/v0.1/servers/{server_name}/versions": ["200", "401", "404", "500"],
        "/v0.1/servers/{server_name}/versions/{version}": ["200", "401", "404", "500"],
        "/healthz": ["200", "500"],
        "/readyz": ["200", "500", "503"],
        "/openapi.json": ["200", "500"],
    }


def test_openapi_document_lists_all_parameters(judge: openapi_judge.Judge) -> None:
    """And the key in its header."""
    parameters = judge.document["paths"][LIST]["get"]["parameters"]
    assert {parameter["name"] for parameter in parameters} == {
        "toolkit_slug",
        "tool_slugs",
        "auth_config_ids",
        "important",
        "tags",
        "scopes",
        "query",
        "search",
        "include_deprecated",
        "toolkit_versions",
        "limit",
        "cursor",
        "sort_by",
        "order",
    }
    (scheme,) = judge.document["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "header", "x-api-key")


# Without a key


@pytest.mark.parametrize(
    "path", [*OPEN, "/", "/style.css", "/toolkits/github/", "/tools/GITHUB_CREATE_ISSUE/"]
)
def test_health_openapi_and_site_need_no_key(shipped: Server, path: str) -> None:
    assert httpx.get(shipped.url + path).status_code == 200


def test_readyz_has_the_snapshot(shipped: Server, shipped_build: Path) -> None:
    assert httpx.get(f"{shipped.url}/healthz").json() == {"status": "ok"}
    assert httpx.get(f"{shipped.url}/readyz").json() == {
        "status": "ready",
        "snapshot": (shipped_build / "current").readlink().name,
    }


@pytest.mark.parametrize("path", ["/toolkits/github", "/tools/GITHUB_CREATE_ISSUE"])
def test_page_without_a_slash_is_redirected(shipped: Server, path: str) -> None:
    """To a page of this server only."""
    response = httpx.get(shipped.url + path)
    assert (response.status_code, response.headers["location"]) == (307, f"{shipped.url}{path}/")


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2f..%2fetc/passwd",
        "/%2e%2e/",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/tools/..%2f..%2f..%2fserver/keys.json",
        "/%2e%2e%2fserver%2fkeys.json",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/..\\..\\etc\\passwd",
        "/..%5c..%5cetc%5cpasswd",
        "/.generated",
        "/%2egenerated",
        "/tools/../.generated",
        "/..",
        "/.",
        "/index.html%00.css",
        "/../build/current/manifest.json",
        "/..%2fbuild%2fcurrent%2fmanifest.json",
    ],
)
def test_only_site_pages_are_served(shipped: Server, path: str) -> None:
    """No spelling of a path leads out of the site, or to the page list."""
    status, headers, body = send_bytes(shipped, get(path))
    assert (status, json.loads(body)["error"]["slug"]) == (404, "route_not_found")
    assert headers["content-type"] == "application/json"


# Keys


def test_all_invalid_keys_get_the_same_response(client: httpx.Client, shipped: Server) -> None:
    """Missing, unknown, mistyped, expired and revoked keys; only the request id differs."""
    expired, revoked = create_key(shipped.keys_file), create_key(shipped.keys_file)
    run_successfully(
        "keys", "rotate", key_id(shipped, expired), "--overlap", "0s", "--keys", shipped.keys_file
    )
    run_successfully("keys", "revoke", key_id(shipped, revoked), "--keys", shipped.keys_file)
    unknown = create_key(shipped.keys_file.parent / "elsewhere.json")
    bodies = set()
    for key in (
        "",
        unknown,
        shipped.key[:-1] + ("a" if shipped.key[-1] != "a" else "b"),
        shipped.key.upper(),
        shipped.key[3:],
        "x" * 5000,
        "é",
        expired,
        revoked,
    ):
        response = client.get(LIST, headers=[(b"x-api-key", key.encode("latin-1"))])
        bodies.add(json.dumps({**error(response, 401, "unauthorized"), "request_id": ""}))
        assert without_headers(response.headers, "date", "x-request-id", "x-catalog-snapshot") == {
            "cache-control": "no-store",
            "content-length": response.headers["content-length"],
            "content-type": "application/json",
            "access-control-allow-origin": "*",
            "x-content-type-options": "nosniff",
            "content-security-policy": response.headers["content-security-policy"],
        }
    assert len(bodies) == 2  # an empty header counts as none
    missing = error(httpx.get(shipped.url + LIST), 401, "unauthorized")
    assert json.dumps({**missing, "request_id": ""}) in bodies
    assert missing["message"] == "x-api-key: the request has no such header."


def key_id(server: Server, key: str) -> str:
    """The id of a key, found by its last characters, as a person would."""
    (result,) = (
        line.split()[0]
        for line in run_successfully("keys", "list", "--keys", server.keys_file).splitlines()
        if f" {key[-4:]} " in line
    )
    return result


@pytest.mark.parametrize("path", [LIST, TOOL, SESSION, "/api/v3.1/tools"])
def test_key_is_checked_first(client: httpx.Client, path: str) -> None:
    """Without one, a response reveals nothing."""
    for query in ("", "?limit=abc"):
        assert error(client.get(path + query, headers={"x-api-key": ""}), 401, "unauthorized")[
            "errors"
        ] == ["x-api-key: the request has no such header."]


def test_key_changes_apply_within_a_second(client: httpx.Client, shipped: Server) -> None:
    """Create, rotate with and without overlap, and revoke."""
    first = create_key(shipped.keys_file)
    assert settles(client, first, 200) < 1
    second = run_successfully(
        "keys", "rotate", key_id(shipped, first), "--keys", shipped.keys_file
    ).strip()
    assert settles(client, second, 200) < 1
    assert settles(client, first, 200) < 0.5  # the overlap of a day has begun
    third = run_successfully(
        "keys", "rotate", key_id(shipped, second), "--overlap", "0s", "--keys", shipped.keys_file
    ).strip()
    assert settles(client, second, 401) < 1
    assert settles(client, third, 200) < 1
    run_successfully("keys", "revoke", key_id(shipped, third), "--keys", shipped.keys_file)
    assert settles(client, third, 401) < 1


def test_key_expires_without_a_file_change(client: httpx.Client, shipped: Server) -> None:
    key, remaining = api_keys.create(shipped.keys_file, "default", None, timedelta(seconds=3))
    assert settles(client, key, 200) < 1
    settles(client, key, 401)
    assert (
        timedelta(0)
        <= datetime.now(UTC) - datetime.fromisoformat(str(remaining.expires))
        < timedelta(seconds=1)
    )


def test_limited_key_sees_only_its_toolkits(
    client: httpx.Client, slack_only: dict[str, str]
) -> None:
    """Other tools are 404 and missing in lists and counts."""
    everything = client.get(LIST, params={"limit": 1000}).json()
    of_slack = [item for item in everything["items"] if item["toolkit"]["slug"] == "slack"]
    page = client.get(LIST, params={"limit": 1000}, headers=slack_only).json()
    assert (page["items"], page["total_items"]) == (of_slack, len(of_slack))
    assert 0 < len(of_slack) < everything["total_items"]
    assert client.get("/api/v3/tools/SLACK_SEND_MESSAGE", headers=slack_only).status_code == 200
    hidden, absent = (
        client.get(TOOL, headers=slack_only),
        client.get(f"{LIST}/GITHUB_CREATE_ISSUE_X", headers=slack_only),
    )
    assert error(hidden, 404, "tool_not_found")["errors"] == [
        "tool_slug: there is no tool GITHUB_CREATE_ISSUE."
    ]
    assert "GITHUB" not in error(absent, 404, "tool_not_found")["suggested_fix"]


@pytest.mark.parametrize(
    ("query", "total"),
    [
        ("tool_slugs=GITHUB_CREATE_ISSUE", 0),
        ("tool_slugs=GITHUB_CREATE_ISSUE,SLACK_SEND_MESSAGE", 1),
        ("query=create+an+issue+on+github&toolkit_slug=slack", None),
    ],
)
def test_filters_do_not_reveal_hidden_tools(
    client: httpx.Client, slack_only: dict[str, str], query: str, total: int | None
) -> None:
    """Neither slugs nor searches."""
    page = client.get(f"{LIST}?{query}", headers=slack_only).json()
    assert {item["toolkit"]["slug"] for item in page["items"]} <= {"slack"}
    assert total is None or page["total_items"] == total


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("toolkit_slug=github", ["toolkit_slug: this key's project may not use toolkit github."]),
        (
            "toolkit_slug=slack,github",
            ["toolkit_slug: this key's project may not use toolkit github."],
        ),
        (
            "auth_config_ids=ac_github_issues_only",
            [
                (
                    "auth_config_ids: ac_github_issues_only is for a toolkit that this key's "
                    "project"
                    " may not use."
                )
            ],
        ),
    ],
)
def test_hidden_toolkit_by_name_is_403(
    client: httpx.Client, slack_only: dict[str, str], query: str, lines: list[str]
) -> None:
    assert (
        error(client.get(f"{LIST}?{query}", headers=slack_only), 403, "forbidden")["errors"]
        == lines
    )


def test_log_has_no_key(client: httpx.Client, shipped: Server) -> None:
    client.get(f"{LIST}?api_key={shipped.key}&limit=0")
    client.get(f"{LIST}/{shipped.key}")
    assert "tc_" not in shipped.log.read_text()


def test_suggestions_are_limited(shipped: Server) -> None:
    """All unknown toolkits are reported, and the first five get a suggestion, because lookups cost
    time.
    """
    unknown = ["githb", *[f"unknown-{number}-zzzz" for number in range(4)], "slak"]
    answer = httpx.get(
        f"{shipped.url}/api/v3/tools",
        params={"toolkit_slug": ",".join(unknown)},
        headers={"x-api-key": shipped.key},
    )
    error = answer.json()["error"]
    assert (answer.status_code, len(error["errors"])) == (404, 6)
    assert "Did you mean github?" in error["suggested_fix"]
    assert "slack" not in error["suggested_fix"]
