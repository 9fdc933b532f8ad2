"""Thread limits: what to do where the system allows no more threads."""

import threading

from toolcatalog.errors import UsageError

LIMIT_HINT = "raise the limit of processes, for threads count there too (`pids` of a container, TasksMax of systemd)"
LIMIT_MESSAGE = f"No more threads may be begun here: {LIMIT_HINT}."
_LIMIT_ERROR = "can't start new thread"  # all that Python says of it


def start(thread: threading.Thread) -> None:
    """Begin a thread. Raises UsageError where the system allows no more."""
    try:
        thread.start()
    except RuntimeError:
        raise UsageError(LIMIT_MESSAGE) from None


def is_limit_error(error: BaseException) -> bool:
    """Tell whether a library was refused a thread; tasks that end together tell of it in a group."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_limit_error, error.exceptions))
    return isinstance(error, RuntimeError) and str(error) == _LIMIT_ERROR


def count_available(limit: int) -> int:
    """How many threads may be begun, up to so many. They are begun, and ended again: nobody else
    knows all limits.
    """
    end, begun = threading.Event(), list[threading.Thread]()
    try:
        while len(begun) < limit:
            thread = threading.Thread(target=end.wait)
            thread.start()
            begun.append(thread)
    except RuntimeError:
        pass
    finally:
        end.set()  # also where somebody interrupts: they would be waited for at the end
    for thread in begun:
        thread.join()
    return len(begun)
