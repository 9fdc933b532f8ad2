"""Options that several commands share, and the current date."""

import glob
from datetime import datetime
from pathlib import Path

import click

_MAX_COMPLETIONS = 1000  # slugs offered at once: more than anybody reads

FOLDER_TYPE = click.Path(file_okay=False, path_type=Path)

catalog = click.option(
    "--catalog",
    type=FOLDER_TYPE,
    default="catalog",
    show_default=True,
    help="The folder of YAML files.",
)
out = click.option(
    "--out", type=FOLDER_TYPE, default="build", show_default=True, help="Where the snapshot goes."
)
build = click.option(
    "--build", type=FOLDER_TYPE, default="build", show_default=True, help="The build to serve."
)
site = click.option(
    "--site", type=FOLDER_TYPE, default="site", show_default=True, help="The folder of HTML pages."
)
keys = click.option(
    "--keys",
    "keys_file",
    # the room `keys` says better what to do about it
    type=click.Path(dir_okay=False, readable=False, path_type=Path),
    envvar="TOOLCATALOG_KEYS",
    show_envvar=True,
    help="The key file.  [default: keys.json in the user's configuration folder]",
)
redis = click.option(
    "--redis",
    metavar="URL",
    envvar="TOOLCATALOG_REDIS",
    show_envvar=True,
    help="Redis that several servers share: redis://host:port, rediss:// with TLS.",
)
lock = click.option(
    "--lock",
    "lock_file",
    type=click.Path(dir_okay=False, path_type=Path),
    default="toolcatalog.lock",
    show_default=True,
    help="The lock file.",
)


def complete_slugs(
    context: click.Context,
    parameter: click.Parameter,  # noqa: ARG001 - the signature that click wants
    incomplete: str,
) -> list[str]:
    """Return the slugs of tools that begin with a text, for shell completion.

    They come from the names of folders, so this is fast in any catalog.
    """
    folder = Path(context.params.get("catalog") or "catalog") / "toolkits"
    return sorted(
        path.name for path in folder.glob(f"*/{glob.escape(incomplete.upper())}*") if path.is_dir()
    )[:_MAX_COMPLETIONS]


def today_compact() -> str:
    """Return the current date as the beginning of a version: 20251027."""
    return f"{datetime.now().astimezone():%Y%m%d}"


def today_iso() -> str:
    """Return the current date in ISO format: 2025-10-27."""
    return f"{datetime.now().astimezone():%Y-%m-%d}"
