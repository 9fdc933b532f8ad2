"""Process pool: work shared among worker processes, or done in this one where that is faster."""

import atexit
import contextlib
import ctypes
import gc
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from toolcatalog.system import seals, threads
from toolcatalog.system.signals import defer_interrupts

MIN_TASKS = 8  # this many tasks take less time than a process start
_MAX_CHUNK_SIZE = 8  # maximum number of tasks sent at once
_POLL_INTERVAL = 0.5  # seconds
# threads of a pool in this process (sending work, receiving results); those of a worker (itself
# and one that watches its parent)
_POOL_THREADS, _THREADS_PER_WORKER = 2, 2
# a forked process starts in milliseconds with all modules loaded; forking is safe on Linux only
_CAN_FORK = sys.platform == "linux"

Task = TypeVar("Task")
Result = TypeVar("Result")


def available_cpus(cgroup_root: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many processors this process may use, by its affinity and its container's quota.

    `cgroup_root` is where Linux mounts control groups, version 2 or 1; a container sees its own
    there.
    """
    folder = cgroup_root / "cpu"
    quotas = (
        _cgroup_cpus(cgroup_root / "cpu.max"),
        _cgroup_cpus(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us"),
    )
    return math.ceil(min(_affine_cpus(), *quotas))


def _affine_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cgroup_cpus(*files: Path) -> float:
    """Return the processors that quota files allow: quota by period; infinity if unlimited."""
    with contextlib.suppress(OSError, ValueError):
        quota, period = map(int, " ".join(file.read_text() for file in files).split())
        # no limit is -1 in version 1, and a word in version 2
        return quota / period if quota > 0 else math.inf
    return math.inf


def tune_garbage_collection() -> None:
    """Run the cyclic garbage collector rarely, and not at exit.

    Nearly all our objects are freed by reference counts, and many live long.
    """
    gc.freeze()
    atexit.register(gc.freeze)
    gc.set_threshold(1_000_000, 20, 100)


class Workers(Protocol):
    """An executor: the methods of `concurrent.futures.Executor` that are used here."""

    def map(
        self, work: Callable[[Task], Result], tasks: Sequence[Task], /, *, chunksize: int
    ) -> Iterator[Result]:
        """Yield the results of the tasks in order; at most `chunksize` tasks are sent at once."""

    def shutdown(self, *, wait: bool = True, cancel_futures: bool = False) -> None:
        """Release the workers."""


class BackgroundWorker:
    """A process that works next to this one; where it is not running, this process does its work.

    `jobs` is how many processes may work at once: with fewer than two it never runs.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._cleanup = contextlib.ExitStack()
        self._executor: Executor | None = None

    def start(self) -> None:
        """Start the process unless it runs.

        Start it early, because a forked process keeps a copy of the memory of that moment.
        """
        if self._jobs > 1 and self._executor is None:
            self._executor = _start_processes(1, self._cleanup)

    def stop(self) -> None:
        """Stop the process after its current work."""
        self._executor = None
        self._cleanup.close()

    def stop_if_forked(self) -> None:
        """Stop the process if processes are forked; the next one has everything loaded by then."""
        if _CAN_FORK:
            self.stop()

    def submit(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Start work; return a function that waits for the result, or else does the work."""
        return self._executor.submit(work).result if self._executor else work

    def map_with(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterable[Result]:
        """Yield the results of a few tasks in order.

        This process works from the first task on, and the background process from the last.
        """
        if self._executor is None:
            return map(work, tasks)
        return _map_from_both_ends(work, tasks, self._executor)


class WorkerPool:
    """Worker processes that are started on demand, and a background worker.

    Leaving the `with` block ends them. `worker_source` returns other workers instead of processes;
    the background worker is always a local process.
    """

    def __init__(self, jobs: int, worker_source: Callable[[], Workers] | None = None) -> None:
        self.jobs = jobs
        self.background = BackgroundWorker(jobs)
        self._cleanup = contextlib.ExitStack()
        self._worker_source = worker_source
        self._workers: Workers | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._cleanup:
            self._cleanup.callback(self.background.stop)
            if self._worker_source and self._workers:
                self._workers.shutdown(wait=error is None, cancel_futures=True)

    def map(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterable[Result]:
        """Return the results of the tasks in order, as they arrive.

        A few tasks are shared with the background worker. Raises BrokenExecutor if a process was
        killed.
        """
        if len(tasks) > MIN_TASKS:
            self._workers = self._workers or self._start_workers()
            if self._workers:
                size = max(1, min(_MAX_CHUNK_SIZE, len(tasks) // (4 * self.jobs)))
                return self._workers.map(work, tasks, chunksize=size)
        return self.background.map_with(work, tasks)

    def _start_workers(self) -> Workers | None:
        if self._worker_source:
            return self._worker_source()
        return _start_processes(self.jobs, self._cleanup) if self.jobs > 1 else None


def _map_from_both_ends(
    work: Callable[[Task], Result], tasks: Sequence[Task], executor: Executor
) -> Iterator[Result]:
    futures = [executor.submit(work, task) for task in reversed(tasks[1:])]
    for task in tasks:
        yield work(task)
        if not (futures and futures[-1].cancel()):
            break
        futures.pop()
    yield from (future.result() for future in reversed(futures))


def release_free_memory() -> None:
    """Return free memory to the system, before others need it or a process forks; glibc only."""
    # TypeError: CDLL(None) does not work on Windows
    with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def protect_module_path() -> None:
    """Let Python processes that start from now on import nothing from the working directory.

    Otherwise a file such as `multiprocessing.py` there would run in each of them.
    """
    os.environ["PYTHONSAFEPATH"] = "1"


def _start_processes(jobs: int, cleanup: contextlib.ExitStack) -> Executor | None:
    """Start up to `jobs` processes, as many as the thread limit permits; None if it permits none.

    `cleanup` waits for the processes in any case: at exit, Python wakes processes that are just
    ending, which may fail.
    """
    count = _count_startable(jobs)
    if count < 1:
        return None
    if not _CAN_FORK:
        protect_module_path()
    context = multiprocessing.get_context("fork" if _CAN_FORK else "spawn")
    arguments = os.getpid(), seals.get_secret()
    try:
        executor = ProcessPoolExecutor(count, context, _initialize_worker, arguments)
    # no shared memory for its locks: /dev/shm is missing or not writable
    except OSError:
        return None
    # a partly started pool never ends, and interrupts during a fork are lost
    with defer_interrupts():
        cleanup.callback(_shut_down, executor)
        executor.submit(os.getpid).result()  # fork all workers now, before any thread starts
    return executor


def _count_startable(jobs: int) -> int:
    """Return how many of these processes the thread limit permits.

    A pool that cannot start its threads would wait forever.
    """
    threads_needed = _POOL_THREADS + _THREADS_PER_WORKER * jobs
    return (threads.count_available(threads_needed) - _POOL_THREADS) // _THREADS_PER_WORKER


def _shut_down(executor: Executor) -> None:
    """Stop the processes after their current tasks.

    Interrupts are deferred, because Python regards a thread as ended if waiting for it was
    interrupted.
    """
    with defer_interrupts():
        executor.shutdown(cancel_futures=True)


def _initialize_worker(parent: int, seal_secret: seals.Secret) -> None:
    """Initialize a worker process.

    It ignores Ctrl-C, ends when the parent has ended in any way, and seals files as the parent
    does.
    """
    seals.use_secret(seal_secret)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tune_garbage_collection()
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_INTERVAL)
    os._exit(1)
