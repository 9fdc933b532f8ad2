"""The room `server.fast_path`: the short way answers as the long way does, byte for byte and header for
header. No network: two applications, asked directly.
"""

import asyncio
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support import asgi
from support.snapshot_reader import read_newest_documents
from toolcatalog.keys import api_keys
from toolcatalog.keys.api_keys import hash_secret
from toolcatalog.server.app import create_app, create_full_app
from toolcatalog.server.fast_path import FastPath, RequestHead
from toolcatalog.server.rate_limit import LocalRateLimiter, Rate
from toolcatalog.server.responses import encode_headers, suggested
from toolcatalog.server.state import AppState
from toolcatalog.store.open import open_build

TOOL = "/api/v3/tools/GITHUB_CREATE_ISSUE"
LIST = "/api/v3/tools"
PLAIN = [
    TOOL, f"{TOOL}?", f"{TOOL}?version=latest", f"{TOOL}?version=20250715_00", f"{TOOL}?toolkit_versions[github]=20250715_00", f"{TOOL}?x=%FF",
    f"{TOOL}?version=99999999_99", f"{TOOL}?version=1&version=2", "/api/v3.1/tools/SLACK_SEND_MESSAGE", f"{LIST}/NOPE", f"{LIST}/nope?version=x",
    f"{LIST}/%C3%84", f"{LIST}/A%0A", f"{LIST}/" + "A" * 201, f"{LIST}/tools",
    LIST, "/api/v3.1/tools", f"{LIST}?limit=3", f"{LIST}?limit=0&cursor=x", f"{LIST}?limit=1000&sort_by=name&order=desc",
    f"{LIST}?toolkit_slug=github,slack&tags=important&include_deprecated=false", f"{LIST}?toolkit_slug=nope&auth_config_ids=no",
    f"{LIST}?tool_slugs=SLACK_SEND_MESSAGE,GITHUB_CREATE_ISSUE", f"{LIST}?query=create+an+issue",
    f"{LIST}?auth_config_ids=ac_github_issues_only", f"{LIST}?tags=no", f"{LIST}?%FF=1",
]  # fmt: skip
OTHER = [
    f"{LIST}/", f"{TOOL}/", f"{LIST}%0A", f"{LIST}?query=" + "x" * 2000, f"{TOOL}?version=latest&x=" + "x" * 256, "/api/v3/tools/A/B", "/api/v3", "/tools", "", "/", "/api/v2/tools", "/healthz", "/readyz", "/openapi.json",
    "/api/v3/tool_router/session/trs_playground/tools", "/api/v3/tool_router/session/trs_nope/tools", "/tools/GITHUB_CREATE_ISSUE/",
]  # fmt: skip
HEADERS: list[asgi.Headers] = [
    (),
    (("if-none-match", "*"),),
    (("if-none-match", '"x", W/"y"'), ("if-none-match", "*")),
    (("accept-encoding", "identity"), ("user-agent", "x")),
    (("accept-encoding", "br, deflate;q=0.5"), ("accept-encoding", "gzip")),
    (("x-request-id", "second"), ("x-api-key", "tc_no")),
]
NOT_PLAIN: list[asgi.Headers] = [
    (("origin", "https://somewhere.example"),),
    (("origin", ""),),
    (("accept-encoding", "gzip"),),
    (("accept-encoding", "*"), ("origin", "null")),
]


class Ways:
    """One catalog, one key file; both ways into it."""

    def __init__(self, build: Path, folder: Path) -> None:
        self.secret = api_keys.create(folder / "keys.json", "default", None, None)[0]
        self.limited = api_keys.create(folder / "keys.json", "default", ["slack"], None)[0]
        store, ring, site = (
            open_build(build),
            api_keys.KeyRing(folder / "keys.json"),
            build.parent / "site",
        )
        self.live = AppState(ring, store)
        self.short = create_app(self.live, site)
        self.long = create_full_app(self.live, site)


@pytest.fixture(scope="module")
def ways(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Ways:
    """Both ways into the shipped catalog and its site."""
    return Ways(shipped_build, tmp_path_factory.mktemp("ways"))


def repeated(front: FastPath, target: str, secret: str) -> tuple[int, bytes, bytes] | None:
    """The answer to a packet whose head is known: status, lines of headers, body."""
    rest = b"\nhost: a\r\nx-api-key: %b\r\n\r\n" % secret.encode()
    head = RequestHead(rest, None, hash_secret(secret.encode()))
    found = front.replay(b"GET %b HTTP/1.1\r" % target.encode() + rest, head)
    return None if found is None else (found[0], found[1], b"".join(found[2]))


def ask(app: Any, target: str, headers: asgi.Headers = (), method: str = "GET") -> asgi.Answer:
    """The answer to one request."""
    return asyncio.run(asgi.sent_by(app, target, headers, method))


async def differing(
    ways: Ways, target: str, requests: list[asgi.Headers], method: str
) -> list[asgi.Headers]:
    """The requests that the two ways do not answer alike."""
    return [
        request
        for request in requests
        if await asgi.sent_by(ways.short, target, request, method)
        != await asgi.sent_by(ways.long, target, request, method)
    ]


async def nowhere(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - an application
    """What lies behind the short way where nothing may get there."""
    raise AssertionError(scope["path"])


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("target", [*PLAIN, *OTHER])
def test_both_ways_give_the_same_answer(ways: Ways, target: str, method: str) -> None:
    """Status, headers in their order, and body are the same, with and without a key, whatever else
    the request says.
    """
    always, secrets = ("x-request-id", "same"), (ways.secret, ways.limited, "tc_unknown", "é")
    requests: list[asgi.Headers] = [
        (always, ("x-api-key", key), *headers)
        for key in secrets
        for headers in (*HEADERS, *NOT_PLAIN)
    ]
    assert asyncio.run(differing(ways, target, [(always,), *requests], method)) == []


@pytest.mark.parametrize("method", ["OPTIONS", "POST", "get"])
@pytest.mark.parametrize("target", [TOOL, LIST, f"{LIST}/NOPE"])
def test_another_method_gets_the_same_answer_too(ways: Ways, target: str, method: str) -> None:
    """The short way is for GET and HEAD only."""
    request = (("x-request-id", "same"), ("x-api-key", ways.secret))
    assert ask(ways.short, target, request, method) == ask(ways.long, target, request, method)


@pytest.mark.parametrize("target", PLAIN)
def test_a_plain_request_goes_the_short_way(ways: Ways, target: str) -> None:
    """It is answered without Starlette, also where it is refused."""
    front = FastPath(ways.live, nowhere)
    for key in (ways.secret, "tc_unknown"):
        for headers in HEADERS:
            assert ask(front, target, (("x-api-key", key), *headers))[0] in (
                200,
                304,
                400,
                401,
                404,
            )


def test_what_the_client_holds_is_not_sent_again(ways: Ways) -> None:
    """304 on the tag that was given out, on either way."""
    for target in (TOOL, LIST):
        tag = dict(ask(ways.short, target, (("x-api-key", ways.secret),))[1])[b"etag"].decode()
        request = (("x-request-id", "same"), ("x-api-key", ways.secret), ("if-none-match", tag))
        assert ask(ways.short, target, request) == ask(ways.long, target, request)
        assert ask(ways.short, target, request)[::2] == (304, b"")


def test_a_fault_takes_the_long_way(
    ways: Ways, shipped_build: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is sent before the answer is whole, so what fails is told and logged in one place."""
    build = Path(shutil.copytree(shipped_build, tmp_path / "build", symlinks=True))
    file, document = (
        build / "current" / "tools.json",
        read_newest_documents(build / "current")["GITHUB_CREATE_ISSUE"],
    )
    file.write_bytes(file.read_bytes().replace(document, document.replace(b"issue", b"Issue", 1)))
    app = create_app(AppState(ways.live.keys, open_build(build)), None)
    status, headers, body = ask(app, TOOL, (("x-request-id", "bad"), ("x-api-key", ways.secret)))
    assert (status, dict(headers)[b"x-request-id"]) == (500, b"bad")
    assert b"internal_error" in body
    assert caplog.messages == ["request bad: GET '/api/v3/tools/GITHUB_CREATE_ISSUE' failed"]


async def turns_during(app: Any, target: str, headers: asgi.Headers) -> int:
    """How many turns another task gets while a request is answered."""
    turns = 0
    answering = asyncio.create_task(asgi.sent_by(app, target, headers))
    while not answering.done():
        turns += 1
        await asyncio.sleep(0)
    return turns


LONG = f"brooadcasst {chr(0x1F600) * 90}"


@pytest.mark.parametrize(
    "target",
    [
        LIST,
        f"{LIST}?query=emmaaill",
        f"{LIST}?query=xqzwv",
        f"{LIST}?query={quote(LONG[:28])}",
        f"{LIST}?limit=0",
        f"{LIST}?toolkit_slug=gihtub",
        f"{LIST}/NOPE",
        TOOL,
    ],
)
def test_a_known_head_gets_the_answer_of_the_long_way(ways: Ways, target: str) -> None:
    """What is refused, and what has a suggestion, is answered at once as well, the second time too:
    nothing is worked out for another way again.
    """
    front = ways.short
    assert isinstance(front, FastPath)
    status, headers, body = ask(ways.long, target, (("x-api-key", ways.secret),))
    for _ in range(2):
        found = repeated(front, target, ways.secret)
        assert found is not None
        assert found[0] == status
        mine, theirs = (without_id(text) for text in (found[2], body))
        assert mine == theirs
        assert without_id(found[1]) == without_id(encode_headers(headers))


def without_id(text: bytes) -> bytes:
    """A text without the id of its request."""
    return re.sub(rb"[0-9a-f]{32}", b"id", text)


def test_one_list_too_many_is_refused_before_it_is_searched(
    shipped_build: Path, tmp_path: Path
) -> None:
    """With a known head too: nothing new is remembered, no list is counted twice, and a tool is
    still there.
    """
    secret, _ = api_keys.create(tmp_path / "keys.json", "default", None, None)
    live = AppState(
        api_keys.KeyRing(tmp_path / "keys.json"),
        open_build(shipped_build),
        rate_limiter=LocalRateLimiter(Rate(5, 3600)),
    )
    front = FastPath(live, create_full_app(live, None))
    assert live.current
    targets = [f"{LIST}?query=word{number}" for number in range(9)]
    answers = [repeated(front, target, secret) for target in targets]
    assert [answer and answer[0] for answer in answers] == [200] * 5 + [429] * 4
    assert len(live.current.cache) == 5
    found = repeated(front, targets[0], secret)
    assert found
    assert found[0] == 429
    assert b"retry-after: 59" in found[1]
    assert ask(front, targets[0], (("x-api-key", secret),))[0] == 429
    assert repeated(front, TOOL, secret) is not None


def test_a_suggestion_is_at_most_1_kb() -> None:
    """As it is sent, percent-encoded: a longer one is left out."""
    assert suggested("send mail") == [(b"x-suggested-query", b"send mail")]
    assert suggested("") == []
    assert suggested("a" * 1000) == [(b"x-suggested-query", b"a" * 1000)]
    assert suggested("a" * 1001) == suggested(LONG) == []


def test_packing_a_large_page_does_not_hold_others_up(ways: Ways) -> None:
    """Other requests go on while a thread packs a page; with one packed in line they get no more
    turns than with a plain one.
    """
    key = ("x-api-key", ways.secret)
    plain = asyncio.run(turns_during(ways.long, f"{LIST}?limit=1000", (key,)))
    assert (
        asyncio.run(
            turns_during(ways.long, f"{LIST}?limit=1000", (key, ("accept-encoding", "gzip")))
        )
        > plain
    )


def test_new_request_ids_do_not_repeat(ways: Ways) -> None:
    """Both ways count on in one series."""
    apps = [ways.short, ways.long] * 20
    assert len({dict(ask(app, TOOL)[1])[b"x-request-id"] for app in apps}) == len(apps)
