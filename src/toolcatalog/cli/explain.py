"""`toolcatalog explain`"""

import click
from click.shell_completion import CompletionItem

from toolcatalog import rulebook

_EPILOG = """\b
Examples:
  toolcatalog explain                    all rules, by group
  toolcatalog explain description-short  what it means, why it matters and how to mend it
  toolcatalog explain | grep error

The severity is the usual one; `rules:` in catalog.yaml changes it, but for rules that are errors always.
"""
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def _completed(
    context: click.Context,  # noqa: ARG001
    argument: click.Parameter,  # noqa: ARG001
    begun: str,
) -> list[CompletionItem]:
    return [
        CompletionItem(rule, help=rulebook.summary(rule))
        for rule in rulebook.rules()
        if rule.startswith(begun)
    ]


@click.command("explain", epilog=_EPILOG)
@click.argument("rule", default="", shell_complete=_completed)
def command(rule: str) -> None:
    """Print what a rule means, why it matters and how to mend what it finds; without RULE, list all
    rules.
    """
    if rule:
        title, *lines = rulebook.page(rule).splitlines()
        click.echo("\n".join([click.style(title, bold=True), *map(_line, lines)]))
    else:
        click.echo("\n\n".join(_group(name) for name in rulebook.GROUPS))


def _line(line: str) -> str:
    return click.style(line, bold=True) if line.startswith("## ") else line


def _group(name: str) -> str:
    widest = max(map(len, rulebook.rules()))
    rows = (
        (rule, rulebook.severity(rule), rulebook.summary(rule)) for rule in rulebook.GROUPS[name]
    )
    lines = (
        f"  {rule:{widest}}  {click.style(f'{severity:7}', _COLOURS[severity])}  {summary}"
        for rule, severity, summary in rows
    )
    return "\n".join([click.style(name, bold=True), *lines])
