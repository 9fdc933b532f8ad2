"""`toolcatalog stats`"""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click
import orjson

from toolcatalog.cli import options, output
from toolcatalog.store import stats
from toolcatalog.store.open import open_build
from toolcatalog.store.stats import CatalogStats
from toolcatalog.textutils import escape_hidden

_EPILOG = """\b
Examples:
  toolcatalog stats
  toolcatalog stats --build /srv/catalog/build --format json
"""


@click.command("stats", epilog=_EPILOG)
@options.build
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How it is shown.",
)
def command(build: Path, form: str) -> None:
    """Tell what there is in a build, in numbers: of the newest version of each tool."""
    found = stats.compute_stats(open_build(build), output.show_progress)
    if form == "json":
        click.echo(orjson.dumps(asdict(found), option=orjson.OPT_INDENT_2))
    else:
        output.print_lines(
            [(f"{what:24}", "dim"), (said, "")] if what or said else []
            for what, said in _format_rows(found)
        )


def _format_rows(stats: CatalogStats) -> Iterator[tuple[str, str]]:
    yield "Toolkits", f"{stats.toolkits:,}"
    yield "Tools", f"{stats.tools:,} in {stats.versions:,} versions"
    yield "Deprecated", _format_share(stats.deprecated, stats.tools)
    yield "Important", _format_share(stats.important, stats.tools)
    for what, count, most in (
        ("Scopes", stats.scopes, stats.most_scopes),
        ("Tags", stats.tags, stats.most_tags),
    ):
        yield (
            what,
            f"{count:,}{': ' if most else ''}{', '.join(f'{escape_hidden(name)} {tools:,}' for name, tools in most)}",
        )
    yield "Definitions", f"{stats.bytes_whole:,} bytes in all, {stats.bytes_median:,} in the middle"
    for place, (slug, size, tokens) in enumerate(stats.largest):
        yield "" if place else "Largest", f"{slug}  {size:,} bytes, about {tokens:,} tokens"
    for place, (slug, version) in enumerate(stats.newest):
        yield "" if place else "Newest", f"{slug}  {version}"
    yield "", ""
    if stats.sampled < stats.tools:
        yield f"Of {stats.sampled:,} tools,", "evenly spread over all"
    yield "Without authentication", _format_share(stats.no_auth, stats.sampled)
    yield "Parameters described", _format_share(stats.parameters_described, stats.parameters)
    yield "Tokens", f"about {stats.tokens_median:,} in the middle"


def _format_share(part: int, total: int) -> str:
    return f"{part:,} of {total:,} ({part / total:.1%})" if total else "0"
