"""`toolcatalog stats`"""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click
import orjson

from toolcatalog import figures
from toolcatalog.cli import options, terminal
from toolcatalog.figures import Figures
from toolcatalog.opening import open_build
from toolcatalog.unseen import visible

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
    found = figures.figures(open_build(build), terminal.track)
    if form == "json":
        click.echo(orjson.dumps(asdict(found), option=orjson.OPT_INDENT_2))
    else:
        terminal.show(
            [(f"{what:24}", "dim"), (said, "")] if what or said else []
            for what, said in _rows(found)
        )


def _rows(of: Figures) -> Iterator[tuple[str, str]]:
    yield "Toolkits", f"{of.toolkits:,}"
    yield "Tools", f"{of.tools:,} in {of.versions:,} versions"
    yield "Deprecated", _share(of.deprecated, of.tools)
    yield "Important", _share(of.important, of.tools)
    for what, count, most in (
        ("Scopes", of.scopes, of.most_scopes),
        ("Tags", of.tags, of.most_tags),
    ):
        yield (
            what,
            f"{count:,}{': ' if most else ''}{', '.join(f'{visible(name)} {tools:,}' for name, tools in most)}",
        )
    yield "Definitions", f"{of.bytes_whole:,} bytes in all, {of.bytes_median:,} in the middle"
    for place, (slug, size, tokens) in enumerate(of.largest):
        yield "" if place else "Largest", f"{slug}  {size:,} bytes, about {tokens:,} tokens"
    for place, (slug, version) in enumerate(of.newest):
        yield "" if place else "Newest", f"{slug}  {version}"
    yield "", ""
    if of.sampled < of.tools:
        yield f"Of {of.sampled:,} tools,", "evenly spread over all"
    yield "Without authentication", _share(of.no_auth, of.sampled)
    yield "Parameters described", _share(of.parameters_described, of.parameters)
    yield "Tokens", f"about {of.tokens_median:,} in the middle"


def _share(some: int, whole: int) -> str:
    return f"{some:,} of {whole:,} ({some / whole:.1%})" if whole else "0"
