"""`toolcatalog stats`: print numbers about a build."""

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
@options.output_formats("text", "json")
def command(build: Path, output_format: str) -> None:
    """Show statistics of a build: the newest version of each tool counts."""
    catalog_stats = stats.compute_stats(open_build(build), output.show_progress)
    if output_format == "json":
        click.echo(orjson.dumps(asdict(catalog_stats), option=orjson.OPT_INDENT_2))
    else:
        output.print_lines(
            [(f"{label:24}", "dim"), (text, "")] if label or text else []
            for label, text in _format_rows(catalog_stats)
        )


def _format_rows(stats: CatalogStats) -> Iterator[tuple[str, str]]:
    yield "Toolkits", f"{stats.toolkits:,}"
    yield "Tools", f"{stats.tools:,} in {stats.versions:,} versions"
    yield "Deprecated", _format_share(stats.deprecated, stats.tools)
    yield "Important", _format_share(stats.important, stats.tools)
    for label, count, most_common in (
        ("Scopes", stats.scopes, stats.most_scopes),
        ("Tags", stats.tags, stats.most_tags),
    ):
        examples = ", ".join(f"{escape_hidden(name)} {tools:,}" for name, tools in most_common)
        yield label, f"{count:,}: {examples}" if examples else f"{count:,}"
    total, median = stats.bytes_whole, stats.bytes_median
    yield "Definitions", f"{total:,} bytes in total, median {median:,}"
    for index, (slug, size, tokens) in enumerate(stats.largest):
        yield "" if index else "Largest", f"{slug}  {size:,} bytes, about {tokens:,} tokens"
    for index, (slug, version) in enumerate(stats.newest):
        yield "" if index else "Newest", f"{slug}  {version}"
    yield "", ""
    if stats.sampled < stats.tools:
        yield f"Of {stats.sampled:,} tools,", "evenly spread over all"
    yield "Without authentication", _format_share(stats.no_auth, stats.sampled)
    yield "Parameters described", _format_share(stats.parameters_described, stats.parameters)
    yield "Tokens", f"median about {stats.tokens_median:,}"


def _format_share(part: int, total: int) -> str:
    return f"{part:,} of {total:,} ({part / total:.1%})" if total else "0"
