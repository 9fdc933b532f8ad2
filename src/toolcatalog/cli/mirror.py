"""`toolcatalog mirror`"""

import time
from pathlib import Path
from typing import Any

import click

from toolcatalog.cli import options, output
from toolcatalog.server import static_mirror
from toolcatalog.store.open import open_build

_ALL_NAMES = ("all",)
_EPILOG = """\b
Examples:
  toolcatalog mirror /srv/mirror
  toolcatalog mirror /srv/mirror --build /srv/catalog/build --toolkits github,slack
  toolcatalog mirror /srv/mirror --sessions trs_playground,trs_support_desk

A mirror asks for no key: whoever reaches its host reads all of it. Sessions belong to projects, so
none is in it unless it is named. docs/mirror.md has the settings of nginx, object stores and CDNs.
"""


class _NamesType(click.ParamType[tuple[str, ...]]):
    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        selected = (
            tuple(name.strip() for name in value.split(",") if name.strip())
            if isinstance(value, str)
            else value
        )
        if not selected:
            self.fail(
                "nothing is named: write names with commas between, or leave the option out",
                param,
                ctx,
            )
        return tuple(selected)


@click.command("mirror", epilog=_EPILOG)
@click.argument("to", metavar="DIR", type=options.FOLDER_TYPE)
@options.build
@click.option(
    "--toolkits", type=_NamesType(), metavar="A,B", help="Only these toolkits.  [default: all]"
)
@click.option(
    "--sessions",
    type=_NamesType(),
    metavar="A,B",
    help="These sessions too; `all` for all of them.  [default: none]",
)
def command(
    to: Path, build: Path, toolkits: tuple[str, ...] | None, sessions: tuple[str, ...] | None
) -> None:
    """Write a build as files from which any static host answers the read API."""
    store = open_build(build)
    selection = static_mirror.make_selection(
        store, toolkits, None if sessions == _ALL_NAMES else sessions or ()
    )
    result = static_mirror.update_mirror(
        store, to, selection, int(time.time()), output.show_progress
    )
    subject = (
        f"{'all' if selection.toolkits is None else len(selection.toolkits)} toolkits and"
        f" {len(selection.sessions)} sessions"
    )
    output.print_message(
        f"{'Mirrored' if result.changed else 'Nothing has changed:'} {subject} of snapshot "
        f"{store.digest[:12]} in {to}."
    )
    output.print_message("It asks for no key: whoever reaches its host reads all of it.")
    click.echo(result.tree)
