"""What servers share through Redis, with a real redis-server that is killed, hangs, loses all, or
holds something else.
"""

import asyncio
import json
import logging
import re
import socketserver
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest

from support.command import run_successfully, run_toolcatalog
from support.paths import ROOT
from support.redis_server import RedisServer, free_port, needs_redis, redis_server
from support.server import Server, start_server, wait_until
from toolcatalog.api.error_responses import RequestError
from toolcatalog.errors import KeyFileError, UsageError
from toolcatalog.keys import api_keys
from toolcatalog.keys.redis import (
    KeySync,
    RedisKeyStorage,
    find_rolled_back,
    merge_keys,
)
from toolcatalog.keys.redis_connection import RedisAddress
from toolcatalog.server.limits import redis_rate_limit
from toolcatalog.server.limits.rate_limit import LimitStatus, LocalRateLimiter, Rate
from toolcatalog.server.limits.redis_rate_limit import RedisRateLimiter

__all__ = ["redis_server"]
pytestmark = needs_redis
DAY = timedelta(days=1)
RATE = Rate(100, 60)


def redis_storage(server: RedisServer) -> RedisKeyStorage:
    """The storage of keys in this Redis."""
    return RedisKeyStorage(RedisAddress(server.url))


def states(where: Path | RedisKeyStorage) -> dict[str, str]:
    """The state of each key by its id."""
    return {key.id: key.state(datetime.now(UTC)) for key in api_keys.load_keys(where)}


# The address


@pytest.mark.parametrize(
    ("url", "displayed"),
    [
        ("redis://localhost", "Redis at localhost:6379"),
        ("rediss://a.example:7000/3", "Redis at a.example:7000, database 3"),
        ("redis://user:s3cret@10.0.0.5:6380/", "Redis at 10.0.0.5:6380"),
        ("redis://:s3cret@[::1]:6380", "Redis at ::1:6380"),
        ("redis://:s3cret@h?ssl_ca_certs=ca.pem", "Redis at h:6379"),
        (
            "redis+sentinel://:s3cret@a,b:7/catalog/2",
            "Redis catalog of Sentinel at a:26379, b:7, database 2",
        ),
        ("rediss+cluster://u:s3cret@a:7000,b", "Redis Cluster at a:7000, b:6379"),
    ],
)
def test_address_is_shown_without_its_password(url: str, displayed: str) -> None:
    assert str(RedisAddress(url)) == displayed
    assert "s3cret" not in str(RedisKeyStorage(RedisAddress(url)))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        "http://localhost",
        "redis://",
        "redis://h:port",
        "redis://h:99999",
        "redis://h/name",
        "redis://[::1",
        "unix:///x",
        "redis://a,b",
        "redis+sentinel://a",
        "redis+sentinel://a/x/y",
        "redis+cluster://a/3",
        "redis+proxy://a",
    ],
)
def test_invalid_address_is_refused(url: str) -> None:
    """Without repeating it, because it may contain a password."""
    with pytest.raises(UsageError, match=r"^--redis takes redis://host:port, or rediss://"):
        RedisAddress(url)


# The commands


def test_key_commands_work_as_with_a_file(redis_server: RedisServer, tmp_path: Path) -> None:
    """Create, list, rotate and revoke; the document has the format of a key file, and no file is
    written.
    """
    env = {"TOOLCATALOG_KEYS": str(tmp_path / "keys.json"), "TOOLCATALOG_REDIS": redis_server.url}
    created = run_toolcatalog("keys", "create", "--project", "research", env=env)
    assert (
        f"Kept as a hash in Redis at 127.0.0.1:{redis_server.port}: store the key now"
        in created.stderr
    )
    secret = created.stdout.strip()
    (key,) = api_keys.load_keys(redis_storage(redis_server))
    assert (key.project, key.hint) == ("research", secret[-4:])
    assert key.id in run_successfully("keys", "list", "--redis", redis_server.url)
    successor = run_successfully("keys", "rotate", key.id, "--overlap", "1h", env=env).strip()
    revoked = run_toolcatalog("keys", "revoke", key.id, env=env)
    assert "running servers refuse it within two seconds." in revoked.stderr
    assert sorted(states(redis_storage(redis_server)).values()) == ["active", "revoked"]
    assert redis_server.command("KEYS", "*") == [b"toolcatalog:keys"]
    document = redis_server.command("HGET", "toolcatalog:keys", "document")
    assert set(json.loads(document)) == {"format", "sha256", "keys"}
    for text in (secret, successor):
        assert text[3:-4].encode() not in document
    assert not (tmp_path / "keys.json").exists()


def test_documented_user_rights_are_enough(redis_server: RedisServer, tmp_path: Path) -> None:
    """Keys and limits work with the rights that docs/guides/limit-requests.md lists."""
    output = re.search(
        r"ACL SETUSER (toolcatalog .*)",
        (ROOT / "docs" / "guides" / "limit-requests.md").read_text(),
    )
    assert output
    redis_server.command("ACL", "SETUSER", *output[1].replace(">PASSWORD", ">s3cret").split())
    url = redis_server.url.replace("//", "//toolcatalog:s3cret@")
    run_successfully("keys", "create", "--project", "p", "--redis", url)
    KeySync(RedisKeyStorage(RedisAddress(url)), tmp_path / "keys.json").sync_once()
    assert len(api_keys.load_keys(tmp_path / "keys.json")) == 1

    async def ask() -> int:
        async with aclosing(
            RedisRateLimiter(RedisAddress(url), Rate(5, 60), LocalRateLimiter(Rate(1, 60)))
        ) as limits:
            return await hits(limits, 9)

    assert asyncio.run(ask()) == 5
    wrong = run_toolcatalog(
        "keys", "list", "--redis", redis_server.url.replace("//", "//toolcatalog:wr0ng@")
    )
    assert wrong.returncode == 2
    assert "wr0ng" not in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1


def test_concurrent_changes_lose_nothing(redis_server: RedisServer) -> None:
    """Forty changes by eight threads, each with its own revision."""
    with ThreadPoolExecutor(8) as pool:
        created = [
            *pool.map(
                lambda number: (
                    api_keys.create(redis_storage(redis_server), f"p{number}", None, None)[1].id
                ),
                range(40),
            )
        ]
    assert set(states(redis_storage(redis_server))) == {*created}
    before = redis_storage(redis_server).read_version()
    api_keys.revoke(redis_storage(redis_server), created[0])
    assert redis_storage(redis_server).read_version() != before


@pytest.mark.parametrize(
    "arguments", [["list"], ["create", "--project", "p"], ["revoke", "key_1"], ["rotate", "key_1"]]
)
def test_unavailable_redis_is_reported(arguments: list[str]) -> None:
    """Within seconds."""
    result = run_toolcatalog(
        "keys", *arguments, "--redis", f"redis://user:s3cret@127.0.0.1:{free_port()}"
    )
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert result.stderr.startswith("error: Redis at 127.0.0.1:")
    assert "s3cret" not in result.stderr


def test_invalid_document_is_not_overwritten(redis_server: RedisServer) -> None:
    """A damaged one, a newer format, or another type of value."""
    for write, what in [
        (["HSET", "toolcatalog:keys", "document", "{", "version", "1"], "is damaged"),
        (
            ["HSET", "toolcatalog:keys", "document", '{"format": 9, "keys": []}', "version", "2"],
            "has format 9",
        ),
        (["SET", "toolcatalog:keys", "x"], "WRONGTYPE"),
    ]:
        redis_server.command("DEL", "toolcatalog:keys")
        redis_server.command(*write)
        before = redis_server.command("DUMP", "toolcatalog:keys")
        with pytest.raises(KeyFileError, match=what):
            api_keys.create(redis_storage(redis_server), "p", None, None)
        assert redis_server.command("DUMP", "toolcatalog:keys") == before


def test_rotate_without_a_document(redis_server: RedisServer) -> None:
    result = run_toolcatalog("keys", "rotate", "key_1", "--redis", redis_server.url)
    assert result.stderr == (
        f"error: There is no key document in Redis at 127.0.0.1:{redis_server.port}: run "
        f"`toolcatalog keys create --project default --redis URL`.\n"
    )


def test_push_merges_a_key_file(redis_server: RedisServer, tmp_path: Path) -> None:
    """Revoked keys stay revoked; a second push changes nothing."""
    file, remote = tmp_path / "keys.json", redis_storage(redis_server)
    _, key = api_keys.create(file, "p", None, None)
    _, two = api_keys.create(file, "p", None, None)
    result = run_toolcatalog("keys", "push", "--keys", file, "--redis", redis_server.url)
    assert result.stderr == f"2 keys in {remote.location} now, 2 from the file.\n"
    _, three = api_keys.create(remote, "p", None, None)
    api_keys.revoke(file, key.id)
    api_keys.revoke(remote, two.id)
    for _ in range(2):
        run_successfully("keys", "push", "--keys", file, "--redis", redis_server.url)
        assert states(remote) == {key.id: "revoked", two.id: "revoked", three.id: "active"}
    missing = run_toolcatalog("keys", "push", "--keys", file, env={"TOOLCATALOG_REDIS": ""})
    assert (missing.returncode, "Missing option '--redis'" in missing.stderr) == (2, True)


def test_backward_changes() -> None:
    """A removed key, a later end, a revoked key that is active; not a new key, an earlier end or a
    revocation.
    """

    def key(id: str, expires: str | None = None, revoked: str | None = None) -> api_keys.ApiKey:
        created = "2026-01-01T00:00:00+00:00"
        return api_keys.ApiKey(
            id=id,
            project="p",
            toolkits=None,
            sha256=id * 2,
            hint="",
            created=created,
            lifetime=None,
            expires=expires,
            revoked=revoked,
        )

    soon, late = "2026-12-01T00:00:00+00:00", "2027-12-01T00:00:00+00:00"
    plain, ending, revoked = key("a"), key("a", expires=soon), key("a", revoked=soon)
    for before, after in [
        (plain, ()),
        (ending, (plain,)),
        (ending, (key("a", expires=late),)),
        (revoked, (plain,)),
        (revoked, (ending,)),
    ]:
        assert find_rolled_back([before], after) == [before]
        assert find_rolled_back([before], merge_keys([before], after)) == []
    for before, after in [
        (plain, (plain, key("b"))),
        (plain, (ending,)),
        (ending, (revoked,)),
        (revoked, (revoked,)),
    ]:
        assert find_rolled_back([before], after) == []


# Relay


def log_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what this thread has logged; other threads may come from an earlier test."""
    return [
        record.getMessage() for record in caplog.records if record.thread == threading.get_ident()
    ]


def follower(server: RedisServer, file: Path) -> KeySync:
    """One that has looked once."""
    following = KeySync(redis_storage(server), file)
    following.sync_once()
    return following


def test_change_reaches_the_file_within_two_seconds(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """The file is private, and is written only for changes."""
    file = tmp_path / "new" / "keys.json"
    secret, key = api_keys.create(redis_storage(redis_server), "p", None, None)
    following = follower(redis_server, file)
    ring = api_keys.KeyRing(file)
    assert ring.find(secret.encode()) == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    following.start()
    successor, _ = api_keys.rotate(redis_storage(redis_server), key.id, DAY)
    wait_until(lambda: ring.find(successor.encode()))
    api_keys.revoke(redis_storage(redis_server), key.id)
    wait_until(lambda: ring.find(secret.encode()) is None)
    before = file.stat()
    time.sleep(1.2)  # two looks
    assert file.stat() == before


def test_redis_outage_and_recovery(
    redis_server: RedisServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys stay, also for a server that starts meanwhile; one log line; later changes are read."""
    file = tmp_path / "keys.json"
    secret, key = api_keys.create(redis_storage(redis_server), "p", None, None)
    following = follower(redis_server, file)
    redis_server.kill()
    caplog.clear()
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            following.sync_once()
        assert len(log_messages(caplog)) == 1
        assert ("toolcatalog.keys", logging.ERROR, log_messages(caplog)[0]) in caplog.record_tuples
        assert log_messages(caplog)[0].startswith(
            f"keeping the current keys: Redis at 127.0.0.1:{redis_server.port} failed to "
            f"process the request"
        )
        KeySync(redis_storage(redis_server), file).sync_once()
        assert api_keys.KeyRing(file).find(secret.encode())
        redis_server.start()
        assert states(redis_storage(redis_server)) == {key.id: "active"}  # it had written it down
        api_keys.revoke(redis_storage(redis_server), key.id)
        following.sync_once()
    assert (
        log_messages(caplog)[-1]
        == f"keys are synchronized with Redis at 127.0.0.1:{redis_server.port} again"
    )
    assert api_keys.KeyRing(file).find(secret.encode()) is None


def test_hanging_redis_times_out(redis_server: RedisServer, tmp_path: Path) -> None:
    """It accepts connections and never answers."""
    secret, _ = api_keys.create(redis_storage(redis_server), "p", None, None)
    following = follower(redis_server, tmp_path / "keys.json")
    redis_server.suspend()
    start = time.monotonic()
    following.sync_once()
    assert time.monotonic() - start < 20
    assert api_keys.KeyRing(tmp_path / "keys.json").find(secret.encode())


@contextmanager
def assert_refused(caplog: pytest.LogCaptureFixture, file: Path, what: str) -> Iterator[None]:
    """Check that the block changes nothing in the file and logs one line."""
    before = file.read_bytes()
    caplog.clear()
    yield
    assert file.read_bytes() == before
    assert len(log_messages(caplog)) == 1
    assert what in log_messages(caplog)[0]


def test_backward_document_is_not_copied(
    redis_server: RedisServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An empty Redis, other keys, an older state or garbage: the file stays, with one log line;
    `push` repairs Redis.
    """
    file, remote = tmp_path / "keys.json", redis_storage(redis_server)
    _, key = api_keys.create(file, "p", None, None)
    _, two = api_keys.create(file, "p", None, None)
    old = file.read_bytes()
    with assert_refused(caplog, file, "There is no key document in Redis"):
        following = follower(redis_server, file)
        following.sync_once()
    _, other = api_keys.create(remote, "p", None, None)
    with assert_refused(
        caplog,
        file,
        f"({key.id}, {two.id}): `toolcatalog keys push --keys {file} --redis URL` merges both",
    ):
        following.sync_once()
        following.sync_once()
    run_successfully("keys", "push", "--keys", file, "--redis", redis_server.url)
    following.sync_once()
    assert set(states(file)) == {key.id, two.id, other.id}
    api_keys.revoke(remote, key.id)
    following.sync_once()
    assert states(file)[key.id] == "revoked"
    for document in (old, b"{", b'{"format": 1, "keys": [{}]}'):
        redis_server.command(
            "HSET", "toolcatalog:keys", "document", document, "version", "restored"
        )
        with assert_refused(caplog, file, "keeping the current keys"):
            following.sync_once()
            following.sync_once()
        redis_server.command(
            "HSET", "toolcatalog:keys", "document", file.read_bytes(), "version", "good"
        )
        following.sync_once()


def test_unreadable_key_file_is_not_overwritten(
    redis_server: RedisServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys.json"
    api_keys.create(redis_storage(redis_server), "p", None, None)
    file.write_bytes(b"{")
    with assert_refused(caplog, file, "is damaged"):
        follower(redis_server, file)
    file.unlink()
    file.mkdir()
    follower(redis_server, file)
    assert "Is a directory" in log_messages(caplog)[-1]
    assert file.is_dir()


@contextmanager
def malformed_redis(reply: bytes) -> Iterator[int]:
    """A server that answers everything with these bytes; yields its port."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while self.request.recv(65536):
                self.request.sendall(reply)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize("reply", [b"$x\r\n", b"*0\r\n"])
def test_a_malformed_reply_is_logged_once(
    reply: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread that follows Redis does not end: the next revocation must arrive."""
    with malformed_redis(reply) as port:
        following = KeySync(
            RedisKeyStorage(RedisAddress(f"redis://127.0.0.1:{port}")), tmp_path / "keys.json"
        )
        following.sync_once()
        following.sync_once()
    (message,) = log_messages(caplog)
    assert f"keeping the current keys: Redis at 127.0.0.1:{port} failed" in message


# Limits


async def hits(limits: RedisRateLimiter, times: int, id: str = "key_a") -> int:
    """Return how many of several consecutive requests are allowed."""
    return sum([(await limits.hit(id)).is_allowed for _ in range(times)])


def pooled(server: RedisServer, rate: Rate = RATE, own: int = 10) -> RedisRateLimiter:
    """The limits of one process of several."""
    return RedisRateLimiter(
        RedisAddress(server.url), rate, LocalRateLimiter(Rate(own, rate.period))
    )


def test_request_waits_a_second_for_earlier_ones() -> None:
    """It is then refused for now; Redis is not taken to be unavailable."""

    async def ask() -> tuple[float, object]:
        address = RedisAddress("redis://127.0.0.1:1")
        async with aclosing(
            RedisRateLimiter(address, RATE, LocalRateLimiter(Rate(7, 60)))
        ) as limits:
            for _ in range(redis_rate_limit._MAX_CONCURRENT):
                await limits._semaphore.acquire()
            began = time.monotonic()
            with pytest.raises(RequestError, match="wait for the shared rate limit"):
                await asyncio.wait_for(limits.hit("key_a"), 30)
            return time.monotonic() - began, limits._probe_task

    seconds, probe = asyncio.run(ask())
    assert probe is None
    assert seconds >= redis_rate_limit._MAX_WAIT


def test_process_alone_counts_towards_the_same_rate(redis_server: RedisServer) -> None:
    """One process allows no more than the rate, whether Redis counts or the process itself."""

    async def ask() -> bool:
        async with aclosing(pooled(redis_server, Rate(10, 60), own=10)) as limits:
            for _ in range(10):
                assert (await limits.hit("key_a")).is_allowed
            redis_server.kill()
            return (await limits.hit("key_a")).is_allowed

    assert not asyncio.run(ask())


def test_servers_share_one_rate(redis_server: RedisServer) -> None:
    """Three processes with sixty connections each, a hundred requests per key; all see the same
    remaining number.
    """

    async def ask() -> None:
        async with AsyncExitStack() as stack:
            servers = [
                await stack.enter_async_context(aclosing(pooled(redis_server))) for _ in range(3)
            ]
            result = await asyncio.gather(
                *(server.hit("key_a") for server in servers for _ in range(60))
            )
            last = await servers[0].hit("key_a")
            other = await servers[1].hit("key_b")
        assert sum(standing.is_allowed for standing in result) == 100
        assert (last.is_allowed, last.remaining, last.rate) == (False, 0, Rate(100, 60))
        assert dict(last.headers())[b"ratelimit"].startswith(b'"list";r=0;t=')
        assert (other.is_allowed, other.remaining) == (True, 99)
        assert 58 < other.reset_after <= 60.6  # a slice more than the window, at most

    asyncio.run(ask())
    assert all(
        name.startswith(b"toolcatalog:limits:key_") for name in redis_server.command("KEYS", "*")
    )
    assert all(redis_server.command("PTTL", name) > 0 for name in redis_server.command("KEYS", "*"))


def test_redis_and_memory_allow_the_same_rate(redis_server: RedisServer) -> None:
    """Over time, at twice the rate."""

    async def ask() -> tuple[int, int]:
        end, allowed, also_allowed, alone = (
            time.monotonic() + 2.5,
            0,
            0,
            LocalRateLimiter(Rate(40, 1)),
        )
        async with aclosing(pooled(redis_server, Rate(40, 1))) as limits:
            while time.monotonic() < end:
                allowed += (await limits.hit("key_a")).is_allowed
                also_allowed += alone.count("key_a").is_allowed
                await asyncio.sleep(0.01)
        return allowed, also_allowed

    allowed, also_allowed = asyncio.run(ask())
    assert 40 < allowed <= 40 * 4
    assert abs(allowed - also_allowed) <= 20


def test_no_window_exceeds_the_rate(redis_server: RedisServer) -> None:
    """Bursts of two servers over several windows, by the clock of a client."""

    async def ask() -> list[int]:
        moments = list[int]()
        async with AsyncExitStack() as stack:
            servers = [
                await stack.enter_async_context(aclosing(pooled(redis_server, Rate(20, 1))))
                for _ in range(2)
            ]
            end = time.monotonic() + 4
            while time.monotonic() < end:
                for server in servers * 8:
                    before = time.monotonic_ns()
                    if (await server.hit("key_a")).is_allowed:
                        # it was counted between these two: the shortest distance is what counts
                        moments.append(before)
                await asyncio.sleep(0.13)
        return moments

    moments = asyncio.run(ask())
    assert len(moments) >= 40
    slack = 20_000_000  # nanoseconds that an answer may take
    for index, start in enumerate(moments):
        last = index + 20
        assert last >= len(moments) or moments[last] - start > 1_000_000_000 - slack


def test_redis_outage_under_load(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Every request is answered, none without a limit, and each change is logged once."""

    async def ask() -> None:
        async with aclosing(pooled(redis_server, Rate(1_000_000, 3600), own=7)) as limits:
            slowest = 0.0

            async def hit(key_id: str) -> LimitStatus:
                nonlocal slowest
                start = time.monotonic()
                result = await limits.hit(key_id)
                slowest = max(slowest, time.monotonic() - start)
                await asyncio.sleep(0.005)
                return result

            async def load(key_id: str = "key_a") -> list[LimitStatus]:
                return await asyncio.gather(*(hit(key_id) for _ in range(20)))

            assert all(result.rate.limit == 1_000_000 for result in await load("key_b"))
            redis_server.kill()
            alone = [result for _ in range(10) for result in await load()]
            assert all(result.rate.limit == 7 for result in alone)
            assert sum(result.is_allowed for result in alone) == 7
            assert len(log_messages(caplog)) == 1
            assert "rate limits are not shared" in log_messages(caplog)[0]
            await asyncio.to_thread(redis_server.start)
            end = time.monotonic() + 30
            while (await load())[0].rate.limit == 7:
                assert time.monotonic() < end, "it never came back"
            assert log_messages(caplog)[1:] == [
                f"rate limits of Redis at 127.0.0.1:{redis_server.port} apply to all servers again"
            ]
            assert slowest < 10

    with caplog.at_level(logging.INFO):
        asyncio.run(ask())


def test_hanging_redis_delays_one_request(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The next ones are counted locally at once."""

    async def ask() -> None:
        async with aclosing(pooled(redis_server)) as limits:
            assert (await limits.hit("key_a")).rate.limit == 100
            redis_server.suspend()
            assert (await limits.hit("key_a")).rate.limit == 10
            start = time.monotonic()
            for _ in range(100):
                assert (await limits.hit("key_a")).rate.limit == 10
            assert time.monotonic() - start < 0.5 * 100 / 2
            redis_server.resume()
            end = time.monotonic() + 30
            while (await limits.hit("key_a")).rate.limit == 10:
                assert time.monotonic() < end, "it never came back"
                await asyncio.sleep(0.05)

    asyncio.run(ask())
    assert len(log_messages(caplog)) == 2


def test_refusing_redis_counts_as_unavailable(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A missing password is logged once."""

    async def ask() -> None:
        async with aclosing(pooled(redis_server)) as limits:
            redis_server.command("CONFIG", "SET", "requirepass", "s3cret")
            for _ in range(12):
                assert (await limits.hit("key_a")).rate.limit == 10
                await asyncio.sleep(0.2)

    asyncio.run(ask())
    assert len(log_messages(caplog)) == 1
    assert "s3cret" not in caplog.text


def test_redis_clock_set_back_locks_nobody_out(redis_server: RedisServer) -> None:
    """Counts from the future are discarded, unless the step is shorter than a window."""

    async def ask() -> None:
        async with aclosing(pooled(redis_server, Rate(3, 1))) as limits:
            assert await hits(limits, 20) >= 3
            (name,) = redis_server.command("KEYS", "*")
            state = redis_server.command("GET", name).decode()
            for ahead in (50, 3600 * 100):  # slices: half a second, an hour
                counts = [entry.split(":") for entry in state.split()]
                later = " ".join(f"{int(piece) + ahead}:{count}" for piece, count in counts)
                redis_server.command("SET", name, later, "PX", 10_000_000)
                assert await hits(limits, 1) == (ahead > 100)
            end = time.monotonic() + 30
            while not (await limits.hit("key_a")).is_allowed:
                assert time.monotonic() < end, "locked out"

    asyncio.run(ask())


def test_missing_extra_is_reported() -> None:
    """When the address is parsed."""
    script = (
        "import sys; sys.modules['redis'] = None; from toolcatalog.cli.main import main; "
        "sys.exit(main(['keys', 'list', '--redis', 'redis://h']))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stderr) == (
        2,
        "error: Redis needs the package redis: run `pip install 'toolcatalog[redis]'`.\n",
    )


# The server


def test_servers_share_keys_and_limits(
    redis_server: RedisServer, shipped_build: Path, tmp_path: Path
) -> None:
    """Two servers, three processes: a new key is valid on both, lists count together, a revoked key
    is refused by both, also when Redis restarts under load.
    """
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    url, options = redis_server.url, ("--rate", "40/h", "--redis", redis_server.url)
    with (
        start_server(shipped_build, tmp_path / "a", *options, "--workers", "2") as one,
        start_server(shipped_build, tmp_path / "b", *options) as other,
        httpx.Client(limits=httpx.Limits(max_keepalive_connections=0), timeout=30) as client,
    ):
        for server in (one, other):
            run_successfully("keys", "push", "--keys", server.keys_file, "--redis", url)
        secret = run_successfully("keys", "create", "--project", "p", "--redis", url).strip()

        def get(server: Server, path: str, key: str = secret) -> int:
            return client.get(
                f"{server.url}/api/v3/tools{path}", headers={"x-api-key": key}
            ).status_code

        def becomes(server: Server, status: int, key: str = secret) -> None:
            wait_until(lambda: get(server, "/GITHUB_CREATE_ISSUE", key) == status)

        def missed(server: Server) -> bool:
            return (
                get(server, "/GITHUB_CREATE_ISSUE") == 200
                and says(server, "keeping the current keys: Redis at") > 0
            )

        for server in (one, other):
            for key in (one.key, other.key, secret):
                becomes(server, 200, key)
        # whichever worker has not answered yet looks at its keys again, half a second after it last
        # did
        time.sleep(1)
        result = [get(server, "?limit=1") for _ in range(30) for server in (one, other)]
        assert result.count(200) == 40
        assert set(result) == {200, 429}

        redis_server.kill()
        with ThreadPoolExecutor(4) as pool:
            result = [
                *pool.map(
                    lambda number: get((one, other)[number % 2], "?limit=1", other.key), range(160)
                )
            ]
        assert set(result) == {200, 429}
        assert result.count(200) <= 40 * 2  # each server by itself, its workers together
        # however short it is away, each has looked for its keys meanwhile
        for server in (one, other):
            wait_until(partial(missed, server))

        redis_server.start()
        (id,) = [
            kept.id
            for kept in api_keys.load_keys(redis_storage(redis_server))
            if kept.hint == secret[-4:]
        ]
        run_successfully("keys", "revoke", id, "--redis", url)
        for server in (one, other):
            becomes(server, 401)
            wait_until(partial(says, server, "apply to all servers again"))
            assert says(server, "rate limits are not shared") <= 2  # a line of each worker
            assert not says(server, "Traceback")


def says(server: Server, what: str) -> int:
    """How often a server's log says something."""
    return server.log.read_text().count(what)


@contextmanager
def server_without_keys(
    build: Path, folder: Path, server: RedisServer
) -> Iterator[tuple[str, Path]]:
    """Run a server without a key file and with this Redis; return its address and log."""
    log = folder / "server.log"
    arguments = [
        "--build",
        str(build),
        "--port",
        "0",
        "--keys",
        str(folder / "keys.json"),
        "--redis",
        server.url,
    ]
    with (
        log.open("w") as sink,
        subprocess.Popen(
            [sys.executable, "-m", "toolcatalog", "serve", *arguments], stderr=sink
        ) as process,
    ):
        try:
            wait_until(lambda: re.search(r"http://[0-9.]+:[0-9]+", log.read_text()))
            yield re.findall(r"http://[0-9.]+:[0-9]+", log.read_text())[0], log
        finally:
            process.terminate()
            process.wait(timeout=20)


def test_server_starts_without_redis(
    redis_server: RedisServer, shipped_build: Path, tmp_path: Path
) -> None:
    """Without a key file it answers 401 and logs why; the keys come with Redis."""
    redis_server.kill()
    with server_without_keys(shipped_build, tmp_path, redis_server) as (url, log):
        wait_until(
            lambda: (
                "No keys yet: every API call answers 401 until they come from Redis"
                in log.read_text()
            )
        )
        assert httpx.get(f"{url}/api/v3/tools", headers={"x-api-key": "tc_x"}).status_code == 401
        redis_server.start()
        secret = run_successfully(
            "keys", "create", "--project", "p", "--redis", redis_server.url
        ).strip()
        wait_until(
            lambda: (
                httpx.get(f"{url}/api/v3/tools", headers={"x-api-key": secret}).status_code == 200
            )
        )
        assert "Traceback" not in log.read_text()
