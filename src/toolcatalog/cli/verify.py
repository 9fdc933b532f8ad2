"""`toolcatalog verify`"""

import os
from pathlib import Path

import click
import orjson

from toolcatalog import locking
from toolcatalog.cli import options, terminal
from toolcatalog.cli.lock import read
from toolcatalog.cli.sources import Look
from toolcatalog.errors import UsageError
from toolcatalog.exports import KEY
from toolcatalog.locking import Difference

_EPILOG = f"""\b
Examples:
  toolcatalog verify
  toolcatalog verify --catalog catalog --lock agent.lock
  {KEY}=tc_... toolcatalog verify --url https://tools.example.com --format json

Exits with 0 where all is as it was locked (a deprecated tool is a note), with 1 where a tool was changed under the same version or is
gone, and with 2 where that could not be found out. What a server does not show to this key is gone for it.
"""


@click.command("verify", epilog=_EPILOG)
@options.lock
@click.option("--build", type=options.FOLDER, help="The build to look into.  [default: build]")
@click.option("--catalog", type=options.FOLDER, help="A folder of YAML files to look into instead.")
@click.option(
    "--url", metavar="BASE", help=f"A server to ask instead; the key is taken from {KEY}."
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
    lock = read(lock_file)
    if not lock:
        raise UsageError(
            f"{lock_file} locks no tool, so there is nothing to verify: add those that are "
            "used with `toolcatalog lock`."
        )
    look = _source(build, catalog, url)
    found: list[Difference] = []
    with terminal.track("Verifying", len(lock)) as advance:
        for slug, entry in sorted(lock.items()):
            one = locking.difference(slug, entry, look(slug, entry.version))
            found += [one] if one else []
            advance(1)
    if locking.is_old(lock):
        slug, entry = next(iter(sorted(lock.items())))
        terminal.say(
            f"{lock_file} has format 1, which does not see the order of parameters: "
            f"`toolcatalog lock {slug}@{entry.version}` writes it in format {locking.FORMAT}, "
            "with the same versions."
        )
    return _tell(found, len(lock), form)


def _source(build: Path | None, catalog: Path | None, url: str | None) -> Look:
    if url is not None:
        from toolcatalog.cli import asking  # noqa: PLC0415 - a build is read without what asks servers

        return asking.of_server(url, os.environ.get(KEY, "").strip())
    from toolcatalog.cli import sources  # noqa: PLC0415

    return sources.of_catalog(catalog) if catalog else sources.of_build(build or Path("build"))


def _tell(found: list[Difference], total: int, form: str) -> int:
    errors = sum(one.severity == "error" for one in found)
    if form == "json":
        click.echo(orjson.dumps([one._asdict() for one in found], option=orjson.OPT_INDENT_2))
    else:
        for one in found:
            terminal.say(
                f"{one.severity}[{one.rule}] {one.slug}: {one.message}\n  help: {one.help}"
            )
    terminal.say(
        f"{total:,} tools verified: {errors:,} changed or gone."
        if errors
        else f"{total:,} tools verified: all are what was locked."
    )
    return 1 if errors else 0
