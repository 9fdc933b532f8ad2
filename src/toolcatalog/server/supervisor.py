"""The supervisor: start, watch and stop the worker processes of a server."""

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

from toolcatalog.errors import ToolcatalogError, UsageError
from toolcatalog.keys.redis import KeySync, RedisKeyStorage
from toolcatalog.keys.redis_connection import RedisAddress
from toolcatalog.server.limits.protocol import select_protocol
from toolcatalog.server.logs.server_log import configure_logging
from toolcatalog.server.metrics import prometheus, workers
from toolcatalog.server.metrics.workers import WorkerPage
from toolcatalog.server.process import ServerSettings, create_worker_app
from toolcatalog.server.state import Flag, LocalFlag
from toolcatalog.system import threads
from toolcatalog.system.processes import protect_module_path
from toolcatalog.system.signals import defer_interrupts, unblock_interrupts

_SHUTDOWN_TIMEOUT = 10  # seconds for the requests in progress
_HEALTHCHECK_TIMEOUT = (
    10  # seconds after which a worker that does not answer its supervisor is replaced
)
_RESTART_DELAY = 1.0  # second before a worker that cannot start is started again
_log = logging.getLogger("toolcatalog.serve")


def run_server(
    settings: ServerSettings,
    listener: socket.socket,
    metrics_listener: socket.socket | None = None,
    read_extra_counts: prometheus.ReadCounts | None = None,
) -> None:
    """Serve until a signal stops the process.

    `metrics_listener` is a separate socket for metrics; `read_extra_counts` reads counts of this
    process that do not come from serving requests. Raises SystemExit after SIGTERM, and
    KeyboardInterrupt after Ctrl-C.
    """
    configure_logging(settings.log)
    if settings.redis:
        _start_key_sync(settings.redis, settings.keys)
    if settings.workers > 1:
        with workers.create_folder() as pages:
            if read_extra_counts:
                WorkerPage(pages, read_extra_counts)
            if metrics_listener:
                prometheus.serve_metrics(partial(workers.read_all_counts, pages), metrics_listener)
            _run_workers(
                replace(settings, metrics_folder=pages), listener, _SharedFlag(pages / "draining")
            )
    else:
        draining = LocalFlag()
        app = create_worker_app(settings, draining, metrics_listener, read_extra_counts)
        server = _DrainingServer(_create_config(app, settings), draining, settings.drain_seconds)
        # uvicorn handles signals only while it serves: one may come before, and it raises those
        # that it got again at the end
        signal.signal(signal.SIGTERM, server.handle_exit)
        server.run(sockets=[listener])
        raise SystemExit(0)


def exit_on_sigterm() -> None:
    """Exit with status 0 on SIGTERM, until the server handles it itself."""
    signal.signal(signal.SIGTERM, _exit_on_signal)


def _exit_on_signal(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - required
    raise SystemExit(0)


def _start_key_sync(redis: str, file: Path) -> None:
    """Start to sync the key file with Redis; the first sync ends before the first request."""
    relay = KeySync(RedisKeyStorage(RedisAddress(redis)), file)
    relay.sync_once()
    if not file.exists():
        _log.warning("No keys yet: every API call answers 401 until they come from Redis")
    threads.start(relay)


def _create_config(
    app: ASGIApp | Callable[[], ASGIApp], settings: ServerSettings
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=settings.workers > 1,
        workers=settings.workers,
        http=select_protocol(),
        ws="none",
        loop="auto",
        lifespan="on",  # at shutdown the access log and the counters are written
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        root_path=settings.root_path,
        proxy_headers=settings.forwarded_allow_ips is not None,
        forwarded_allow_ips=settings.forwarded_allow_ips,
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT,
        timeout_worker_healthcheck=_HEALTHCHECK_TIMEOUT,
    )


class _DrainingServer(uvicorn.Server):
    """A uvicorn server that keeps answering for a while after the first SIGTERM.

    It sets `draining` at once.
    """

    def __init__(self, config: uvicorn.Config, draining: LocalFlag, drain_seconds: float) -> None:
        super().__init__(config)
        self._draining = draining
        self._drain_seconds = drain_seconds
        self._drain_until: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        is_first = not self._draining.is_set()
        self._draining.set()
        if sig == signal.SIGTERM and is_first and self._drain_seconds:
            self._drain_until = time.monotonic() + self._drain_seconds
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if (
            self._drain_until is not None
            and time.monotonic() >= self._drain_until
            and not self.should_exit
        ):
            super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)


class _SharedFlag:
    """A flag that all processes see: it is set while a file exists.

    A process that is killed leaves no lock behind.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def set(self) -> None:
        try:
            self._file.touch()
        except OSError as error:
            _log.error(
                (
                    "The workers and /readyz cannot learn about the shutdown: %s cannot be "
                    "written (%s)"
                ),
                self._file,
                error.strerror,
            )

    def is_set(self) -> bool:
        return self._file.exists()


def _run_workers(settings: ServerSettings, listener: socket.socket, draining: _SharedFlag) -> None:
    """Run workers that share the listening socket, until this process is stopped."""
    protect_module_path()
    config = _create_config(partial(_create_app_in_worker, settings, draining), settings)
    supervisor = _Supervisor(
        config, [listener], draining, settings.drain_seconds, settings.metrics_folder
    )
    try:
        supervisor.run()
    except BlockingIOError:
        supervisor.kill_workers()
        raise UsageError(
            f"Not all workers may be started here: {threads.LIMIT_HINT}, or ask for fewer with "
            f"--workers."
        ) from None
    except BaseException:
        supervisor.kill_workers()
        raise
    if supervisor.interrupted:
        raise KeyboardInterrupt


class _Supervisor(Multiprocess):
    """A uvicorn supervisor.

    It starts the workers, replaces one that dies or hangs, replaces all in turn on SIGHUP, and
    drains them on SIGTERM and SIGINT.
    """

    interrupted = False

    def __init__(
        self,
        config: uvicorn.Config,
        sockets: list[socket.socket],
        draining: _SharedFlag,
        drain_seconds: float,
        metrics_folder: Path | None,
    ) -> None:
        super().__init__(config, sockets)
        self._metrics_folder = metrics_folder
        self._draining = draining
        self._drain_seconds = drain_seconds

    def init_processes(self) -> None:
        # if the first worker started it, it would unblock interrupts
        resource_tracker.ensure_running()
        with defer_interrupts():
            super().init_processes()

    def handle_signals(self) -> None:
        with self._tolerate_start_failures():
            super().handle_signals()

    def keep_subprocess_alive(self) -> None:
        before = [process.pid for process in self.processes]
        with self._tolerate_start_failures():
            super().keep_subprocess_alive()
        for old, new in zip(before, (process.pid for process in self.processes), strict=True):
            if old != new:
                _log.warning("Worker %d died. Worker %d replaces it.", old, new)
        if self._metrics_folder is None:
            return
        with contextlib.suppress(OSError):  # then their pages stay, and are still counted
            workers.fold_ended(
                self._metrics_folder, {os.getpid(), *(process.pid for process in self.processes)}
            )

    @contextlib.contextmanager
    def _tolerate_start_failures(self) -> Iterator[None]:
        """Keep the running workers if the system refuses another process.

        The missing one is started as soon as the system allows it.
        """
        try:
            with defer_interrupts():
                yield
        except OSError as error:
            _log.error(
                "A worker cannot be started (%s): those that there are answer meanwhile", error
            )

    def handle_int(self) -> None:
        self.interrupted = True
        super().handle_int()

    def handle_term(self) -> None:
        is_first = not self._draining.is_set()
        self._draining.set()
        if is_first and self._drain_seconds:
            later = threading.Timer(self._drain_seconds, self.should_exit.set)
            later.daemon = True
            later.start()
        else:
            super().handle_term()

    def kill_workers(self) -> None:
        """Kill the workers at once.

        Otherwise this process would wait for them at exit, with nothing watching over them.
        """
        for process in self.processes:
            process.process.kill()

    def terminate_all(self) -> None:
        self._draining.set()
        for listener in self.sockets:
            # else a new connection would wait for a worker that never accepts it
            listener.close()
        super().terminate_all()


def _create_app_in_worker(settings: ServerSettings, draining: Flag) -> ASGIApp:
    """Create the application of a worker, in its own process.

    A worker that cannot start logs the reason and is started again; the others answer meanwhile.
    """
    unblock_interrupts()  # deferred while the process was started; uvicorn now handles Ctrl-C
    configure_logging(settings.log)
    try:
        threads.start(threading.Thread(target=_exit_with_supervisor, name="ending", daemon=True))
        return create_worker_app(settings, draining)
    except ToolcatalogError as error:
        _log.error("A worker cannot start: %s", error)
        time.sleep(_RESTART_DELAY)
        # at once: an interpreter that shuts down is alive but answers no health check, and the
        # supervisor would wait for it
        os._exit(1)


def _exit_with_supervisor() -> None:
    """Stop as by SIGTERM when the supervisor has ended.

    Otherwise this process would keep the port from the next server.
    """
    if supervisor := multiprocessing.parent_process():
        supervisor.join()
        _log.error("The supervisor was killed: this worker exits too")
        os.kill(os.getpid(), signal.SIGTERM)
