"""Work threads: calls that take longer than a few milliseconds, outside of the event loop.

Few run at once. Python runs one thread at a time, so with many of them the event loop would wait
for its turn: with 40 threads, health checks took seconds.
"""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio
from anyio.lowlevel import RunVar

from toolcatalog.api.error_responses import RequestError, server_busy

_MAX_THREADS = 2
MAX_WAITING_CALLS = 200  # each holds its request; they run within a few seconds

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _WorkThreads:
    """The threads of one event loop, and the number of calls that run or wait."""

    def __init__(self) -> None:
        self.limiter = anyio.CapacityLimiter(_MAX_THREADS)
        self.call_count = 0


_threads: RunVar[_WorkThreads] = RunVar("work_threads")


class TooManyCallsError(RequestError):
    """MAX_WAITING_CALLS calls wait for a thread, or for a turn on the event loop."""

    def __init__(self) -> None:
        super().__init__(server_busy())


async def run_in_work_thread(
    call: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Run a call in a thread, as soon as fewer than `_MAX_THREADS` are at work.

    Raises TooManyCallsError if too many wait.
    """
    threads = _threads.get(None)
    if threads is None:
        threads = _WorkThreads()
        _threads.set(threads)
    if threads.call_count >= _MAX_THREADS + MAX_WAITING_CALLS:
        raise TooManyCallsError
    threads.call_count += 1
    try:
        return await anyio.to_thread.run_sync(
            partial(call, *args, **kwargs), limiter=threads.limiter
        )
    finally:
        threads.call_count -= 1
