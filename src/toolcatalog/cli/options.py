"""Options that several commands share, with the same name, default and help everywhere."""

from pathlib import Path

import click

FOLDER = click.Path(file_okay=False, path_type=Path)

catalog = click.option("--catalog", type=FOLDER, default="catalog", show_default=True, help="The folder of YAML files.")
out = click.option("--out", type=FOLDER, default="build", show_default=True, help="Where the snapshot goes.")
build = click.option("--build", type=FOLDER, default="build", show_default=True, help="The build to serve.")
site = click.option("--site", type=FOLDER, default="site", show_default=True, help="The folder of HTML pages.")
keys = click.option(
    "--keys",
    "keys_file",
    type=click.Path(dir_okay=False, readable=False, path_type=Path),  # the room `keys` says better what to do about it
    envvar="TOOLCATALOG_KEYS",
    show_envvar=True,
    help="The key file.  [default: keys.json in the user's configuration folder]",
)
