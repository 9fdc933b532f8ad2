"""`toolcatalog diff`"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolcatalog.cli import options

if TYPE_CHECKING:
    from toolcatalog.diff.comparison import Comparison

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
@click.argument("before", metavar="A")
@click.argument("after", metavar="[B]", required=False)
@options.catalog
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="For a terminal, a pull request comment, or programs.",
)
def command(before: str, after: str | None, catalog: Path, form: str) -> None:
    """Tell what differs between A and B, each change breaking, scope, additive or text, the worst
    first.

    A and B are two versions of a tool of the catalog (SLUG@VERSION; SLUG or SLUG@ is the newest),
    two git revisions (without B: the working tree), or two builds (folders with `current`, or of a
    snapshot). Where a name is two of these, SLUG@, ./FOLDER and refs/heads/BRANCH say which.
    """
    from toolcatalog.diff import report  # noqa: PLC0415 - not for `--help`
    from toolcatalog.history import targets  # noqa: PLC0415

    found = targets.compare_targets(catalog, before, after)
    if form == "json":
        import orjson  # noqa: PLC0415

        click.echo(orjson.dumps(report.to_values(found), option=orjson.OPT_INDENT_2))
    elif form == "markdown":
        click.echo(report.render_markdown(found), nl=False)
    else:
        click.echo(
            "".join(f"{line}\n" for line in _format_lines(found)),
            nl=False,
            color=False if os.environ.get("NO_COLOR") else None,
        )


def _format_lines(comparison: "Comparison") -> Iterator[str]:
    """The comparison for a person: toolkits, what happened in them, and each change."""
    from toolcatalog.diff import report  # noqa: PLC0415

    for toolkit, entries in comparison.by_toolkit.items():
        yield click.style(report.display_text(toolkit) or "other files", bold=True)
        for entry in entries:
            name, what = report.format_heading(entry)
            colour = _COLORS[entry.kind]
            why = f": {report.display_text(entry.reason)}" if entry.reason else ""
            yield f"  {click.style(report.display_text(name), fg=colour)}  {what}{why}"
            for change in entry.changes:
                place, said = (
                    report.display_text(change.place),
                    report.display_text(change.what, report.MAX_LENGTH),
                )
                yield f"    {click.style(f'{change.kind:<8}', fg=_COLORS[change.kind])}  {place}  {said}"
        yield ""
    yield report.format_summary(comparison)
