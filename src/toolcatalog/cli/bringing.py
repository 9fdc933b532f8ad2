"""What all imports share: a file's bytes, new tools into a catalog, and what there is to tell of
them.

A new importer hands its `Addition`s to `bring`, which compares them with the catalog, writes what
is new and says so.
"""

import sys
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from toolcatalog import files, schema, source, tree
from toolcatalog.cli import clock, options, terminal
from toolcatalog.errors import UsageError, remedy
from toolcatalog.importers import additions, documents
from toolcatalog.importers.standing import UNDATED

LARGEST = 64 * 1024 * 1024  # bytes of a file that is imported
_HELP = "a published version does not change, so give a new one with --version."
_LONGEST = 160  # characters shown of what was left out
_NAMED = 10  # tools named of those that have gone

file = click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
into = click.option(
    "--into",
    type=options.FOLDER,
    required=True,
    help="The catalog to add to; made where there is none.",
)
version = click.option(
    "--version",
    default="",
    metavar="V",
    help=(
        f"The version of what is new or changed.  [default: its own; else today's, or {UNDATED} "
        "where its toolkit has no tools yet]"
    ),
)


def content(path: Path, what: str) -> bytes:
    """The bytes of a file, or of standard input for `-`; `what` is what it should hold. Raises
    UsageError.
    """
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with path.open("rb") as stream:
                data = stream.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"Cannot read {path} ({error.strerror}): name a file of {what}.") from None
    if len(data) > LARGEST:
        raise UsageError(
            f"{path} is larger than {LARGEST // 1024**2} MiB: import a part of it at a time."
        )
    return data


def json_value(path: Path, what: str) -> Any:
    """The JSON value of a file, with nothing in it silently changed or dropped. Raises UsageError."""
    data = content(path, what)
    with bounded(path, what):
        try:
            return documents.json_value(data)
        except ValueError as error:
            raise UsageError(f"{path} is not JSON ({error}): give {what}.") from None


@contextmanager
def bounded(path: Path, what: str) -> Iterator[None]:
    """Say in one sentence that a file's values nest without end: whatever reads it gives up then.
    Raises UsageError.
    """
    try:
        yield
    except RecursionError:
        raise UsageError(f"{path} nests too deeply to be read: give {what}.") from None


def bring(into: Path, found: Iterable[additions.Addition], toolkit: str, version: str) -> None:
    """Write what of these tools is new to a catalog, all or nothing, and tell what that was and
    what could not be held.
    """
    present = tree.scan(into)[0] if into.is_dir() else []

    def record(path: str) -> schema.Record | None:
        document, _ = source.load(into, path)
        return schema.record(document)[0] if document and document.readable else None

    added = additions.files(found, present, toolkit, version, record, f"{clock.day()}_00")
    _write(into, added.tree)
    terminal.say(
        f"Imported {added.tools:,} tools into {into}: {added.new:,} new, {added.renewed:,} "
        f"in a new version, {added.unchanged:,} unchanged."
    )
    _tell(added.notes)
    _tell_gone(added.gone)


def _write(into: Path, new: Mapping[str, bytes]) -> None:
    """Write what is not there yet, all or nothing, and nothing through a link."""
    for path in new:
        files.refuse_links(into / path, into)
    written: set[str] = set()
    try:
        changed = [
            path
            for path, data in new.items()
            if (into / path).exists() and (into / path).read_bytes() != data
        ]
        additions.stop([f"{into / path} is there and differs: {_HELP}" for path in changed])
        with terminal.track("Writing", len(new)) as advance:
            for path, data in new.items():
                written |= {path} if files.write_changed(into / path, data) else set()
                advance(1)
    except OSError as error:
        _take_back(into, new, written)
        where = error.filename or into
        raise UsageError(
            f"Cannot write {where} ({error.strerror}): {remedy(error)}, or name another folder."
        ) from None


def _take_back(into: Path, new: Iterable[str], written: Container[str]) -> None:
    """Remove of new files those that were written, and all folders that are empty then, as far as
    the disk lets that happen.
    """
    for path in new:
        with suppress(OSError):
            if path in written:
                (into / path).unlink()
            for folder in Path(path).parents:
                (into / folder).rmdir()


def _tell(notes: Sequence[additions.Note]) -> None:
    """A line for each kind of thing that was not held: how often, and the first of them."""
    kinds: defaultdict[str, list[additions.Note]] = defaultdict(list)
    for note in notes:
        kinds[note.loss.what].append(note)
    if kinds:
        terminal.say("Not held, or not as it came:")
    for what, some in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        first = some[0].loss
        place = " ".join([some[0].of, ".".join(map(str, first.pointer))]).strip()
        detail = _printable(f" ({first.detail})") if first.detail else ""
        terminal.say(f"{len(some):>8,}  {_printable(what)}; first: {_printable(place)}{detail}")


def _tell_gone(slugs: Sequence[str]) -> None:
    """One line for the tools that the source no longer shows. They stay: whether they are gone only
    people know.
    """
    if slugs:
        more = f" and {len(slugs) - _NAMED:,} more" if len(slugs) > _NAMED else ""
        terminal.say(
            f"In the catalog and not in this source, {len(slugs):,}: "
            f"{', '.join(slugs[:_NAMED])}{more}."
        )
        terminal.say(
            "They stay as they are. If one is gone for good, say so: toolcatalog deprecate SLUG"
        )


def _printable(text: str) -> str:
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
