"""Tests of `server.limits.rate_limit`: the limit, its headers, and changes of the clock."""

import asyncio
import re
import time
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.asgi import sent_by
from support.command import run_toolcatalog
from support.server import Server, create_key, start_server
from toolcatalog.api.error_responses import render_envelope
from toolcatalog.keys import api_keys
from toolcatalog.server.app import create_app
from toolcatalog.server.limits.rate_limit import LimitStatus, LocalRateLimiter, Rate, parse_rate
from toolcatalog.server.state import AppState
from toolcatalog.store.open import open_build


class Clock:
    """A clock that tests move, in nanoseconds; calling it returns seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> int:
        return round(self.now * 1e9)


def count_allowed(counts: LocalRateLimiter, times: int, id: str = "key_a") -> int:
    """Return how many of these simultaneous requests are allowed."""
    return sum(counts.count(id).is_allowed for _ in range(times))


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100/s", Rate(100, 1)),
        ("1/m", Rate(1, 60)),
        ("3600/h", Rate(3600, 3600)),
        ("999999999/s", Rate(999_999_999, 1)),
    ],
)
def test_rate_units(text: str, rate: Rate) -> None:
    """A number and s, m or h."""
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text",
    [
        "",
        "100",
        "0/s",
        "-1/s",
        "1.5/s",
        "100/d",
        "100/S",
        "100 /s",
        "01/s",
        "/s",
        "100/s ",
        "1000000000/s",
        "\u0661/s",
        "1/s\n",
    ],
)
def test_invalid_rate_is_refused(text: str) -> None:
    assert parse_rate(text) is None


def test_each_key_has_its_own_limit() -> None:
    """A hundred requests at once for each."""
    counts = LocalRateLimiter(Rate(100, 60), Clock())
    assert count_allowed(counts, 250) == 100
    assert count_allowed(counts, 250, "key_b") == 100


@pytest.mark.parametrize("seconds", [1, 60, 3600])
def test_constant_load_gets_the_rate(seconds: int) -> None:
    """Never more within any period, and almost all of it over a long time."""
    clock, rate, moments = Clock(), Rate(100, seconds), []
    counts = LocalRateLimiter(rate, clock)
    for _ in range(4000):  # ten windows, four times the rate
        clock.now += seconds / 400
        if counts.count("key_a").is_allowed:
            moments.append(clock())
    assert max_in_window(moments, seconds) == 100
    assert 970 <= len(moments) <= 1000


def max_in_window(moments: list[int], seconds: int) -> int:
    """Return the largest number of times (in nanoseconds) in any window of this length, with both
    ends.
    """
    length = seconds * 1_000_000_000
    return max(
        bisect_right(moments, start + length) - position for position, start in enumerate(moments)
    )


PAUSES = st.one_of(
    st.integers(0, 10),
    st.integers(0, 20_000_000),
    st.integers(0, 1_100_000_000),
    st.sampled_from([10_000_000, 9_999_999, 10_000_001, 990_000_000, 1_000_000_000]),
)


@given(
    st.integers(1, 40), st.sampled_from([1, 60, 3600]), st.lists(PAUSES, min_size=1, max_size=300)
)
def test_no_window_exceeds_the_rate(amount: int, seconds: int, pauses: list[int]) -> None:
    """For any arrival times and any start of the window."""
    now, moments = 123_456_789, list[int]()
    counts = LocalRateLimiter(Rate(amount, seconds), lambda: now)
    for delay in pauses:
        now += delay * seconds
        for _ in range(3):
            standing = counts.count("key_a")
            if standing.is_allowed:
                moments.append(now)
            assert 0 <= standing.remaining < amount or not standing.is_allowed
    assert max_in_window(moments, seconds) <= amount
    assert len(counts._slices["key_a"]._counts) <= 101


def test_one_per_hour() -> None:
    """Also if the first request comes at the end of a slice."""
    for offset in (0.0, 35.9, 36.0, 17.0):
        clock = Clock()
        clock.now += offset
        counts, moments = LocalRateLimiter(Rate(1, 3600), clock), list[int]()
        for _ in range(3 * 3700):
            if counts.count("key_a").is_allowed:
                moments.append(clock())
            clock.now += 1
        assert max_in_window(moments, 3600) == 1
        assert len(moments) >= 3


def test_load_below_the_rate_is_never_refused() -> None:
    """Ninety-nine evenly spaced requests per second, of a hundred."""
    clock = Clock()
    counts = LocalRateLimiter(Rate(100, 1), clock)
    for _ in range(2000):
        clock.now += 1 / 99
        assert counts.count("key_a").is_allowed


def test_refused_requests_do_not_count() -> None:
    clock = Clock()
    counts = LocalRateLimiter(Rate(10, 60), clock)
    count_allowed(counts, 10_000)
    clock.now += 120
    assert count_allowed(counts, 10) == 10


@pytest.mark.parametrize("rate", [Rate(1, 1), Rate(3, 1), Rate(100, 60), Rate(7, 3600)])
def test_retry_after_is_sufficient_and_necessary(rate: Rate) -> None:
    """After `wait` seconds there is room, and not before."""
    clock = Clock()
    counts = LocalRateLimiter(rate, clock)
    for delay in (0.0, 0.37, 0.11, 0.83, 0.02) * 20:
        clock.now += delay * rate.period
        while (now := counts.count("key_a")).is_allowed:
            pass
        clock.now += now.reset_after * 0.999
        assert counts.count("key_a").is_allowed == (now.reset_after == 0)
        clock.now += now.reset_after * 0.001 + rate.period * 1e-6
        assert counts.count("key_a").is_allowed


def test_rate_limit_headers() -> None:
    """The fields of the draft; `Retry-After` only for refused requests, at most 59."""
    clock = Clock()
    clock.now = 36_000.0  # a slice begins
    counts = LocalRateLimiter(Rate(2, 3600), clock)
    assert counts.count("key_a").headers() == [
        (b"ratelimit-policy", b'"list";q=2;w=3600'),
        (b"ratelimit", b'"list";r=1;t=3636'),
    ]
    clock.now += 600.5
    assert counts.count("key_a").headers()[1] == (b"ratelimit", b'"list";r=0;t=3036')
    rejected = counts.count("key_a")
    assert rejected.headers()[1:] == [(b"ratelimit", b'"list";r=0;t=3036'), (b"retry-after", b"59")]
    body = render_envelope([rejected.to_error()], "id").decode()
    assert '"code":1429,"slug":"rate_limited","status":429' in body
    assert '"suggested_fix":"Try again in 59 s, as Retry-After says."' in body


@pytest.mark.parametrize("wait", [0.0, 0.001, 0.999, 1.0, 30.5, 58.9, 59.0, 3599.9])
def test_retry_after_is_from_1_to_59(wait: float) -> None:
    """Whole seconds, rounded up."""
    headers = dict(LimitStatus(Rate(1, 3600), False, 0, wait).headers())
    seconds = int(headers[b"retry-after"])
    assert 1 <= seconds <= 59
    assert seconds >= wait or seconds == 59


def test_clock_changes_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day is set back by a day and forward by two."""
    counts = LocalRateLimiter(Rate(5, 1))
    real = time.time
    started = time.monotonic()
    for jump in (0, -86_400, 86_400):
        monkeypatch.setattr(time, "time", lambda jump=jump: real() + jump)
        value = count_allowed(counts, 20)
        assert value <= 5 * (2 + time.monotonic() - started)
        assert not counts.count("key_a").is_allowed
    end = time.monotonic() + 30
    while not counts.count("key_a").is_allowed:
        assert time.monotonic() < end, "locked out"
        time.sleep(0.05)


@pytest.mark.parametrize(("amount", "workers"), [(100, 1), (100, 4), (7, 3), (4, 4)])
def test_workers_divide_the_rate(amount: int, workers: int) -> None:
    """Into whole requests."""
    share = Rate(amount, 60).divide(workers)
    all_values = [LocalRateLimiter(share, Clock()) for _ in range(workers)]
    assert amount - workers < sum(count_allowed(counts, amount) for counts in all_values) <= amount


# The server

LIST, ONE, SESSION = (
    "/api/v3/tools",
    "/api/v3/tools/GITHUB_CREATE_ISSUE",
    "/api/v3/tool_router/session/trs_none/tools",
)


@pytest.fixture(scope="module")
def limited(shipped_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose keys may list six times an hour."""
    with start_server(shipped_build, tmp_path_factory.mktemp("limited"), "--rate", "6/h") as server:
        yield server


def client_of(server: Server) -> httpx.Client:
    """A client with a key of its own, on a kept connection: its requests may take the shortest way
    there is.
    """
    return httpx.Client(
        base_url=server.url,
        headers={"x-api-key": create_key(server.keys_file), "accept-encoding": "identity"},
        timeout=30,
    )


def test_lists_count_and_other_requests_do_not(limited: Server) -> None:
    """200, 304 and 400, GET and HEAD, both prefixes; no get, session, or request with a bad key."""
    with client_of(limited) as client:
        wait_for_key(client)
        first = client.get(LIST)
        match = re.search("r=([0-9]+)", first.headers["ratelimit"])
        assert match
        remaining = int(match[1])
        for request, status in [
            (("GET", LIST, {"if-none-match": first.headers["etag"]}), 304),
            (("HEAD", "/api/v3.1/tools", {}), 200),
            (("GET", f"{LIST}?limit=0", {"origin": "http://a.example"}), 400),
            (("GET", LIST, {"accept-encoding": "gzip"}), 200),
        ][:remaining]:
            for other in (ONE, SESSION, "/healthz"):
                assert "ratelimit" not in client.get(other).headers
            method, path, headers = request
            stranger = client.get(LIST, headers={"x-api-key": "tc_nobody"})
            assert (stranger.status_code, "ratelimit" in stranger.headers) == (401, False)
            answer = client.request(method, path, headers=headers)
            remaining -= 1
            assert (answer.status_code, answer.headers["ratelimit-policy"]) == (
                status,
                '"list";q=6;w=3600',
            )
            assert re.fullmatch(f'"list";r={remaining};t=[0-9]{{1,4}}', answer.headers["ratelimit"])
            assert "retry-after" not in answer.headers
        while remaining:
            remaining -= 1
            assert client.get(LIST).status_code == 200
        for path in (LIST, f"{LIST}?limit=0", "/api/v3.1/tools?query=issue"):
            rejected = client.get(
                path, headers={"x-request-id": "mine", "origin": "http://a.example"}
            )
            assert (
                rejected.status_code,
                rejected.headers["retry-after"],
                rejected.headers["cache-control"],
            ) == (429, "59", "no-store")
            assert rejected.headers["ratelimit"].startswith('"list";r=0;t=')
            assert rejected.headers["access-control-expose-headers"] == "*"
            assert rejected.json()["error"] == {
                "message": "x-api-key: this key may list 6 times in 3600 s, and has done so.",
                "code": 1429,
                "slug": "rate_limited",
                "status": 429,
                "request_id": "mine",
                "suggested_fix": "Try again in 59 s, as Retry-After says.",
                "errors": ["x-api-key: this key may list 6 times in 3600 s, and has done so."],
            }
        assert client.get(ONE).status_code == 200


def test_each_list_counts_once(shipped_build: Path, tmp_path: Path) -> None:
    """Also if it fails; a list above the limit runs no search."""
    secret, _ = api_keys.create(tmp_path / "keys.json", "default", None, None)
    ring, store = api_keys.KeyRing(tmp_path / "keys.json"), open_build(shipped_build)
    limiter = LocalRateLimiter(Rate(6, 3600), Clock())
    state = AppState(ring, store, rate_limiter=limiter)
    app, lookups = create_app(state, None), state.observer.counters.cache
    browser = (("origin", "http://a.example"), ("accept-encoding", "gzip"))
    requests: list[tuple[str, tuple[tuple[str, str], ...], int, str]] = [
        (LIST, (), 200, '"list";r=5'),
        (f"{LIST}?limit=0", (), 400, '"list";r=4'),
        (f"{LIST}?query=emmaaill", (), 200, '"list";r=3'),
        (ONE, (), 200, ""),
        (LIST, browser, 200, '"list";r=2'),
        (LIST, (), 200, '"list";r=1'),
        (LIST, (), 200, '"list";r=0'),
        (f"{LIST}?query=issue", (), 429, '"list";r=0'),
        (f"{LIST}?query=issue", browser, 429, '"list";r=0'),
    ]
    for target, headers, status, limit in requests:
        response = asyncio.run(sent_by(app, target, (("x-api-key", secret), *headers)))
        request = dict(response[1]).get(b"ratelimit", b"").partition(b";t")[0].decode()
        assert (response[0], request) == (status, limit)
    # what is refused is refused before it is looked up or searched
    assert lookups.hits + lookups.misses == 6  # five lists and a get


def wait_for_key(client: httpx.Client) -> None:
    """Wait until the server has read the client's key; a get does not count."""
    end = time.monotonic() + 30
    while client.get(ONE).status_code == 401:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_keys_do_not_share_a_limit(limited: Server) -> None:
    for _ in range(2):
        with client_of(limited) as client:
            wait_for_key(client)
            assert [client.get(f"{LIST}?limit=1").status_code for _ in range(9)] == [200] * 6 + [
                429
            ] * 3


def test_no_headers_without_a_rate(shipped: Server) -> None:
    with httpx.Client(base_url=shipped.url, headers={"x-api-key": shipped.key}) as client:
        answers = [client.get(f"{LIST}?limit=1") for _ in range(50)]
    assert {answer.status_code for answer in answers} == {200}
    assert not any(
        "ratelimit" in answer.headers or "ratelimit-policy" in answer.headers for answer in answers
    )


def test_workers_share_the_rate(shipped_build: Path, tmp_path: Path) -> None:
    """Two workers with seven an hour allow three each, and report their share."""
    with start_server(shipped_build, tmp_path, "--rate", "7/h", "--workers", "2") as server:
        each_anew = httpx.Limits(max_keepalive_connections=0)  # so that both workers get some
        with httpx.Client(
            base_url=server.url, headers={"x-api-key": server.key}, limits=each_anew, timeout=30
        ) as client:
            answers = [client.get(f"{LIST}?limit=1") for _ in range(30)]
    assert 3 <= sum(answer.status_code == 200 for answer in answers) <= 6
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"list";q=3;w=3600'}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rate", "fast"], "'fast' is not a rate: write a number and /s, /m or /h, as in 100/s"),
        (
            ["--rate", "3/s", "--workers", "4"],
            (
                "error: --rate must be at least 1 for each of 4 workers: they share it, also "
                "while Redis is down."
            ),
        ),
        (
            ["--redis", "localhost:6379"],
            (
                "error: --redis takes redis://host:port, or rediss://host:port for TLS;"
                " user:password@ can come before the host."
            ),
        ),
    ],
)
def test_invalid_options_exit_with_2(
    shipped_build: Path, arguments: list[str], sentence: str
) -> None:
    """Before the server listens."""
    result = run_toolcatalog("serve", "--build", shipped_build, "--port", "0", *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
