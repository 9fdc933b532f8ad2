"""`toolcatalog import mcp`"""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from toolcatalog.cli import bringing
from toolcatalog.errors import UsageError

_MCP_EPILOG = """\b
Examples:
  toolcatalog import mcp tools.json --into catalog --toolkit weather
  toolcatalog import mcp --into catalog -- npx -y @acme/weather-server --units metric
  toolcatalog import mcp "python weather_server.py" --into catalog

One word that is a file is read; anything else is a command, which is started, asked for its tools, and stopped. Needs, for that,
`pip install 'toolcatalog[mcp]'`. What follows `--` is the command's own. Exits with 2, and writes nothing, where there is no list.
"""
_MCP_TOOL_LIST = "what an MCP server answers to tools/list"
_DEFAULT_TIMEOUT = 60.0  # a server may be downloaded by its very command


@click.command("mcp", epilog=_MCP_EPILOG)
@click.argument("source", metavar="FILE|COMMAND...", nargs=-1, required=True)
@bringing.into_option
@click.option(
    "--toolkit",
    default="",
    metavar="SLUG",
    help="The toolkit of all.  [default: the name of the server]",
)
@bringing.version_option
@click.option(
    "--timeout",
    type=click.FloatRange(0, 3600, min_open=True),
    default=_DEFAULT_TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="How long a command may take to list its tools.",
)
def import_mcp(
    source: tuple[str, ...], into: Path, toolkit: str, version: str, timeout: float
) -> None:
    """Add the tools that an MCP server lists to a catalog.

    FILE holds what `tools/list` answers, {"tools": [...]}, alone or in a JSON-RPC message, or a
    bare array of tools; `-` reads standard input. COMMAND starts a server that speaks over standard
    input and output. Hints (readOnlyHint and its like) become tags.
    """
    from toolcatalog.importers import mcp  # noqa: PLC0415 - each command loads its own importer

    with bringing.report_deep_nesting(Path(source[0]), _MCP_TOOL_LIST):
        bringing.add_to_catalog(
            into, mcp.import_tools(_read_source(source, timeout), toolkit), toolkit, version
        )


def _read_source(source: Sequence[str], timeout: float) -> Any:
    """The JSON value of a file, or what a command answers."""
    if len(source) == 1 and (source[0] == "-" or Path(source[0]).is_file()):
        return bringing.read_json(Path(source[0]), _MCP_TOOL_LIST)
    words = _split_command(source)
    if shutil.which(words[0]) is None:
        what = (
            f"There is no file {source[0]}, and no program {words[0]}"
            if len(source) == 1
            else f"There is no program {words[0]}"
        )
        raise UsageError(
            f"{what}: name a file of MCP tools, or the command that starts a server, behind `--`."
        )
    from toolcatalog.importers import mcp_client  # noqa: PLC0415 - a file is read without what asks servers

    return mcp_client.fetch_tools(words, timeout)


def _split_command(source: Sequence[str]) -> list[str]:
    if len(source) > 1:
        return [*source]
    try:
        return shlex.split(source[0]) or [""]
    except ValueError as error:
        raise UsageError(
            f"{source[0]!r} is no command ({error}): write it behind `--`, word by word."
        ) from None
