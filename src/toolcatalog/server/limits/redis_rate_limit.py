"""Rate limits shared by several servers in Redis.

Each server asks Redis for each list request and waits half a second at most. If Redis does not
answer, this process counts alone at once and logs it once. It probes Redis in the background every
second; no request waits for that. A request that has waited a second for earlier ones is counted by
this process, so clients with many requests do not hold up others while Redis is slow.

Redis measures the time, so the clocks of the servers do not matter. If the clock of Redis is set
back by less than a window, the slice that was reached stays the current one until the clock reaches
it again. If it is set back by more, the counts are dropped, so a wrong clock locks out a client for
at most one window.
"""

import asyncio
import logging

from toolcatalog.api.error_responses import ErrorDetail, RequestError
from toolcatalog.keys.redis_connection import RedisAddress
from toolcatalog.server.limits.rate_limit import SLICES, LimitStatus, LocalRateLimiter, Rate

# seconds for the Redis call of one request, including a first connection: about 30 ms on a busy
# machine
_TIMEOUT = 0.5
_PROBE_INTERVAL = 1.0  # second between two probes while Redis is unavailable
_MAX_WAIT = 1.0  # seconds that a request waits for earlier ones
# Redis calls of a process at once; the others wait before their timeout begins, or a busy process
# would conclude that Redis is unavailable
_MAX_CONCURRENT = 4
_PREFIX = "toolcatalog:limits"
_PROBE_KEY = "probe"  # used in place of a key id; key ids begin differently
_MICROSECONDS = 1_000_000  # in a second
# KEYS: the counts of a key, as "slice:count ...", oldest first. ARGV: the limit, the microseconds
# of a slice, the slices of a window. Returns whether the request is within the rate, how many more
# requests are, and in how many microseconds there will be more.
_COUNT = """
local amount, length, slices = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local current, kept, total = math.floor(now / length), {}, 0
local state = redis.call('GET', KEYS[1]) or ''
local newest = tonumber(string.match(state, '(%d+):%d+$') or '0')
if newest > current + slices then
  state = ''
elseif newest > current then
  current = newest
end
for slice, count in string.gmatch(state, '(%d+):(%d+)') do
  slice, count = tonumber(slice), tonumber(count)
  if slice >= current - slices then
    kept[#kept + 1] = {slice, count}
    total = total + count
  end
end
local within = total < amount
if within then
  total = total + 1
  if #kept > 0 and kept[#kept][1] == current then
    kept[#kept][2] = kept[#kept][2] + 1
  else
    kept[#kept + 1] = {current, 1}
  end
  local parts = {}
  for place, entry in ipairs(kept) do
    parts[place] = string.format('%d:%d', entry[1], entry[2])
  end
  local life = math.ceil(length * (slices + 1) / 1000)
  redis.call('SET', KEYS[1], table.concat(parts, ' '), 'PX', life)
end
local oldest = #kept > 0 and kept[1][1] or current
return {within and 1 or 0, amount - total, (oldest + slices + 1) * length - now}
"""
_log = logging.getLogger("toolcatalog.limits")


class RedisRateLimiter:
    """The rate limits of all servers that use this Redis.

    `fallback` counts while Redis is unavailable. It also counts what Redis allows, so that both
    together allow a process no more than the rate.
    """

    def __init__(self, address: RedisAddress, rate: Rate, fallback: LocalRateLimiter) -> None:
        self._client = address.connect_async(_TIMEOUT)
        self._count = self._client.register_script(_COUNT)
        self._address = address
        self._rate = rate
        self._fallback = fallback
        self._semaphore = asyncio.Semaphore(_MAX_CONCURRENT)
        self._probe_task: asyncio.Task[None] | None = None

    async def hit(self, key_id: str) -> LimitStatus:
        """Count a request; see `server.limits.rate_limit.RateLimiter.hit`.

        Raises RequestError (503) if the request would wait too long for earlier ones.
        """
        try:
            async with asyncio.timeout(_MAX_WAIT if self._semaphore.locked() else None):
                await self._semaphore.acquire()
        except TimeoutError:
            raise RequestError(_busy()) from None
        try:
            if self._probe_task is None:
                return await self._hit_redis(key_id)
        except Exception as error:  # noqa: BLE001 - a Redis fault must not fail a request
            self._switch_to_fallback(error)
        finally:
            self._semaphore.release()
        return self._fallback.count(key_id)

    async def aclose(self) -> None:
        """Stop probing and close the connections."""
        if self._probe_task:
            self._probe_task.cancel()
        await self._client.aclose()

    async def _hit_redis(self, key_id: str) -> LimitStatus:
        amount, seconds = self._rate
        name = f"{_PREFIX}:{key_id}/{amount}/{seconds}"
        length = seconds * _MICROSECONDS // SLICES
        async with asyncio.timeout(_TIMEOUT):
            is_within, remaining, wait = await self._count([name], [amount, length, SLICES])
        if is_within:
            self._fallback.count(key_id)
        return LimitStatus(self._rate, bool(is_within), max(remaining, 0), wait / _MICROSECONDS)

    def _switch_to_fallback(self, error: Exception) -> None:
        if self._probe_task is None:  # several requests may fail at the same time
            _log.warning(
                "rate limits are not shared, because %s failed (%s): each process counts alone",
                self._address,
                str(error) or "no answer",
            )
            self._probe_task = asyncio.create_task(self._probe_until_back())

    async def _probe_until_back(self) -> None:
        while self._probe_task:
            await asyncio.sleep(_PROBE_INTERVAL)
            try:
                await self._hit_redis(_PROBE_KEY)
                self._probe_task = None
            except Exception as error:  # noqa: BLE001 - probe again after any fault
                _log.debug("rate limits of %s are not available yet (%s)", self._address, error)
        _log.warning("rate limits of %s apply to all servers again", self._address)


def _busy() -> ErrorDetail:
    return ErrorDetail(
        503,
        "rate_limit_busy",
        "server: too many requests wait for the shared rate limit.",
        "Try again in 1 s, as Retry-After says.",
    )
