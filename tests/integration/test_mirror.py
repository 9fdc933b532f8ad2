"""Static mirror: nginx with the settings of docs/guides/static-mirror.md answers as the server."""

import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.api_clients import CLIENT_LIBRARIES, ApiClient
from support.command import run_successfully, run_toolcatalog
from support.paths import ROOT
from support.server import Server, create_key
from toolcatalog.mirror.folder import update_mirror
from toolcatalog.mirror.tree import (
    MirrorFile,
    MirrorSelection,
    generate_files,
    make_selection,
    tree_name,
)
from toolcatalog.openapi import API_PREFIXES
from toolcatalog.progress import no_progress
from toolcatalog.store.open import open_build

NGINX = shutil.which(
    "nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
)
NOW = 1_800_000_000  # seconds since 1970
FIELDS = {"message", "code", "slug", "status", "request_id", "suggested_fix", "errors"}

needs_nginx = pytest.mark.skipif(
    NGINX is None, reason="there is no nginx on the path (Debian: apt-get install nginx-light)"
)


# The host


def settings(to: Path, port: int, folder: Path) -> Path:
    """Write the settings of docs/guides/static-mirror.md for a mirror and a port.

    Returns a main file for `nginx -c` that needs no root.
    """
    text = (ROOT / "docs" / "guides" / "static-mirror.md").read_text()
    (shown,) = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)
    assert shown.count("listen 8080;") == 1
    (folder / "mirror.conf").write_text(
        shown.replace("listen 8080;", f"listen 127.0.0.1:{port};").replace("/srv/mirror", str(to))
    )
    temporary = "".join(
        f"{name}_temp_path {folder}/{name}; "
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = (
        f"pid {folder}/pid; master_process off; daemon off; events {{}} http {{ access_log "
        f"off; {temporary} include {folder}/mirror.conf; }}"
    )
    (folder / "nginx.conf").write_text(main)
    return folder / "nginx.conf"


@contextmanager
def hosting(to: Path, folder: Path) -> Iterator[str]:
    """nginx on a free port, with the mirror: where it answers."""
    assert NGINX is not None
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [NGINX, "-e", str(folder / "error.log"), "-c", str(settings(to, port, folder))]
    tested = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stderr
    with subprocess.Popen(command) as process:
        try:
            deadline = time.monotonic() + 30
            while not answers(port):
                assert process.poll() is None, (folder / "error.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=20)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def all_of_it(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mirror of the shipped catalog, with all its sessions."""
    folder = tmp_path_factory.mktemp("mirror")
    run_successfully("mirror", folder / "mirror", "--build", shipped_build, "--session", "all")
    return folder / "mirror"


@pytest.fixture(scope="module")
def host(all_of_it: Path) -> Iterator[httpx.Client]:
    """nginx with that mirror."""
    with (
        hosting(all_of_it, all_of_it.parent / "nginx") as url,
        httpx.Client(base_url=url) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def live(shipped: Server) -> Iterator[httpx.Client]:
    """The live server of the same build."""
    with httpx.Client(base_url=shipped.url, headers={"x-api-key": shipped.key}) as client:
        yield client


def whole(client: httpx.Client, path: str, **more: Any) -> bytes:
    """The body of an answer that must be good, and the same under both prefixes."""
    first, *others = (client.get(prefix + path, **more) for prefix in API_PREFIXES)
    assert (first.status_code, first.headers["content-type"]) == (200, "application/json"), (
        path,
        first.text,
    )
    assert {other.content for other in others} == {first.content}
    return first.content


def right(live: httpx.Client, path: str, **more: Any) -> bytes:
    """The body of the live server's answer, which must be good."""
    answer = live.get(API_PREFIXES[0] + path, **more)
    assert answer.status_code == 200, (path, answer.text)
    return answer.content


def pages(get: Callable[..., bytes], client: httpx.Client, **parameters: Any) -> list[bytes]:
    """Every page of a list, followed by its cursors from the first to the last."""
    result = [get(client, "/tools", params=parameters)]
    while cursor := json.loads(result[-1])["next_cursor"]:
        result.append(get(client, "/tools", params={**parameters, "cursor": cursor}))
    return result


# The same as the live server


@needs_nginx
def test_every_tool_and_version(host: httpx.Client, live: httpx.Client) -> None:
    """The bytes of the live server."""
    (every,) = pages(right, live, limit=1000)
    tools = json.loads(every)["items"]
    assert len(tools) > 100
    for tool in tools:
        path = f"/tools/{tool['slug']}"
        assert whole(host, path) == right(live, path)
        for version in tool["available_versions"]:
            assert whole(host, path, params={"version": version}) == right(
                live, path, params={"version": version}
            )
    assert whole(host, path, params={"version": "latest", "toolkit_versions": ""}) == whole(
        host, path
    )


@needs_nginx
@pytest.mark.parametrize(
    "limit", [{}, {"limit": 20}, {"limit": "20.0"}, {"limit": 1000}, {"limit": 9999}], ids=str
)
def test_every_list(host: httpx.Client, live: httpx.Client, limit: dict[str, Any]) -> None:
    """All tools and each toolkit, by `next_cursor` to the end."""
    result = pages(whole, host, **limit)
    assert result == pages(right, live, **limit)
    assert len(result) == (1 if limit.get("limit") in (1000, 9999) else 7)
    for toolkit in {
        item["toolkit"]["slug"] for page in result for item in json.loads(page)["items"]
    }:
        assert pages(whole, host, toolkit_slug=toolkit, **limit) == pages(
            right, live, toolkit_slug=toolkit, **limit
        )


@needs_nginx
def test_every_toolkit(host: httpx.Client, live: httpx.Client) -> None:
    """All slugs, each toolkit, the lists of toolkits and categories."""
    for path in ("/tools/enum", "/toolkits", "/toolkits/categories"):
        assert whole(host, path) == right(live, path)
    for path in ("/toolkits", "/toolkits/categories"):
        for query in ("limit=1000", "cursor=MToyMA%3D%3D", "sort_by=alphabetically&type=all"):
            assert whole(host, f"{path}?{query}") == right(live, f"{path}?{query}")
    for toolkit in json.loads(right(live, "/toolkits?limit=1000"))["items"]:
        path = f"/toolkits/{toolkit['slug']}"
        assert whole(host, path) == right(live, path)
        assert whole(host, f"{path}?version=latest") == right(live, path)


@needs_nginx
@pytest.mark.parametrize(
    "path",
    [
        "",
        "?limit=20",
        "?limit=1000&version=latest",
        "?cursor=MToyMA==&version=latest",
        "/com.stripe%2Fmcp/versions",
        "/com.stripe%2Fmcp/versions/latest",
        "/com.stripe/mcp/versions/0.2.4",
    ],
)
def test_every_mcp_server(host: httpx.Client, live: httpx.Client, path: str) -> None:
    """The list, with other page sizes, and each server."""
    expected = live.get(f"/v0.1/servers{path}")
    answered = host.get(f"/v0.1/servers{path}")
    assert (answered.status_code, answered.content) == (200, expected.content)
    assert host.get("/v0.1/servers?limit=50&version=latest").json() == (
        live.get("/v0.1/servers").json()
    )


@needs_nginx
@pytest.mark.parametrize(
    "path",
    [
        *("/api/v3/toolkits?search=git", "/api/v3/toolkits?category=finance"),
        *("/api/v3/toolkits?sort_by=usage", "/api/v3/toolkits?include_deprecated=false"),
        *("/api/v3/toolkits?managed_by=project", "/api/v3/toolkits?limit=3"),
        *("/api/v3/toolkits/github?version=20250301_00", "/v0.1/servers?search=stripe"),
        *("/v0.1/servers?limit=1", "/v0.1/servers?version=0.2.4", "/v0.1/servers?limit=20&limit=1"),
        *("/v0.1/servers?updated_since=2030-01-01T00:00:00Z", "/v0.1/servers?cursor=MjoyMA=="),
    ],
)
def test_other_lists_are_404(host: httpx.Client, path: str) -> None:
    assert host.get(path).status_code == 404


@needs_nginx
def test_every_session(
    host: httpx.Client, live: httpx.Client, shipped: Server, shipped_build: Path
) -> None:
    """As for a key of its project."""
    store = open_build(shipped_build)
    owners = {id: (store.get_session(id) or ("", b""))[0] for id in store.list_sessions()}
    keys = {
        project: create_key(shipped.keys_file, "--project", project)
        for project in sorted({*owners.values()})
    }
    assert len(owners) == 7
    assert len(keys) > 1
    for id, project in owners.items():
        path, key = f"/tool_router/session/{id}/tools", {"x-api-key": keys[project]}
        deadline = time.monotonic() + 30  # a new key holds within a second
        while live.get(API_PREFIXES[0] + path, headers=key).status_code == 401:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert whole(host, path) == right(live, path, headers=key)


@needs_nginx
@pytest.mark.parametrize(
    "query",
    [
        "",
        "limit=20",
        "limit=",
        "important=false&limit=1000",
        "include_deprecated=true&toolkit_slug=github",
        "toolkit_versions=latest",
        "sort_by=slug&order=asc",
        "toolkit_slug=",
        "query=&tags=",
        "cursor=MToyMA==",
        "cursor=MToyMA%3D%3D&limit=20",
        "limit=01",
        "limit=21",
        "limit=2000&limit=20",
        "limit=20&limit=1000",
        "cursor=MToyMA==&cursor=MjoyMA==",
        "LIMIT=1000",
        "limit=1%30",
        "limit=-1",
        "limit=20.5",
        "query=issue",
        "%71uery=issue",
        "search=issue",
        "important=true",
        "important=TRUE",
        "tags=important",
        "scopes=repo",
        "include_deprecated=false",
        "include_deprecated=0",
        "toolkit_slug=github,slack",
        "toolkit_slug=github&toolkit_slug=slack",
        "toolkit_slug[]=github",
        "toolkit_slug=github&toolkit_slug[]=slack",
        "tool_slugs=GITHUB_CREATE_ISSUE",
        "toolkit_slug=../list/x",
        "toolkit_slug=nobody",
        "toolkit_versions=20250301_00",
        "toolkit_versions[github]=20250301_00",
        "toolkit_versions%5Bgithub%5D=20250301_00",
        "sort_by=name",
        "order=desc",
        "sort_by=version",
        "cursor=OTk5OjIw",
        "cursor=MToz",
        "cursor=x",
        "cursor=../x",
        "auth_config_ids=ac_x",
        "a=b",
        "toolkit_slug=GitHub",
        "limit=20#",
        "limit=1e3",
        "&&limit=20",
    ],
)
def test_other_list_queries_are_never_wrong(
    host: httpx.Client, live: httpx.Client, query: str
) -> None:
    """The response of the live server, or 404."""
    answered, right = host.get(f"/api/v3/tools?{query}"), live.get(f"/api/v3/tools?{query}")
    assert answered.status_code == 404 or answered.content == right.content
    if query in (
        "",
        "limit=20",
        "limit=",
        "important=false&limit=1000",
        "toolkit_versions=latest",
        "toolkit_slug=",
        "cursor=MToyMA%3D%3D&limit=20",
    ):
        assert answered.status_code == 200
    if right.status_code != 200:
        assert answered.status_code == 404


@needs_nginx
@pytest.mark.parametrize(
    "query",
    [
        "version=20250301_00&version=20251027_00",
        "toolkit_versions[github]=20250301_00",
        "version=19990101_00",
        "version=x",
        "x=1",
    ],
)
def test_other_versions_are_never_wrong(host: httpx.Client, live: httpx.Client, query: str) -> None:
    answered, right = (
        client.get(f"/api/v3/tools/GITHUB_CREATE_ISSUE?{query}") for client in (host, live)
    )
    assert answered.status_code == 404 or answered.content == right.content


# As a client sees it


@needs_nginx
@pytest.mark.parametrize("kind", CLIENT_LIBRARIES, ids=lambda kind: kind.name.replace(" ", "-"))
def test_real_clients(
    kind: Any, host: httpx.Client, live: httpx.Client, shipped: Server, tmp_path: Path
) -> None:
    """An unmodified client library gets tools, walks lists and reads a session."""
    if why := kind.missing_reason():
        pytest.skip(f"{kind.name}: {why}")
    at = Server(str(host.base_url), "none", shipped.keys_file, shipped.process, shipped.log)
    client = ApiClient(kind, at, tmp_path / "log")
    try:
        assert client.read_answer() == {"client": kind.name}
        expected = live.get("/api/v3/tools/GITHUB_CREATE_ISSUE").json()
        assert client.call_ok("tool", {"tool_slug": "GITHUB_CREATE_ISSUE"}) == expected
        assert (
            client.call_ok(
                "tool",
                {"tool_slug": "GITHUB_CREATE_ISSUE", "version": expected["available_versions"][0]},
            )["version"]
            != expected["version"]
        )
        result: list[Any] = []
        cursor = None
        while result == [] or cursor:
            page = client.call_ok("tools", {"cursor": cursor} if cursor else {})
            result, cursor = [*result, *page["items"]], page["next_cursor"]
        assert result == live.get("/api/v3/tools?limit=1000").json()["items"]
        assert (
            client.call_ok("tools", {"toolkit_slug": "github", "limit": 1000})
            == live.get("/api/v3/tools?toolkit_slug=github&limit=1000").json()
        )
        options = {} if kind.requires_session_pages else {"strict": False}
        session = client.call_ok("session", {"session_id": "trs_playground"}, **options)
        assert session == host.get("/api/v3/tool_router/session/trs_playground/tools").json()
        assert client.call("tool", {"tool_slug": "NO_SUCH_TOOL"})["error"] == "NotFoundError"
    finally:
        client.stop()


@needs_nginx
def test_response_headers(host: httpx.Client, live: httpx.Client, all_of_it: Path) -> None:
    """HEAD, ETag, 304, the snapshot; a year of caching for versions, revalidation for the rest."""
    answered = host.get("/api/v3/tools/GITHUB_CREATE_ISSUE")
    digest = live.get("/readyz").json()["snapshot"]
    assert answered.headers["x-catalog-snapshot"] == digest
    assert answered.headers["cache-control"] == "public, no-cache"
    assert (
        host.get(
            "/api/v3/tools/GITHUB_CREATE_ISSUE", headers={"If-None-Match": answered.headers["etag"]}
        ).status_code
        == 304
    )
    head = host.head("/api/v3/tools/GITHUB_CREATE_ISSUE", headers={"Accept-Encoding": "identity"})
    assert (head.status_code, head.content, head.headers["content-length"]) == (
        200,
        b"",
        str(len(live.get("/api/v3/tools/GITHUB_CREATE_ISSUE").content)),
    )
    assert (
        host.get("/api/v3/tools", headers={"Accept-Encoding": "gzip"}).headers["content-encoding"]
        == "gzip"
    )
    pointer = host.get("/current.json")
    assert pointer.headers["cache-control"] == "public, no-cache"
    assert pointer.json() == {"snapshot": digest, "tree": str((all_of_it / "current").readlink())}
    fixed = host.get(f"/{pointer.json()['tree']}/tools/GITHUB_CREATE_ISSUE.json")
    assert (fixed.content, fixed.headers["cache-control"]) == (
        answered.content,
        "public, max-age=31536000, immutable",
    )


@needs_nginx
@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("/api/v3/tools/GITHUB_CREATE_ISSUE", "tools/GITHUB_CREATE_ISSUE.json"),
        ("/api/v3/tools", "list/MToyMA.json"),
        ("/api/v3/tools?limit=1000", "list/MToxMDAw.json"),
        ("/api/v3/tool_router/session/trs_playground/tools", "sessions/trs_playground.json"),
    ],
)
def test_compressed_files_are_sent_unchanged(
    host: httpx.Client, all_of_it: Path, path: str, file: str
) -> None:
    """nginx compresses nothing, and each coding has its ETag."""
    plain = host.get(path, headers={"Accept-Encoding": "identity"})
    with host.stream("GET", path, headers={"Accept-Encoding": "gzip, deflate"}) as answer:
        body = b"".join(answer.iter_raw())
    assert body == (all_of_it / "current" / f"{file}.gz").read_bytes()
    assert gzip.decompress(body) == plain.content == (all_of_it / "current" / file).read_bytes()
    assert (answer.headers["content-encoding"], answer.headers["vary"]) == (
        "gzip",
        "Accept-Encoding",
    )
    assert answer.headers["content-type"] == plain.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(body)
    assert "content-encoding" not in plain.headers
    assert plain.headers["vary"] == "Accept-Encoding"
    etag = answer.headers["etag"]
    assert not etag.startswith("W/")
    assert etag != plain.headers["etag"]
    for coding, status in (("gzip", 304), ("identity", 200)):
        headers = {"Accept-Encoding": coding, "If-None-Match": etag}
        assert host.get(path, headers=headers).status_code == status
    head = host.head(path, headers={"Accept-Encoding": "gzip"})
    assert (head.headers["etag"], head.headers["content-length"]) == (etag, str(len(body)))


@needs_nginx
@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("/api/v3/tools/NO_SUCH_TOOL", "tool_not_found"),
        ("/api/v3.1/tools/GITHUB_CREATE_ISSUE?version=19990101_00", "tool_version_not_found"),
        ("/api/v3/tool_router/session/trs_nobody/tools", "session_not_found"),
        ("/api/v3/tools?query=issue", "route_not_found"),
        ("/api/v3/tools/github_create_issue", "tool_not_found"),
        ("/api/v3/tools/%2e%2e%2fmirror", "tool_not_found"),
        ("/api/v3/toolkits/nobody", "toolkit_not_found"),
        ("/v0.1/servers/a%2Fb/versions/latest", "server_not_found"),
        ("/v0.1/servers/com.stripe%2Fmcp/versions/9", "server_not_found"),
        ("/.mirror", "route_not_found"),
        ("/snapshots/", "route_not_found"),
        ("/", "route_not_found"),
    ],
)
def test_unknown_path_is_404(host: httpx.Client, path: str, slug: str) -> None:
    """The complete error body with the client's request id, and not cached."""
    answered = host.get(path, headers={"X-Request-Id": "mine-1"})
    assert (
        answered.status_code,
        answered.headers["content-type"],
        answered.headers["cache-control"],
    ) == (
        404,
        "application/json",
        "no-store",
    )
    error = answered.json()["error"]
    assert {*error} == FIELDS
    assert (error["status"], error["code"], error["slug"], error["request_id"]) == (
        404,
        1404,
        slug,
        "mine-1",
    )
    assert (
        host.get(path, headers={"X-Request-Id": 'bad"id'}).json()["error"]["request_id"] != 'bad"id'
    )


@needs_nginx
def test_error_file_has_the_same_body(host: httpx.Client, all_of_it: Path) -> None:
    """`404.json` and the response of nginx differ only in the request id."""
    file, output = json.loads((all_of_it / "404.json").read_bytes()), host.get("/x").json()
    assert {*file["error"]} == FIELDS
    assert {**file["error"], "request_id": ""} == {**output["error"], "request_id": ""}


@needs_nginx
def test_other_methods_are_405(host: httpx.Client) -> None:
    """With `Allow`; preflight requests work."""
    answered = host.post("/api/v3/tools")
    assert (answered.status_code, answered.headers["allow"], answered.json()["error"]["code"]) == (
        405,
        "GET, HEAD",
        1405,
    )
    assert host.options("/api/v3/tools").headers["access-control-allow-origin"] == "*"


# From one snapshot to the next


@pytest.fixture(scope="module")
def three_builds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Builds of a small catalog: between each and the next, one letter of one description."""
    folder = tmp_path_factory.mktemp("builds")
    chess = folder / "catalog" / "toolkits" / "chess"
    write(folder / "catalog" / "catalog.yaml", "title: Games\n")
    write(chess / "toolkit.yaml", "name: Chess\nlogo: https://example.com/c.svg\n")
    for tool in ("CHESS_OPEN", "CHESS_MOVE", "CHESS_RESIGN"):
        write(
            chess / tool / "20250101_00.yaml",
            f"name: {tool.title()}\ndescription: Something to do\n",
        )
    builds = []
    for letter in "ABC":
        write(
            chess / "CHESS_MOVE" / "20250101_00.yaml",
            f"name: Move\ndescription: Make move {letter}.\n",
        )
        run_successfully(
            "build", "--catalog", folder / "catalog", "--out", folder / letter, "--no-site"
        )
        builds.append(folder / letter)
    return builds


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def mirrored(build: Path, to: Path, now: int = NOW) -> Path:
    """Update the mirror to a build; return the current tree."""
    store = open_build(build)
    return to / update_mirror(store, to, make_selection(store, None, ()), now, no_progress).tree


def trees(to: Path) -> set[Path]:
    return {*(to / "snapshots").iterdir()}


@needs_nginx
def test_host_follows_current_without_a_signal(three_builds: list[Path], tmp_path: Path) -> None:
    """URLs into the old tree stay valid."""
    to, path = tmp_path / "mirror", "/api/v3/tools/CHESS_MOVE"
    first = mirrored(three_builds[0], to)
    with hosting(to, tmp_path / "nginx") as url, httpx.Client(base_url=url) as host:
        before = host.get(path)
        second = mirrored(three_builds[1], to)
        after = host.get(path, headers={"If-None-Match": before.headers["etag"]})
        assert (before.json()["description"][-2:], after.json()["description"][-2:]) == ("A.", "B.")
        assert (
            before.headers["x-catalog-snapshot"]
            == first.name[:64]
            != after.headers["x-catalog-snapshot"]
            == second.name[:64]
        )
        assert host.get(f"/snapshots/{first.name}/tools/CHESS_MOVE.json").content == before.content
        same = host.get("/api/v3/tools/CHESS_OPEN")
        mirrored(three_builds[2], to)
        assert (
            host.get(
                "/api/v3/tools/CHESS_OPEN", headers={"If-None-Match": same.headers["etag"]}
            ).status_code
            == 304
        )
        assert host.get(f"/snapshots/{first.name}/tools/CHESS_MOVE.json").status_code == 404


@needs_nginx
def test_switching_trees_fails_no_request(three_builds: list[Path], tmp_path: Path) -> None:
    """Under load, each response is complete and of the snapshot that it names, while `current`
    moves twenty times.
    """
    to, result = tmp_path / "mirror", threading.Event()
    letters = {
        mirrored(build, to).name[:64]: letter
        for build, letter in zip(three_builds[:2], "AB", strict=True)
    }
    seen: list[tuple[int, str, str]] = []

    def ask() -> None:
        with httpx.Client(base_url=url) as host:
            while not result.is_set():
                answer = host.get("/api/v3/tools/CHESS_MOVE")
                letter = (
                    answer.json()["description"][-2] if answer.status_code == 200 else answer.text
                )
                seen.append(
                    (answer.status_code, letter, letters[answer.headers["x-catalog-snapshot"]])
                )

    with hosting(to, tmp_path / "nginx") as url:
        asking = threading.Thread(target=ask)
        asking.start()
        try:
            for turn in range(20):
                mirrored(three_builds[turn % 2], to)
                count, deadline = len(seen), time.monotonic() + 30
                while len(seen) < count + 3:
                    assert asking.is_alive()
                    assert time.monotonic() < deadline
        finally:
            result.set()
            asking.join()
    assert {*seen} == {(200, "A", "A"), (200, "B", "B")}


def test_unchanged_files_are_hard_links(three_builds: list[Path], tmp_path: Path) -> None:
    """Also the newest version and its own file."""
    first = mirrored(three_builds[0], tmp_path / "mirror")
    second = mirrored(three_builds[1], tmp_path / "mirror")
    for name, shared in (("CHESS_OPEN", True), ("CHESS_MOVE", False)):
        for suffix in ("json", "json.gz"):
            newest = second / "tools" / f"{name}.{suffix}"
            assert newest.samefile(first / "tools" / f"{name}.{suffix}") == shared
            assert newest.samefile(second / "tools" / f"{name}.20250101_00.{suffix}")
    assert (second / "toolkits" / "chess.MToyMA.json").samefile(
        second / "toolkits" / "chess.MToxMDAw.json"
    )


@pytest.mark.parametrize(
    "later", [0, -86400], ids=["in the same second", "on a clock that went back"]
)
def test_etags_of_changed_files_differ(
    three_builds: list[Path], tmp_path: Path, later: int
) -> None:
    """nginx uses size and mtime in seconds, even for builds in quick succession."""
    states: set[tuple[int, int]] = set()
    for build in three_builds:
        file = (
            mirrored(build, tmp_path / "mirror", NOW + later * len(states))
            / "tools"
            / "CHESS_MOVE.json"
        )
        states.add((file.stat().st_size, int(file.stat().st_mtime)))
    assert len(states) == 3
    assert len({size for size, _ in states}) == 1


def test_two_trees_are_kept(three_builds: list[Path], tmp_path: Path) -> None:
    """The current one and the one before."""
    to = tmp_path / "mirror"
    first, second, third = (mirrored(build, to) for build in three_builds)
    assert trees(to) == {second, third}
    assert mirrored(three_builds[1], to) == second
    assert (trees(to), (to / "current").resolve()) == ({second, third}, second.resolve())
    assert mirrored(three_builds[1], to) == second  # nothing has changed
    assert trees(to) == {second, third}
    assert mirrored(three_builds[0], to) == first
    assert trees(to) == {first, second}


def test_interrupted_command_keeps_the_current_tree(
    three_builds: list[Path], tmp_path: Path
) -> None:
    """The next command cleans up."""

    @contextmanager
    def wait_for_lists(label: str, _: int) -> Iterator[Any]:
        if label == "Mirroring lists":
            raise KeyboardInterrupt
        yield lambda _: None

    to = tmp_path / "mirror"
    first = mirrored(three_builds[0], to)
    before = contents(first)
    store = open_build(three_builds[1])
    with pytest.raises(KeyboardInterrupt):
        update_mirror(store, to, MirrorSelection(None, ()), NOW, wait_for_lists)
    assert (to / "current").resolve() == first.resolve()
    assert contents(first) == before
    (left_over,) = trees(to) - {first}
    assert (left_over / "tools" / "CHESS_MOVE.json").exists()
    second = mirrored(three_builds[1], to)
    assert (trees(to), contents(first)) == ({first, second}, before)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


OTHER_GZIP = gzip.compress(b"{}")


@pytest.mark.parametrize(
    "damage",
    [lambda file: file.write_bytes(b"{}"), lambda file: file.write_bytes(OTHER_GZIP), Path.unlink],
    ids=["other bytes", "other gzip", "gone"],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_damaged_tree_is_rebuilt(
    three_builds: list[Path], tmp_path: Path, damage: Any, suffix: str
) -> None:
    """Under the same name."""
    to = tmp_path / "mirror"
    tree = mirrored(three_builds[0], to)
    before = contents(tree)
    damage(tree / "tools" / f"CHESS_OPEN.20250101_00.json{suffix}")
    assert contents(tree) != before
    assert mirrored(three_builds[0], to) == tree
    assert contents(tree) == before
    assert trees(to) == {tree}


def test_files_are_written_one_by_one(shipped_build: Path) -> None:
    """A large catalog is never in memory at once."""
    started: list[str] = []

    @contextmanager
    def noting(label: str, _: int) -> Iterator[Any]:
        started.append(label)
        yield lambda _: None

    files: Iterator[MirrorFile] = generate_files(
        open_build(shipped_build), MirrorSelection(None, ()), noting
    )
    assert next(files).path.startswith("tools/")
    assert started == ["Mirroring tools"]
    assert [file.path for file in files][-1] == "mirror.json"
    assert started == ["Mirroring tools", "Mirroring lists", "Mirroring toolkits"]


# What is chosen


def test_selected_toolkits(shipped_build: Path, shipped: Server, tmp_path: Path) -> None:
    """A mirror of some toolkits has what a key for these toolkits sees."""
    trees = [
        run_successfully(
            "mirror", tmp_path / "mirror", "--build", shipped_build, "--toolkit", chosen
        ).strip()
        for chosen in ("slack,github", "github, slack,github", "github")
    ]
    assert trees[0] == trees[1] != trees[2]
    key = {"x-api-key": create_key(shipped.keys_file, "--toolkit", "github,slack")}
    deadline = time.monotonic() + 30
    while (answer := httpx.get(f"{shipped.url}/api/v3/tools", headers=key)).status_code == 401:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    there = tmp_path / "mirror" / trees[0]
    assert (there / "list" / "MToyMA.json").read_bytes() == answer.content
    assert {path.name.partition("_")[0] for path in (there / "tools").iterdir()} == {
        "GITHUB",
        "SLACK",
    }
    assert {path.name.partition(".")[0] for path in (there / "toolkits").iterdir()} == {
        "github",
        "slack",
    }
    assert {path.name.partition(".")[0] for path in (there / "toolkit").iterdir()} == {
        "github",
        "slack",
    }
    assert json.loads((there / "toolkit_list" / "MToyMA.json").read_bytes())["total_items"] == 2
    assert [*(there / "server").iterdir()] == []
    assert [*(there / "sessions").iterdir()] == []


def test_only_selected_sessions_are_mirrored(shipped_build: Path, tmp_path: Path) -> None:
    tree = run_successfully(
        "mirror", tmp_path / "mirror", "--build", shipped_build, "--session", "trs_playground"
    ).strip()
    assert sorted(path.name for path in (tmp_path / "mirror" / tree / "sessions").iterdir()) == [
        "trs_playground.json",
        "trs_playground.json.gz",
    ]
    about = json.loads((tmp_path / "mirror" / tree / "mirror.json").read_bytes())
    assert about["sessions"] == ["trs_playground"]
    assert tree_name(
        open_build(shipped_build), MirrorSelection(None, ("trs_playground",))
    ) == tree.removeprefix("snapshots/")


def test_public_access_warning(shipped_build: Path, tmp_path: Path) -> None:
    """On standard error; standard output has only the tree."""
    for first in ("Mirrored all toolkits", "Nothing has changed: all toolkits"):
        result = run_toolcatalog("mirror", tmp_path / "mirror", "--build", shipped_build)
        assert (result.returncode, result.stdout) == (
            0,
            f"{(tmp_path / 'mirror' / 'current').readlink()}\n",
        )
        assert f"\n{first} and 0 sessions" in result.stderr
        assert result.stderr.endswith(
            "It needs no key: anyone who reaches its host can read all of it.\n"
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--toolkit", "githb"],
            "There is no toolkit githb in this build (did you mean github?).",
        ),
        (
            ["--session", "trs_playgroun"],
            "There is no session trs_playgroun in this build (did you mean trs_playground?).",
        ),
        (["--toolkit", " ,"], "no name is given"),
        (["--build", "{folder}/nothing"], "There is no finished build"),
    ],
)
def test_wrong_usage_exits_with_2(
    shipped_build: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    result = run_toolcatalog(
        "mirror",
        tmp_path / "mirror",
        "--build",
        shipped_build,
        *(one.format(folder=tmp_path) for one in arguments),
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr
    assert not (tmp_path / "mirror").exists()


def test_other_folders_are_refused(three_builds: list[Path], tmp_path: Path) -> None:
    """Above all a build folder, which has the same names in it."""
    shutil.copytree(three_builds[0], tmp_path / "build", symlinks=True)
    before = sorted(path for path in (tmp_path / "build").rglob("*"))
    result = run_toolcatalog("mirror", tmp_path / "build", "--build", tmp_path / "build")
    assert result.returncode == 2
    assert "which no mirror created: name an empty folder" in result.stderr
    assert sorted(path for path in (tmp_path / "build").rglob("*")) == before


def test_unwritable_folder_is_reported(three_builds: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run_toolcatalog("mirror", tmp_path / "file" / "mirror", "--build", three_builds[0])
    assert result.returncode == 2
    assert re.search(
        r"error: Cannot write .*/file.* \(Not a directory\): move what is in its way, or name",
        result.stderr,
    )


def test_concurrent_command_is_refused(three_builds: list[Path], tmp_path: Path) -> None:
    to = tmp_path / "mirror"

    @contextmanager
    def meanwhile(_: str, __: int) -> Iterator[Any]:
        result = run_toolcatalog("mirror", to, "--build", three_builds[1])
        assert (result.returncode, "Another command is writing to" in result.stderr) == (2, True)
        yield lambda _: None

    update_mirror(open_build(three_builds[0]), to, MirrorSelection(None, ()), NOW, meanwhile)
    assert len(trees(to)) == 1
