"""Rate limits: list requests for each API key.

No window of the rate's length, wherever it begins, contains more requests than the rate allows.
Time is divided into slices of a hundredth of the window each. A request is within the rate if its
slice and the hundred slices before it contain fewer requests than the rate. Slices count in full,
even if the window covers only a part of them. So the limit is exact, evenly spaced requests get at
least 99 hundredths of the rate, and a key needs at most 101 counts whatever the rate.

The clock is monotonic: setting the system clock neither lets a client in nor locks one out.
`server.limits.redis_rate_limit` keeps the same counts in Redis.
"""

import math
import re
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from toolcatalog.api.error_responses import ErrorDetail
from toolcatalog.server.responses import Header

SLICES = 100  # slices of a window
NANOSECONDS = 1_000_000_000  # in a second
_UNITS = {"s": 1, "m": 60, "h": 3600}  # seconds
_MAX_RETRY_AFTER = 59  # seconds of Retry-After: clients of this API wait no longer
_is_rate = re.compile(r"([1-9][0-9]{0,8})/([smh])").fullmatch


class Rate(NamedTuple):
    """A number of requests (`limit`) in a number of seconds (`period`)."""

    limit: int
    period: int

    def divide(self, processes: int) -> "Rate":
        """Return the rate of each of several processes.

        Together they allow no more than this rate.
        """
        return Rate(self.limit // processes, self.period)


class LimitStatus(NamedTuple):
    """The status of a key after a request.

    `is_allowed`: the request was within the rate. `remaining`: how many more are. `reset_after`:
    seconds until there will be more.
    """

    rate: Rate
    is_allowed: bool
    remaining: int
    reset_after: float

    def headers(self) -> list[Header]:
        """Return `RateLimit-Policy` and `RateLimit` as structured fields.

        If the request is rejected, `Retry-After` is added.
        """
        headers: list[Header] = [
            (b"ratelimit-policy", b'"list";q=%d;w=%d' % self.rate),
            (b"ratelimit", b'"list";r=%d;t=%d' % (self.remaining, self._reset_seconds())),
        ]
        return (
            headers
            if self.is_allowed
            else [*headers, (b"retry-after", b"%d" % self._retry_after())]
        )

    def to_error(self) -> ErrorDetail:
        """Return the error for a request beyond the rate."""
        line = (
            f"x-api-key: this key may list {self.rate.limit} times in {self.rate.period} s, "
            f"and has done so."
        )
        return ErrorDetail(
            429, "rate_limited", line, f"Try again in {self._retry_after()} s, as Retry-After says."
        )

    def _reset_seconds(self) -> int:
        return max(1, math.ceil(self.reset_after))

    def _retry_after(self) -> int:
        return min(self._reset_seconds(), _MAX_RETRY_AFTER)


class RateLimiter(Protocol):
    """Counts the list requests of each key."""

    async def hit(self, key_id: str) -> LimitStatus:
        """Count a request of a key if it is within the rate; return the status of the key."""
        ...


def parse_rate(text: str) -> Rate | None:
    """Parse `100/s`, `100/m` or `100/h`; return None for anything else."""
    found = _is_rate(text)
    return Rate(int(found[1]), _UNITS[found[2]]) if found else None


class Slices:
    """The requests of one key that were within the rate in the last window.

    There is a count for each slice, oldest first, and their total.
    """

    def __init__(self) -> None:
        self._counts: deque[list[int]] = deque()  # slice and count, only for slices with a count
        self._total = 0

    def count(self, rate: Rate, now: int) -> LimitStatus:
        """Count a request if it is within the rate; return the status of the key.

        `now` is a time in nanoseconds that never decreases.
        """
        counts, length = self._counts, rate.period * NANOSECONDS // SLICES
        current = now // length
        while counts and counts[0][0] < current - SLICES:
            self._total -= counts.popleft()[1]
        is_within = self._total < rate.limit
        if is_within:
            self._total += 1
            if counts and counts[-1][0] == current:
                counts[-1][1] += 1
            else:
                counts.append([current, 1])
        wait = (counts[0][0] + SLICES + 1) * length - now
        return LimitStatus(rate, is_within, rate.limit - self._total, wait / NANOSECONDS)


class LocalRateLimiter:
    """The rate limits of one process, in memory: an entry for each key that has listed tools."""

    def __init__(self, rate: Rate, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.rate = rate
        self._clock = clock
        self._slices: dict[str, Slices] = {}

    async def hit(self, key_id: str) -> LimitStatus:
        """Count a request; see `RateLimiter.hit`."""
        return self.count(key_id)

    def count(self, key_id: str) -> LimitStatus:
        """Count a request as `hit` does, without awaiting."""
        slices = self._slices.get(key_id)
        if slices is None:
            slices = self._slices[key_id] = Slices()
        return slices.count(self.rate, self._clock())
