"""`toolcatalog import`"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from toolcatalog import files, tree
from toolcatalog.cli import options, terminal
from toolcatalog.errors import UsageError
from toolcatalog.importers import additions, wire

_EPILOG = """\b
Examples:
  toolcatalog import wire tools.json --into catalog
  toolcatalog import wire github.json --into catalog --toolkit github --version 20251027_00
  curl -H "x-api-key: $KEY" "$URL/api/v3/tools?limit=1000" | toolcatalog import wire - --into catalog

Exits with 2, and writes nothing, where a definition is none or a file of the catalog would change.
"""
_HELP = "a published version does not change, so give a new one with --version."
_LONGEST = 160  # characters shown of what was left out


@click.group("import", epilog=_EPILOG)
def command() -> None:
    """Turn tool definitions of another form into catalog files."""


@command.command("wire", epilog=_EPILOG)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--into", type=options.FOLDER, required=True, help="The catalog to add to; made where there is none.")
@click.option("--toolkit", default="", metavar="SLUG", help="The toolkit of those that name none.  [default: the slug's first words]")
@click.option("--version", default="", metavar="V", help=f"The version of all.  [default: the definition's, else {additions.UNDATED}]")
def import_wire(file: Path, into: Path, toolkit: str, version: str) -> None:
    """Add the tool definitions in FILE, as APIs of this family send them, to a catalog.

    FILE is a JSON array of definitions or a page of a list ({"items": [...]}); `-` reads standard input. All that the catalog format
    can hold is kept; what it cannot hold is listed.
    """
    present = tree.scan(into)[0] if into.is_dir() else []
    try:
        added = additions.files(wire.additions(_json(file)), present, toolkit, version)
    except RecursionError:
        raise UsageError(f"{file} nests too deeply to be read: give tool definitions as an API sends them.") from None
    written = _write(into, added.tree)
    there = len(added.tree) - written
    terminal.say(f"Imported {added.tools:,} tools into {into}: {written:,} files written, {there:,} were there already.")
    _tell(added.notes)


def _json(file: Path) -> Any:
    """The JSON value of a file, with nothing in it silently changed or dropped."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return json.loads(data, object_pairs_hook=_once, parse_constant=_no_number)
    except OSError as error:
        raise UsageError(f"Cannot read {file} ({error.strerror}): name a file of tool definitions.") from None
    except ValueError as error:
        raise UsageError(f"{file} is not JSON ({error}): give tool definitions as an API sends them.") from None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        raise ValueError(f"key {twice!r} stands twice in one object")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _write(into: Path, tree: Mapping[str, bytes]) -> int:
    """Write what is not there yet, all or nothing; tell how many files that were."""
    try:
        changed = [path for path, data in tree.items() if (into / path).exists() and (into / path).read_bytes() != data]
        additions.stop([f"{into / path} is there and differs: {_HELP}" for path in changed])
        written = 0
        with terminal.track("Writing", len(tree)) as advance:
            for path, data in tree.items():
                written += files.write_changed(into / path, data)
                advance(1)
        return written
    except OSError as error:
        where = error.filename or into
        raise UsageError(f"Cannot write {where} ({error.strerror}): mend its permissions, or name another folder.") from None


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
        terminal.say(f"{len(some):>8,}  {what}; first: {_printable(place)}{_printable(f' ({first.detail})') if first.detail else ''}")


def _printable(text: str) -> str:
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
