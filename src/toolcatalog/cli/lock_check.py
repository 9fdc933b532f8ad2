"""`toolcatalog lock --check`: compare the tools in a lock file with a build, catalog or server."""

import os
from pathlib import Path

import click
import orjson
from click.core import ParameterSource

from toolcatalog import lockfile
from toolcatalog.cli import document_sources, http_client, output
from toolcatalog.errors import UsageError
from toolcatalog.exports.definitions import KEY_VARIABLE
from toolcatalog.lockfile import Difference, DocumentSource, LockedTool
from toolcatalog.system import files
from toolcatalog.textutils import pluralize

_MAX_FILE_SIZE = 64 << 20  # bytes

Sources = tuple[Path, Path | None, str | None]  # a build, a catalog and the URL of a server


def read_lock_file(file: Path) -> dict[str, LockedTool]:
    """Return the entries of a lock file. Raises UsageError if it is unreadable or invalid."""
    try:
        return lockfile.load(files.read_limited(file, _MAX_FILE_SIZE), str(file))
    except OSError as error:
        raise UsageError(
            f"Cannot read {file} ({error.strerror}): make it with `toolcatalog lock`, or "
            "name another with --lock."
        ) from None


def check_lock_file(lock_file: Path, sources: Sources, output_format: str) -> int:
    """Compare the tools in a lock file with one of the sources; return the exit code.

    Raises UsageError if several sources are given, or if one cannot be read.
    """
    build, catalog, url = sources
    is_build_given = (
        click.get_current_context().get_parameter_source("build") == ParameterSource.COMMANDLINE
    )
    if sum([is_build_given, catalog is not None, url is not None]) > 1:
        raise UsageError("Give one of --build, --catalog and --url: one source at a time.")
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
            f"{lock_file} has format 1, which ignores the order of parameters: "
            f"`toolcatalog lock {slug}@{entry.version}` writes it in format {lockfile.FORMAT}, "
            "with the same versions."
        )
    return _print_differences(differences, len(lock), output_format)


def _open_source(build: Path, catalog: Path | None, url: str | None) -> DocumentSource:
    if url is not None:
        return http_client.open_server_source(url, os.environ.get(KEY_VARIABLE, "").strip())
    return (
        document_sources.open_catalog_source(catalog)
        if catalog
        else document_sources.open_build_source(build)
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
            click.echo(
                f"{difference.severity}[{difference.rule}] {difference.slug}:"
                f" {difference.message}\n  help: {difference.help}"
            )
    output.print_message(
        f"{pluralize(total, 'tool')} verified: {errors:,} changed or gone."
        if errors
        else f"{pluralize(total, 'tool')} verified: all are unchanged."
    )
    return 1 if errors else 0
