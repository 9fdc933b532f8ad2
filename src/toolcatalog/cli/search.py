"""`toolcatalog search`"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import orjson

from toolcatalog.cli import options, terminal
from toolcatalog.errors import UsageError
from toolcatalog.explaining import Explanation
from toolcatalog.opening import open_build
from toolcatalog.ranking import CLOSELY
from toolcatalog.store import Filters, Found, Pins, Store

_EPILOG = """\b
Examples:
  toolcatalog search "create an issue on github"
  toolcatalog search "send a message" --toolkit slack --explain
  toolcatalog search refund --format json --limit 3

Ranks as the API does. Exits with 0 where something is found and with 1 where nothing is.
"""


@click.command("search", epilog=_EPILOG)
@click.argument("query", nargs=-1, required=True)
@options.build
@click.option(
    "--limit",
    type=click.IntRange(1, CLOSELY),
    default=10,
    show_default=True,
    help="How many tools are shown.",
)
@click.option(
    "--toolkit",
    "toolkits",
    multiple=True,
    help="Only tools of this toolkit; may be given several times.",
)
@click.option("--explain", is_flag=True, help="Show what each word gave, by field.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How tools are shown.",
)
def command(
    query: tuple[str, ...],
    build: Path,
    limit: int,
    toolkits: tuple[str, ...],
    explain: bool,
    form: str,
) -> int:
    """Find the tools that a sentence asks for, best first."""
    store, text = open_build(build), " ".join(query).strip()
    for toolkit in toolkits:
        if store.toolkit(toolkit) is None:
            raise UsageError(
                f"There is no toolkit {toolkit} in {build}: see its slug in the catalog or "
                "on the site."
            )
    if not text:
        raise UsageError("The query is empty: say what the tool should do.")
    found = store.matching(Filters(query=text, toolkits=toolkits or None), Pins())
    rows = [*_rows(store, text, found, limit)]
    if form == "json":
        click.echo(orjson.dumps([_told(*row) for row in rows], option=orjson.OPT_INDENT_2))
    else:
        for document, why in rows:
            click.echo(f"{document['slug']}  {click.style(document['name'], dim=True)}")
            if explain:
                click.echo("".join(f"    {line}\n" for line in _reasons(why)))
        _summary(store, text, len(found.numbers), len(rows))
    return 0 if rows else 1


def _rows(
    store: Store, query: str, found: Found, limit: int
) -> Iterator[tuple[dict[str, Any], Explanation]]:
    for number in store.page(found, "relevance", True, 0, limit).tolist():
        yield orjson.loads(store.document(number)[0]), store.explain(query, found, number)


def _told(document: Mapping[str, Any], why: Explanation) -> dict[str, Any]:
    parts = {
        "whole": why.whole,
        "sentence": why.sentence,
        "typed": why.typed,
        "name_covered": why.name,
        "toolkit_covered": why.toolkit,
    }
    parts |= (
        {}
        if why.words is None or why.meaning is None
        else {"words": why.words, "meaning": why.meaning}
    )
    words = [{"word": one.spelt, "points": one.points, "fields": one.fields} for one in why.given]
    tool = {"slug": document["slug"], "version": document["version"], "name": document["name"]}
    return {**tool, "score": why.score, "made_of": parts, "words": words}


def _reasons(why: Explanation) -> Iterator[str]:
    for one in why.given:
        fields = ", ".join(
            f"{field} {points:.2f}"
            for field, points in sorted(one.fields.items(), key=lambda item: -item[1])
        )
        yield f"{one.spelt:16} {one.points:6.2f}  {fields}"
    parts = [f"name {why.name:.0%} covered, toolkit {why.toolkit:.0%}: {why.whole:.2f} of the best"]
    parts += [f"best sentence {why.sentence:.2f}"] if why.sentence else []
    if why.meaning is not None:
        yield f"{'words':16} {why.words:6.2f}  {' + '.join(parts)}, on a scale from 0 to 1"
        yield f"{'meaning':16} {why.meaning:6.2f}  on a scale from 0 to 1"
        parts = [f"words and meaning by halves {why.score - why.typed:.2f}"]
    parts += [f"typed {why.typed:.0f}"] if why.typed else []
    yield f"{'score':16} {why.score:6.2f}  {' + '.join(parts)}"


def _summary(store: Store, query: str, found: int, shown: int) -> None:
    if found:
        terminal.say(
            f"{found:,} tools found, the first {shown} shown."
            if shown < found
            else f"{found:,} tools found."
        )
        return
    corrected = store.corrected(query)
    terminal.say(
        f"Nothing found for {query!r}."
        + (f" Did you mean: {corrected}" if corrected else " Try other words.")
    )
