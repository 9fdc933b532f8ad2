"""The limits of all servers together: the counts of `limiting`, kept in Redis by the scripts of the
library `limits`.

Each server asks Redis for each list, and waits half a second at most. Where no answer comes, this
process counts by itself at once and says so once; it asks Redis again in the background, every
second, and no request waits for that. Redis measures the time, by how long its entries live: the
clocks of the servers do not matter. Where its own clock is set back, entries would live on for as
long as it jumped; one that has longer to live than it was ever given is thrown away.
"""

import asyncio
import logging

from toolcatalog.remote import Address
from toolcatalog.server.limiting import Counts, Rate, Standing, standing

# seconds for all that one request asks of Redis, a first connection included: some 30 ms on a busy
# machine
_PATIENCE = 0.5
_EVERY = 1.0  # second between two tries while Redis is away
# requests of a process that ask; others queue before their patience begins, or a busy process would
# take Redis for gone
_AT_ONCE = 4
_PREFIX = "toolcatalog:limits"
_PROBE = "probe"  # stands for a key's id, which begins otherwise
_log = logging.getLogger("toolcatalog.limits")


class Pooled:
    """The limits of all servers that use this Redis; `own` counts while it is away."""

    def __init__(self, address: Address, rate: Rate, own: Counts) -> None:
        from limits.aio.storage import RedisStorage  # noqa: PLC0415 - both are there with the extra only
        from redis.asyncio import ConnectionPool  # noqa: PLC0415
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415

        pool = ConnectionPool.from_url(
            address.url,
            socket_timeout=_PATIENCE,
            socket_connect_timeout=_PATIENCE,
            # whoever tries again within a request makes its client wait
            retry=Retry(NoBackoff(), 0),
        )
        url = f"async+{address.url}"
        self._storage = RedisStorage(
            url,
            implementation="redispy",
            key_prefix=_PREFIX,
            connection_pool=pool,  # type: ignore[arg-type]  # an async one
        )
        self._pool = pool
        self._address = address
        self._rate = rate
        self._own = own
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._probing: asyncio.Task[None] | None = None

    async def hit(self, id: str) -> Standing:
        """As `limiting.Limits` says."""
        async with self._turns:
            if self._probing is None:
                try:
                    return await self._ask(id)
                except Exception as error:  # noqa: BLE001 - whatever is wrong with Redis, a list is answered
                    self._leave(error)
        return self._own.count(id)

    async def aclose(self) -> None:
        """Ask no more, and close the connections."""
        if self._probing:
            self._probing.cancel()
        await self._pool.disconnect()

    async def _ask(self, id: str) -> Standing:
        name, (amount, seconds) = f"{id}/{self._rate.amount}/{self._rate.seconds}", self._rate
        async with asyncio.timeout(_PATIENCE):
            is_within = await self._storage.acquire_sliding_window_entry(name, amount, seconds)
            previous, previous_left, current, current_left = await self._storage.get_sliding_window(
                name, seconds
            )
            # no entry is ever given more: Redis' clock went back
            if previous_left > seconds or current_left > 2 * seconds:
                await self._storage.clear_sliding_window(name, seconds)
        # an entry outlives its window, for as long again
        left = min(max(current_left - seconds, 0.0), seconds)
        return standing(self._rate, is_within, previous, current, left)

    def _leave(self, error: Exception) -> None:
        if self._probing is None:  # requests that were under way together find it out together
            _log.warning(
                "%s does not count (%s): each process counts by itself",
                self._address,
                str(error) or "no answer",
            )
            self._probing = asyncio.create_task(self._come_back())

    async def _come_back(self) -> None:
        while self._probing:
            await asyncio.sleep(_EVERY)
            try:
                await self._ask(_PROBE)
                self._probing = None
            except Exception as error:  # noqa: BLE001 - whatever is wrong with Redis, it is asked again
                _log.debug("%s does not count yet (%s)", self._address, error)
        _log.warning("%s counts again for all servers", self._address)
