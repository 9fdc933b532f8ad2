"""`toolcatalog lock`"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import orjson

from toolcatalog import lockfile
from toolcatalog.cli import document_sources, options, output
from toolcatalog.cli.selection import select_tool_ids
from toolcatalog.errors import UsageError, remedy
from toolcatalog.lockfile import Lock, LockedTool, MissingReason
from toolcatalog.store.open import open_build
from toolcatalog.store.store import Store
from toolcatalog.system import files

_EPILOG = """\b
Examples:
  toolcatalog lock GITHUB_CREATE_ISSUE SLACK_SEND_MESSAGE
  toolcatalog lock GITHUB_CREATE_ISSUE@20250715_00
  toolcatalog lock --toolkit github --lock agent.lock
  toolcatalog lock                             every tool in the file to its newest version

Each change is told. Exits with 1, and writes nothing, where a locked tool is gone or was changed under the same version.
"""


@click.command("lock", epilog=_EPILOG)
@click.argument("slugs", metavar="[SLUG[@V]]...", nargs=-1)
@click.option(
    "--toolkit",
    "toolkits",
    multiple=True,
    metavar="SLUG",
    help="All tools of this toolkit; may be given several times.",
)
@options.lock
@options.build
def command(slugs: tuple[str, ...], toolkits: tuple[str, ...], lock_file: Path, build: Path) -> int:
    """Note which version of each tool an application uses, and what it is, for `toolcatalog
    verify`.

    Tools that are named are added to the file, or renewed in it; the others stay as they are.
    Without any, all in the file are renewed.
    """
    before = read_lock_file(lock_file) if lock_file.exists() else {}
    store = open_build(build)
    if not (slugs or toolkits or before):
        raise UsageError(
            f"There is no tool in {lock_file} yet: name those that the application uses, or "
            "a toolkit with --toolkit SLUG."
        )
    found = (
        _lock_named(store, slugs, toolkits)
        if slugs or toolkits
        else {slug: _lock_newest(store, slug) for slug in before}
    )
    changes = {slug: entry for slug, entry in found.items() if isinstance(entry, LockedTool)}
    upgraded = _upgrade_entries(store, before, found)
    faults = [*_find_differences(store, before, {**found, **upgraded})]
    output.print_message(
        "\n".join(
            faults
            or [
                _describe_change(slug, before.get(slug), entry)
                for slug, entry in sorted(changes.items())
            ]
        )
    )
    if faults:
        output.print_error(
            f"{lock_file} was not written: mend what stands above, or remove those entries from it."
        )
        return 1
    kept = {slug: entry for slug, entry in upgraded.items() if isinstance(entry, LockedTool)}
    if lockfile.is_old(before):
        output.print_message(
            f"{lock_file} had format 1, which does not see the order of parameters: all in it is as "
            f"it was locked, and now it has format {lockfile.FORMAT}."
        )
    _write_lock_file(lock_file, {**before, **kept, **changes})
    return 0


def read_lock_file(file: Path) -> dict[str, LockedTool]:
    """The entries of a lock file. Raises UsageError where it cannot be read, or is none."""
    try:
        return lockfile.load(file.read_bytes(), str(file))
    except OSError as error:
        raise UsageError(
            f"Cannot read {file} ({error.strerror}): make it with `toolcatalog lock`, or "
            "name another with --lock."
        ) from None


def _lock_named(
    store: Store, slugs: Sequence[str], toolkits: Sequence[str]
) -> dict[str, LockedTool | MissingReason]:
    documents = (
        orjson.loads(store.read_document(number)[0])
        for number in select_tool_ids(store, slugs, toolkits)
    )
    found: dict[str, LockedTool | MissingReason] = {}
    for document in documents:
        if document["slug"] in found:
            raise UsageError(
                f"{document['slug']} is named in two versions: a lock holds one of each tool."
            )
        found[document["slug"]] = lockfile.lock_tool(document)
    return found


def _lock_newest(store: Store, slug: str) -> LockedTool | MissingReason:
    entry = store.get_tool(slug)
    return (
        lockfile.lock_tool(orjson.loads(store.read_document(entry.tool_id(entry.versions[-1]))[0]))
        if entry
        else MissingReason.TOOL
    )


def _upgrade_entries(
    store: Store, before: Lock, found: Mapping[str, LockedTool | MissingReason]
) -> dict[str, LockedTool | MissingReason]:
    """The entries of format 1 that are not renewed, in the format of today, each in its version."""
    look = document_sources.make_store_source(store)
    documents = {
        slug: look(slug, entry.version)
        for slug, entry in before.items()
        if entry.is_sorted and slug not in found
    }
    return {
        slug: one if isinstance(one, MissingReason) else lockfile.lock_tool(one)
        for slug, one in documents.items()
    }


def _find_differences(
    store: Store, before: Lock, entries: Mapping[str, LockedTool | MissingReason]
) -> list[str]:
    """What is wrong with the tools to be renewed, as they were locked: that must be seen before a
    newer version hides it. A version that is gone matters only where it is to be kept.
    """
    look = document_sources.make_store_source(store)
    differences = [
        lockfile.find_difference(slug, before[slug], look(slug, before[slug].version))
        for slug in entries
        if slug in before
    ]
    return [
        f"{one.slug}: {one.message} {one.help}"
        for one in differences
        if one
        and (
            one.rule in ("changed", MissingReason.TOOL.value)
            or (
                one.rule == MissingReason.VERSION.value
                and entries[one.slug] is MissingReason.VERSION
            )
        )
    ]


def _describe_change(slug: str, before: LockedTool | None, after: LockedTool) -> str:
    if before is None:
        return f"{slug}: added, {after.version}"
    return (
        f"{slug}: unchanged, {after.version}"
        if before.version == after.version
        else f"{slug}: {before.version} -> {after.version}"
    )


def _write_lock_file(file: Path, lock: Lock) -> None:
    try:
        files.write_unsynced(file, lockfile.dump(lock))
    except OSError as error:
        raise UsageError(
            f"Cannot write {file} ({error.strerror}): {remedy(error)}, or name another with --lock."
        ) from None
    output.print_message(f"{len(lock):,} tools in {file}.")
