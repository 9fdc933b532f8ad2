"""Keys and rate limits in a Redis that Sentinel names, and in a Redis Cluster."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import run_successfully
from support.redis_server import (
    RedisServer,
    needs_redis,
    redis_server,
    start_cluster,
    start_sentinel,
)
from toolcatalog.errors import UsageError
from toolcatalog.keys import api_keys
from toolcatalog.keys.redis import KeySync, RedisKeyStorage
from toolcatalog.keys.redis_connection import RedisAddress
from toolcatalog.server.limits.rate_limit import LocalRateLimiter, Rate
from toolcatalog.server.limits.redis_rate_limit import RedisRateLimiter

__all__ = ["redis_server"]
pytestmark = needs_redis
RATE = Rate(3, 3600)


@pytest.fixture(params=["sentinel", "cluster"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a running Redis."""
    if request.param == "cluster":
        with start_cluster(tmp_path) as server:
            yield f"redis+cluster://127.0.0.1:{server.port}"
    else:
        primary: RedisServer = request.getfixturevalue("redis_server")
        with start_sentinel(tmp_path, primary, "catalog") as port:
            yield f"redis+sentinel://127.0.0.1:{port}/catalog/1"


def test_key_commands_and_servers(url: str, tmp_path: Path) -> None:
    run_successfully("keys", "create", "--project", "p", "--redis", url)
    [key] = api_keys.load_keys(RedisKeyStorage(RedisAddress(url)))
    run_successfully("keys", "revoke", key.id, "--redis", url)
    file = tmp_path / "keys.json"
    KeySync(RedisKeyStorage(RedisAddress(url)), file).sync_once()
    [synced] = api_keys.load_keys(file)
    assert (synced.id, synced.revoked is not None) == (key.id, True)


# the cluster client of redis-py keeps the first connection to a node open until it is collected
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_servers_share_a_rate_limit(url: str) -> None:

    async def count() -> list[bool]:
        limiters = [
            RedisRateLimiter(RedisAddress(url), RATE, LocalRateLimiter(RATE)) for _ in range(2)
        ]
        results = [(await limiters[number % 2].hit("k")).is_allowed for number in range(5)]
        for limiter in limiters:
            await limiter.aclose()
        return results

    assert asyncio.run(count()) == [True, True, True, False, False]
    gc.collect()  # here, so that the warning does not appear in another test


def test_invalid_address_options() -> None:
    with pytest.raises(UsageError, match="The query of --redis is not valid"):
        RedisAddress("redis://localhost?socket_timeout=soon")
