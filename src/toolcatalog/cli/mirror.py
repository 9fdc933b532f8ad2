"""`toolcatalog mirror`: write the API's responses as files for a static host."""

import time
from pathlib import Path

import click

from toolcatalog.cli import options, output
from toolcatalog.mirror import folder, tree
from toolcatalog.store.open import open_build

_ALL_NAMES = ("all",)
_EPILOG = """\b
Examples:
  toolcatalog mirror /srv/mirror
  toolcatalog mirror /srv/mirror --build /srv/catalog/build --toolkit github,slack
  toolcatalog mirror /srv/mirror --session trs_playground,trs_support_desk

A mirror needs no key: anyone who reaches its host can read all of it. Sessions belong to projects,
so a mirror has only the sessions that are named. The documentation has settings for nginx, object
stores and CDNs.
"""


@click.command("mirror", epilog=_EPILOG)
@click.argument("to", metavar="DIR", type=options.FOLDER_TYPE)
@options.build
@options.toolkits("Only this toolkit")
@options.name_list(
    "--session",
    "sessions",
    metavar="ID",
    help="Include this session; `all` includes all",
)
def command(to: Path, build: Path, toolkits: tuple[str, ...], sessions: tuple[str, ...]) -> None:
    """Write a build as files from which any static host answers the read API."""
    store = open_build(build)
    selection = tree.make_selection(
        store, toolkits or None, None if sessions == _ALL_NAMES else sessions
    )
    result = folder.update_mirror(store, to, selection, int(time.time()), output.show_progress)
    subject = (
        f"{'all' if selection.toolkits is None else len(selection.toolkits)} toolkits and"
        f" {len(selection.sessions)} sessions"
    )
    output.print_message(
        f"{'Mirrored' if result.changed else 'Nothing has changed:'} {subject} of snapshot "
        f"{store.digest[:12]} in {to}."
    )
    output.print_message("It needs no key: anyone who reaches its host can read all of it.")
    click.echo(result.tree)
