"""Work threads: calls that take longer than a few milliseconds, outside of the event loop.

Few run at once. Python runs one thread at a time, so with many of them the event loop would wait
for its turn: with 40 threads, health checks took seconds.
"""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio
from anyio.lowlevel import RunVar

_MAX_THREADS = 2

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_limiter: RunVar[anyio.CapacityLimiter] = RunVar("work_threads")  # one for each event loop


async def run_in_work_thread(
    call: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Run a call in a thread, as soon as fewer than `_MAX_THREADS` are at work."""
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_MAX_THREADS)
        _limiter.set(limiter)
    return await anyio.to_thread.run_sync(partial(call, *args, **kwargs), limiter=limiter)
