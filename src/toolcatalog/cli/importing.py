"""`toolcatalog import`"""

from pathlib import Path

import click

from toolcatalog.cli import bringing
from toolcatalog.cli.importing_mcp import import_mcp

_EPILOG = """\b
Examples:
  toolcatalog import wire tools.json --into catalog
  toolcatalog import openapi slack.yaml --into catalog --toolkit slack
  toolcatalog import openapi slack.yaml --into catalog --toolkit slack    again: what has changed gets a new version

Exits with 2, and writes nothing, where the source is wrong or a file of the catalog would change.
"""
_WIRE_EPILOG = """\b
Examples:
  toolcatalog import wire tools.json --into catalog
  toolcatalog import wire github.json --into catalog --toolkit github --version 20251027_00
  curl -H "x-api-key: $KEY" "$URL/api/v3/tools?limit=1000" | toolcatalog import wire - --into catalog

Exits with 2, and writes nothing, where a definition is none or a file of the catalog would change.
"""
_OPENAPI_EPILOG = """\b
Examples:
  toolcatalog import openapi openapi.json --into catalog
  toolcatalog import openapi github.yaml --into catalog --toolkit github --name GitHub --logo https://github.com/favicon.ico
  curl https://api.example.com/openapi.json | toolcatalog import openapi - --into catalog --version 20251027_00

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
@bringing.file_argument
@bringing.into_option
@click.option(
    "--toolkit",
    default="",
    metavar="SLUG",
    help="The toolkit of those that name none.  [default: the slug's first words]",
)
@bringing.version_option
def import_wire(file: Path, into: Path, toolkit: str, version: str) -> None:
    """Add the tool definitions in FILE, as APIs of this family send them, to a catalog.

    FILE is a JSON array of definitions or a page of a list ({"items": [...]}); `-` reads standard
    input. All that the catalog format can hold is kept; what it cannot hold is listed.
    """
    from toolcatalog.importers import wire  # noqa: PLC0415 - each command loads its own importer

    with bringing.report_deep_nesting(file, _WIRE_DEFINITIONS):
        bringing.add_to_catalog(
            into, wire.import_tools(bringing.read_json(file, _WIRE_DEFINITIONS)), toolkit, version
        )


@command.command("openapi", epilog=_OPENAPI_EPILOG)
@bringing.file_argument
@bringing.into_option
@click.option(
    "--toolkit",
    default="",
    metavar="SLUG",
    help="The toolkit of the tools.  [default: the first words of the title]",
)
@bringing.version_option
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
    from toolcatalog.importers import documents, openapi  # noqa: PLC0415 - each command loads its own importer

    with bringing.report_deep_nesting(file, _OPENAPI_DOCUMENT):
        source = documents.read_document(
            bringing.read_input_file(file, _OPENAPI_DOCUMENT), str(file)
        )
        bringing.add_to_catalog(
            into, openapi.import_tools(source, toolkit, name, logo), toolkit, version
        )
