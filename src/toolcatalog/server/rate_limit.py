"""Rate limits: list requests for each API key.

The promise: no window of that length, wherever it begins, contains more requests than the rate
allows. The clock's time is divided into slices, a hundredth of the window each, and a request is
within the rate if the slice in which it comes and the hundred slices before it contain fewer
requests than the rate: all of each slice counts, also where the window covers a part of it. So the
promise is exact, who asks evenly gets at least 99 hundredths of the rate, and a key costs at most
101 counts whatever the rate. The clock is the monotonic one: a clock that is set, or jumps, lets
nobody in and locks nobody out. `server.redis_rate_limit` keeps the same counts in Redis.
"""

import math
import re
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from toolcatalog.server.error_responses import ErrorDetail
from toolcatalog.server.responses import Header

SLICES = 100  # of a window
NANOSECONDS = 1_000_000_000  # in a second
_UNITS = {"s": 1, "m": 60, "h": 3600}  # seconds
_MAX_RETRY_AFTER = 59  # seconds of Retry-After: what clients of this API wait for at most
_is_rate = re.compile(r"([1-9][0-9]{0,8})/([smh])").fullmatch


class Rate(NamedTuple):
    """So many requests in so many seconds."""

    limit: int
    period: int

    def divide(self, processes: int) -> "Rate":
        """What each of so many processes may let through, so that all together let through no more
        than this.
        """
        return Rate(self.limit // processes, self.period)


class LimitStatus(NamedTuple):
    """Where a key stands after a request: if that was within the rate, how many more are, and in
    how many seconds there will be more.
    """

    rate: Rate
    is_allowed: bool
    remaining: int
    reset_after: float

    def headers(self) -> list[Header]:
        """`RateLimit-Policy` and `RateLimit` as structured fields, and `Retry-After` where the
        request is refused.
        """
        told: list[Header] = [
            (b"ratelimit-policy", b'"list";q=%d;w=%d' % self.rate),
            (b"ratelimit", b'"list";r=%d;t=%d' % (self.remaining, self._reset_seconds())),
        ]
        return told if self.is_allowed else [*told, (b"retry-after", b"%d" % self._retry_after())]

    def to_error(self) -> ErrorDetail:
        """What is told to a client that asks too often."""
        line = f"x-api-key: this key may list {self.rate.limit} times in {self.rate.period} s, and has done so."
        return ErrorDetail(
            429, "rate_limited", line, f"Try again in {self._retry_after()} s, as Retry-After says."
        )

    def _reset_seconds(self) -> int:
        return max(1, math.ceil(self.reset_after))

    def _retry_after(self) -> int:
        return min(self._reset_seconds(), _MAX_RETRY_AFTER)


class RateLimiter(Protocol):
    """Who counts."""

    async def hit(self, key_id: str) -> LimitStatus:
        """Count a request of the key with this id, if it is within the rate, and tell where the key
        stands now.
        """
        ...


def parse_rate(text: str) -> Rate | None:
    """`100/s`, `100/m` or `100/h` as a rate; None where it is nothing of that."""
    found = _is_rate(text)
    return Rate(int(found[1]), _UNITS[found[2]]) if found else None


class Slices:
    """What is kept of a key: how many requests were within the rate in each slice of the last
    window, oldest first, and in all of them.
    """

    def __init__(self) -> None:
        self._counts: deque[list[int]] = deque()  # slice and count, where there is a count
        self._total = 0

    def count(self, rate: Rate, now: int) -> LimitStatus:
        """Count a request at this moment (in nanoseconds, never less than before), if it is within
        the rate.
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
    """The limits of one process, in its memory: an entry for each key that has listed."""

    def __init__(self, rate: Rate, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.rate = rate
        self._clock = clock
        self._slices: dict[str, Slices] = {}

    async def hit(self, key_id: str) -> LimitStatus:
        """As `RateLimiter` says."""
        return self.count(key_id)

    def count(self, key_id: str) -> LimitStatus:
        """The same, at once."""
        slices = self._slices.get(key_id)
        if slices is None:
            slices = self._slices[key_id] = Slices()
        return slices.count(self.rate, self._clock())
