"""Work done on a dask cluster, by the very code that processes of this machine run: see `crew`.
Needs the extra `cluster`.

Tasks name files by path, so all workers must see the same folders at the same paths and run the
same program. That is asked of every worker before any work is sent, and again where each piece of
work is done: a worker that joins later is held to the same.
"""

import contextlib
import logging
import time
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from toolcatalog import fitness, seals
from toolcatalog.errors import UsageError
from toolcatalog.fitness import Needs
from toolcatalog.looking import Places

if TYPE_CHECKING:
    from distributed import Client, Security

_CONNECT = 10.0  # seconds that a scheduler is waited for
_PATIENCE = 60.0  # seconds without any worker: one that is started again needs some
_LOOK_EVERY = 1.0  # seconds
_AHEAD = 4  # pieces of work sent ahead for each worker
_LEAST_AHEAD = 64  # of them for all: workers may join
_STILL = "the last good build is untouched"
_SAME = "All workers need the same folders at the same paths, this very program, and one thread each (docs/operating.md)."

Task = TypeVar("Task")
Result = TypeVar("Result")


def hire(address: str, places: Places, patience: float = _PATIENCE) -> "Team":
    """The workers of the scheduler at an address, `tcp://HOST:PORT` or `tls://HOST:PORT`, all of
    them fit for a build of these places.

    Waits so many seconds for a worker, now and whenever none is left. Raises UsageError where there
    is no such scheduler, no worker, or one that is not fit.
    """
    needs = fitness.needs(places)
    client = _client(address)
    try:
        with _in_touch(client):
            return Team(client, needs, _fit(client, needs, patience), patience)
    except BaseException:
        client.close()
        raise


class Team:
    """As `concurrent.futures.Executor`, as far as `crew` asks: work in the order of its tasks, and
    an end to it.
    """

    def __init__(
        self,
        client: "Client",
        needs: Needs,
        workers: Collection[str],
        patience: float,
    ) -> None:
        self._client, self._needs, self._workers = client, needs, workers
        self._patience = patience
        # pages that were written once may have to be written again
        self._executor = client.get_executor(pure=False)

    def map(
        self, work: Callable[[Task], Result], tasks: Sequence[Task], /, *, chunksize: int
    ) -> Iterator[Result]:
        """The results of the tasks, in their order, sent as so many at a time at most; only some
        are under way at once.

        Raises what the work raises, and UsageError where the cluster is lost.
        """
        size = max(1, min(chunksize, len(tasks) // (_AHEAD * len(self._workers))))
        send = partial(self._executor.submit, _done, self._needs, work)
        futures = map(send, (tasks[start : start + size] for start in range(0, len(tasks), size)))
        with _in_touch(self._client):
            # Begun now, not when the first result is asked for.
            sent = deque(islice(futures, max(_LEAST_AHEAD, _AHEAD * len(self._workers))))
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
            with _in_touch(self._client):
                results = self._result(sent.popleft())
                sent.extend(islice(more, 1))
            yield from results

    def _result(self, future: "Future[list[Result]]") -> list[Result]:
        from distributed import KilledWorker  # noqa: PLC0415 - it is there with the extra only

        try:
            self._await(future)
            return future.result()
        except KilledWorker as error:
            wrong = f"{error.allowed_failures + 1} workers were lost at the same work, perhaps for want of memory"
            raise UsageError(f"{wrong}: {_STILL}. Give them more, and build again.") from None
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "toolcatalog":
                raise
            raise UsageError(
                f"A worker that has joined since does not have this program: {_STILL}. {_SAME}"
            ) from None

    def _await(self, future: "Future[list[Result]]") -> None:
        """Wait for a result as long as there is any worker, or one may come back. Raises what any
        work has failed with.
        """
        since = time.monotonic()
        while not wait([future], _LOOK_EVERY).done:
            if failure := self._failure():
                raise failure
            if _threads(self._client):
                since = time.monotonic()
            elif time.monotonic() - since > self._patience:
                raise UsageError(
                    f"No worker of the cluster is left, for {self._patience:g} seconds: "
                    f"{_STILL}. Start some and build again."
                )

    def _failure(self) -> BaseException | None:
        """What a piece of work has failed with.

        The library's executor forgets to tell where a result was lost with its worker and the
        second try failed: it would be waited for for ever.
        """
        states = [*self._client.futures.values()]
        return next((state.exception for state in states if state.status == "error"), None)


def _done(needs: Needs, work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """What a worker does with a piece of work."""
    missing = fitness.lack(needs)
    if missing:
        raise UsageError(f"A worker that has joined since cannot take part: {missing}. {_SAME}")
    seals.use(needs.secret)
    return [work(task) for task in tasks]


def _client(address: str) -> "Client":
    try:
        import distributed  # noqa: PLC0415 - it is there with the extra only
    except ImportError:
        raise UsageError(
            "A cluster is reached through the package distributed: run `pip install "
            "'toolcatalog[cluster]'`."
        ) from None
    _hush()
    security = _security(address, distributed.Security())
    try:
        with warnings.catch_warnings():
            # of versions that differ: what must be the same is asked of each worker
            warnings.simplefilter("ignore")
            return distributed.Client(
                address,
                timeout=_CONNECT,
                security=security,
                set_as_default=False,
                name="toolcatalog",
            )
    except OSError as error:
        wrong = f"No scheduler answers at {address} ({_first_line(error)})"
        raise UsageError(f"{wrong}: {_STILL}. Is it running, and is that its address?") from None


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


def _hush() -> None:
    """Let the library say nothing: what it would say is said here, in one sentence."""
    for name in [
        name
        for name in logging.root.manager.loggerDict
        if name.partition(".")[0] in {"distributed", "tornado"}
    ]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _fit(client: "Client", needs: Needs, patience: float) -> Collection[str]:
    """The addresses of the workers, all of them fit."""
    until = time.monotonic() + patience
    while not (threads := _threads(client)):
        if time.monotonic() > until:
            raise UsageError(
                f"The cluster has had no worker for {patience:g} seconds: {_STILL}. Start "
                "some and build again."
            )
        time.sleep(_LOOK_EVERY / 10)
    said = client.run(fitness.lack, needs, on_error="return")
    found = {worker: _clause(said.get(worker, ""), number) for worker, number in threads.items()}
    unfit = {worker: missing for worker, missing in found.items() if missing}
    if unfit:
        worker, missing = min(unfit.items())
        count = f"{len(unfit)} of {len(threads)} workers cannot take part in this build; {worker}"
        raise UsageError(f"{count}: {missing}. {_SAME}")
    return [*threads]


def _clause(said: str | BaseException, threads: int) -> str:
    if isinstance(said, BaseException):  # what it has is so different that it cannot even be asked
        return f"it cannot tell what it has ({type(said).__name__}: {_first_line(said)})"
    return said or (
        f"it works with {threads} threads (start it with --nthreads 1)" if threads > 1 else ""
    )


@contextlib.contextmanager
def _in_touch(client: "Client") -> Iterator[None]:
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
            f"The scheduler of the cluster has ended: {_STILL}. Start it and build again."
        ) from None


def _threads(client: "Client") -> Mapping[str, int]:
    """How many threads each worker has; none has where the scheduler is gone."""
    threads: Mapping[str, int] = {}
    with contextlib.suppress(OSError):
        threads = client.nthreads()
    return threads
