"""`toolcatalog export`"""

from collections.abc import Iterable
from pathlib import Path

import click
import orjson

from toolcatalog import encoding
from toolcatalog.cli import options, output
from toolcatalog.cli.selection import select_tool_ids
from toolcatalog.errors import UsageError
from toolcatalog.exports import definitions, providers
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

Names and descriptions that are too long for the provider are shortened, and reported on standard
error. Exits with 1 if a tool is left out because the provider would reject it.
"""


@click.command("export", epilog=_EPILOG)
@click.argument(
    "output_format",
    metavar="FORMAT",
    type=click.Choice(definitions.EXPORT_FORMATS),
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
@options.build
def command(
    output_format: str,
    slugs: tuple[str, ...],
    toolkits: tuple[str, ...],
    session: str,
    at_version: str,
    *,
    defer: bool,
    build: Path,
) -> int:
    """Print tools in the format of a model provider or of MCP: a JSON array on standard output.

    FORMAT is openai, anthropic, openai-responses, gemini, bedrock, mcp or json-schema.

    The tools of a session are its meta tools, which find and call the tools that it may use.
    """
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
