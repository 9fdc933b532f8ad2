"""`toolcatalog lock`: write and update the lock file of an application."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import orjson

from toolcatalog import lockfile
from toolcatalog.cli import document_sources, lock_check, options, output
from toolcatalog.cli.selection import select_tool_ids
from toolcatalog.errors import UsageError, write_error
from toolcatalog.exports.definitions import KEY_VARIABLE
from toolcatalog.lockfile import Lock, LockedTool, MissingReason
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Store
from toolcatalog.system import files
from toolcatalog.textutils import pluralize

_EPILOG = f"""\b
Examples:
  toolcatalog lock GITHUB_CREATE_ISSUE SLACK_SEND_MESSAGE
  toolcatalog lock GITHUB_CREATE_ISSUE@20250715_00
  toolcatalog lock --toolkit github,slack --lock agent.lock
  toolcatalog lock                             every tool in the file to its newest version
  toolcatalog lock --check                     compare with the build
  toolcatalog lock --check --catalog catalog --lock agent.lock
  {KEY_VARIABLE}=tc_... toolcatalog lock --check --url https://tools.example.com --format json

Exits with 1 if a locked tool has changed under the same version or is missing. Then nothing is
written. A deprecated tool is only reported. A tool that a server does not show to this key is
missing.
"""


@click.command("lock", epilog=_EPILOG)
@click.argument("slugs", metavar="[SLUG[@V]]...", nargs=-1)
@options.toolkits("All tools of this toolkit")
@options.lock
@options.build
@click.option(
    "--check", is_flag=True, help="Compare the locked tools with a source; write nothing."
)
@click.option(
    "--catalog",
    type=options.FOLDER_TYPE,
    help="With --check: compare with this folder of YAML files instead of a build.",
)
@click.option(
    "--url",
    metavar="BASE",
    help=f"With --check: compare with this server; the key is in {KEY_VARIABLE}.",
)
@options.output_formats("text", "json")
def command(
    slugs: tuple[str, ...],
    toolkits: tuple[str, ...],
    lock_file: Path,
    build: Path,
    check: bool,
    catalog: Path | None,
    url: str | None,
    output_format: str,
) -> int:
    """Lock the versions and definitions of the tools that an application uses.

    Named tools are added to the file, or updated in it; the others stay. Without names, all tools
    in the file are updated. With --check, the file is compared with a build, a catalog or a server.
    """
    if check:
        if slugs or toolkits:
            raise UsageError("--check compares all tools in the file: name no tool or toolkit.")
        return lock_check.check_lock_file(lock_file, (build, catalog, url), output_format)
    if catalog or url or output_format != "text":
        raise UsageError("--catalog, --url and --format go with --check.")
    return _update_lock_file(slugs, toolkits, lock_file, build)


def _update_lock_file(
    slugs: Sequence[str], toolkits: Sequence[str], lock_file: Path, build: Path
) -> int:
    previous = lock_check.read_lock_file(lock_file) if lock_file.exists() else {}
    store = open_build(build)
    if not (slugs or toolkits or previous):
        raise UsageError(
            f"There is no tool in {lock_file} yet: name those that the application uses, or "
            "a toolkit with --toolkit SLUG."
        )
    requested = (
        _lock_named(store, slugs, toolkits)
        if slugs or toolkits
        else {slug: _lock_newest(store, slug) for slug in previous}
    )
    changes = {slug: entry for slug, entry in requested.items() if isinstance(entry, LockedTool)}
    upgraded = _upgrade_entries(store, previous, requested)
    faults = [*_find_differences(store, previous, {**requested, **upgraded})]
    for message in faults or (
        _describe_change(slug, previous.get(slug), entry) for slug, entry in sorted(changes.items())
    ):
        output.print_message(message)
    if faults:
        output.print_error(
            f"{lock_file} was not written: fix the problems above, or remove those entries from it."
        )
        return 1
    unchanged = {slug: entry for slug, entry in upgraded.items() if isinstance(entry, LockedTool)}
    if lockfile.is_old(previous):
        output.print_message(
            f"{lock_file} had format 1, which ignores the order of parameters: all entries are "
            f"unchanged, and now it has format {lockfile.FORMAT}."
        )
    _write_lock_file(lock_file, {**previous, **unchanged, **changes})
    return 0


def _lock_named(
    store: Store, slugs: Sequence[str], toolkits: Sequence[str]
) -> dict[str, LockedTool | MissingReason]:
    documents = (
        orjson.loads(store.read_document(number)[0])
        for number in select_tool_ids(store, slugs, toolkits)
    )
    entries: dict[str, LockedTool | MissingReason] = {}
    for document in documents:
        if document["slug"] in entries:
            raise UsageError(
                f"{document['slug']} is named in two versions: a lock file contains one of each "
                f"tool."
            )
        entries[document["slug"]] = lockfile.lock_tool(document)
    return entries


def _lock_newest(store: Store, slug: str) -> LockedTool | MissingReason:
    entry = store.get_tool(slug)
    return (
        lockfile.lock_tool(orjson.loads(store.read_document(entry.tool_id(entry.versions[-1]))[0]))
        if entry
        else MissingReason.TOOL
    )


def _upgrade_entries(
    store: Store, previous: Lock, requested: Mapping[str, LockedTool | MissingReason]
) -> dict[str, LockedTool | MissingReason]:
    """Return the entries of format 1 that are not locked again, in the current format."""
    get_document = document_sources.make_store_source(store)
    documents = {
        slug: get_document(slug, entry.version)
        for slug, entry in previous.items()
        if entry.is_sorted and slug not in requested
    }
    return {
        slug: document if isinstance(document, MissingReason) else lockfile.lock_tool(document)
        for slug, document in documents.items()
    }


def _find_differences(
    store: Store, previous: Lock, entries: Mapping[str, LockedTool | MissingReason]
) -> list[str]:
    """Return the differences of the tools to be locked again from their previous entries.

    They are reported before a newer version hides them. A missing version only matters if it is to
    be kept.
    """
    get_document = document_sources.make_store_source(store)
    differences = [
        lockfile.find_difference(slug, previous[slug], get_document(slug, previous[slug].version))
        for slug in entries
        if slug in previous
    ]
    return [
        f"{difference.slug}: {difference.message} {difference.help}"
        for difference in differences
        if difference
        and (
            difference.rule in ("changed", MissingReason.TOOL.value)
            or (
                difference.rule == MissingReason.VERSION.value
                and entries[difference.slug] is MissingReason.VERSION
            )
        )
    ]


def _describe_change(slug: str, previous: LockedTool | None, entry: LockedTool) -> str:
    if previous is None:
        return f"{slug}: added, {entry.version}"
    return (
        f"{slug}: unchanged, {entry.version}"
        if previous.version == entry.version
        else f"{slug}: {previous.version} -> {entry.version}"
    )


def _write_lock_file(file: Path, lock: Lock) -> None:
    try:
        files.write_unsynced(file, lockfile.dump(lock))
    except OSError as error:
        raise write_error(file, error, ", or name another with --lock") from None
    output.print_message(f"{pluralize(len(lock), 'tool')} in {file}.")
