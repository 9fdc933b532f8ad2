"""`toolcatalog search`: search the tools of a build."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import orjson

from toolcatalog.cli import options, output
from toolcatalog.errors import UsageError
from toolcatalog.search.query.explain import Explanation
from toolcatalog.search.query.ranking import RERANK_LIMIT
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Filters, SearchResult, Store, VersionPins
from toolcatalog.textutils import pluralize

_EPILOG = """\b
Examples:
  toolcatalog search "create an issue on github"
  toolcatalog search "send a message" --toolkit slack,discord --explain
  toolcatalog search refund --format json --limit 3

Exits with 1 if no tool is found.
"""


@click.command("search", epilog=_EPILOG)
@click.argument("query", nargs=-1, required=True)
@options.build
@click.option(
    "--limit",
    type=click.IntRange(1, RERANK_LIMIT),
    default=10,
    show_default=True,
    help="Number of tools to print.",
)
@options.toolkits("Search in this toolkit only")
@click.option("--explain", is_flag=True, help="Show the score of each word, by field.")
@options.output_formats("text", "json")
def command(
    query: tuple[str, ...],
    build: Path,
    limit: int,
    toolkits: tuple[str, ...],
    explain: bool,
    output_format: str,
) -> int:
    """Find tools by a description of a task, best first. The ranking is that of the API."""
    store, text = open_build(build), " ".join(query).strip()
    for toolkit in toolkits:
        if store.get_toolkit_versions(toolkit) is None:
            raise UsageError(
                f"There is no toolkit {toolkit} in {build}: see its slug in the catalog or "
                "on the site."
            )
    if not text:
        raise UsageError("The query is empty: say what the tool should do.")
    result = store.search(Filters(query=text, toolkits=toolkits or None), VersionPins())
    rows = [*_search_rows(store, text, result, limit)]
    if output_format == "json":
        click.echo(
            orjson.dumps([_explanation_to_dict(*row) for row in rows], option=orjson.OPT_INDENT_2)
        )
    else:
        for document, explanation in rows:
            lines = [[(document["slug"], ""), ("  ", ""), (document["name"], "dim")]]
            if explain:
                lines += [[(f"    {line}", "")] for line in _format_explanation(explanation)]
                lines.append([])
            output.print_lines(lines)
        _print_summary(store, text, result.total, len(rows))
    return 0 if rows else 1


def _search_rows(
    store: Store, query: str, result: SearchResult, limit: int
) -> Iterator[tuple[dict[str, Any], Explanation]]:
    for number in store.select_page(result, "relevance", True, 0, limit).tolist():
        yield orjson.loads(store.read_document(number)[0]), store.explain(query, result, number)


def _explanation_to_dict(document: Mapping[str, Any], explanation: Explanation) -> dict[str, Any]:
    parts = {
        "whole": explanation.query_score,
        "sentence": explanation.sentence_score,
        "typed": explanation.slug_bonus,
        "name_covered": explanation.name_coverage,
        "toolkit_covered": explanation.toolkit_coverage,
        "action": explanation.action_factor,
        "labels": explanation.label_factor,
    }
    parts |= (
        {}
        if explanation.text_score is None or explanation.semantic_score is None
        else {"words": explanation.text_score, "meaning": explanation.semantic_score}
    )
    if explanation.replaced_score is not None:
        parts["replaced"] = explanation.replaced_score
    words = [
        {
            "word": contribution.spelling,
            "points": contribution.points,
            "fields": contribution.fields,
        }
        for contribution in explanation.contributions
    ]
    tool = {"slug": document["slug"], "version": document["version"], "name": document["name"]}
    return {**tool, "score": explanation.score, "made_of": parts, "words": words}


def _format_explanation(explanation: Explanation) -> Iterator[str]:
    for contribution in explanation.contributions:
        fields = ", ".join(
            f"{field} {points:.2f}"
            for field, points in sorted(contribution.fields.items(), key=lambda item: -item[1])
        )
        yield f"{contribution.spelling:16} {contribution.points:6.2f}  {fields}"
    action = "the action, " if explanation.action_factor > 1 else ""
    parts = [
        (
            f"name {explanation.name_coverage:.0%} covered, {action}"
            f"toolkit {explanation.toolkit_coverage:.0%}: {explanation.query_score:.2f} of the best"
        )
    ]
    parts += (
        [f"best sentence {explanation.sentence_score:.2f}"] if explanation.sentence_score else []
    )
    if explanation.semantic_score is not None:
        yield (
            f"{'words':16} {explanation.text_score:6.2f}  {' + '.join(parts)}, on a scale from 0"
            " to 1"
        )
        yield f"{'meaning':16} {explanation.semantic_score:6.2f}  on a scale from 0 to 1"
        score = (explanation.score - explanation.slug_bonus) / explanation.label_factor
        parts = [f"words and meaning by halves {score:.2f}"]
    if explanation.label_factor != 1:
        label = "deprecated" if explanation.label_factor < 1 else "important"
        parts[-1] += f", times {explanation.label_factor:.2f} ({label})"
    if explanation.replaced_score is not None:
        parts[-1] += f"; {explanation.replaced_score:.2f} as it replaces a deprecated tool"
    parts += [f"typed {explanation.slug_bonus:.0f}"] if explanation.slug_bonus else []
    yield f"{'score':16} {explanation.score:6.2f}  {' + '.join(parts)}"


def _print_summary(store: Store, query: str, total: int, shown_count: int) -> None:
    if total:
        output.print_message(
            f"{pluralize(total, 'tool')} found, the first {shown_count} shown."
            if shown_count < total
            else f"{pluralize(total, 'tool')} found."
        )
        return
    corrected = store.correct_query(query)
    output.print_message(
        f"Nothing found for {query!r}."
        + (f" Did you mean: {corrected}" if corrected else " Try other words.")
    )
