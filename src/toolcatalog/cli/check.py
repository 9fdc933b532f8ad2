"""`toolcatalog check`"""

from pathlib import Path

import click
import orjson

from toolcatalog.checking import check
from toolcatalog.cli import options, terminal
from toolcatalog.errors import Problem

_EPILOG = """\b
Examples:
  toolcatalog check
  toolcatalog check --catalog my-catalog --format json

Exits with 0 where all is well and with 1 where there are problems.
"""
_SHOWN = ("path", "line", "column", "rule", "severity", "message", "help")


@click.command("check", epilog=_EPILOG)
@options.catalog
@click.option(
    "--format", "form", type=click.Choice(["full", "concise", "json"]), default="full", show_default=True, help="How problems are shown."
)
def command(catalog: Path, form: str) -> int:
    """Validate the catalog; write nothing."""
    checked = check(catalog, terminal.track)
    if form == "json":
        click.echo(orjson.dumps([_row(problem) for problem in checked.problems], option=orjson.OPT_INDENT_2))
    elif form == "concise":
        for problem in checked.problems:
            click.echo(f"{problem.path}:{problem.line}:{problem.column}: {problem.rule}: {problem.message}")
    elif checked.problems:
        terminal.problems(checked.problems, checked.files)
    else:
        terminal.say(f"All is well in {checked.files:,} files.")
    return 1 if checked.problems else 0


def _row(problem: Problem) -> dict[str, object]:
    return {name: getattr(problem, name) for name in _SHOWN}
