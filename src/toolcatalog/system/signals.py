"""Signal handling: Ctrl-C during imports and process start.

Python raises KeyboardInterrupt at any point. During an import, this prints a traceback of other
people's code, or the interrupt is lost and a server continues, or a partly initialized C library
crashes. While processes are started or waited for, the interrupt may be lost too, or the wait never
ends.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CAN_MASK = hasattr(signal, "pthread_sigmask")  # false on Windows


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """End the process on an interrupt while this block imports modules.

    There is nothing to clean up at that time. Signal handlers of others, and ignored interrupts,
    stay as they are.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or not _is_main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Defer interrupts of this thread to the end of the block.

    Threads and programs that are started in it do not receive interrupts. Blocking the signal is
    not enough: any other thread that does not block it, even one that is just ending, receives it,
    and then Python calls the signal handler in the main thread.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or not _is_main_thread():
        with _block_interrupts():
            yield
        return
    interrupts: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        with _block_interrupts():
            yield
    finally:
        signal.signal(signal.SIGINT, before)
        if interrupts:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    if not _CAN_MASK:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def stop_handling_interrupts() -> None:
    """End the process on any interrupt from now on.

    All work is done, and Python would print a traceback of its shutdown.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def unblock_interrupts() -> None:
    """Receive interrupts in this thread, even one that was deferred since the process start."""
    if _CAN_MASK:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
