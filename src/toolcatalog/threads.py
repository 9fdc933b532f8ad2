"""Threads, where the system may allow no more of them: in a container, or by a limit on processes, for threads count as those do.

Serves: "Would an operator trust it at three in the morning?"
"""

import contextlib
import threading

from toolcatalog.errors import UsageError

LIMIT = "raise the limit of processes, for threads count there too (`pids` of a container, TasksMax of systemd)"


def begin(thread: threading.Thread) -> None:
    """Begin a thread. Raises UsageError where the system allows no more."""
    try:
        thread.start()
    except RuntimeError as error:  # all that Python has for it
        raise UsageError(f"No more threads may be begun here ({error}): {LIMIT}.") from None


def room(most: int) -> int:
    """How many threads may be begun, up to so many. They are begun, and ended again: nobody else knows all limits."""
    end, begun = threading.Event(), list[threading.Thread]()
    with contextlib.suppress(RuntimeError):
        while len(begun) < most:
            thread = threading.Thread(target=end.wait)
            thread.start()
            begun.append(thread)
    end.set()
    for thread in begun:
        thread.join()
    return len(begun)
