"""How often a key may list: so many requests in a second, a minute or an hour, counted for each key
by itself.

The rule is a sliding window counter: what was counted in the window before still counts for the
part of it that the last so many seconds cover. So nobody gets twice the rate at the border of two
windows, and a key costs three numbers whatever the rate. The clock is the monotonic one: a clock
that is set, or jumps, lets nobody in and locks nobody out. `pooled` keeps the same counts in Redis.
"""

import math
import re
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from toolcatalog.server.answers import Header
from toolcatalog.server.refusals import Refusal

_UNITS = {"s": 1, "m": 60, "h": 3600}  # seconds
_LONGEST = 59  # seconds of Retry-After: what clients of this API wait for at most
_is_rate = re.compile(r"([1-9][0-9]{0,8})/([smh])").fullmatch


class Rate(NamedTuple):
    """So many requests in so many seconds."""

    amount: int
    seconds: int

    def share(self, processes: int) -> "Rate":
        """What each of so many processes may let through, so that all together let through no more
        than this.
        """
        return Rate(self.amount // processes, self.seconds)


class Standing(NamedTuple):
    """Where a key stands after a request: if that was within the rate, how many more are, and in
    how many seconds there will be more.
    """

    rate: Rate
    is_within: bool
    remaining: int
    wait: float

    def headers(self) -> list[Header]:
        """`RateLimit-Policy` and `RateLimit` as structured fields, and `Retry-After` where the
        request is refused.
        """
        told: list[Header] = [
            (b"ratelimit-policy", b'"list";q=%d;w=%d' % self.rate),
            (b"ratelimit", b'"list";r=%d;t=%d' % (self.remaining, self._whole_seconds())),
        ]
        return told if self.is_within else [*told, (b"retry-after", b"%d" % self._retry())]

    def refusal(self) -> Refusal:
        """What is told to a client that asks too often."""
        line = f"x-api-key: this key may list {self.rate.amount} times in {self.rate.seconds} s, and has done so."
        return Refusal(
            429, "rate_limited", line, f"Try again in {self._retry()} s, as Retry-After says."
        )

    def _whole_seconds(self) -> int:
        return max(1, math.ceil(self.wait))

    def _retry(self) -> int:
        return min(self._whole_seconds(), _LONGEST)


class Limits(Protocol):
    """Who counts."""

    async def hit(self, id: str) -> Standing:
        """Count a request of the key with this id, if it is within the rate, and tell where the key
        stands now.
        """
        ...


def rate_of(text: str) -> Rate | None:
    """`100/s`, `100/m` or `100/h` as a rate; None where it is nothing of that."""
    found = _is_rate(text)
    return Rate(int(found[1]), _UNITS[found[2]]) if found else None


def standing(rate: Rate, is_within: bool, previous: int, current: int, left: float) -> Standing:
    """Where a key stands that has been counted so often in the window before and in this one, which
    has so many seconds left.
    """
    remaining = max(0, rate.amount - weighed(rate, previous, current, left))
    if remaining or current >= rate.amount or not previous:
        return Standing(rate, is_within, remaining, left)
    return Standing(
        rate, is_within, 0, max(0.0, left - rate.seconds * (rate.amount - current) / previous)
    )


def weighed(rate: Rate, previous: int, current: int, left: float) -> int:
    """How much counts now: all of this window, and of the one before the part that is not yet so
    many seconds ago.
    """
    return int(previous * left / rate.seconds) + current


class Window(NamedTuple):
    """What is kept of a key: when its window began, and how often it was counted in the one before
    and in this one.
    """

    start: float
    previous: int
    current: int

    def at(self, now: float, seconds: int) -> "Window":
        """The window of so many seconds in which this moment lies (in seconds of the clock that
        `start` is told by).
        """
        passed = int((now - self.start) // seconds)
        if passed == 0:
            return self
        return Window(self.start + passed * seconds, self.current if passed == 1 else 0, 0)


class Counts:
    """The limits of one process, in its memory: an entry for each key that has listed."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._clock = clock
        self._windows: dict[str, Window] = {}

    async def hit(self, id: str) -> Standing:
        """As `Limits` says."""
        return self.count(id)

    def count(self, id: str) -> Standing:
        """The same, at once."""
        rate, now = self.rate, self._clock()
        start, previous, current = self._windows.get(id, Window(now, 0, 0)).at(now, rate.seconds)
        left = start + rate.seconds - now
        is_within = weighed(rate, previous, current, left) < rate.amount
        self._windows[id] = Window(start, previous, current + is_within)
        return standing(rate, is_within, previous, current + is_within, left)
