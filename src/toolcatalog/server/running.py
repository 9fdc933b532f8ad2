"""The processes of a server: one, or several and one that watches over them; how they begin, hear
that the end is near, and end.
"""

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from types import FrameType
from typing import NoReturn

import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from toolcatalog import threads
from toolcatalog.errors import ToolcatalogError, UsageError
from toolcatalog.interrupts import deferred, hear
from toolcatalog.minting import redact
from toolcatalog.server import ledger, metrics
from toolcatalog.server.ledger import Page
from toolcatalog.server.live import Flag
from toolcatalog.server.process import Settings, application
from toolcatalog.server.protocol import Protocol

_BOUND = 10  # seconds for the requests under way
_SILENCE = 10  # seconds after which a worker that does not answer its supervisor is replaced
_PAUSE = 1.0  # second before a worker that cannot start is tried again
_log = logging.getLogger("toolcatalog.serve")


def run(
    settings: Settings,
    listener: socket.socket,
    scraped: socket.socket | None = None,
    beside: metrics.Counted | None = None,
) -> None:
    """Answer until told to stop; `scraped` is a socket of its own for metrics, `beside` tells what
    is counted beside the answering.

    Raises SystemExit where that was by SIGTERM, and KeyboardInterrupt where it was by Ctrl-C.
    """
    start_log()
    if settings.redis:
        _relay(settings.redis, settings.keys)
    if settings.workers > 1:
        with ledger.folder() as pages:
            if beside:
                Page(pages, beside)
            if scraped:
                metrics.serve(partial(ledger.read, pages), scraped)
            _run_workers(replace(settings, pages=pages), listener, _Shared(pages / "draining"))
    else:
        draining = threading.Event()
        # uvicorn drains, then raises the signal again: that is a good end
        signal.signal(signal.SIGTERM, _stop)
        _Server(
            _config(application(settings, draining, scraped, beside)), draining, settings.drain
        ).run(sockets=[listener])


def _relay(redis: str, file: Path) -> None:
    """Keep the key file in step with Redis, from before the first request on."""
    from toolcatalog.relaying import Relay  # noqa: PLC0415 - only where there is a Redis
    from toolcatalog.remote import Address, RemoteKeys  # noqa: PLC0415

    relay = Relay(RemoteKeys(Address(redis)), file)
    relay.look()
    if not file.exists():
        _log.warning("No keys yet: every API call answers 401 until they come from Redis")
    threads.begin(relay)


def start_log() -> None:
    """Let this process say what happens, on standard error; keys are redacted, in traces too."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Redacting("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class _Redacting(logging.Formatter):
    """Lines without API keys, whichever library logs them."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def _stop(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - what a signal handler is given
    raise SystemExit(0)


def _config(app: ASGIApp | Callable[[], ASGIApp], workers: int = 1) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=workers > 1,
        workers=workers,
        http=Protocol,
        ws="none",
        loop="auto",
        lifespan="on",  # in the end, what the last requests leave to be written down is
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody here asks where a request came from
        timeout_graceful_shutdown=_BOUND,
        timeout_worker_healthcheck=_SILENCE,
    )


class _Server(uvicorn.Server):
    """uvicorn's, which goes on for a while after the first SIGTERM and lets it be known."""

    def __init__(self, config: uvicorn.Config, draining: threading.Event, seconds: float) -> None:
        super().__init__(config)
        self._draining = draining
        self._seconds = seconds
        self._ends: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        is_first = not self._draining.is_set()
        self._draining.set()
        if sig == signal.SIGTERM and is_first and self._seconds:
            self._ends = time.monotonic() + self._seconds
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if self._ends is not None and time.monotonic() >= self._ends and not self.should_exit:
            super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)


class _Shared:
    """A flag that all processes see: a file that is there from when it is set. One that is killed
    leaves nothing held.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def set(self) -> None:
        try:
            self._file.touch()
        except OSError as error:
            _log.error(
                (
                    "The workers are not told that the end is near, nor /readyz: %s cannot be "
                    "written (%s)"
                ),
                self._file,
                error.strerror,
            )

    def is_set(self) -> bool:
        return self._file.exists()


def _run_workers(settings: Settings, listener: socket.socket, draining: _Shared) -> None:
    """Run processes that share the listening socket, until this one is told to stop."""
    config = _config(partial(_worker, settings, draining), settings.workers)
    supervisor = _Supervisor(config, [listener], draining, settings.drain, settings.pages)
    # here, not in the workers: who started, who died, who is waited for
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)
    try:
        supervisor.run()
    except BlockingIOError:
        supervisor.end()
        raise UsageError(
            f"Not all workers may be begun here: {threads.LIMIT}, or ask for fewer with --workers."
        ) from None
    except BaseException:
        supervisor.end()
        raise
    if supervisor.interrupted:
        raise KeyboardInterrupt


class _Supervisor(Multiprocess):
    """uvicorn's: it starts the workers, replaces one that dies or hangs, all in turn on SIGHUP, and
    drains them on SIGTERM and SIGINT.
    """

    interrupted = False

    def __init__(
        self,
        config: uvicorn.Config,
        sockets: list[socket.socket],
        draining: _Shared,
        seconds: float,
        pages: Path | None,
    ) -> None:
        super().__init__(config, sockets)
        self._pages = pages
        self._draining = draining
        self._seconds = seconds

    def init_processes(self) -> None:
        # it would let interrupts in again, where the first worker begins it
        resource_tracker.ensure_running()
        with deferred():
            super().init_processes()

    def handle_signals(self) -> None:
        with self._going_on():
            super().handle_signals()

    def keep_subprocess_alive(self) -> None:
        with self._going_on():
            super().keep_subprocess_alive()
        if self._pages is None:
            return
        with contextlib.suppress(OSError):  # then their pages stay, and count all the same
            ledger.fold(self._pages, {os.getpid(), *(process.pid for process in self.processes)})

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Let those that there are answer where the system refuses another process: one that is
        missing is begun as soon as it may be.
        """
        try:
            with deferred():
                yield
        except OSError as error:
            _log.error(
                "A worker cannot be begun (%s): those that there are answer meanwhile", error
            )

    def handle_int(self) -> None:
        self.interrupted = True
        super().handle_int()

    def handle_term(self) -> None:
        is_first = not self._draining.is_set()
        self._draining.set()
        if is_first and self._seconds:
            later = threading.Timer(self._seconds, self.should_exit.set)
            later.daemon = True
            later.start()
        else:
            super().handle_term()

    def end(self) -> None:
        """End the workers at once: this process would wait for them, and nobody would watch over
        them.
        """
        for process in self.processes:
            process.process.kill()

    def terminate_all(self) -> None:
        self._draining.set()
        for listener in self.sockets:
            # else a connection made from now on would wait for a worker that never comes
            listener.close()
        super().terminate_all()


def _worker(settings: Settings, draining: Flag) -> ASGIApp:
    """What a worker runs, made in its own process. One that cannot start says why, and is tried
    again: the others answer meanwhile.
    """
    hear()  # by now uvicorn takes Ctrl-C; while the process was begun it had to wait
    start_log()
    try:
        threads.begin(threading.Thread(target=_end_with_supervisor, name="ending", daemon=True))
        return application(settings, draining)
    except ToolcatalogError as error:
        _log.error("A worker cannot start: %s", error)
        time.sleep(_PAUSE)
        # at once: an interpreter that winds down is alive and answers no health check, and the
        # supervisor would wait for it
        os._exit(1)


def _end_with_supervisor() -> None:
    """End as by SIGTERM when nobody watches over this process any more: it would keep the port from
    whoever is started next.
    """
    if supervisor := multiprocessing.parent_process():
        supervisor.join()
        _log.error("The process that watches over the workers has been killed: this one ends, too")
        os.kill(os.getpid(), signal.SIGTERM)
