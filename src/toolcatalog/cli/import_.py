"""`toolcatalog import`

Each importer passes its `ImportedTool`s to `add_to_catalog`, which compares them with the catalog,
writes the new files and prints a summary.
"""

import shlex
import shutil
import sys
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from toolcatalog import errors
from toolcatalog.catalog import folder as catalog_folder
from toolcatalog.catalog import loader, schema
from toolcatalog.cli import options, output
from toolcatalog.errors import UsageError, write_error
from toolcatalog.importers import documents, mcp, mcp_client, openapi, wire, writer
from toolcatalog.importers.existing import UNDATED_VERSION
from toolcatalog.system import files

MAX_FILE_SIZE = 64 * 1024 * 1024  # bytes of a file that is imported
_CHANGED_HINT = "a published version does not change, so give a new one with --version."
_MAX_TEXT_LENGTH = 160  # characters shown of what was left out
_MAX_LISTED_SLUGS = 10  # tools named of those that have gone

file_argument = click.argument(
    "file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path)
)
into_option = click.option(
    "--into",
    type=options.FOLDER_TYPE,
    required=True,
    help="The catalog to add to; made where there is none.",
)
version_option = click.option(
    "--version",
    default="",
    metavar="V",
    help=(
        "The version of what is new or changed.  [default: its own; else today's, or"
        f" {UNDATED_VERSION} where its toolkit has no tools yet]"
    ),
)


def read_input_file(path: Path, expected: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`.

    `expected` names the content that it should have. Raises UsageError.
    """
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_FILE_SIZE + 1)
        else:
            with path.open("rb") as stream:
                data = stream.read(MAX_FILE_SIZE + 1)
    except OSError as error:
        raise UsageError(
            f"Cannot read {path} ({error.strerror}): name a file of {expected}."
        ) from None
    if len(data) > MAX_FILE_SIZE:
        raise UsageError(
            f"{path} is larger than {MAX_FILE_SIZE // 1024**2} MiB: import a part of it at a time."
        )
    return data


def read_json(path: Path, expected: str) -> Any:
    """Return the JSON value of a file, without silent changes or losses. Raises UsageError."""
    data = read_input_file(path, expected)
    with report_deep_nesting(path, expected):
        try:
            return documents.parse_json(data)
        except ValueError as error:
            raise UsageError(f"{path} is not JSON ({error}): give {expected}.") from None


@contextmanager
def report_deep_nesting(path: Path, expected: str) -> Iterator[None]:
    """Turn a RecursionError in the block, from values that nest too deeply, into a UsageError."""
    try:
        yield
    except RecursionError:
        raise UsageError(f"{path} nests too deeply to be read: give {expected}.") from None


def add_to_catalog(
    catalog: Path, tools: Iterable[writer.ImportedTool], toolkit: str, version: str
) -> None:
    """Write the new tools and versions to a catalog, all or nothing, and print a summary.

    The summary includes everything that the catalog cannot represent.
    """
    present = catalog_folder.list_paths(catalog)[0] if catalog.is_dir() else []

    def load_record(path: str) -> schema.Record | None:
        document, _ = loader.load_file(catalog, path)
        return schema.validate(document)[0] if document and document.is_readable else None

    result = writer.build_files(
        tools, present, toolkit, version, load_record, f"{options.today_compact()}_00"
    )
    _write_files(catalog, result.files)
    output.print_message(
        f"Imported {result.tools:,} tools into {catalog}: {result.new:,} new, {result.updated:,} "
        f"in a new version, {result.unchanged:,} unchanged."
    )
    _report_notes(result.notes)
    _report_missing_tools(result.missing)


def _write_files(catalog: Path, new: Mapping[str, bytes]) -> None:
    """Write the new files, all or none, and none through a link."""
    for path in new:
        files.require_no_links(catalog / path, catalog)
    written_paths: set[str] = set()
    try:
        changed = [
            path
            for path, data in new.items()
            if (catalog / path).exists() and (catalog / path).read_bytes() != data
        ]
        errors.raise_all(
            [f"{catalog / path} is there and differs: {_CHANGED_HINT}" for path in changed]
        )
        with output.show_progress("Writing", len(new)) as advance:
            for path, data in new.items():
                written_paths |= {path} if files.write_if_changed(catalog / path, data) else set()
                advance(1)
    except OSError as error:
        _undo_writes(catalog, new, written_paths)
        raise write_error(error.filename or catalog, error, ", or name another folder") from None


def _undo_writes(catalog: Path, new: Iterable[str], written_paths: Container[str]) -> None:
    """Remove the new files that were written, and the folders that are empty then, if possible."""
    for path in new:
        with suppress(OSError):
            if path in written_paths:
                (catalog / path).unlink()
            for folder in Path(path).parents:
                (catalog / folder).rmdir()


def _report_notes(notes: Sequence[writer.ImportNote]) -> None:
    """Print a line for each kind of loss: how often it occurs, and where first."""
    notes_by_kind: defaultdict[str, list[writer.ImportNote]] = defaultdict(list)
    for note in notes:
        notes_by_kind[note.loss.what].append(note)
    if notes_by_kind:
        output.print_message("Not held, or not as it came:")
    for what, notes_of_kind in sorted(notes_by_kind.items(), key=lambda item: -len(item[1])):
        first = notes_of_kind[0].loss
        location = " ".join([notes_of_kind[0].subject, ".".join(map(str, first.pointer))]).strip()
        detail = _printable(f" ({first.detail})") if first.detail else ""
        output.print_message(
            f"{len(notes_of_kind):>8,}  {_printable(what)}; first: {_printable(location)}{detail}"
        )


def _report_missing_tools(slugs: Sequence[str]) -> None:
    """Print one line for the tools that the source no longer contains.

    They stay in the catalog: a person must decide whether they were removed.
    """
    if slugs:
        suffix = (
            f" and {len(slugs) - _MAX_LISTED_SLUGS:,} more"
            if len(slugs) > _MAX_LISTED_SLUGS
            else ""
        )
        output.print_message(
            f"In the catalog and not in this source, {len(slugs):,}: "
            f"{', '.join(slugs[:_MAX_LISTED_SLUGS])}{suffix}."
        )
        output.print_message(
            "They stay as they are. If one is gone for good, say so: toolcatalog deprecate SLUG"
        )


def _printable(text: str) -> str:
    text = text if len(text) <= _MAX_TEXT_LENGTH else f"{text[: _MAX_TEXT_LENGTH - 3]}..."
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


_MCP_EPILOG = """\b
Examples:
  toolcatalog import mcp tools.json --into catalog --toolkit weather
  toolcatalog import mcp --into catalog -- npx -y @acme/weather-server --units metric
  toolcatalog import mcp "python weather_server.py" --into catalog

One word that is a file is read; anything else is a command, which is started, asked for its tools,
and stopped. Needs, for that, `pip install 'toolcatalog[mcp]'`. What follows `--` is the command's
own. Exits with 2, and writes nothing, where there is no list.
"""
_MCP_TOOL_LIST = "what an MCP server answers to tools/list"
_DEFAULT_TIMEOUT = 60.0  # a server may be downloaded by its very command


@click.command("mcp", epilog=_MCP_EPILOG)
@click.argument("source", metavar="FILE|COMMAND...", nargs=-1, required=True)
@into_option
@click.option(
    "--toolkit",
    default="",
    metavar="SLUG",
    help="The toolkit of all.  [default: the name of the server]",
)
@version_option
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
    with report_deep_nesting(Path(source[0]), _MCP_TOOL_LIST):
        add_to_catalog(
            into, mcp.import_tools(_read_source(source, timeout), toolkit), toolkit, version
        )


def _read_source(source: Sequence[str], timeout: float) -> Any:
    """Return the JSON value of a file, or the tool list of an MCP server."""
    if len(source) == 1 and (source[0] == "-" or Path(source[0]).is_file()):
        return read_json(Path(source[0]), _MCP_TOOL_LIST)
    words = _split_command(source)
    if shutil.which(words[0]) is None:
        problem = (
            f"There is no file {source[0]}, and no program {words[0]}"
            if len(source) == 1
            else f"There is no program {words[0]}"
        )
        raise UsageError(
            f"{problem}: name a file of MCP tools, or the command that starts a server, behind"
            " `--`."
        )
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


_EPILOG = """\b
Examples:
  toolcatalog import wire tools.json --into catalog
  toolcatalog import openapi slack.yaml --into catalog --toolkit slack
  toolcatalog import openapi slack.yaml --into catalog --toolkit slack    again: what has changed \
gets a new version

Exits with 2, and writes nothing, where the source is wrong or a file of the catalog would change.
"""
_WIRE_EPILOG = """\b
Examples:
  toolcatalog import wire tools.json --into catalog
  toolcatalog import wire github.json --into catalog --toolkit github --version 20251027_00
  curl -H "x-api-key: $KEY" "$URL/api/v3/tools?limit=1000" | toolcatalog import wire - --into \
catalog

Exits with 2, and writes nothing, where a definition is none or a file of the catalog would change.
"""
_OPENAPI_EPILOG = """\b
Examples:
  toolcatalog import openapi openapi.json --into catalog
  toolcatalog import openapi github.yaml --into catalog --toolkit github --name GitHub --logo \
https://github.com/favicon.ico
  curl https://api.example.com/openapi.json | toolcatalog import openapi - --into catalog \
--version 20251027_00

Exits with 2, and writes nothing, where the document is wrong or a file of the catalog would change.
"""
_OPENAPI_DOCUMENT = "an OpenAPI document"
_WIRE_DEFINITIONS = "tool definitions as an API sends them"


@click.group("import", epilog=_EPILOG)
def command() -> None:
    """Turn tool definitions of another form into catalog files.

    Importing again writes new versions of the tools that have changed, and nothing else.
    """


command.add_command(import_mcp)


@command.command("wire", epilog=_WIRE_EPILOG)
@file_argument
@into_option
@click.option(
    "--toolkit",
    default="",
    metavar="SLUG",
    help="The toolkit of those that name none.  [default: the slug's first words]",
)
@version_option
def import_wire(file: Path, into: Path, toolkit: str, version: str) -> None:
    """Add the tool definitions in FILE, as APIs of this family send them, to a catalog.

    FILE is a JSON array of definitions or a page of a list ({"items": [...]}); `-` reads standard
    input. All that the catalog format can hold is kept; what it cannot hold is listed.
    """
    with report_deep_nesting(file, _WIRE_DEFINITIONS):
        add_to_catalog(
            into, wire.import_tools(read_json(file, _WIRE_DEFINITIONS)), toolkit, version
        )


@command.command("openapi", epilog=_OPENAPI_EPILOG)
@file_argument
@into_option
@click.option(
    "--toolkit",
    default="",
    metavar="SLUG",
    help="The toolkit of the tools.  [default: the first words of the title]",
)
@version_option
@click.option("--name", default="", help="The toolkit's display name.  [default: the title]")
@click.option(
    "--logo",
    default="",
    metavar="URL",
    help="The https URL of the toolkit's logo.  [default: `x-logo`]",
)
def import_openapi(
    file: Path, into: Path, toolkit: str, version: str, name: str, logo: str
) -> None:
    """Add the operations of the API that FILE describes to a catalog, each as a tool.

    FILE is an OpenAPI document (Swagger 2.0, OpenAPI 3.0 or 3.1) as JSON or YAML; `-` reads
    standard input. Nothing is fetched: references to other documents are not followed. --name and
    --logo are for a toolkit that is not there yet.
    """
    with report_deep_nesting(file, _OPENAPI_DOCUMENT):
        source = documents.read_document(read_input_file(file, _OPENAPI_DOCUMENT), str(file))
        add_to_catalog(into, openapi.import_tools(source, toolkit, name, logo), toolkit, version)
