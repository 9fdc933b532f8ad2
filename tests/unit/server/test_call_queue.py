"""Tests of `server.call_queue`."""

import asyncio

from toolcatalog.server.call_queue import MAX_WAITING_CALLS, CallQueue, TooManyCallsError


def test_few_calls_run_and_some_wait() -> None:
    """Those above the limit are refused at once; a call that fails frees its slot."""

    async def run() -> tuple[int, list[type[BaseException]]]:
        queue, running, most = CallQueue(3), 0, 0

        async def call(number: int) -> None:
            nonlocal running, most
            async with queue.wait_for_slot():
                running += 1
                most = max(most, running)
                await asyncio.sleep(0)
                running -= 1
                if number % 2:
                    raise ValueError

        calls = [call(number) for number in range(MAX_WAITING_CALLS + 13)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        await call(0)
        return most, [type(result) for result in results if isinstance(result, BaseException)]

    most, errors = asyncio.run(run())
    assert most == 3
    assert errors.count(TooManyCallsError) == 10
    assert errors.count(ValueError) == (MAX_WAITING_CALLS + 3) // 2
