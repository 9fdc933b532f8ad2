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

_MIN_TASKS = 8  # this many tasks take less time than a process start
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
    every = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    allowed = (
        _cgroup_cpus(cgroup_root / "cpu.max"),
        _cgroup_cpus(cgroup_root / "cpu/cpu.cfs_quota_us", cgroup_root / "cpu/cpu.cfs_period_us"),
    )
    return math.ceil(min(every, *allowed))


def _cgroup_cpus(*files: Path) -> float:
    """Return the processors that quota files allow: quota by period; infinity if unlimited."""
    with contextlib.suppress(OSError, ValueError):
        allowed, period = map(int, " ".join(file.read_text() for file in files).split())
        # no limit is -1 in version 1, and a word in version 2
        return allowed / period if allowed > 0 else math.inf
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


class WorkerPool:
    """Worker processes that are started on demand, and one more for work in the background.

    Leaving the `with` block ends them. `worker_source` returns other workers instead of processes;
    the background worker is always a local process.
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
        """Return the results of the tasks in order, as they arrive.

        Raises BrokenExecutor if a process was killed.
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
        """Start the background process if there are more than `threshold` tasks.

        Start it early, because a forked process keeps a copy of the memory of that moment.
        """
        if self.jobs > 1 and tasks > threshold:
            self._background = self._background or _start_processes(1, self._cleanup)

    def stop_background(self) -> None:
        """Stop the background process if processes are forked.

        The next one then has everything that is loaded by then.
        """
        if self._background and _CAN_FORK:
            _shut_down(self._background)
            self._background = None

    def submit(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Start work in the background; return a function that waits for the result.

        Without a background process, that function does the work.
        """
        return self._background.submit(work).result if self._background else work


def _map_from_both_ends(
    work: Callable[[Task], Result], tasks: Sequence[Task], background: "Executor"
) -> Iterator[Result]:
    """Yield the results of a few tasks in order.

    This process works from the front, and the background process from the end.
    """
    begun = [background.submit(work, task) for task in reversed(tasks[1:])]
    for task in tasks:
        yield work(task)
        if not (begun and begun[-1].cancel()):
            break
        begun.pop()
    yield from (one.result() for one in reversed(begun))


def release_free_memory() -> None:
    """Return free memory to the system, before others need it or a process forks; glibc only."""
    # TypeError: CDLL(None) does not work on Windows
    with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes  # noqa: PLC0415 - rarely needed

        ctypes.CDLL(None).malloc_trim(0)


def _start_processes(jobs: int, cleanup: contextlib.ExitStack) -> "Executor | None":
    """Start up to `jobs` processes, as many as the thread limit permits; None if it permits none.

    A pool that cannot start its threads would wait forever. `cleanup` waits for the processes in
    any case: at exit, Python wakes processes that are just ending, which may fail.
    """
    fitting = min(
        jobs,
        (threads.count_available(_POOL_THREADS + _THREADS_PER_WORKER * jobs) - _POOL_THREADS)
        // _THREADS_PER_WORKER,
    )
    if fitting < 1:
        return None
    import multiprocessing  # noqa: PLC0415 - most commands start no process
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    context = multiprocessing.get_context("fork" if _CAN_FORK else "spawn")
    try:
        executor = ProcessPoolExecutor(
            fitting, context, _initialize_worker, (os.getpid(), seals.get_secret())
        )
    # no shared memory for its locks: /dev/shm is missing or not writable
    except OSError:
        return None
    # a partly started pool never ends, and interrupts during a fork are lost
    with defer_interrupts():
        cleanup.callback(_shut_down, executor)
        executor.submit(os.getpid).result()  # fork all workers now, before any thread starts
    return executor


def _shut_down(executor: "Executor") -> None:
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
