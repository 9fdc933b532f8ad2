"""Work threads: calls that take longer than a few milliseconds, outside of the event loop.

Few run at once. Python runs one thread at a time, so with many of them the event loop would wait
for its turn: with 40 threads, health checks took seconds.
"""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio
from anyio.lowlevel import RunVar

from toolcatalog.server.call_queue import CallQueue

_MAX_THREADS = 2

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _WorkThreads:
    """The threads of one event loop, and the calls that wait for them."""

    def __init__(self) -> None:
        self.queue = CallQueue(_MAX_THREADS)
        self.limiter = anyio.CapacityLimiter(_MAX_THREADS)


_threads: RunVar[_WorkThreads] = RunVar("work_threads")


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
    async with threads.queue.wait_for_slot():
        return await anyio.to_thread.run_sync(
            partial(call, *args, **kwargs), limiter=threads.limiter
        )
