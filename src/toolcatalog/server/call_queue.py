"""Call queue: few calls run at once, some wait, and more are refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolcatalog.api.error_responses import RequestError, server_busy

MAX_WAITING_CALLS = 200  # each holds its request; they run within a few seconds


class TooManyCallsError(RequestError):
    """MAX_WAITING_CALLS calls wait already."""

    def __init__(self) -> None:
        super().__init__(server_busy())


class CallQueue:
    """A queue in which up to `max_running` calls run at once; one for each event loop."""

    def __init__(self, max_running: int) -> None:
        self._slots = asyncio.Semaphore(max_running)
        self._max_calls = max_running + MAX_WAITING_CALLS
        self._call_count = 0  # that run or wait

    @asynccontextmanager
    async def wait_for_slot(self) -> AsyncIterator[None]:
        """Wait until a call may run, and let the next one run at the end.

        Waits for one round of the event loop at least, in which it notices clients that have gone.
        Raises TooManyCallsError if too many wait.
        """
        if self._call_count >= self._max_calls:
            raise TooManyCallsError
        self._call_count += 1
        try:
            await asyncio.sleep(0)
            async with self._slots:
                yield
        finally:
            self._call_count -= 1
