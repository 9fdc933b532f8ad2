"""`toolcatalog completion`: print the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

_EPILOG = """\b
Examples:
  toolcatalog completion bash >> ~/.bashrc
  toolcatalog completion zsh >> ~/.zshrc
  toolcatalog completion fish > ~/.config/fish/completions/toolcatalog.fish
"""


@click.command("completion", epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(
        kind(context.find_root().command, {}, "toolcatalog", "_TOOLCATALOG_COMPLETE").source()
    )
