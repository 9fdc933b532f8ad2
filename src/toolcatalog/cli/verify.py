"""`toolcatalog verify`: the old name of `lock --check`."""

from pathlib import Path

import click

from toolcatalog.cli import lock_check, options

_EPILOG = """\b
Example:
  toolcatalog verify --lock agent.lock

Use `toolcatalog lock --check`, which does the same.
"""


@click.command("verify", epilog=_EPILOG, hidden=True)
@options.lock
@options.build
@click.option("--catalog", type=options.FOLDER_TYPE, help="A folder of YAML files instead.")
@click.option("--url", metavar="BASE", help="A server instead.")
@options.output_formats("text", "json")
def command(
    lock_file: Path, build: Path, catalog: Path | None, url: str | None, output_format: str
) -> int:
    """Check a lock file."""
    return lock_check.check_lock_file(lock_file, (build, catalog, url), output_format)
