"""`toolcatalog bump`: create the next version of a tool."""

import os
import sys
from pathlib import Path

import click

from toolcatalog import versions
from toolcatalog.catalog import folder
from toolcatalog.catalog.folder import ToolFolder
from toolcatalog.cli import options, output
from toolcatalog.errors import Finding, UsageError, write_error
from toolcatalog.system import files

_EPILOG = """\b
Examples:
  toolcatalog bump GITHUB_CREATE_ISSUE
  toolcatalog bump GITHUB_CREATE_ISSUE --version 20251027_00

The new file is a copy of the newest version; a new version of a deprecated tool stays deprecated.
Its path is printed to standard output. At a terminal, the file is opened in the editor of VISUAL or
EDITOR.
"""


@click.command("bump", epilog=_EPILOG)
@click.argument("slug", shell_complete=options.complete_slugs)
@options.catalog
@click.option(
    "--version",
    default="",
    metavar="V",
    help="The new version.  [default: today's date and the next free number]",
)
def command(slug: str, catalog: Path, version: str) -> None:
    """Create the next version of the tool SLUG as a copy of its newest version."""
    tool = folder.get_tool(catalog, slug)
    previous, new_version = tool.versions[-1], _choose_version(slug, tool, version)
    data = folder.read_file(catalog, tool.version_path(previous))
    if isinstance(data, Finding):
        raise UsageError(
            f"{catalog / tool.version_path(previous)}: {data.message}. Try `toolcatalog check`."
        )
    file = catalog / tool.version_path(new_version)
    files.require_no_links(file, catalog)
    try:
        files.write_if_changed(file, data)
    except OSError as error:
        raise write_error(file, error) from None
    output.print_message(f"Created {slug} {new_version} from {previous}:")
    click.echo(file)
    if sys.stdin.isatty() and (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        click.edit(filename=str(file))
    output.print_message(
        f"Next: edit it. `toolcatalog diff {slug}@{previous} {slug}@{new_version}` shows whom it "
        "concerns; then `toolcatalog check`, `git add`."
    )


def _choose_version(slug: str, tool: ToolFolder, requested: str) -> str:
    """Return the version to create. Raises UsageError if it is invalid or not the newest."""
    newest = tool.versions[-1]
    if requested and not versions.is_version(requested):
        raise UsageError(
            f"`{requested}` is not a version: it needs eight digits, `_` and two digits, such as "
            f"{options.today_compact()}_00."
        )
    if requested and requested <= newest:
        raise UsageError(
            f"{slug} has version {newest}, and {requested} is not newer: leave --version out, or "
            "give a newer one."
        )
    version = requested or versions.next_version(newest, options.today_compact())
    if version is None:
        raise UsageError(f"No version is newer than {newest} of {slug}: rename that file first.")
    return version
