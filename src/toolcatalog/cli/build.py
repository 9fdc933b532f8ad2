"""`toolcatalog build`"""

from pathlib import Path

import click

from toolcatalog.build import build
from toolcatalog.cli import options, terminal
from toolcatalog.crew import cores

_EPILOG = """\b
Examples:
  toolcatalog build
  toolcatalog build --catalog my-catalog --out /srv/build --no-site
  toolcatalog build --semantic

Exits with 1 where the catalog has problems: all are shown, nothing is built, the last good build stays.
"""


@click.command("build", epilog=_EPILOG)
@options.catalog
@options.out
@options.site
@click.option("--no-site", is_flag=True, help="Make no HTML pages.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Processes to work with.  [default: the number of cores]")
@click.option("--semantic", is_flag=True, help="Make the tools searchable by meaning too; needs the extra `semantic`.")
def command(catalog: Path, out: Path, site: Path, no_site: bool, jobs: int | None, semantic: bool) -> None:
    """Validate the catalog and build its snapshot and site."""
    built = build(catalog, out, None if no_site else site, terminal.track, jobs or cores(), semantic=semantic)
    counts = f"{built.tools:,} tools in {built.tool_versions:,} versions, {built.toolkits:,} toolkits, {built.sessions:,} sessions"
    terminal.say(f"{'Built' if built.changed else 'Nothing has changed:'} {counts}, {built.pages:,} pages.")
    click.echo(built.digest)
