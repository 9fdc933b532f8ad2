"""Options that several commands share, and the current date."""

import glob
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from toolcatalog import names
from toolcatalog.cli import output
from toolcatalog.system.log_format import TextFormatter

_MAX_COMPLETIONS = 1000  # slugs offered at once: more than anyone reads
_LOG_FORMAT = "%(levelname)s %(name)s: %(message)s"

FOLDER_TYPE = click.Path(file_okay=False, path_type=Path)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _split_lists(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    """Return the names in values such as `a,b`, each once."""
    selected = [name.strip() for value in values for name in value.split(",") if name.strip()]
    if values and not selected:
        raise click.BadParameter("no name is given: leave the option out", context, parameter)
    return tuple(dict.fromkeys(selected))


def _parse_toolkits(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> tuple[str, ...]:
    """Return the toolkit slugs of a repeatable option."""
    slugs = _split_lists(context, parameter, values)
    for slug in slugs:
        if not names.is_valid(names.TOOLKIT_SLUG, slug):
            raise click.BadParameter(
                f"{slug!r} is not a toolkit slug: write lower-case slugs with commas between, as "
                "in github,slack",
                context,
                parameter,
            )
    return slugs


def name_list(*flags: str, help: str, metavar: str = "NAME", **attributes: Any) -> Decorator:
    """Return a repeatable option of names, which also accepts several with commas between.

    `attributes` are passed to `click.option`.
    """
    return click.option(
        *flags,
        **attributes,
        multiple=True,
        callback=_split_lists,
        metavar=f"{metavar}[,{metavar}]",
        help=f"{help}; repeatable.",
    )


def toolkits(help: str) -> Decorator:
    """Return the option `--toolkit`; its value is a tuple of slugs, empty if it is not given."""
    return click.option(
        "--toolkit",
        "toolkits",
        multiple=True,
        callback=_parse_toolkits,
        metavar="SLUG[,SLUG]",
        help=f"{help}; repeatable.",
    )


def output_formats(*formats: str) -> Decorator:
    """Return the option `--format`; the first format is the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="The output format.",
    )


catalog = click.option(
    "--catalog",
    type=FOLDER_TYPE,
    default="catalog",
    show_default=True,
    help="The catalog: a folder of YAML files.",
)
out = click.option(
    "--out",
    type=FOLDER_TYPE,
    default="build",
    show_default=True,
    help="The folder to write snapshots to.",
)
build = click.option(
    "--build", type=FOLDER_TYPE, default="build", show_default=True, help="The build to read."
)
site = click.option(
    "--site", type=FOLDER_TYPE, default="site", show_default=True, help="The folder of HTML pages."
)
host = click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on."
)
port = click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="The port to listen on; 0 selects a free port.",
)
keys = click.option(
    "--keys",
    "keys_file",
    # `toolcatalog.keys` reports better what to do about an unreadable file
    type=click.Path(dir_okay=False, readable=False, path_type=Path),
    envvar="TOOLCATALOG_KEYS",
    help="The key file, or TOOLCATALOG_KEYS.  [default: keys.json in the configuration folder]",
)
redis = click.option(
    "--redis",
    metavar="URL",
    envvar="TOOLCATALOG_REDIS",
    help="Redis that several servers share, or TOOLCATALOG_REDIS: redis://HOST:PORT.",
)
lock = click.option(
    "--lock",
    "lock_file",
    type=click.Path(dir_okay=False, path_type=Path),
    default="toolcatalog.lock",
    show_default=True,
    help="The lock file.",
)


def _set_quiet(
    context: click.Context,  # noqa: ARG001 - the signature that click wants
    parameter: click.Parameter,  # noqa: ARG001
    value: bool,
) -> None:
    if value:
        output.set_quiet(quiet=True)


def _set_verbose(
    context: click.Context,
    parameter: click.Parameter,  # noqa: ARG001 - the signature that click wants
    value: bool,
) -> None:
    if value and "toolcatalog.verbose" not in context.meta:
        context.meta["toolcatalog.verbose"] = True
        handler = logging.StreamHandler()
        handler.setFormatter(TextFormatter(_LOG_FORMAT))
        logging.basicConfig(handlers=[handler])
        logging.getLogger("toolcatalog").setLevel(logging.DEBUG)


def make_output_options() -> list[click.Option]:
    """Return the options that every command has: `--quiet` and `--verbose`."""
    return [
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=_set_quiet,
            envvar="TOOLCATALOG_QUIET",
            help="Print results and errors only.",
        ),
        click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            expose_value=False,
            callback=_set_verbose,
            envvar="TOOLCATALOG_VERBOSE",
            help="Print what the program does, with times, and the traceback of an error.",
        ),
    ]


def complete_slugs(
    context: click.Context,
    parameter: click.Parameter,  # noqa: ARG001 - the signature that click wants
    incomplete: str,
) -> list[str]:
    """Return the slugs of tools that start with a text, for shell completion.

    They come from the names of folders, so this is fast in any catalog.
    """
    folder = Path(context.params.get("catalog") or "catalog") / "toolkits"
    return sorted(
        path.name for path in folder.glob(f"*/{glob.escape(incomplete.upper())}*") if path.is_dir()
    )[:_MAX_COMPLETIONS]


def today_compact() -> str:
    """Return the current date as the first part of a version: 20251027."""
    return f"{datetime.now().astimezone():%Y%m%d}"


def today_iso() -> str:
    """Return the current date in ISO format: 2025-10-27."""
    return f"{datetime.now().astimezone():%Y-%m-%d}"
