"""Thread limits: what to do if the system allows no more threads."""

import threading

from toolcatalog.errors import UsageError

LIMIT_HINT = (
    "raise the limit of processes, for threads count there too (`pids` of a container, TasksMax of "
    "systemd)"
)
LIMIT_MESSAGE = f"No more threads may be started here: {LIMIT_HINT}."
_LIMIT_ERROR = "can't start new thread"  # the only detail in Python's error


def start(thread: threading.Thread) -> None:
    """Start a thread; raises UsageError if the system allows no more."""
    try:
        thread.start()
    except RuntimeError:
        raise UsageError(LIMIT_MESSAGE) from None


def is_limit_error(error: BaseException) -> bool:
    """Return whether an error, or every one in a group, says that no thread could be started."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_limit_error, error.exceptions))
    return isinstance(error, RuntimeError) and str(error) == _LIMIT_ERROR


def count_available(limit: int) -> int:
    """Return how many threads may be started, at most `limit`.

    It starts and ends them, because there is no other way to know all limits.
    """
    end, started = threading.Event(), list[threading.Thread]()
    try:
        while len(started) < limit:
            thread = threading.Thread(target=end.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:
        pass
    finally:
        end.set()  # also after an interrupt: Python waits for these threads at exit
    for thread in started:
        thread.join()
    return len(started)
