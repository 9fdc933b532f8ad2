"""Signal handling: Ctrl-C during imports and process start.

It raises KeyboardInterrupt wherever it just is. In the middle of a module that is being loaded that
is told with lines of other people's code, or it is lost, so that a server goes on as if nothing had
been asked of it, or it crashes a library in C that is half set up. While processes are begun, or
waited for, it is lost too, or they are waited for without end.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CAN_MASK = hasattr(signal, "pthread_sigmask")  # not on Windows


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Have an interrupt end the process while this block loads modules, unless interrupts are
    ignored or somebody else's.

    By then there is nothing to put in order.
    """
    before = signal.getsignal(signal.SIGINT)
    is_ours = (
        before is signal.default_int_handler
        and threading.current_thread() is threading.main_thread()
    )
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Have an interrupt of this thread wait for the end of this block. Threads and programs that
    are begun in it never hear of one.
    """
    if not _CAN_MASK:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop_handling_interrupts() -> None:
    """Have an interrupt end the process from now on: all is in order, and Python would tell where
    it was interrupted at its end.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def unblock_interrupts() -> None:
    """Hear of interrupts in this thread, of one that has been waiting since the process was begun,
    too.
    """
    if _CAN_MASK:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
