"""`toolcatalog init`: create a repository with a small catalog."""

import shlex
from pathlib import Path

import click

from toolcatalog.cli import options, output
from toolcatalog.errors import UsageError
from toolcatalog.scaffold import starter, templates

_EPILOG = """\b
Examples:
  toolcatalog init my-tools
  toolcatalog init my-tools --title "Our tools"

The folder must be new or empty; a folder with nothing but `.git` is fine too.
"""


@click.command("init", epilog=_EPILOG)
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--title", metavar="TEXT", help="Title of the catalog.  [default: name of DIR]")
def command(folder: Path, title: str | None) -> None:
    """Create a catalog in DIR: an example toolkit, a CI workflow and a README.

    The default is the current folder.
    """
    _require_empty(folder)
    title = title or templates.title_from_slug(folder.resolve().name) or "Tool catalog"
    contents = starter.render_files(title, f"{options.today_compact()}_00")
    templates.write_files(folder, contents)
    for path in sorted(contents):
        if not path.startswith("catalog/.schemas/"):
            click.echo(folder / path)
    enter = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))}, "
    output.print_message(
        f"Next: {enter}`toolcatalog check`, `toolcatalog build`, `toolcatalog serve`."
    )


def _require_empty(folder: Path) -> None:
    """Raise UsageError if a path is not a folder, or has anything but `.git` in it."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name a new or empty one.")
    try:
        names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be read ({error.strerror}): name a new or empty folder."
        ) from None
    others = [name for name in names if name != ".git"]
    if others:
        raise UsageError(
            f"{folder} is not empty, it has {others[0]}: name a new folder, or add to an existing "
            "catalog with `toolcatalog new toolkit SLUG`."
        )
