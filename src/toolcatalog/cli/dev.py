"""`toolcatalog dev`"""

from pathlib import Path

import click
import uvicorn

from toolcatalog.build.pipeline import build
from toolcatalog.cli import options, output, serve_options
from toolcatalog.server import dev
from toolcatalog.system.processes import available_cpus

_EPILOG = """\b
Examples:
  toolcatalog dev
  toolcatalog dev --catalog my-catalog --port 9000

Builds and serves the site; after each change of a file it builds again and the browser loads the
page again. Problems are shown in the page, with file and line. Stops with Ctrl-C.
"""


@click.command("dev", epilog=_EPILOG)
@options.catalog
@options.out
@options.site
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="The port; 0 takes a free one.",
)
def command(catalog: Path, out: Path, site: Path, host: str, port: int) -> None:
    """Serve the site while the catalog is edited."""
    listener = serve_options.open_listener(host, port)  # before the long work
    digest = build(catalog, out, site, output.show_progress, available_cpus()).digest

    def rebuild() -> str:
        # by one process: others cannot be forked beside a running server
        return build(catalog, out, site).digest

    app = dev.create_dev_app(catalog, site, rebuild, digest, output.print_message, host)
    output.print_message(
        f"The site is at {serve_options.listener_url(listener)}/ and follows {catalog}. Stop with"
        " Ctrl-C."
    )
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])
