"""`toolcatalog import`: convert MCP, OpenAPI and API definitions to catalog files.

Each importer passes its `ImportedTool`s to `add_to_catalog`, which compares them with the catalog,
writes what is new and reports the result.
"""

import os
import re
import shlex
import shutil
import sys
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from toolcatalog import errors
from toolcatalog.catalog import folder as catalog_folder
from toolcatalog.catalog import loader, model, schema
from toolcatalog.cli import http_client, options, output
from toolcatalog.errors import UsageError, write_error
from toolcatalog.importers import bundle, documents, mcp, openapi, wire, writer
from toolcatalog.importers.existing import UNDATED_VERSION, ReadRecord
from toolcatalog.system import files
from toolcatalog.textutils import pluralize
from toolcatalog.validation import import_rules

MAX_FILE_SIZE = 64 * 1024 * 1024  # bytes of a file that is imported
_CHANGED_HINT = "a published version does not change, so give a new one with --version."
_MAX_TEXT_LENGTH = 160  # characters shown of what was left out
_MAX_LISTED_SLUGS = 10  # tools named of those that have gone
_URL = re.compile("https?://", re.IGNORECASE)

file_argument = click.argument(
    "file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path)
)
catalog_option = click.option(
    "--catalog",
    type=options.FOLDER_TYPE,
    default="catalog",
    show_default=True,
    help="The catalog to add to; created if there is none.",
)
version_option = click.option(
    "--version",
    default="",
    metavar="V",
    help=(
        "The version of new and changed tools.  [default: their own; else today's, or "
        f"{UNDATED_VERSION} if their toolkit has no tools yet]"
    ),
)


def read_input_file(path: Path, expected: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`.

    `expected` describes its content. Raises UsageError.
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
    """Return the JSON value of a file, with nothing silently changed or dropped.

    Raises UsageError.
    """
    data = read_input_file(path, expected)
    with report_deep_nesting(str(path), expected):
        try:
            return documents.parse_json(data)
        except ValueError as error:
            raise UsageError(f"{path} is not JSON ({error}): give {expected}.") from None


@contextmanager
def report_deep_nesting(name: str, expected: str) -> Iterator[None]:
    """Raise UsageError if values nest so deeply that Python cannot read them."""
    try:
        yield
    except RecursionError:
        raise UsageError(f"{name} nests too deeply to be read: give {expected}.") from None


def add_to_catalog(
    catalog: Path, tools: Iterable[writer.ImportedTool], toolkit: str, version: str
) -> None:
    """Write what of these tools is new to a catalog, all or nothing, and report the result."""
    read_record = _record_reader(catalog)
    about = read_record("catalog.yaml") if catalog.is_dir() else None
    overrides = about.rules if isinstance(about, model.About) else {}
    import_options = writer.ImportOptions(
        toolkit=toolkit,
        version=version,
        read=read_record,
        today=f"{options.today_compact()}_00",
        rules=import_rules.make_content_rules(overrides),
    )
    existing = catalog_folder.list_paths(catalog)[0] if catalog.is_dir() else []
    result = writer.build_files(tools, existing, import_options)
    _write_files(catalog, result.files)
    output.print_message(
        f"Imported {pluralize(result.tools, 'tool')} into {catalog}: "
        f"{result.new:,} new, {result.updated:,} in a new version, {result.unchanged:,} unchanged."
    )
    if result.extended and not toolkit:
        output.print_message(
            f"New tools were added to toolkits of the catalog: {', '.join(result.extended)}. If "
            "the source is another product, remove them and name a toolkit with --toolkit."
        )
    _report_notes(result.notes)
    _report_missing_tools(result.missing)


def _record_reader(catalog: Path) -> ReadRecord:
    """Return a function that reads the record of a catalog file, or None if it is not valid."""

    def read(path: str) -> schema.Record | None:
        document, _ = loader.load_file(catalog, path)
        return schema.validate(document)[0] if document and document.is_readable else None

    return read


def _write_files(catalog: Path, new: Mapping[str, bytes]) -> None:
    """Write files that are not there yet, all or nothing, and nothing through a link."""
    for path in new:
        files.require_no_links(catalog / path, catalog)
    written: set[str] = set()
    try:
        _require_unchanged(catalog, new)
        with output.show_progress("Writing", len(new)) as advance:
            for path, data in new.items():
                if files.write_if_changed(catalog / path, data):
                    written.add(path)
                advance(1)
    except OSError as error:
        _undo_writes(catalog, new, written)
        raise write_error(error.filename or catalog, error, ", or name another folder") from None


def _require_unchanged(catalog: Path, new: Mapping[str, bytes]) -> None:
    """Raise UsageError if a file is there with other content."""
    changed = [
        path
        for path, data in new.items()
        if (catalog / path).exists() and (catalog / path).read_bytes() != data
    ]
    errors.raise_all(
        [f"{catalog / path} is there and differs: {_CHANGED_HINT}" for path in changed]
    )


def _undo_writes(catalog: Path, new: Iterable[str], written_paths: Container[str]) -> None:
    """Remove the new files that were written, and all folders that are empty then.

    What the disk does not allow to be removed stays.
    """
    for path in new:
        with suppress(OSError):
            if path in written_paths:
                (catalog / path).unlink()
            for folder in Path(path).parents:
                (catalog / folder).rmdir()


def _report_notes(notes: Sequence[writer.ImportNote]) -> None:
    """Print a line for each kind of loss: how often, and the first place."""
    notes_of_kind: defaultdict[str, list[writer.ImportNote]] = defaultdict(list)
    for note in notes:
        notes_of_kind[note.loss.kind].append(note)
    if notes_of_kind:
        output.print_message("Not imported, or changed on import:")
    for kind, same_notes in sorted(notes_of_kind.items(), key=lambda item: -len(item[1])):
        first = same_notes[0].loss
        place = " ".join([same_notes[0].subject, ".".join(map(str, first.pointer))]).strip()
        detail = _printable(f" ({first.detail})") if first.detail else ""
        output.print_message(
            f"{len(same_notes):>8,}  {_printable(kind)}; first: {_printable(place)}{detail}"
        )


def _report_missing_tools(slugs: Sequence[str]) -> None:
    """Print one line for the tools that the source no longer shows.

    They stay: only people know whether they are gone.
    """
    if slugs:
        count = len(slugs) - _MAX_LISTED_SLUGS
        more = f" and {count:,} more" if count > 0 else ""
        output.print_message(
            f"In the catalog and not in this source, {len(slugs):,}: "
            f"{', '.join(slugs[:_MAX_LISTED_SLUGS])}{more}."
        )
        output.print_message(
            "They are unchanged. If one is gone for good, run: toolcatalog deprecate SLUG"
        )


def _printable(text: str) -> str:
    text = text if len(text) <= _MAX_TEXT_LENGTH else f"{text[: _MAX_TEXT_LENGTH - 3]}..."
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


# import mcp


_MCP_EPILOG = """\b
Examples:
  toolcatalog import mcp tools.json --toolkit weather
  toolcatalog import mcp https://mcp.example.com/mcp --header "Authorization: Bearer $KEY"
  toolcatalog import mcp -- npx -y @acme/weather-server --units metric
  toolcatalog import mcp "python weather_server.py"

A file is read, and a URL is asked over streamable HTTP. Anything else is a command, and so is
everything after `--`: it is started, asked for its tools, and stopped. A URL and a command need
`pip install 'toolcatalog[mcp]'`. Exits with 2, and writes nothing, if there is no list of tools.
"""
_MCP_TOOL_LIST = "what an MCP server answers to tools/list"
_DEFAULT_TIMEOUT = 60.0  # a command may first download its server
_AFTER_DASHES = "toolcatalog.after_dashes"  # key in click's context


class _CommandAfterDashes(click.Command):
    """A command that knows whether its arguments contain `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments as click does."""
        ctx.meta[_AFTER_DASHES] = "--" in args
        return super().parse_args(ctx, args)


@click.command("mcp", cls=_CommandAfterDashes, epilog=_MCP_EPILOG)
@click.argument("source", metavar="FILE|URL|COMMAND...", nargs=-1, required=True)
@catalog_option
@click.option(
    "--toolkit",
    default="",
    metavar="SLUG",
    help="The toolkit of all tools.  [default: the name of the server]",
)
@version_option
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="A header for each request to a URL, such as a key; repeatable.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, 3600, min_open=True),
    default=_DEFAULT_TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="How long a server may take to list its tools.",
)
@click.pass_context
def import_mcp(
    ctx: click.Context,
    source: tuple[str, ...],
    catalog: Path,
    toolkit: str,
    version: str,
    headers: tuple[str, ...],
    timeout: float,
) -> None:
    """Add the tools that an MCP server lists to a catalog.

    FILE contains what `tools/list` answers, {"tools": [...]}, alone or in a JSON-RPC message, or a
    bare array of tools; `-` reads standard input. URL is a server over streamable HTTP. COMMAND
    starts a server that speaks over standard input and output. Hints (readOnlyHint and the like)
    become tags.
    """
    is_command = bool(ctx.meta[_AFTER_DASHES])
    if headers and (is_command or not _URL.match(source[0])):
        raise UsageError("--header is for a URL: a command has its own options.")
    with report_deep_nesting(source[0], _MCP_TOOL_LIST):
        value = _read_mcp_source(source, headers, timeout, is_command=is_command)
        add_to_catalog(catalog, mcp.import_tools(value, toolkit), toolkit, version)


def _read_mcp_source(
    source: Sequence[str], headers: Sequence[str], timeout: float, *, is_command: bool
) -> Any:
    """Return the JSON value of a file, or what a server answers."""
    if len(source) == 1 and not is_command:
        if _URL.match(source[0]):
            mcp_client = _load_mcp_client()
            parsed = mcp_client.parse_headers(headers)
            return mcp_client.fetch_tools_from_url(source[0], parsed, timeout)
        if source[0] == "-" or Path(source[0]).is_file():
            return _read_tool_list(Path(source[0]))
    words = _split_command(source)
    if shutil.which(words[0]) is None:
        no_file = f"There is no file {source[0]}, and no" if len(source) == 1 else "There is no"
        raise UsageError(
            f"{no_file} program {words[0]}: name a file of MCP tools, the URL of a server, or the "
            "command that starts one, after `--`."
        )
    return _load_mcp_client().fetch_tools_from_command(words, timeout)


def _load_mcp_client() -> ModuleType:
    """Import the module that needs the extra `mcp`. Raises UsageError if it is not installed."""
    try:
        from toolcatalog.importers import mcp_client  # noqa: PLC0415 - an optional extra
    except ImportError:
        help = "run `pip install 'toolcatalog[mcp]'`, or give its answer to tools/list as a file."
        raise UsageError(f"A live MCP server needs the package mcp: {help}") from None
    return mcp_client


def _read_tool_list(path: Path) -> Any:
    """Return the JSON value of a file. Raises UsageError, with a hint if it is a program."""
    try:
        return read_json(path, _MCP_TOOL_LIST)
    except UsageError as error:
        if not os.access(path, os.X_OK):
            raise
        raise UsageError(
            f"{error} To start it as a server, write it after `--`: import mcp -- {path}"
        ) from None


def _split_command(source: Sequence[str]) -> list[str]:
    if len(source) > 1:
        return [*source]
    try:
        return shlex.split(source[0]) or [""]
    except ValueError as error:
        raise UsageError(
            f"{source[0]!r} is not a command ({error}): write it after `--`, word by word."
        ) from None


# import wire, import openapi


_EPILOG = """\b
Examples:
  toolcatalog import wire tools.json
  toolcatalog import openapi slack.yaml --toolkit slack
  toolcatalog import openapi slack.yaml --toolkit slack    again: changed tools get a new version
  toolcatalog import mcp https://mcp.example.com/mcp

Exits with 2, and writes nothing, if the source is wrong or a file of the catalog would change.
"""
_WIRE_EPILOG = """\b
Examples:
  toolcatalog import wire tools.json
  toolcatalog import wire github.json --toolkit github --version 20251027_00
  curl -H "x-api-key: $KEY" "$URL/api/v3/tools?limit=1000" | toolcatalog import wire -

Exits with 2, and writes nothing, if a definition is not valid or a catalog file would change.
"""
_OPENAPI_EPILOG = """\b
Examples:
  toolcatalog import openapi openapi.json
  toolcatalog import openapi github.yaml --toolkit github --name GitHub --logo https://github.com/favicon.ico
  toolcatalog import openapi https://api.example.com/openapi.json --allow-network
  curl https://api.example.com/openapi.json | toolcatalog import openapi - --version 20251027_00

A document may consist of several files: references to files below its folder are followed.
Exits with 2, and writes nothing, if the document is wrong or a file of the catalog would change.
"""
_OPENAPI_DOCUMENT = "an OpenAPI document"
_WIRE_DEFINITIONS = "tool definitions as an API sends them"


@click.group("import", epilog=_EPILOG)
def command() -> None:
    """Import tools from MCP servers, OpenAPI documents or API responses.

    Importing again writes new versions of the tools that have changed, and nothing else.
    """


command.add_command(import_mcp)


@command.command("wire", epilog=_WIRE_EPILOG)
@file_argument
@catalog_option
@click.option(
    "--toolkit",
    default="",
    metavar="SLUG",
    help="The toolkit of tools that name none.  [default: the slug's first words]",
)
@version_option
def import_wire(file: Path, catalog: Path, toolkit: str, version: str) -> None:
    """Add the tool definitions in FILE, as APIs of this family send them, to a catalog.

    FILE is a JSON array of definitions or a page of a list ({"items": [...]}); `-` reads standard
    input. Everything that the catalog format supports is kept; the rest is listed.
    """
    with report_deep_nesting(str(file), _WIRE_DEFINITIONS):
        tools = wire.import_tools(read_json(file, _WIRE_DEFINITIONS))
        add_to_catalog(catalog, tools, toolkit, version)


@command.command("openapi", epilog=_OPENAPI_EPILOG)
@click.argument("source", metavar="FILE|URL")
@catalog_option
@click.option(
    "--toolkit",
    default="",
    metavar="SLUG",
    help="The toolkit of the tools.  [default: the product in the title]",
)
@version_option
@click.option("--name", default="", help="The toolkit's display name.  [default: the title]")
@click.option(
    "--logo",
    default="",
    metavar="URL",
    help="The https URL of the toolkit's logo.  [default: `x-logo`, or none]",
)
@click.option(
    "--no-auth", is_flag=True, help="Operations without `security` need no authentication."
)
@click.option("--allow-network", is_flag=True, help="Download the document if SOURCE is a URL.")
def import_openapi(
    source: str,
    catalog: Path,
    toolkit: str,
    version: str,
    name: str,
    logo: str,
    no_auth: bool,
    allow_network: bool,
) -> None:
    """Add the operations of the API that SOURCE describes to a catalog, each as a tool.

    SOURCE is an OpenAPI document (Swagger 2.0, OpenAPI 3.0 or 3.1) as JSON or YAML; `-` reads
    standard input. A URL is downloaded only with --allow-network, and references to other URLs are
    not followed. --name and --logo are for a toolkit that is not there yet.
    """
    with report_deep_nesting(source, _OPENAPI_DOCUMENT):
        document = _read_openapi_source(source, allow_network=allow_network)
        tools = openapi.import_tools(document, toolkit, name, logo, no_auth=no_auth)
        add_to_catalog(catalog, tools, toolkit, version)


def _read_openapi_source(source: str, *, allow_network: bool) -> documents.SourceDocument:
    """Return the document in a file, with the files that it refers to, or at a URL."""
    if _URL.match(source):
        if not allow_network:
            raise UsageError(
                f"{source} is not downloaded: add --allow-network, or save it first, for example "
                f"with `curl -o openapi.json {source}`."
            )
        return documents.read_document(http_client.download(source, MAX_FILE_SIZE), source)
    path = Path(source)
    document = documents.read_document(read_input_file(path, _OPENAPI_DOCUMENT), source)
    if source == "-":
        return document
    return bundle.bundle_files(document, bundle.read_below(path.parent))
