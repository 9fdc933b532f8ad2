"""The dispatcher gives every kind of client the same answer, in the coding that it accepts.

No network: the application is called as ASGI servers call it.
"""

import asyncio
import gzip
import json
import random
import shutil
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from support import asgi
from support.profile import DEEP_PROFILE
from support.snapshot_reader import read_newest_documents
from toolcatalog.keys import api_keys
from toolcatalog.server import dispatcher
from toolcatalog.server.app import create_app
from toolcatalog.server.dispatcher import match_route
from toolcatalog.server.state import AppState
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.store.open import open_build

TOOL = "/api/v3/tools/GITHUB_CREATE_ISSUE"
LIST = "/api/v3/tools"
SESSION = "/api/v3/tool_router/session/trs_playground/tools"
CLIENTS: dict[str, asgi.Headers] = {
    "plain": (),
    "httpx": (("accept-encoding", "gzip, deflate"), ("x-stainless-lang", "python")),
    "node": (("accept-encoding", "br, gzip, deflate"), ("sec-fetch-mode", "cors")),
    "browser": (("accept-encoding", "gzip, deflate, br, zstd"), ("origin", "https://a.example")),
    "proxy": (("traceparent", f"00-{'a' * 32}-{'b' * 16}-01"), ("via", "1.1 a")),
}
# headers that differ by client: the coding, what a page may read, and the trace
CLIENT_HEADERS = {
    b"content-encoding",
    b"content-length",
    b"etag",
    b"access-control-expose-headers",
    b"traceparent",
}


class Api:
    """An application on a build, with keys for all toolkits, of another project, and for Slack."""

    def __init__(self, build: Path, folder: Path) -> None:
        keys_file = folder / "keys.json"
        self.secret = api_keys.create(keys_file, "default", None, None)[0]
        self.other = api_keys.create(keys_file, "other", None, None)[0]
        self.limited = api_keys.create(keys_file, "default", ["slack"], None)[0]
        self.state = AppState(api_keys.KeyRing(keys_file), open_build(build))
        self.app = create_app(self.state, None)

    def get(
        self, target: str, headers: asgi.Headers = (), *, secret: str = "", method: str = "GET"
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        """Return status, headers and body of the response to one request."""
        key = ("x-api-key", secret or self.secret)
        status, pairs, body = asyncio.run(
            asgi.sent_by(self.app, target, (*headers, key, ("x-request-id", "id")), method)
        )
        assert len(pairs) == len({name for name, _ in pairs}), pairs
        return status, dict(pairs), body


@pytest.fixture(scope="module")
def api(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Api:
    """The application on the shipped catalog."""
    return Api(shipped_build, tmp_path_factory.mktemp("api"))


def draw_targets(build: Path, count: int) -> list[str]:
    """Return random requests: get, list and session, valid and invalid."""
    rng = random.Random(1)  # noqa: S311 - not secret
    documents = [json.loads(text) for text in read_newest_documents(build / "current").values()]

    def draw() -> str:
        tool = rng.choice(documents)
        kind = rng.random()
        if kind < 0.25:
            version = rng.choice(["", "?version=latest", "?version=x", "?toolkit_versions=latest"])
            return f"{LIST}/{rng.choice([tool['slug'], 'NOPE', 'a%20b'])}{version}"
        if kind < 0.35:
            return f"{SESSION}?{rng.choice(['', 'limit=1', 'limit=0', 'cursor=x'])}"
        fields: dict[str, Any] = {
            "limit": rng.choice([1, 2, 3, 20, 1000, 0]),
            "query": rng.choice(["", "create issue", tool["name"], "xqzv", "sned mesage"]),
            "toolkit_slug": rng.choice(["", tool["toolkit"]["slug"], "github,slack", "nope"]),
            "tags": rng.choice(["", "important", ",".join(tool["tags"])]),
            "sort_by": rng.choice(["", "slug", "name", "version", "x"]),
            "order": rng.choice(["", "asc", "desc"]),
            "tool_slugs": rng.choice(["", "", "", f"{tool['slug']},NOPE"]),
        }
        names = rng.sample([*fields], rng.randint(0, len(fields)))
        return f"{LIST}?{urlencode({name: fields[name] for name in names})}"

    return [draw() for _ in range(count)]


def decode(headers: dict[bytes, bytes], body: bytes) -> bytes:
    """Return the plain body; a gzip body must be one member without anything after it."""
    if b"content-encoding" not in headers:
        return body
    decoder = zlib.decompressobj(31)
    plain = decoder.decompress(body)
    assert decoder.eof
    assert not decoder.unused_data
    assert gzip.decompress(body) == plain
    return plain


def test_every_client_gets_the_same_answer(api: Api, shipped_build: Path) -> None:
    """Each coding decodes to the plain bytes, and the second answer equals the first one."""
    compressed = 0
    for target in draw_targets(shipped_build, 4000 if DEEP_PROFILE else 400):
        status, plain_headers, plain = api.get(target)
        for headers in CLIENTS.values():
            found_status, found_headers, body = api.get(target, headers)
            assert (found_status, decode(found_headers, body)) == (status, plain), target
            assert int(found_headers[b"content-length"]) == len(body)
            common = {
                name: value for name, value in found_headers.items() if name not in CLIENT_HEADERS
            }
            assert common.items() <= plain_headers.items()
            compressed += b"content-encoding" in found_headers
        assert api.get(target) == (status, plain_headers, plain)
    assert compressed > 100


def test_head_and_304_agree_with_get(api: Api, shipped_build: Path) -> None:
    """HEAD has the headers of GET; the ETag of a coding gives 304 for that coding."""
    for target in draw_targets(shipped_build, 60):
        for headers in CLIENTS.values():
            status, found, body = api.get(target, headers)
            assert api.get(target, headers, method="HEAD") == (status, found, b"")
            if status == 200:
                etag = found[b"etag"].decode()
                for tag in (etag, f"W/{etag}", f'"x", {etag}', "*"):
                    again = api.get(target, (*headers, ("if-none-match", tag)))
                    assert (again[0], again[2]) == (304, b"")
                assert api.get(target, (*headers, ("if-none-match", '"x"')))[2] == body


def test_a_large_page_is_sent_without_a_copy(api: Api) -> None:
    """The documents of a page in slug order are one view of the mapped file."""
    status, headers, body = api.get(f"{LIST}?limit=1000")
    assert (status, len(json.loads(body)["items"])) == (200, json.loads(body)["total_items"])
    _, coded_headers, coded = api.get(f"{LIST}?limit=1000", CLIENTS["httpx"])
    assert decode(coded_headers, coded) == body
    assert len(coded) < len(body) / 2
    assert headers[b"etag"] != coded_headers[b"etag"]


def test_a_cached_answer_is_not_shared_between_keys(api: Api) -> None:
    """A key that is limited to Slack never gets the answer of another key, in any coding."""
    for _ in range(2):
        for headers in CLIENTS.values():
            every = json.loads(decode(*api.get(f"{LIST}?limit=1000", headers)[1:]))
            some = json.loads(
                decode(*api.get(f"{LIST}?limit=1000", headers, secret=api.limited)[1:])
            )
            assert {tool["toolkit"]["slug"] for tool in some["items"]} == {"slack"}
            assert every["total_items"] > some["total_items"]


def test_equal_requests_are_answered_from_the_cache(shipped_build: Path, tmp_path: Path) -> None:
    """Other headers make no other request; a coding, a query string and a path do."""
    api = Api(shipped_build, tmp_path)
    counts = api.state.observer.counters.cache
    for number in range(3):
        api.get(f"{LIST}?limit=3", (("traceparent", f"00-{'a' * 32}-{number:016x}-01"),))
    assert (counts.misses, counts.hits) == (1, 2)
    api.get(f"{LIST}?limit=3", CLIENTS["node"])
    api.get(f"{LIST}?limit=3", CLIENTS["browser"], method="HEAD")
    assert (counts.misses, counts.hits) == (2, 3)
    for target in (f"{LIST}?limit=4", TOOL, TOOL, SESSION, SESSION):
        api.get(target)
    assert (counts.misses, counts.hits) == (5, 5)


def test_what_is_refused_is_not_cached(api: Api) -> None:
    """Neither an invalid request nor a session of another project."""
    counts = api.state.observer.counters.cache
    assert api.get(SESSION)[0] == 200
    before = counts.misses
    for target, secret in ((f"{LIST}?limit=0", ""), (f"{LIST}/NOPE", ""), (SESSION, api.other)):
        for _ in range(2):
            assert api.get(target, secret=secret)[0] in (400, 403, 404)
    assert counts.misses == before


def test_many_requests_leave_time_for_others(api: Api) -> None:
    """A few answers are computed in each round of the event loop, and others are sent between."""

    async def count_rounds(targets: list[str]) -> int:
        requests = [
            asyncio.ensure_future(asgi.sent_by(api.app, target, (("x-api-key", api.secret),)))
            for target in targets
        ]
        rounds = 0
        while not all(request.done() for request in requests):
            await asyncio.sleep(0)
            rounds += 1
        return rounds

    targets = [f"{LIST}?search=word{number}" for number in range(10 * dispatcher._MAX_TURNS)]
    assert asyncio.run(count_rounds(targets)) >= 10
    assert asyncio.run(count_rounds(targets)) < 10  # they are cached now


def test_a_new_snapshot_has_a_cache_of_its_own(api: Api, shipped_build: Path) -> None:
    """What was cached for the snapshot before is not used."""
    cached = api.state.current
    assert cached is not None
    api.get(LIST)
    api.state.switch_snapshot(open_build(shipped_build))
    assert api.state.current is not cached
    assert api.get(LIST)[0] == 200


def test_without_compressed_documents_the_answer_is_plain(
    shipped_build: Path, tmp_path: Path
) -> None:
    """A snapshot from another machine may lack the file; sessions are compressed at run time."""
    build = tmp_path / "build"
    shutil.copytree(shipped_build, build, symlinks=True)
    (build / "current" / snapshot_format.COMPRESSED_DOCUMENTS).unlink()
    api = Api(build, tmp_path)
    for target in (TOOL, LIST, f"{LIST}?query=issue"):
        _, headers, body = api.get(target, CLIENTS["httpx"])
        assert b"content-encoding" not in headers
        assert api.get(target)[2] == body
    assert api.get(SESSION, CLIENTS["httpx"])[1][b"content-encoding"] == b"gzip"


@pytest.mark.parametrize(
    ("path", "template"),
    [
        (LIST, LIST),
        (TOOL, f"{LIST}/{{slug}}"),
        ("/api/v3.1/tools/x y", "/api/v3.1/tools/{slug}"),
        (SESSION, "/api/v3/tool_router/session/{id}/tools"),
        (f"{LIST}/", None),
        (f"{LIST}/A/B", None),
        ("/api/v2/tools", None),
        ("/api/v3/tool_router/session//tools", None),
        ("/tools/X/", None),
        ("", None),
    ],
)
def test_match_route(path: str, template: str | None) -> None:
    """Only the paths of operations match."""
    match = match_route(path)
    assert (match[0].template if match else None) == template


def test_other_methods_are_refused(api: Api) -> None:
    """With the methods that are allowed."""
    for path in (LIST, TOOL, SESSION):
        status, headers, body = api.get(path, method="POST")
        assert (status, headers[b"allow"]) == (405, b"GET, HEAD")
        assert json.loads(body)["error"]["slug"] == "method_not_allowed"
