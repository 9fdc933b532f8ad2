"""`toolcatalog verify`"""

import os
from pathlib import Path

import click
import orjson

from toolcatalog import lockfile
from toolcatalog.cli import catalog_source, document_sources, http_client, options, output
from toolcatalog.cli.document_sources import DocumentSource
from toolcatalog.cli.lock import read_lock_file
from toolcatalog.errors import UsageError
from toolcatalog.exports.definitions import KEY_VARIABLE
from toolcatalog.lockfile import Difference

_EPILOG = f"""\b
Examples:
  toolcatalog verify
  toolcatalog verify --catalog catalog --lock agent.lock
  {KEY_VARIABLE}=tc_... toolcatalog verify --url https://tools.example.com --format json

Exits with 0 where all is as it was locked (a deprecated tool is a note), with 1 where a tool was
changed under the same version or is gone, and with 2 where that could not be found out. What a
server does not show to this key is gone for it.
"""


@click.command("verify", epilog=_EPILOG)
@options.lock
@click.option("--build", type=options.FOLDER_TYPE, help="The build to look into.  [default: build]")
@click.option(
    "--catalog", type=options.FOLDER_TYPE, help="A folder of YAML files to look into instead."
)
@click.option(
    "--url", metavar="BASE", help=f"A server to ask instead; the key is taken from {KEY_VARIABLE}."
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How problems are shown.",
)
def command(
    lock_file: Path, build: Path | None, catalog: Path | None, url: str | None, output_format: str
) -> int:
    """Tell whether the tools in a lock file are still what they were when they were locked."""
    if sum(source is not None for source in (build, catalog, url)) > 1:
        raise UsageError(
            "Give one of --build, --catalog and --url: one place is looked into at a time."
        )
    lock = read_lock_file(lock_file)
    if not lock:
        raise UsageError(
            f"{lock_file} locks no tool, so there is nothing to verify: add those that are "
            "used with `toolcatalog lock`."
        )
    get_document = _open_source(build, catalog, url)
    differences: list[Difference] = []
    with output.show_progress("Verifying", len(lock)) as advance:
        for slug, entry in sorted(lock.items()):
            difference = lockfile.find_difference(slug, entry, get_document(slug, entry.version))
            differences += [difference] if difference else []
            advance(1)
    if lockfile.is_old(lock):
        slug, entry = next(iter(sorted(lock.items())))
        output.print_message(
            f"{lock_file} has format 1, which does not see the order of parameters: "
            f"`toolcatalog lock {slug}@{entry.version}` writes it in format {lockfile.FORMAT}, "
            "with the same versions."
        )
    return _print_differences(differences, len(lock), output_format)


def _open_source(build: Path | None, catalog: Path | None, url: str | None) -> DocumentSource:
    if url is not None:
        return http_client.open_server_source(url, os.environ.get(KEY_VARIABLE, "").strip())
    return (
        catalog_source.open_catalog_source(catalog)
        if catalog
        else document_sources.open_build_source(build or Path("build"))
    )


def _print_differences(differences: list[Difference], total: int, output_format: str) -> int:
    errors = sum(difference.severity == "error" for difference in differences)
    if output_format == "json":
        click.echo(
            orjson.dumps(
                [difference._asdict() for difference in differences], option=orjson.OPT_INDENT_2
            )
        )
    else:
        for difference in differences:
            output.print_message(
                f"{difference.severity}[{difference.rule}] {difference.slug}:"
                f" {difference.message}\n  help: {difference.help}"
            )
    output.print_message(
        f"{total:,} tools verified: {errors:,} changed or gone."
        if errors
        else f"{total:,} tools verified: all are what was locked."
    )
    return 1 if errors else 0
