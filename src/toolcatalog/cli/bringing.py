"""What all imports share: a file's bytes, new tools into a catalog, and what there is to tell of
them.

A new importer hands its `ImportedTool`s to `bring`, which compares them with the catalog, writes what
is new and says so.
"""

import sys
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from toolcatalog import errors
from toolcatalog.catalog import folder as catalog_folder
from toolcatalog.catalog import loader, schema
from toolcatalog.cli import clock, options, terminal
from toolcatalog.errors import UsageError, remedy
from toolcatalog.importers import documents, writer
from toolcatalog.importers.existing import UNDATED_VERSION
from toolcatalog.system import files

MAX_FILE_SIZE = 64 * 1024 * 1024  # bytes of a file that is imported
_CHANGED_HINT = "a published version does not change, so give a new one with --version."
_MAX_TEXT_LENGTH = 160  # characters shown of what was left out
_MAX_LISTED_SLUGS = 10  # tools named of those that have gone

file_argument = click.argument(
    "file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path)
)
into_option = click.option(
    "--into",
    type=options.FOLDER_TYPE,
    required=True,
    help="The catalog to add to; made where there is none.",
)
version_option = click.option(
    "--version",
    default="",
    metavar="V",
    help=(
        f"The version of what is new or changed.  [default: its own; else today's, or {UNDATED_VERSION} "
        "where its toolkit has no tools yet]"
    ),
)


def read_input_file(path: Path, expected: str) -> bytes:
    """The bytes of a file, or of standard input for `-`; `what` is what it should hold. Raises
    UsageError.
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
    """The JSON value of a file, with nothing in it silently changed or dropped. Raises UsageError."""
    data = read_input_file(path, expected)
    with report_deep_nesting(path, expected):
        try:
            return documents.parse_json(data)
        except ValueError as error:
            raise UsageError(f"{path} is not JSON ({error}): give {expected}.") from None


@contextmanager
def report_deep_nesting(path: Path, expected: str) -> Iterator[None]:
    """Say in one sentence that a file's values nest without end: whatever reads it gives up then.
    Raises UsageError.
    """
    try:
        yield
    except RecursionError:
        raise UsageError(f"{path} nests too deeply to be read: give {expected}.") from None


def add_to_catalog(
    into: Path, tools: Iterable[writer.ImportedTool], toolkit: str, version: str
) -> None:
    """Write what of these tools is new to a catalog, all or nothing, and tell what that was and
    what could not be held.
    """
    present = catalog_folder.list_paths(into)[0] if into.is_dir() else []

    def record(path: str) -> schema.Record | None:
        document, _ = loader.load_file(into, path)
        return schema.validate(document)[0] if document and document.is_readable else None

    added = writer.build_files(
        tools, present, toolkit, version, record, f"{clock.today_compact()}_00"
    )
    _write_files(into, added.files)
    terminal.print_message(
        f"Imported {added.tools:,} tools into {into}: {added.new:,} new, {added.updated:,} "
        f"in a new version, {added.unchanged:,} unchanged."
    )
    _report_notes(added.notes)
    _report_missing_tools(added.missing)


def _write_files(into: Path, new: Mapping[str, bytes]) -> None:
    """Write what is not there yet, all or nothing, and nothing through a link."""
    for path in new:
        files.require_no_links(into / path, into)
    written: set[str] = set()
    try:
        changed = [
            path
            for path, data in new.items()
            if (into / path).exists() and (into / path).read_bytes() != data
        ]
        errors.raise_all(
            [f"{into / path} is there and differs: {_CHANGED_HINT}" for path in changed]
        )
        with terminal.show_progress("Writing", len(new)) as advance:
            for path, data in new.items():
                written |= {path} if files.write_if_changed(into / path, data) else set()
                advance(1)
    except OSError as error:
        _undo_writes(into, new, written)
        where = error.filename or into
        raise UsageError(
            f"Cannot write {where} ({error.strerror}): {remedy(error)}, or name another folder."
        ) from None


def _undo_writes(into: Path, new: Iterable[str], written_paths: Container[str]) -> None:
    """Remove of new files those that were written, and all folders that are empty then, as far as
    the disk lets that happen.
    """
    for path in new:
        with suppress(OSError):
            if path in written_paths:
                (into / path).unlink()
            for folder in Path(path).parents:
                (into / folder).rmdir()


def _report_notes(notes: Sequence[writer.ImportNote]) -> None:
    """A line for each kind of thing that was not held: how often, and the first of them."""
    kinds: defaultdict[str, list[writer.ImportNote]] = defaultdict(list)
    for note in notes:
        kinds[note.loss.what].append(note)
    if kinds:
        terminal.print_message("Not held, or not as it came:")
    for what, some in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        first = some[0].loss
        place = " ".join([some[0].subject, ".".join(map(str, first.pointer))]).strip()
        detail = _printable(f" ({first.detail})") if first.detail else ""
        terminal.print_message(
            f"{len(some):>8,}  {_printable(what)}; first: {_printable(place)}{detail}"
        )


def _report_missing_tools(slugs: Sequence[str]) -> None:
    """One line for the tools that the source no longer shows. They stay: whether they are gone only
    people know.
    """
    if slugs:
        more = (
            f" and {len(slugs) - _MAX_LISTED_SLUGS:,} more"
            if len(slugs) > _MAX_LISTED_SLUGS
            else ""
        )
        terminal.print_message(
            f"In the catalog and not in this source, {len(slugs):,}: "
            f"{', '.join(slugs[:_MAX_LISTED_SLUGS])}{more}."
        )
        terminal.print_message(
            "They stay as they are. If one is gone for good, say so: toolcatalog deprecate SLUG"
        )


def _printable(text: str) -> str:
    text = text if len(text) <= _MAX_TEXT_LENGTH else f"{text[: _MAX_TEXT_LENGTH - 3]}..."
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
