"""Tests of `system.signals`: deferred interrupts, with threads."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from toolcatalog.system.signals import defer_interrupts


@pytest.fixture
def other_thread() -> Iterator[threading.Thread]:
    """A thread that does not block interrupts."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield thread
    end.set()
    thread.join()


@pytest.mark.usefixtures("other_thread")
def test_interrupt_of_another_thread_is_deferred() -> None:
    """Python raises it in the main thread, whichever thread the system gives it to."""
    steps: list[int] = []

    def interrupt_and_work() -> None:
        with defer_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            while len(steps) < 1000:
                steps.append(1)

    with pytest.raises(KeyboardInterrupt):
        interrupt_and_work()
    assert len(steps) == 1000
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nested_blocks_defer_to_the_outer_one() -> None:
    """Interrupts that are raised, and that are blocked."""
    steps: list[str] = []

    def interrupt_and_work() -> None:
        with defer_interrupts():
            with defer_interrupts():
                os.kill(os.getpid(), signal.SIGINT)
            steps.append("after the inner block")

    with pytest.raises(KeyboardInterrupt):
        interrupt_and_work()
    assert steps == ["after the inner block"]


def test_handlers_of_callers_are_kept() -> None:
    """An interrupt reaches them after the block."""
    calls: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: calls.append(number))
    try:
        with defer_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            blocked = [*calls]
        assert (blocked, calls) == ([], [signal.SIGINT])
    finally:
        signal.signal(signal.SIGINT, before)
