"""`toolcatalog export`: print tools in the format of a model provider."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import orjson

from toolcatalog import encoding
from toolcatalog.cli import options, output
from toolcatalog.cli.selection import select_tool_ids
from toolcatalog.errors import UsageError
from toolcatalog.exports import definitions, providers
from toolcatalog.search import opensearch
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Store

_EPILOG = """\b
Examples:
  toolcatalog export openai GITHUB_CREATE_ISSUE SLACK_SEND_MESSAGE > tools.json
  toolcatalog export anthropic --toolkit github
  toolcatalog export anthropic --toolkit github --defer
  toolcatalog export gemini GITHUB_CREATE_ISSUE
  toolcatalog export mcp --session trs_demo
  toolcatalog export json-schema GITHUB_CREATE_ISSUE@20250715_00
  toolcatalog export index --to opensearch > tools.ndjson
  toolcatalog export index --to opensearch --mapping > index.json

Names and descriptions that are too long for the provider are shortened, and reported on standard
error. Exits with 1 if a tool is left out because the provider would reject it.
"""


@click.command("export", epilog=_EPILOG)
@click.argument(
    "output_format",
    metavar="FORMAT",
    type=click.Choice([*definitions.EXPORT_FORMATS, "index"]),
)
@click.argument("slugs", metavar="[SLUG[@V]]...", nargs=-1)
@options.toolkits("All tools of this toolkit")
@click.option(
    "--session",
    metavar="ID",
    default="",
    help="The meta tools of this session.",
)
@click.option(
    "--version",
    "at_version",
    metavar="V",
    default="",
    help="The newest versions up to this one.  [default: the newest]",
)
@click.option(
    "--defer",
    is_flag=True,
    help="For `anthropic`: defer all tools, and add the tool that searches them.",
)
@click.option(
    "--to",
    "engine",
    type=click.Choice(["opensearch"]),
    help="For `index`: the search engine, also for Elasticsearch.",
)
@click.option("--mapping", is_flag=True, help="For `index`: print the body that creates the index.")
@click.option(
    "--index-name",
    metavar="NAME",
    default="tools",
    show_default=True,
    help="For `index`: the name of the index.",
)
@options.build
def command(  # noqa: PLR0913 - its flags
    output_format: str,
    slugs: tuple[str, ...],
    toolkits: tuple[str, ...],
    session: str,
    at_version: str,
    *,
    defer: bool,
    engine: str | None,
    mapping: bool,
    index_name: str,
    build: Path,
) -> int:
    """Print tools in the format of a model provider or of MCP: a JSON array on standard output.

    FORMAT is openai, anthropic, openai-responses, gemini, bedrock, mcp or json-schema; or `index`,
    which prints the newest version of every tool as bulk requests of a search engine (NDJSON).

    The tools of a session are its meta tools, which find and call the tools that it may use.
    """
    if output_format == "index":
        if not engine or session or defer:
            raise UsageError(
                "An index needs its engine, and has no sessions: `toolcatalog export index --to "
                "opensearch`."
            )
        return _print_index(build, index_name, slugs, toolkits, at_version, mapping=mapping)
    if engine or mapping:
        raise UsageError("--to and --mapping are for `export index`.")
    if not (slugs or toolkits or session):
        raise UsageError(
            "Name the tools: their slugs, or --toolkit SLUG, or --session ID. A whole "
            "catalog is more than a model can read."
        )
    if session and (slugs or toolkits or at_version):
        raise UsageError(
            "A session has its own tools: give --session alone, or slugs and --toolkit without it."
        )
    if defer and output_format != "anthropic":
        raise UsageError("--defer is for the tool search of Anthropic: use it with `anthropic`.")
    store = open_build(build)
    documents = (
        _read_session_documents(store, session)
        if session
        else [
            store.read_document(tool_id)[0]
            for tool_id in select_tool_ids(store, slugs, toolkits, at_version)
        ]
    )
    return _print_definitions(output_format, documents, defer=defer)


def _print_index(
    build: Path,
    name: str,
    slugs: Sequence[str],
    toolkits: Sequence[str],
    at_version: str,
    *,
    mapping: bool,
) -> int:
    """Print the body that creates the index, or a bulk request for its tools."""
    if mapping:
        click.echo(json.dumps(opensearch.build_index_body(), indent=2))
        return 0
    store = open_build(build)
    toolkits = toolkits if slugs or toolkits else store.list_toolkits()
    for tool_id in select_tool_ids(store, slugs, toolkits, at_version):
        document = orjson.loads(store.read_document(tool_id)[0])
        for line in opensearch.render_bulk_lines(document, name):
            click.echo(line)
    return 0


def _read_session_documents(store: Store, id: str) -> list[bytes]:
    """The documents of a session's meta tools."""
    session = store.get_session(id)
    if session is None:
        raise UsageError(
            f"There is no session {id} in this build: its sessions are the files in "
            "`sessions/` of the catalog."
        )
    return [orjson.dumps(item) for item in orjson.loads(session.answer)["items"]]


def _print_definitions(
    output_format: str, documents: Iterable[bytes | memoryview], *, defer: bool
) -> int:
    lines, missing = [encoding.dump_json(definitions.TOOL_SEARCH)] if defer else [], 0
    for document in documents:
        tool = snapshot_format.tool_from_document(orjson.loads(document), None)
        result = providers.fit_definition(tool, output_format)
        if defer and result.definition:
            result = result._replace(definition={**result.definition, "defer_loading": True})
        for note in result.notes:
            output.print_message(note)
        lines += [encoding.dump_json(result.definition)] if result.definition else []
        missing += result.definition is None
    click.echo(providers.render_json_array(lines), nl=False)
    return 1 if missing else 0
