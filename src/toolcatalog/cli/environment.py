"""Environment variables of options: `--port` of `serve` is `TOOLCATALOG_SERVE_PORT`."""

from collections.abc import Sequence

import click

from toolcatalog.cli import options

PREFIX = "TOOLCATALOG"


def add_common_options(command: click.Command, path: Sequence[str]) -> None:
    """Give every option of a command an environment variable, and the options of every command.

    `path` has the words that lead to the command, such as ["keys", "create"]. Commands of a group
    are included. A second call changes nothing.
    """
    if isinstance(command, click.Group):
        for name, subcommand in command.commands.items():
            add_common_options(subcommand, [*path, name])
        return
    for option in command.params:
        if isinstance(option, click.Option) and not _has_variable(option, path):
            shared = [option.envvar] if isinstance(option.envvar, str) else []
            option.envvar = [variable_name(option, path), *shared]
    names = {name for option in command.params for name in option.opts}
    command.params += [
        option for option in options.make_output_options() if not names & {*option.opts}
    ]


def variable_name(option: click.Option, path: Sequence[str]) -> str:
    """Return the environment variable of an option of a command."""
    long_name = max(option.opts, key=len).removeprefix("--")
    return "_".join([PREFIX, *path, long_name]).replace("-", "_").upper()


def list_variables(option: click.Option) -> list[str]:
    """Return the environment variables of an option, the first one that counts first."""
    return [option.envvar] if isinstance(option.envvar, str) else [*(option.envvar or [])]


def _has_variable(option: click.Option, path: Sequence[str]) -> bool:
    return variable_name(option, path) in list_variables(option) or option.name in {
        "quiet",
        "verbose",
    }
