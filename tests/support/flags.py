"""The flags of a command and its subcommands."""

import click


def flags(command: click.Command) -> set[str]:
    """All long flags of a command and its subcommands, but those that click gives to every
    command.
    """
    if isinstance(command, click.Group):
        context = click.Context(command)
        inner = (command.get_command(context, name) for name in command.list_commands(context))
        return set().union(*(flags(item) for item in inner if item))
    return {
        flag
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for flag in parameter.opts
        if flag.startswith("--")
    }
