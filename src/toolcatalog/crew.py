"""Work shared among processes, or done here where it is not worth starting any."""

import atexit
import contextlib
import gc
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from toolcatalog import seals, threads
from toolcatalog.interrupts import deferred

if TYPE_CHECKING:
    from concurrent.futures import Executor

_FEW = 8  # tasks that are done before a process would have started
_CHUNK = 8  # tasks handed over at a time, at most
_LOOK_EVERY = 0.5  # seconds
# threads that a pool has here, to send work and to take results; a worker, and its thread that
# watches its parent
_OURS, _EACH = 2, 2
# a forked process has all modules loaded and starts in a few milliseconds; elsewhere it is not safe
_FORKS = sys.platform == "linux"

Task = TypeVar("Task")
Result = TypeVar("Result")


def cores(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """How many processors this process may use: those that it may run on, and no more than its
    container has the time of.

    `groups`: where Linux tells of control groups, 2 or 1; in a container that is its own.
    """
    every = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    allowed = (
        _allowed(groups / "cpu.max"),
        _allowed(groups / "cpu/cpu.cfs_quota_us", groups / "cpu/cpu.cfs_period_us"),
    )
    return math.ceil(min(every, *allowed))


def _allowed(*told: Path) -> float:
    """The time of how many processors files allow: how much of it in how long a period; without end
    where they tell nothing of it.
    """
    with contextlib.suppress(OSError, ValueError):
        allowed, period = map(int, " ".join(file.read_text() for file in told).split())
        # else it is -1, or in words, which are no number
        return allowed / period if allowed > 0 else math.inf
    return math.inf


def calm() -> None:
    """Have Python look for circles of garbage seldom, and not at its end: nearly all of ours goes
    by reference counts, and much stays.
    """
    gc.freeze()
    atexit.register(gc.freeze)
    gc.set_threshold(1_000_000, 20, 100)


class Workers(Protocol):
    """Who works: as `concurrent.futures.Executor`, as far as it is asked for here."""

    def map(
        self, work: Callable[[Task], Result], tasks: Sequence[Task], /, *, chunksize: int
    ) -> Iterator[Result]:
        """The results of the tasks, in their order; sent so many at a time, at most."""

    def shutdown(self, *, wait: bool = True, cancel_futures: bool = False) -> None:
        """Let them go."""


class Crew:
    """So many processes, started when there is work for them, and one more for what goes on beside.
    Leave the `with` block to end them.

    `hire` brings workers of another kind instead of the processes; the one beside is a process here
    in any case.
    """

    def __init__(self, jobs: int, hire: Callable[[], Workers] | None = None) -> None:
        self.jobs = jobs
        self._alone = jobs < 2 and hire is None
        self._ends = contextlib.ExitStack()
        self._hired = hire
        self._hire: Callable[[], Workers | None] = hire or partial(_started, jobs, self._ends)
        self._executor: Workers | None = None
        self._other: Executor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._hired and self._executor:
            self._executor.shutdown(wait=error is None, cancel_futures=True)
        self._ends.close()

    def each(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterable[Result]:
        """The results of the tasks, in their order, as they come. Raises BrokenExecutor where a
        process was killed.
        """
        if not self._alone and len(tasks) > _FEW:
            self._executor = self._executor or self._hire()
            if self._executor:
                return self._executor.map(
                    work, tasks, chunksize=max(1, min(_CHUNK, len(tasks) // (4 * self.jobs)))
                )
        return _halved(work, tasks, self._other) if self._other else map(work, tasks)

    def stand_by(self, tasks: int, most: int = _FEW) -> None:
        """Start the process for work beside, where there are more tasks than that: early, for a
        forked one keeps what is held by then.
        """
        if self.jobs > 1 and tasks > most:
            self._other = self._other or _started(1, self._ends)

    def stand_down(self) -> None:
        """Let the process for work beside go: the next has all that is loaded by then, where
        processes are forked; elsewhere it stays.
        """
        if self._other and _FORKS:
            _end(self._other)
            self._other = None

    def beside(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Begin a piece of work beside what follows; call what comes back for the result. Where no
        process stands by it is done then.
        """
        return self._other.submit(work).result if self._other else work


def _halved(
    work: Callable[[Task], Result], tasks: Sequence[Task], other: "Executor"
) -> Iterator[Result]:
    """The results of a few tasks: this process goes through them from the front, and the other,
    when it is free, from the end.
    """
    begun = [other.submit(work, task) for task in reversed(tasks[1:])]
    for task in tasks:
        yield work(task)
        if not (begun and begun[-1].cancel()):
            break
        begun.pop()
    yield from (one.result() for one in reversed(begun))


def give_back() -> None:
    """Give the system what memory is free between what is held, before others need some, or are
    forked with it. Only glibc can.
    """
    # TypeError: Windows has no library without a name
    with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes  # noqa: PLC0415 - needed only where there is very much

        ctypes.CDLL(None).malloc_trim(0)


def _started(jobs: int, ends: contextlib.ExitStack) -> "Executor | None":
    """So many processes, or as many as may be begun; None where none may. A pool that is refused a
    thread of its own waits for ever.

    `ends` waits for them, whatever comes: at its end the program wakes up those that are just
    ending, and may fail at that.
    """
    fitting = min(jobs, (threads.room(_OURS + _EACH * jobs) - _OURS) // _EACH)
    if fitting < 1:
        return None
    import multiprocessing  # noqa: PLC0415 - most checks and many builds start no process
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    context = multiprocessing.get_context("fork" if _FORKS else "spawn")
    try:
        executor = ProcessPoolExecutor(fitting, context, _begin, (os.getpid(), seals.secret()))
    # there is no shared memory to hold its locks: /dev/shm is missing, or may not be written
    except OSError:
        return None
    # a pool that is half begun never ends, and what comes while Python forks is lost
    with deferred():
        ends.callback(_end, executor)
        executor.submit(os.getpid).result()  # all are forked now, before anybody starts a thread
    return executor


def _end(executor: "Executor") -> None:
    """Wait for processes to end what they are at. Nothing interrupts that: Python takes a thread
    for ended when waiting for it is.
    """
    with deferred():
        executor.shutdown(cancel_futures=True)


def _begin(parent: int, secret: seals.Secret) -> None:
    """What a worker does first: leave Ctrl-C to the parent, end when the parent has ended however
    it did, and seal files as the parent does.
    """
    seals.use(secret)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calm()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY)
    os._exit(1)
