"""Ctrl-C while the program is still being loaded ends it at once, as the system ends any program.

Python raises KeyboardInterrupt wherever it just is. In the middle of a module that is being loaded it is told with lines of other
people's code, or it is lost, so that a server goes on as if nothing had been asked of it, or it crashes a library in C that is half set
up. By then there is nothing to put in order.

Serves: "exit 0 fine, 1 problems, 2 usage, 3 a bug, 130 interrupted" of the design: 130 is what a shell makes of the signal, too.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Have an interrupt end the process while this block loads modules, unless interrupts are ignored or somebody else's."""
    before = signal.getsignal(signal.SIGINT)
    is_ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)
