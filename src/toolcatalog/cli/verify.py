"""`toolcatalog verify`"""

import os
from pathlib import Path

import click
import orjson

from toolcatalog import lockfile
from toolcatalog.cli import options, output
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

Exits with 0 where all is as it was locked (a deprecated tool is a note), with 1 where a tool was changed under the same version or is
gone, and with 2 where that could not be found out. What a server does not show to this key is gone for it.
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
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How problems are shown.",
)
def command(
    lock_file: Path, build: Path | None, catalog: Path | None, url: str | None, form: str
) -> int:
    """Tell whether the tools in a lock file are still what they were when they were locked."""
    if sum(one is not None for one in (build, catalog, url)) > 1:
        raise UsageError(
            "Give one of --build, --catalog and --url: one place is looked into at a time."
        )
    lock = read_lock_file(lock_file)
    if not lock:
        raise UsageError(
            f"{lock_file} locks no tool, so there is nothing to verify: add those that are "
            "used with `toolcatalog lock`."
        )
    look = _open_source(build, catalog, url)
    found: list[Difference] = []
    with output.show_progress("Verifying", len(lock)) as advance:
        for slug, entry in sorted(lock.items()):
            one = lockfile.find_difference(slug, entry, look(slug, entry.version))
            found += [one] if one else []
            advance(1)
    if lockfile.is_old(lock):
        slug, entry = next(iter(sorted(lock.items())))
        output.print_message(
            f"{lock_file} has format 1, which does not see the order of parameters: "
            f"`toolcatalog lock {slug}@{entry.version}` writes it in format {lockfile.FORMAT}, "
            "with the same versions."
        )
    return _print_differences(found, len(lock), form)


def _open_source(build: Path | None, catalog: Path | None, url: str | None) -> DocumentSource:
    if url is not None:
        from toolcatalog.cli import http_client  # noqa: PLC0415 - a build is read without what asks servers

        return http_client.open_server_source(url, os.environ.get(KEY_VARIABLE, "").strip())
    from toolcatalog.cli import document_sources  # noqa: PLC0415

    return (
        document_sources.open_catalog_source(catalog)
        if catalog
        else document_sources.open_build_source(build or Path("build"))
    )


def _print_differences(differences: list[Difference], total: int, form: str) -> int:
    errors = sum(one.severity == "error" for one in differences)
    if form == "json":
        click.echo(orjson.dumps([one._asdict() for one in differences], option=orjson.OPT_INDENT_2))
    else:
        for one in differences:
            output.print_message(
                f"{one.severity}[{one.rule}] {one.slug}: {one.message}\n  help: {one.help}"
            )
    output.print_message(
        f"{total:,} tools verified: {errors:,} changed or gone."
        if errors
        else f"{total:,} tools verified: all are what was locked."
    )
    return 1 if errors else 0
