"""`toolcatalog diff`: compare versions, revisions or builds."""

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
  toolcatalog diff origin/main --fail-on breaking

Exits with 1 if --fail-on finds a change, and with 2 if the sides cannot be compared.
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
@options.output_formats("text", "markdown", "json")
@click.option(
    "--fail-on",
    type=click.Choice(["breaking", "any"]),
    help="Exit with 1 if there is a breaking change, or any change.",
)
def command(
    old: str, new: str | None, catalog: Path, output_format: str, fail_on: str | None
) -> int:
    """Compare A with B. Each change is breaking, scope, additive or text; the worst come first.

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
    return 1 if _fails(comparison, fail_on) else 0


def _fails(comparison: Comparison, fail_on: str | None) -> bool:
    """Return whether a comparison has changes of a kind; a side that cannot be read breaks."""
    if fail_on is None:
        return False
    failing = {"breaking", "unknown"}
    return any(fail_on == "any" or entry.kind in failing for entry in comparison.entries)


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
