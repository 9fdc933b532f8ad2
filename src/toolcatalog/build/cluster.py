"""Builds on a dask cluster: worker requirements, and a worker pool over the scheduler.

Needs the extra `cluster`.

Tasks name files by path, so all workers must see the same folders at the same paths and run the
same program. This is checked on every worker before any work is sent, and again with each piece of
work, so that it also applies to workers that join later.
"""

import contextlib
import logging
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

import distributed
from distributed import Client, KilledWorker, Security

from toolcatalog.build import cache
from toolcatalog.build import rebuild as rebuild  # noqa: PLC0414 - see _program_digest
from toolcatalog.build.changes import BuildPaths
from toolcatalog.errors import UsageError
from toolcatalog.search.embeddings import model_files
from toolcatalog.system import seals


class WorkerRequirements(NamedTuple):
    """What every worker must have.

    `program_digest` identifies this program, and `model_digest` the sentence model in the folder
    `model_folder` (None: the default model), or is empty if none is needed. `inodes` maps folders
    and files to their inode, which distinguishes a shared folder from a copy of it. Workers write
    results to `writable_folders` and seal them with `seal_secret`, so that the build trusts them.
    """

    program_digest: str
    model_digest: str
    model_folder: Path | None
    inodes: Mapping[str, int]
    writable_folders: Sequence[str]
    seal_secret: seals.Secret


def worker_requirements(paths: BuildPaths) -> WorkerRequirements:
    """Return what a build with these paths requires of its workers; create missing output
    folders.
    """
    outputs = [paths.cache, *([paths.site] if paths.site else [])]
    for folder in outputs:
        folder.mkdir(parents=True, exist_ok=True)
    inputs = [paths.catalog, paths.catalog / "catalog.yaml", paths.catalog / "toolkits"]
    return WorkerRequirements(
        program_digest=_program_digest(),
        model_digest=_model_digest(paths.model) if paths.with_vectors else "",
        model_folder=paths.model,
        inodes={str(path): _inode(path) for path in [*inputs, *outputs]},
        writable_folders=[*map(str, outputs)],
        seal_secret=seals.get_secret(),
    )


def find_unmet_requirement(requirements: WorkerRequirements) -> str:
    """Return what this process lacks, as a clause for an error message; empty if it meets
    everything.
    """
    if _program_digest() != requirements.program_digest:
        return (
            "it runs another toolcatalog, Python or library (install the same, and start it again)"
        )
    if (
        requirements.model_digest
        and _model_digest(requirements.model_folder) != requirements.model_digest
    ):
        return "it does not have the model of --semantic, or the extra `semantic`"
    for path, inode in requirements.inodes.items():
        if _inode(path) != inode:
            return f"it does not see {path}, or sees something else there"
    for path in requirements.writable_folders:
        try:
            tempfile.TemporaryFile(dir=path).close()
        except OSError as error:
            return f"it cannot write to {path} ({error.strerror})"
    return ""


@lru_cache(maxsize=1)
def _program_digest() -> str:
    """Return the digest of the running program.

    All modules are loaded first, so that the digest describes the code that runs, even if another
    version is installed later.
    """
    return cache.compute_program_digest()


def _model_digest(folder: Path | None) -> str:
    try:
        return model_files.model_identity(folder)
    except UsageError:
        return ""


def _inode(path: str | Path) -> int:
    try:
        return Path(path).stat().st_ino
    except OSError:
        return 0


_CONNECT_TIMEOUT = 10.0  # seconds to wait for the scheduler
_WORKER_TIMEOUT = 60.0  # seconds without any worker: a restart takes a while
_POLL_INTERVAL = 1.0  # seconds
_TASKS_AHEAD = 4  # requests sent ahead for each worker
_MIN_TASKS_AHEAD = 64  # requests sent ahead in total, because more workers may join
_BUILD_UNTOUCHED = "the last good build is untouched"
_REQUIREMENTS_HINT = (
    "All workers need the same folders at the same paths, this very program, and one thread each "
    "(docs/guides/operate.md)."
)

Task = TypeVar("Task")
Result = TypeVar("Result")


def connect(address: str, paths: BuildPaths, timeout: float = _WORKER_TIMEOUT) -> "ClusterWorkers":
    """Return the workers of the scheduler at `tcp://HOST:PORT` or `tls://HOST:PORT`.

    Waits up to `timeout` seconds for a worker, now and whenever none is left. Raises UsageError if
    there is no such scheduler, no worker, or a worker that does not meet the requirements.
    """
    needs = worker_requirements(paths)
    client = _client(address)
    try:
        with _scheduler_errors(client):
            return ClusterWorkers(client, needs, _check_workers(client, needs, timeout), timeout)
    except BaseException:
        client.close()
        raise


class ClusterWorkers:
    """The subset of `concurrent.futures.Executor` that `system.processes` uses: `map` and
    `shutdown`.
    """

    def __init__(
        self,
        client: Client,
        requirements: WorkerRequirements,
        workers: Collection[str],
        timeout: float,
    ) -> None:
        self._client, self._requirements, self._workers = client, requirements, workers
        self._timeout = timeout
        # not pure: the same task may have to write its pages again
        self._executor = client.get_executor(pure=False)

    def map(
        self, work: Callable[[Task], Result], tasks: Sequence[Task], /, *, chunksize: int
    ) -> Iterator[Result]:
        """Return the results of the tasks, in task order.

        Each request carries at most `chunksize` tasks, and only a limited number are under way at
        once. Raises the exceptions of the work, and UsageError if the cluster is lost.
        """
        size = max(1, min(chunksize, len(tasks) // (_TASKS_AHEAD * len(self._workers))))
        send = partial(self._executor.submit, _run_tasks, self._requirements, work)
        futures = map(send, (tasks[start : start + size] for start in range(0, len(tasks), size)))
        with _scheduler_errors(self._client):
            # Start now, not when the first result is requested.
            sent = deque(islice(futures, max(_MIN_TASKS_AHEAD, _TASKS_AHEAD * len(self._workers))))
        return self._results(sent, futures)

    # the parameters are those of Executor
    def shutdown(self, *, wait: bool = True, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Leave the cluster.

        Work that has not started is canceled. A worker finishes what it is doing, and the result is
        discarded.
        """
        self._client.close()

    def _results(
        self,
        sent_futures: "deque[Future[list[Result]]]",
        unsent_futures: "Iterator[Future[list[Result]]]",
    ) -> Iterator[Result]:
        while sent_futures:
            with _scheduler_errors(self._client):
                results = self._result(sent_futures.popleft())
                sent_futures.extend(islice(unsent_futures, 1))
            yield from results

    def _result(self, future: "Future[list[Result]]") -> list[Result]:
        try:
            self._wait_for(future)
            return future.result()
        except KilledWorker as error:
            raise UsageError(
                f"{error.allowed_failures + 1} workers were lost on the same task, probably out "
                f"of memory: {_BUILD_UNTOUCHED}. Give them more, and build again."
            ) from None
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "toolcatalog":
                raise
            raise UsageError(
                f"A worker that joined later does not have this program: {_BUILD_UNTOUCHED}. "
                f"{_REQUIREMENTS_HINT}"
            ) from None

    def _wait_for(self, future: "Future[list[Result]]") -> None:
        """Wait for a result while there is any worker, or one may come back.

        Raises the exception of any failed piece of work, and UsageError if no worker comes back.
        """
        since = time.monotonic()
        while not wait([future], _POLL_INTERVAL).done:
            failure = self._find_failure()
            if failure:
                raise failure
            if _worker_threads(self._client):
                since = time.monotonic()
            elif time.monotonic() - since > self._timeout:
                raise UsageError(
                    f"No worker of the cluster is left, for {self._timeout:g} seconds: "
                    f"{_BUILD_UNTOUCHED}. Start some and build again."
                )

    def _find_failure(self) -> BaseException | None:
        """Return the exception of a failed piece of work, if there is one.

        The executor of the library does not report it if a result was lost with its worker and the
        second attempt failed: the future would stay pending.
        """
        states = [*self._client.futures.values()]
        return next((state.exception for state in states if state.status == "error"), None)


def _run_tasks(
    requirements: WorkerRequirements, work: Callable[[Task], Result], tasks: Sequence[Task]
) -> list[Result]:
    """Run tasks on a worker, after checking that it meets the requirements."""
    unmet = find_unmet_requirement(requirements)
    if unmet:
        raise UsageError(
            f"A worker that joined later cannot take part: {unmet}. {_REQUIREMENTS_HINT}"
        )
    seals.use_secret(requirements.seal_secret)
    return [work(task) for task in tasks]


def _client(address: str) -> Client:
    _silence_library()
    security = _security(address, distributed.Security())
    try:
        with warnings.catch_warnings():
            # about versions that differ: `_check_workers` checks what must be equal
            warnings.simplefilter("ignore")
            return distributed.Client(
                address,
                timeout=_CONNECT_TIMEOUT,
                security=security,
                set_as_default=False,
                name="toolcatalog",
            )
    except OSError as error:
        problem = f"No scheduler answers at {address} ({_first_line(error)})"
        raise UsageError(
            f"{problem}: {_BUILD_UNTOUCHED}. Is it running, and is that its address?"
        ) from None


def _security(address: str, configured: "Security") -> "Security":
    """Return the library's own TLS configuration.

    Raises UsageError if the address is not valid, or if it needs TLS and no certificates are
    configured.
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme in {"tcp", "tls"} and parts.hostname and parts.port
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(
            f"{address} is not the address of a scheduler: give tcp://HOST:PORT or tls://HOST:PORT."
        )
    if parts.scheme == "tls" and not configured.get_connection_args("client").get("ssl_context"):
        raise UsageError(
            "For tls:// the certificates are set in dask's own configuration, under "
            "`distributed.comm.tls`: there are none."
        )
    return configured


def _silence_library() -> None:
    """Silence the library's logging: this module reports its errors, in one sentence each."""
    for name in [
        name
        for name in logging.root.manager.loggerDict
        if name.partition(".")[0] in {"distributed", "tornado"}
    ]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _check_workers(
    client: Client, requirements: WorkerRequirements, timeout: float
) -> Collection[str]:
    """Return the addresses of the workers, after checking that all meet the requirements."""
    threads = _wait_for_workers(client, timeout)
    answers = client.run(find_unmet_requirement, requirements, on_error="return")
    reasons = {
        worker: _unfit_reason(answers.get(worker, ""), count) for worker, count in threads.items()
    }
    unfit = {worker: reason for worker, reason in reasons.items() if reason}
    if unfit:
        worker, reason = min(unfit.items())
        raise UsageError(
            f"{len(unfit)} of {len(threads)} workers cannot take part in this build; {worker}: "
            f"{reason}. {_REQUIREMENTS_HINT}"
        )
    return [*threads]


def _wait_for_workers(client: Client, timeout: float) -> Mapping[str, int]:
    """Return the number of threads of each worker, as soon as there is a worker."""
    deadline = time.monotonic() + timeout
    threads = _worker_threads(client)
    while not threads:
        if time.monotonic() > deadline:
            raise UsageError(
                f"The cluster has had no worker for {timeout:g} seconds: {_BUILD_UNTOUCHED}. Start "
                "some and build again."
            )
        time.sleep(_POLL_INTERVAL / 10)
        threads = _worker_threads(client)
    return threads


def _unfit_reason(answer: str | BaseException, threads: int) -> str:
    if isinstance(answer, BaseException):  # its installation is too different to run the check
        return f"it cannot report what it has ({type(answer).__name__}: {_first_line(answer)})"
    return answer or (
        f"it works with {threads} threads (start it with --nthreads 1)" if threads > 1 else ""
    )


@contextlib.contextmanager
def _scheduler_errors(client: Client) -> Iterator[None]:
    """Convert the exceptions of a lost scheduler to UsageError.

    The library has many exceptions for this, a bare Exception among them.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, UsageError) or (
            client.status == "running" and not isinstance(error, CancelledError)
        ):
            raise
        raise UsageError(
            f"The scheduler of the cluster has ended: {_BUILD_UNTOUCHED}. Start it and build again."
        ) from None


def _worker_threads(client: Client) -> Mapping[str, int]:
    """Return the number of threads of each worker; empty if the scheduler is gone."""
    threads: Mapping[str, int] = {}
    with contextlib.suppress(OSError):
        threads = client.nthreads()
    return threads
