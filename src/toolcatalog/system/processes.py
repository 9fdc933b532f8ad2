"""Process pool: work shared among worker processes, or done in this one where that is faster."""

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

from toolcatalog.system import seals, threads
from toolcatalog.system.signals import defer_interrupts

if TYPE_CHECKING:
    from concurrent.futures import Executor

_MIN_TASKS = 8  # tasks that are done before a process would have started
_MAX_CHUNK_SIZE = 8  # tasks handed over at a time, at most
_POLL_INTERVAL = 0.5  # seconds
# threads that a pool has here, to send work and to take results; a worker, and its thread that
# watches its parent
_POOL_THREADS, _THREADS_PER_WORKER = 2, 2
# a forked process has all modules loaded and starts in a few milliseconds; elsewhere it is not safe
_CAN_FORK = sys.platform == "linux"

Task = TypeVar("Task")
Result = TypeVar("Result")


def available_cpus(cgroup_root: Path = Path("/sys/fs/cgroup")) -> int:
    """How many processors this process may use: those that it may run on, and no more than its
    container has the time of.

    `groups`: where Linux tells of control groups, 2 or 1; in a container that is its own.
    """
    every = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    allowed = (
        _cgroup_cpus(cgroup_root / "cpu.max"),
        _cgroup_cpus(cgroup_root / "cpu/cpu.cfs_quota_us", cgroup_root / "cpu/cpu.cfs_period_us"),
    )
    return math.ceil(min(every, *allowed))


def _cgroup_cpus(*files: Path) -> float:
    """The time of how many processors files allow: how much of it in how long a period; without end
    where they tell nothing of it.
    """
    with contextlib.suppress(OSError, ValueError):
        allowed, period = map(int, " ".join(file.read_text() for file in files).split())
        # else it is -1, or in words, which are no number
        return allowed / period if allowed > 0 else math.inf
    return math.inf


def tune_garbage_collection() -> None:
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


class WorkerPool:
    """So many processes, started when there is work for them, and one more for what goes on beside.
    Leave the `with` block to end them.

    `hire` brings workers of another kind instead of the processes; the one beside is a process here
    in any case.
    """

    def __init__(self, jobs: int, worker_source: Callable[[], Workers] | None = None) -> None:
        self.jobs = jobs
        self._is_single = jobs < 2 and worker_source is None
        self._cleanup = contextlib.ExitStack()
        self._worker_source = worker_source
        self._start_workers: Callable[[], Workers | None] = worker_source or partial(
            _start_processes, jobs, self._cleanup
        )
        self._executor: Workers | None = None
        self._background: Executor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._worker_source and self._executor:
            self._executor.shutdown(wait=error is None, cancel_futures=True)
        self._cleanup.close()

    def map(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterable[Result]:
        """The results of the tasks, in their order, as they come. Raises BrokenExecutor where a
        process was killed.
        """
        if not self._is_single and len(tasks) > _MIN_TASKS:
            self._executor = self._executor or self._start_workers()
            if self._executor:
                return self._executor.map(
                    work,
                    tasks,
                    chunksize=max(1, min(_MAX_CHUNK_SIZE, len(tasks) // (4 * self.jobs))),
                )
        return (
            _map_from_both_ends(work, tasks, self._background)
            if self._background
            else map(work, tasks)
        )

    def start_background(self, tasks: int, threshold: int = _MIN_TASKS) -> None:
        """Start the process for work beside, where there are more tasks than that: early, for a
        forked one keeps what is held by then.
        """
        if self.jobs > 1 and tasks > threshold:
            self._background = self._background or _start_processes(1, self._cleanup)

    def stop_background(self) -> None:
        """Let the process for work beside go: the next has all that is loaded by then, where
        processes are forked; elsewhere it stays.
        """
        if self._background and _CAN_FORK:
            _shut_down(self._background)
            self._background = None

    def submit(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Begin a piece of work beside what follows; call what comes back for the result. Where no
        process stands by it is done then.
        """
        return self._background.submit(work).result if self._background else work


def _map_from_both_ends(
    work: Callable[[Task], Result], tasks: Sequence[Task], background: "Executor"
) -> Iterator[Result]:
    """The results of a few tasks: this process goes through them from the front, and the other,
    when it is free, from the end.
    """
    begun = [background.submit(work, task) for task in reversed(tasks[1:])]
    for task in tasks:
        yield work(task)
        if not (begun and begun[-1].cancel()):
            break
        begun.pop()
    yield from (one.result() for one in reversed(begun))


def release_free_memory() -> None:
    """Give the system what memory is free between what is held, before others need some, or are
    forked with it. Only glibc can.
    """
    # TypeError: Windows has no library without a name
    with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes  # noqa: PLC0415 - needed only where there is very much

        ctypes.CDLL(None).malloc_trim(0)


def _start_processes(jobs: int, cleanup: contextlib.ExitStack) -> "Executor | None":
    """So many processes, or as many as may be begun; None where none may. A pool that is refused a
    thread of its own waits for ever.

    `ends` waits for them, whatever comes: at its end the program wakes up those that are just
    ending, and may fail at that.
    """
    fitting = min(
        jobs,
        (threads.count_available(_POOL_THREADS + _THREADS_PER_WORKER * jobs) - _POOL_THREADS)
        // _THREADS_PER_WORKER,
    )
    if fitting < 1:
        return None
    import multiprocessing  # noqa: PLC0415 - most checks and many builds start no process
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    context = multiprocessing.get_context("fork" if _CAN_FORK else "spawn")
    try:
        executor = ProcessPoolExecutor(
            fitting, context, _initialize_worker, (os.getpid(), seals.get_secret())
        )
    # there is no shared memory to hold its locks: /dev/shm is missing, or may not be written
    except OSError:
        return None
    # a pool that is half begun never ends, and what comes while Python forks is lost
    with defer_interrupts():
        cleanup.callback(_shut_down, executor)
        executor.submit(os.getpid).result()  # all are forked now, before anybody starts a thread
    return executor


def _shut_down(executor: "Executor") -> None:
    """Wait for processes to end what they are at. Nothing interrupts that: Python takes a thread
    for ended when waiting for it is.
    """
    with defer_interrupts():
        executor.shutdown(cancel_futures=True)


def _initialize_worker(parent: int, seal_secret: seals.Secret) -> None:
    """What a worker does first: leave Ctrl-C to the parent, end when the parent has ended however
    it did, and seal files as the parent does.
    """
    seals.use_secret(seal_secret)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tune_garbage_collection()
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_INTERVAL)
    os._exit(1)
