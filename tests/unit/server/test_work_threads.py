"""Work threads: how many calls run at once, and what they return."""

import threading
import time

import anyio
import pytest

from toolcatalog.server.call_queue import MAX_WAITING_CALLS, TooManyCallsError
from toolcatalog.server.work_threads import run_in_work_thread


def test_few_calls_run_at_once() -> None:
    """The others wait, so that the event loop gets its turns."""
    lock, running, most = threading.Lock(), 0, 0

    def work(number: int, *, factor: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return number * factor

    results: list[int] = []

    async def call(number: int) -> None:
        results.append(await run_in_work_thread(work, number, factor=3))

    async def call_all() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(call, number)

    for _ in range(2):  # each time with a new event loop
        anyio.run(call_all)
    assert sorted(results) == sorted([number * 3 for number in range(20)] * 2)
    assert most == 2


def test_errors_are_raised() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        anyio.run(run_in_work_thread, fail)


def test_number_of_waiting_calls_is_limited() -> None:
    """Those above the limit are refused at once, and the others run."""
    done, refused, is_open = 0, 0, threading.Event()

    async def call() -> None:
        nonlocal done, refused
        try:
            await run_in_work_thread(is_open.wait, 30)
            done += 1
        except TooManyCallsError:
            refused += 1

    async def call_all() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(MAX_WAITING_CALLS + 52):
                tasks.start_soon(call)
            while not refused:
                await anyio.sleep(0.01)
            is_open.set()

    anyio.run(call_all)
    assert (done, refused) == (MAX_WAITING_CALLS + 2, 50)
