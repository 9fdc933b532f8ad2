"""`toolcatalog diff`"""

import os
from collections.abc import Iterator
from pathlib import Path

import click
import orjson

from toolcatalog.cli import options
from toolcatalog.diff import report
from toolcatalog.diff.comparison import Comparison
from toolcatalog.history import targets

_EPILOG = """\b
Examples:
  toolcatalog diff main                        the working tree, against a branch
  toolcatalog diff v1.0 HEAD --format markdown
  toolcatalog diff GITHUB_CREATE_ISSUE@20250101_00 GITHUB_CREATE_ISSUE@20250715_00
  toolcatalog diff GITHUB_CREATE_ISSUE         its newest version, against the one before
  toolcatalog diff old/build new/build --format json

Exits with 0 whatever the difference is, and with 2 where it could not be found out.
"""
_COLORS = {
    "unknown": "red",
    "breaking": "red",
    "scope": "yellow",
    "additive": "green",
    "text": "blue",
}


@click.command("diff", epilog=_EPILOG)
@click.argument("old", metavar="A")
@click.argument("new", metavar="[B]", required=False)
@options.catalog
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, a pull request comment, or programs.",
)
def command(old: str, new: str | None, catalog: Path, output_format: str) -> None:
    """Tell what differs between A and B, each change breaking, scope, additive or text, the worst
    first.

    A and B are two versions of a tool of the catalog (SLUG@VERSION; SLUG or SLUG@ is the newest),
    two git revisions (without B: the working tree), or two builds (folders with `current`, or of a
    snapshot). Where a name is two of these, SLUG@, ./FOLDER and refs/heads/BRANCH say which.
    """
    comparison = targets.compare_targets(catalog, old, new)
    if output_format == "json":
        click.echo(orjson.dumps(report.to_values(comparison), option=orjson.OPT_INDENT_2))
    elif output_format == "markdown":
        click.echo(report.render_markdown(comparison), nl=False)
    else:
        click.echo(
            "".join(f"{line}\n" for line in _format_lines(comparison)),
            nl=False,
            color=False if os.environ.get("NO_COLOR") else None,
        )


def _format_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lines of a comparison: toolkits, their tools, and each change."""
    for toolkit, entries in comparison.by_toolkit.items():
        yield click.style(report.display_text(toolkit) or "other files", bold=True)
        for entry in entries:
            name, action = report.format_heading(entry)
            colour = _COLORS[entry.kind]
            reason = f": {report.display_text(entry.reason)}" if entry.reason else ""
            yield f"  {click.style(report.display_text(name), fg=colour)}  {action}{reason}"
            for change in entry.changes:
                location, text = (
                    report.display_text(change.location),
                    report.display_text(change.text, report.MAX_LENGTH),
                )
                kind = click.style(f"{change.kind:<8}", fg=_COLORS[change.kind])
                yield f"    {kind}  {location}  {text}"
        yield ""
    yield report.format_summary(comparison)
