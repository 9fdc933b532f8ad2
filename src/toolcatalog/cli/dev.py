"""`toolcatalog dev`: serve the site and rebuild it on each change."""

from pathlib import Path

import click
import uvicorn

from toolcatalog.build.pipeline import build
from toolcatalog.cli import listeners, options, output
from toolcatalog.server import dev
from toolcatalog.system.processes import available_cpus

_EPILOG = """\b
Examples:
  toolcatalog dev
  toolcatalog dev --catalog my-catalog -p 9000

After each change of a file the site is rebuilt and the browser reloads the page. Problems are shown
in the page, with file and line. Ctrl-C stops it.
"""


@click.command("dev", epilog=_EPILOG)
@options.catalog
@options.out
@options.site
@options.host
@options.port
def command(catalog: Path, out: Path, site: Path, host: str, port: int) -> None:
    """Serve the site, and rebuild it when the catalog changes."""
    listener = listeners.open_listener(host, port)  # before the long work
    digest = build(catalog, out, site, output.show_progress, available_cpus()).digest

    def rebuild() -> str:
        # by one process: others cannot be forked next to a running server
        return build(catalog, out, site).digest

    app = dev.create_dev_app(catalog, site, rebuild, digest, output.print_message, host)
    output.print_message(
        f"The site is at {listeners.listener_url(listener)}/ and follows {catalog}. Stop with"
        " Ctrl-C."
    )
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=1, ws="none"
    )
    uvicorn.Server(config).run(sockets=[listener])
