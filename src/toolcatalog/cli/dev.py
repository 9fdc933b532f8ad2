"""`toolcatalog dev`"""

from pathlib import Path

import click
import uvicorn

from toolcatalog import developing
from toolcatalog.build import build
from toolcatalog.cli import options, terminal
from toolcatalog.crew import cores

_EPILOG = """\b
Examples:
  toolcatalog dev
  toolcatalog dev --catalog my-catalog --port 9000

Builds and serves the site; after each change of a file it builds again and the browser loads the page again. Problems are shown in the
page, with file and line. Stops with Ctrl-C.
"""


@click.command("dev", epilog=_EPILOG)
@options.catalog
@options.out
@options.site
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="The port.")
def command(catalog: Path, out: Path, site: Path, port: int) -> None:
    """Serve the site while the catalog is edited."""
    digest = build(catalog, out, site, terminal.track, cores()).digest

    def again() -> str:
        return build(catalog, out, site).digest  # by one process: others cannot be forked beside a running server

    app = developing.application(catalog, site, again, digest, terminal.say)
    terminal.say(f"The site is at http://127.0.0.1:{port}/ and follows {catalog}. Stop with Ctrl-C.")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
