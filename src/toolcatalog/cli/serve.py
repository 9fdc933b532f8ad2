"""`toolcatalog serve`"""

import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import click
import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from toolcatalog import keys
from toolcatalog.cli import listening, options, terminal
from toolcatalog.errors import ToolcatalogError
from toolcatalog.opening import open_build
from toolcatalog.server import create_app
from toolcatalog.server.protocol import Protocol
from toolcatalog.store import Store

_EPILOG = """\b
Examples:
  toolcatalog serve
  toolcatalog serve --port 9000 --keys /etc/toolcatalog/keys.json
  toolcatalog serve --host 0.0.0.0 --build /srv/build --site /srv/site --workers 4

Stops with SIGTERM or Ctrl-C after the requests under way are answered.
"""
_DRAIN = 10  # seconds
_SILENCE = 10  # seconds after which a worker that does not answer its supervisor is replaced
_PAUSE = 1.0  # second before a worker that cannot start is tried again
_log = logging.getLogger("toolcatalog.serve")


@click.command("serve", epilog=_EPILOG)
@options.build
@options.site
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port; 0 takes a free one.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes that answer, one for each core.")
@options.keys
def command(build: Path, site: Path, host: str, port: int, workers: int, keys_file: Path | None) -> None:
    """Answer the read API, and the site, from a build."""
    store = open_build(build)
    file = _key_file(keys_file)
    listener = listening.listen(host, port)
    pages = site if (site / "index.html").is_file() else None
    _greet(store, listener, pages)
    if workers > 1:
        del store  # each worker opens its own
        _run_workers(partial(_application, build, file, pages), workers, listener)
    else:
        _start_log()
        signal.signal(signal.SIGTERM, _stop)  # uvicorn drains, then raises the signal again: that is a good end
        uvicorn.Server(_config(create_app(store, keys.KeyRing(file), pages))).run(sockets=[listener])


def _config(app: ASGIApp | Callable[[], ASGIApp], workers: int = 1) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=workers > 1,
        workers=workers,
        http=Protocol,
        loop="auto",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody here asks where a request came from
        timeout_graceful_shutdown=_DRAIN,
        timeout_worker_healthcheck=_SILENCE,
    )


def _run_workers(application: Callable[[], ASGIApp], workers: int, listener: socket.socket) -> None:
    """Run processes that share the listening socket, until this one is told to stop. Raises KeyboardInterrupt where that was by Ctrl-C."""
    _start_log()
    supervisor = _Supervisor(_config(application, workers), sockets=[listener])
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)  # here, not in the workers: who started, who died, who is waited for
    supervisor.run()
    if supervisor.interrupted:
        raise KeyboardInterrupt


class _Supervisor(Multiprocess):
    """uvicorn's: it starts the workers, replaces one that dies or hangs, all in turn on SIGHUP, and drains them on SIGTERM and SIGINT."""

    interrupted = False

    def handle_int(self) -> None:
        self.interrupted = True
        super().handle_int()

    def terminate_all(self) -> None:
        for listener in self.sockets:
            listener.close()  # else a connection made from now on would wait for a worker that never comes
        super().terminate_all()


def _application(build: Path, keys_file: Path, pages: Path | None) -> ASGIApp:
    """What a worker runs, made in its own process. One that cannot start says why, and is tried again: the others answer meanwhile."""
    _start_log()
    try:
        return create_app(open_build(build), keys.KeyRing(keys_file), pages)
    except ToolcatalogError as error:
        _log.error("A worker cannot start: %s", error)
        time.sleep(_PAUSE)
        os._exit(1)  # at once: an interpreter that winds down is alive and answers no health check, and the supervisor would wait for it


def _start_log() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


def _stop(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - what a signal handler is given
    raise SystemExit(0)


def _key_file(keys_file: Path | None) -> Path:
    """The file that was named, which must be there and whole; else the default file, which may come later."""
    file = keys_file or keys.default_file()
    if keys_file or file.exists():
        keys.load(file)
    else:
        terminal.say(f"No keys yet: every API call answers 401 until you run `toolcatalog keys create --project default` ({file}).")
    return file


def _greet(store: Store, listener: socket.socket, pages: Path | None) -> None:
    what = "API and site" if pages else "API (no site was built)"
    terminal.say(f"Serving {what} at {listening.url(listener)} from snapshot {store.digest[:12]}. Stop with Ctrl-C.")
    if store.lacks_model:
        terminal.say("Searching by words only: for meaning, which this build has too, pip install 'toolcatalog[semantic]'.")
