"""`toolcatalog explain`: print the page of a rule."""

import click
from click.shell_completion import CompletionItem

from toolcatalog.validation import rule_pages

_EPILOG = """\b
Examples:
  toolcatalog explain                    all rules, by group
  toolcatalog explain description-short  what it means, why it matters and how to fix it
  toolcatalog explain | grep error

The severity is the default; `rules:` in catalog.yaml changes it, except for rules that are always
errors.
"""
_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}


def _complete_rule(
    context: click.Context,  # noqa: ARG001
    argument: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[CompletionItem]:
    return [
        CompletionItem(rule, help=rule_pages.load_summary(rule))
        for rule in rule_pages.rule_ids()
        if rule.startswith(incomplete)
    ]


@click.command("explain", epilog=_EPILOG)
@click.argument("rule", default="", shell_complete=_complete_rule)
def command(rule: str) -> None:
    """Explain a rule: what it means, why it matters and how to fix its findings.

    Without RULE, list all rules.
    """
    if rule:
        title, *lines = rule_pages.load_page(rule).splitlines()
        click.echo("\n".join([click.style(title, bold=True), *map(_style_line, lines)]))
    else:
        click.echo("\n\n".join(_format_group(name) for name in rule_pages.GROUPS))


def _style_line(line: str) -> str:
    return click.style(line, bold=True) if line.startswith("## ") else line


def _format_group(name: str) -> str:
    widest = max(map(len, rule_pages.rule_ids()))
    rows = (
        (rule, rule_pages.default_severity(rule), rule_pages.load_summary(rule))
        for rule in rule_pages.GROUPS[name]
    )
    lines = (
        f"  {rule:{widest}}  {click.style(f'{severity:7}', _COLORS[severity])}  {summary}"
        for rule, severity, summary in rows
    )
    return "\n".join([click.style(name, bold=True), *lines])
