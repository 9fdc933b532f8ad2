"""Builds on a dask cluster: worker requirements, and a worker pool over the scheduler.

Needs the extra `cluster`.

Tasks name files by path, so all workers must see the same folders at the same paths and run the
same program. That is asked of every worker before any work is sent, and again where each piece of
work is done: a worker that joins later is held to the same.
"""

import contextlib
import logging
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit

from toolcatalog.build import fingerprint
from toolcatalog.build.changes import BuildPaths
from toolcatalog.errors import UsageError
from toolcatalog.system import seals

if TYPE_CHECKING:
    from distributed import Client, Security


class WorkerRequirements(NamedTuple):
    """What every worker must have.

    `program` is the digest of this program, `model` that of the sentence model, empty where none is
    wanted; `seen` are folders and files with the inode of each, which tells a shared folder from a
    copy of it; `written` the folders that results are put into; `secret` seals them, so that the
    build takes them for its own.
    """

    program_digest: str
    model_digest: str
    inodes: Mapping[str, int]
    writable_folders: Sequence[str]
    seal_secret: seals.Secret


def worker_requirements(paths: BuildPaths) -> WorkerRequirements:
    """What a build of these places needs of its workers; folders that are not there yet are made."""
    written = [paths.cache, *([paths.site] if paths.site else [])]
    for folder in written:
        folder.mkdir(parents=True, exist_ok=True)
    seen = [paths.catalog, paths.catalog / "catalog.yaml", paths.catalog / "toolkits", *written]
    model = _model_digest() if paths.with_vectors else ""
    inodes = {str(path): _inode(path) for path in seen}
    return WorkerRequirements(
        _program_digest(), model, inodes, [*map(str, written)], seals.get_secret()
    )


def find_unmet_requirement(requirements: WorkerRequirements) -> str:
    """What this process lacks of what a worker needs, as a clause about it; empty where it has
    everything.
    """
    if _program_digest() != requirements.program_digest:
        return (
            "it runs another toolcatalog, Python or library (install the same, and start it again)"
        )
    if requirements.model_digest and _model_digest() != requirements.model_digest:
        return "it does not have the model of the extra `semantic`"
    for path, inode in requirements.inodes.items():
        if _inode(path) != inode:
            return f"it does not see {path}, or something else there"
    for path in requirements.writable_folders:
        try:
            tempfile.TemporaryFile(dir=path).close()
        except OSError as error:
            return f"it cannot write to {path} ({error.strerror})"
    return ""


@cache
def _program_digest() -> str:
    """What this process runs: all is loaded before the digest is taken, so that it means what runs,
    whatever is installed later.
    """
    from toolcatalog.build import rebuild  # noqa: F401, PLC0415 - it takes a while, and only workers need all of it here

    return fingerprint.compute()


def _model_digest() -> str:
    from toolcatalog.search import encoder  # noqa: PLC0415 - it loads numpy

    try:
        return encoder.model_identity()
    except UsageError:
        return ""


def _inode(path: str | Path) -> int:
    try:
        return Path(path).stat().st_ino
    except OSError:
        return 0


_CONNECT_TIMEOUT = 10.0  # seconds that a scheduler is waited for
_WORKER_TIMEOUT = 60.0  # seconds without any worker: one that is started again needs some
_POLL_INTERVAL = 1.0  # seconds
_TASKS_AHEAD = 4  # pieces of work sent ahead for each worker
_MIN_TASKS_AHEAD = 64  # of them for all: workers may join
_BUILD_UNTOUCHED = "the last good build is untouched"
_REQUIREMENTS_HINT = "All workers need the same folders at the same paths, this very program, and one thread each (docs/operating.md)."

Task = TypeVar("Task")
Result = TypeVar("Result")


def connect(address: str, paths: BuildPaths, timeout: float = _WORKER_TIMEOUT) -> "ClusterWorkers":
    """The workers of the scheduler at an address, `tcp://HOST:PORT` or `tls://HOST:PORT`, all of
    them fit for a build of these places.

    Waits so many seconds for a worker, now and whenever none is left. Raises UsageError where there
    is no such scheduler, no worker, or one that is not fit.
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
    """As `concurrent.futures.Executor`, as far as `system.processes` asks: work in the order of its tasks, and
    an end to it.
    """

    def __init__(
        self,
        client: "Client",
        requirements: WorkerRequirements,
        workers: Collection[str],
        timeout: float,
    ) -> None:
        self._client, self._requirements, self._workers = client, requirements, workers
        self._timeout = timeout
        # pages that were written once may have to be written again
        self._executor = client.get_executor(pure=False)

    def map(
        self, work: Callable[[Task], Result], tasks: Sequence[Task], /, *, chunksize: int
    ) -> Iterator[Result]:
        """The results of the tasks, in their order, sent as so many at a time at most; only some
        are under way at once.

        Raises what the work raises, and UsageError where the cluster is lost.
        """
        size = max(1, min(chunksize, len(tasks) // (_TASKS_AHEAD * len(self._workers))))
        send = partial(self._executor.submit, _run_tasks, self._requirements, work)
        futures = map(send, (tasks[start : start + size] for start in range(0, len(tasks), size)))
        with _scheduler_errors(self._client):
            # Begun now, not when the first result is asked for.
            sent = deque(islice(futures, max(_MIN_TASKS_AHEAD, _TASKS_AHEAD * len(self._workers))))
        return self._results(sent, futures)

    def shutdown(self, *, wait: bool = True, cancel_futures: bool = False) -> None:  # noqa: ARG002 - there is but one way to leave
        """Leave the cluster. Work that has not begun is taken back; what a worker is at it will
        finish, and nobody looks at it.
        """
        self._client.close()

    def _results(
        self, sent: "deque[Future[list[Result]]]", more: "Iterator[Future[list[Result]]]"
    ) -> Iterator[Result]:
        while sent:
            with _scheduler_errors(self._client):
                results = self._result(sent.popleft())
                sent.extend(islice(more, 1))
            yield from results

    def _result(self, future: "Future[list[Result]]") -> list[Result]:
        from distributed import KilledWorker  # noqa: PLC0415 - it is there with the extra only

        try:
            self._wait_for(future)
            return future.result()
        except KilledWorker as error:
            wrong = f"{error.allowed_failures + 1} workers were lost at the same work, perhaps for want of memory"
            raise UsageError(
                f"{wrong}: {_BUILD_UNTOUCHED}. Give them more, and build again."
            ) from None
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "toolcatalog":
                raise
            raise UsageError(
                f"A worker that has joined since does not have this program: {_BUILD_UNTOUCHED}. {_REQUIREMENTS_HINT}"
            ) from None

    def _wait_for(self, future: "Future[list[Result]]") -> None:
        """Wait for a result as long as there is any worker, or one may come back. Raises what any
        work has failed with.
        """
        since = time.monotonic()
        while not wait([future], _POLL_INTERVAL).done:
            if failure := self._find_failure():
                raise failure
            if _worker_threads(self._client):
                since = time.monotonic()
            elif time.monotonic() - since > self._timeout:
                raise UsageError(
                    f"No worker of the cluster is left, for {self._timeout:g} seconds: "
                    f"{_BUILD_UNTOUCHED}. Start some and build again."
                )

    def _find_failure(self) -> BaseException | None:
        """What a piece of work has failed with.

        The library's executor forgets to tell where a result was lost with its worker and the
        second try failed: it would be waited for for ever.
        """
        states = [*self._client.futures.values()]
        return next((state.exception for state in states if state.status == "error"), None)


def _run_tasks(
    requirements: WorkerRequirements, work: Callable[[Task], Result], tasks: Sequence[Task]
) -> list[Result]:
    """What a worker does with a piece of work."""
    missing = find_unmet_requirement(requirements)
    if missing:
        raise UsageError(
            f"A worker that has joined since cannot take part: {missing}. {_REQUIREMENTS_HINT}"
        )
    seals.use_secret(requirements.seal_secret)
    return [work(task) for task in tasks]


def _client(address: str) -> "Client":
    try:
        import distributed  # noqa: PLC0415 - it is there with the extra only
    except ImportError:
        raise UsageError(
            "A cluster is reached through the package distributed: run `pip install "
            "'toolcatalog[cluster]'`."
        ) from None
    _silence_library()
    security = _security(address, distributed.Security())
    try:
        with warnings.catch_warnings():
            # of versions that differ: what must be the same is asked of each worker
            warnings.simplefilter("ignore")
            return distributed.Client(
                address,
                timeout=_CONNECT_TIMEOUT,
                security=security,
                set_as_default=False,
                name="toolcatalog",
            )
    except OSError as error:
        wrong = f"No scheduler answers at {address} ({_first_line(error)})"
        raise UsageError(
            f"{wrong}: {_BUILD_UNTOUCHED}. Is it running, and is that its address?"
        ) from None


def _security(address: str, configured: "Security") -> "Security":
    """What the library's own configuration says of TLS, where the address is one that it can use."""
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
            "For tls:// the certificates stand in dask's own configuration, under "
            "`distributed.comm.tls`: there are none."
        )
    return configured


def _silence_library() -> None:
    """Let the library say nothing: what it would say is said here, in one sentence."""
    for name in [
        name
        for name in logging.root.manager.loggerDict
        if name.partition(".")[0] in {"distributed", "tornado"}
    ]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _check_workers(
    client: "Client", requirements: WorkerRequirements, timeout: float
) -> Collection[str]:
    """The addresses of the workers, all of them fit."""
    until = time.monotonic() + timeout
    while not (threads := _worker_threads(client)):
        if time.monotonic() > until:
            raise UsageError(
                f"The cluster has had no worker for {timeout:g} seconds: {_BUILD_UNTOUCHED}. Start "
                "some and build again."
            )
        time.sleep(_POLL_INTERVAL / 10)
    said = client.run(find_unmet_requirement, requirements, on_error="return")
    found = {
        worker: _unfit_reason(said.get(worker, ""), number) for worker, number in threads.items()
    }
    unfit = {worker: missing for worker, missing in found.items() if missing}
    if unfit:
        worker, missing = min(unfit.items())
        count = f"{len(unfit)} of {len(threads)} workers cannot take part in this build; {worker}"
        raise UsageError(f"{count}: {missing}. {_REQUIREMENTS_HINT}")
    return [*threads]


def _unfit_reason(answer: str | BaseException, threads: int) -> str:
    if isinstance(
        answer, BaseException
    ):  # what it has is so different that it cannot even be asked
        return f"it cannot tell what it has ({type(answer).__name__}: {_first_line(answer)})"
    return answer or (
        f"it works with {threads} threads (start it with --nthreads 1)" if threads > 1 else ""
    )


@contextlib.contextmanager
def _scheduler_errors(client: "Client") -> Iterator[None]:
    """Tell by one sentence that the scheduler has ended: the library has many exceptions for that,
    a bare Exception among them.
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


def _worker_threads(client: "Client") -> Mapping[str, int]:
    """How many threads each worker has; none has where the scheduler is gone."""
    threads: Mapping[str, int] = {}
    with contextlib.suppress(OSError):
        threads = client.nthreads()
    return threads
