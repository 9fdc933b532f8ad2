"""`toolcatalog serve`"""

import errno
import logging
import os
import signal
import socket
from pathlib import Path
from typing import NoReturn

import click
import uvicorn

from toolcatalog import keys
from toolcatalog.cli import options, terminal
from toolcatalog.errors import UsageError
from toolcatalog.server import create_app
from toolcatalog.store import Store, open_build

_EPILOG = """\b
Examples:
  toolcatalog serve
  toolcatalog serve --port 9000 --keys /etc/toolcatalog/keys.json
  toolcatalog serve --host 0.0.0.0 --build /srv/build --site /srv/site

Stops with SIGTERM or Ctrl-C after the requests under way are answered.
"""
_DRAIN = 10  # seconds
_BACKLOG = 2048  # connections that may wait to be taken


@click.command("serve", epilog=_EPILOG)
@options.build
@options.site
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port; 0 takes a free one.")
@options.keys
def command(build: Path, site: Path, host: str, port: int, keys_file: Path | None) -> None:
    """Answer the read API, and the site, from a build."""
    store = open_build(build)
    ring = _ring(keys_file)
    listener = _listen(host, port)
    pages = site if (site / "index.html").is_file() else None
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(store, ring, pages),
            http="httptools",
            loop="auto",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_DRAIN,
        )
    )
    signal.signal(signal.SIGTERM, _stop)  # uvicorn drains, then raises the signal again: that is a good end
    _greet(store, listener, pages)
    server.run(sockets=[listener])


def _stop(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - what a signal handler is given
    raise SystemExit(0)


def _ring(keys_file: Path | None) -> keys.KeyRing:
    """The keys of a file that was named, which must be there; else of the default file, which may come later."""
    file = keys_file or keys.default_file()
    if keys_file or file.exists():
        keys.load(file)
    else:
        terminal.say(f"No keys yet: every API call answers 401 until you run `toolcatalog keys create --project default` ({file}).")
    return keys.KeyRing(file)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        known = error.errno is not None and error.errno > 0  # errors of name look-up have numbers of their own
        reason = os.strerror(error.errno or 0) if known else error.strerror
        if error.errno == errno.EADDRINUSE:
            reason = "the port is in use"
        raise UsageError(f"Cannot listen on {host}:{port} ({reason}): choose another with --port or --host.") from None


def _greet(store: Store, listener: socket.socket, pages: Path | None) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    what = "API and site" if pages else "API (no site was built)"
    terminal.say(f"Serving {what} at http://{shown}:{port} from snapshot {store.digest[:12]}. Stop with Ctrl-C.")
