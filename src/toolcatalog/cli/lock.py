"""`toolcatalog lock`"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import orjson

from toolcatalog import files, locking
from toolcatalog.cli import options, sources, terminal
from toolcatalog.cli.choosing import chosen
from toolcatalog.errors import UsageError, remedy
from toolcatalog.locking import Gone, Lock, Locked
from toolcatalog.opening import open_build
from toolcatalog.store import Store

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
    before = read(lock_file) if lock_file.exists() else {}
    store = open_build(build)
    if not (slugs or toolkits or before):
        raise UsageError(
            f"There is no tool in {lock_file} yet: name those that the application uses, or "
            "a toolkit with --toolkit SLUG."
        )
    found = (
        _named(store, slugs, toolkits)
        if slugs or toolkits
        else {slug: _newest(store, slug) for slug in before}
    )
    changes = {slug: entry for slug, entry in found.items() if isinstance(entry, Locked)}
    upgraded = _upgraded(store, before, found)
    faults = [*_faults(store, before, {**found, **upgraded})]
    terminal.say(
        "\n".join(
            faults
            or [_told(slug, before.get(slug), entry) for slug, entry in sorted(changes.items())]
        )
    )
    if faults:
        terminal.error(
            f"{lock_file} was not written: mend what stands above, or remove those entries from it."
        )
        return 1
    kept = {slug: entry for slug, entry in upgraded.items() if isinstance(entry, Locked)}
    if locking.is_old(before):
        terminal.say(
            f"{lock_file} had format 1, which does not see the order of parameters: all in it is as "
            f"it was locked, and now it has format {locking.FORMAT}."
        )
    _write(lock_file, {**before, **kept, **changes})
    return 0


def read(file: Path) -> dict[str, Locked]:
    """The entries of a lock file. Raises UsageError where it cannot be read, or is none."""
    try:
        return locking.load(file.read_bytes(), str(file))
    except OSError as error:
        raise UsageError(
            f"Cannot read {file} ({error.strerror}): make it with `toolcatalog lock`, or "
            "name another with --lock."
        ) from None


def _named(store: Store, slugs: Sequence[str], toolkits: Sequence[str]) -> dict[str, Locked | Gone]:
    documents = (
        orjson.loads(store.document(number)[0]) for number in chosen(store, slugs, toolkits)
    )
    found: dict[str, Locked | Gone] = {}
    for document in documents:
        if document["slug"] in found:
            raise UsageError(
                f"{document['slug']} is named in two versions: a lock holds one of each tool."
            )
        found[document["slug"]] = locking.locked(document)
    return found


def _newest(store: Store, slug: str) -> Locked | Gone:
    entry = store.tool(slug)
    return (
        locking.locked(orjson.loads(store.document(entry.number(entry.versions[-1]))[0]))
        if entry
        else Gone.TOOL
    )


def _upgraded(
    store: Store, before: Lock, found: Mapping[str, Locked | Gone]
) -> dict[str, Locked | Gone]:
    """The entries of format 1 that are not renewed, in the format of today, each in its version."""
    look = sources.of_store(store)
    documents = {
        slug: look(slug, entry.version)
        for slug, entry in before.items()
        if entry.is_sorted and slug not in found
    }
    return {
        slug: one if isinstance(one, Gone) else locking.locked(one)
        for slug, one in documents.items()
    }


def _faults(store: Store, before: Lock, found: Mapping[str, Locked | Gone]) -> list[str]:
    """What is wrong with the tools to be renewed, as they were locked: that must be seen before a
    newer version hides it. A version that is gone matters only where it is to be kept.
    """
    look = sources.of_store(store)
    differences = [
        locking.difference(slug, before[slug], look(slug, before[slug].version))
        for slug in found
        if slug in before
    ]
    return [
        f"{one.slug}: {one.message} {one.help}"
        for one in differences
        if one
        and (
            one.rule in ("changed", Gone.TOOL.value)
            or (one.rule == Gone.VERSION.value and found[one.slug] is Gone.VERSION)
        )
    ]


def _told(slug: str, before: Locked | None, now: Locked) -> str:
    if before is None:
        return f"{slug}: added, {now.version}"
    return (
        f"{slug}: unchanged, {now.version}"
        if before.version == now.version
        else f"{slug}: {before.version} -> {now.version}"
    )


def _write(file: Path, lock: Lock) -> None:
    try:
        files.replace(file, locking.dump(lock))
    except OSError as error:
        raise UsageError(
            f"Cannot write {file} ({error.strerror}): {remedy(error)}, or name another with --lock."
        ) from None
    terminal.say(f"{len(lock):,} tools in {file}.")
