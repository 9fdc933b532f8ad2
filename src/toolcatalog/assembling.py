"""Parts to the files of a snapshot, one part after another, so that memory does not grow with the
documents.

The parts come in the order of their slugs, which is the order of the numbers. Documents of the
newest versions go to the front of `tools.json` while those of older ones wait in a file of their
own: what is listed without any filter is one run of bytes.
"""

import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import orjson
from pyroaring import BitMap

from toolcatalog import columns, files, nearness, snapshot, table
from toolcatalog.choices import usable
from toolcatalog.errors import UsageError
from toolcatalog.parts import Facts, Part
from toolcatalog.progress import Advance
from toolcatalog.snapshot import Contents, Stated

_BLOCK = 1 << 20  # bytes
_OLDER = ".older"


class Assembly:
    """A snapshot being put together in an empty folder; `files` is what has been written of it so
    far, by path.
    """

    def __init__(self, folder: Path, contents: Contents) -> None:
        self.folder = folder
        self.contents = contents
        self.files: dict[str, Stated] = {}
        self.folders: set[str] = set()

    def write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write one file, and note its size and SHA-256."""
        if "/" in path and path.rpartition("/")[0] not in self.folders:
            (self.folder / path).parent.mkdir(parents=True)
            self.folders.add(path.rpartition("/")[0])
        self.files[path] = Stated(*files.pour(self.folder / path, pieces))

    def tools(self, parts: Iterable[Part], versions: Mapping[str, int], advance: Advance) -> None:
        """Write everything about tools but the words. `versions`: how many tool versions each
        toolkit has.
        """
        known, indexes = _Columns(self.contents), _Indexes(self, versions)

        def through() -> Iterator[Part]:
            for part in parts:
                known.add(part.facts)
                indexes.add(part)
                yield part
                advance(1)

        older = self.folder / _OLDER
        with older.open("xb+") as waiting:
            self.write(snapshot.DOCUMENTS, _documents(through(), waiting))
        older.unlink()
        self.write(snapshot.NUMBERS, [known.numbers()])
        self.write(snapshot.TOOLS, known.tools())
        self.write(snapshot.SETS, known.sets())

    def take(self, folder: Path, stated: Mapping[str, Stated]) -> None:
        """Take over files that were written into another folder."""
        for path in stated:
            files.move(folder / path, self.folder / path)
        self.files |= stated

    def rest(self) -> None:
        """Write what is not about tools."""
        for path, data in snapshot.small_files(self.contents).items():
            self.write(path, [data])
        self.write(snapshot.FACTS, _table(snapshot.facts(self.contents)))

    def seal(self, counts: Mapping[str, int]) -> str:
        """Write the listing and the manifest: the digest that names the snapshot.

        Raises UsageError where there are more files than a snapshot can list.
        """
        deep = {path: said for path, said in self.files.items() if "/" in path}
        listing = snapshot.listing(deep)
        if len(deep) > snapshot.MOST_FILES or len(listing) > snapshot.MOST_LISTING:
            raise UsageError(
                f"The catalog has {len(deep):,} versions of toolkits, sessions and auth configs, "
                f"and a snapshot lists at most {snapshot.MOST_FILES:,}: split the catalog."
            )
        self.write(snapshot.LISTING, [listing])
        digest, manifest = snapshot.seal(
            self.contents.about,
            counts,
            {path: self.files[path] for path in self.files.keys() - deep.keys()},
        )
        self.write(snapshot.MANIFEST, [manifest])
        return digest


def vectors(folder: Path, batches: Iterable[bytes]) -> dict[str, Stated]:
    """Write the vectors of all tools, from those of all parts."""
    return written(folder, {snapshot.VECTORS: nearness.pack(batches)})


def written(folder: Path, pieces: Mapping[str, Iterable[bytes | memoryview]]) -> dict[str, Stated]:
    """Write files in their order, each from its pieces."""
    found = {}
    for path, some in pieces.items():
        (folder / path).unlink(missing_ok=True)  # of an attempt that came upon damage
        found[path] = Stated(*files.pour(folder / path, some))
    return found


def _table(values: Mapping[str, bytes]) -> Iterator[bytes]:
    names = sorted(values)
    return table.pack(
        names, [len(values[name]) for name in names], (values[name] for name in names)
    )


def _documents(parts: Iterable[Part], waiting: IO[bytes]) -> Iterator[bytes]:
    """The documents as a JSON array: the newest of each tool, then the older ones."""
    before = b"["
    for part in parts:
        if part.newest:
            yield before
            yield part.newest
            before = b","
        if part.older:
            waiting.writelines((part.older, b","))
    end = waiting.tell() - 1
    waiting.seek(0)
    if end > 0:
        yield b","
    while end > 0:
        block = waiting.read(min(_BLOCK, end))
        end -= len(block)
        yield block
    yield b"]" if before == b"," else b"[]"


class _Columns:
    """What is known of each tool version, by number."""

    def __init__(self, contents: Contents) -> None:
        self.configs = defaultdict(list)
        for config in contents.auth_configs:
            self.configs[config.toolkit].append(config)
        self.sizes, self.checks, self.newest, self.digests = (
            array("I"),
            array("I"),
            bytearray(),
            bytearray(),
        )
        self.names, self.slugs = _Texts(), _Texts()
        self.versions: list[str] = []
        self.entries, self.lengths = bytearray(), array("I")
        self.members: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))

    def add(self, facts: Facts) -> None:
        before = len(self.sizes)
        self.sizes.extend(facts.sizes)
        self.checks.extend(facts.checks)
        self.newest += bytes(facts.newest)
        self.digests += bytes.fromhex(
            "".join([digest[: 2 * snapshot.TAG] for digest in facts.digests])
        )
        self.names.add(facts.names)
        self.versions += map(sys.intern, facts.versions)
        self.slugs.add([slug for slug, _, _ in facts.entries])  # they come in their order
        entries = [
            (before + place).to_bytes(4, "little") + entry.encode()
            for _, place, entry in facts.entries
        ]
        self.entries += b"".join(entries)
        self.lengths.extend(map(len, entries))
        for name, places in facts.sets.items():
            self.members[name].extend([before + place for place in places])
        if not self.configs.keys().isdisjoint(facts.toolkits):
            self.add_usable(facts, before)

    def add_usable(self, facts: Facts, before: int) -> None:
        """Add what the auth configs of a toolkit can use."""
        for number, (toolkit, slug, scopes) in enumerate(
            zip(facts.toolkits, facts.slugs, facts.scopes, strict=True), before
        ):
            for config in self.configs.get(toolkit, ()):
                if usable(config, slug, scopes):
                    self.members[f"auth_config {config.id}"].append(number)

    def numbers(self) -> bytes:
        """The columns of NUMBERS."""
        newest = np.frombuffer(self.newest, bool)
        number = np.concatenate([np.flatnonzero(newest), np.flatnonzero(~newest)])  # by place
        place = np.empty_like(number)
        place[number] = np.arange(len(number))
        # with the comma or bracket that follows
        lengths = np.array(self.sizes, np.int64)[number] + 1
        return columns.pack(
            {
                "offset": np.cumsum(np.append(1, lengths)),
                "tag": np.frombuffer(self.digests, f"V{snapshot.TAG}")[number],
                "check": np.array(self.checks)[number],
                "number": number,
                "place": place,
                "name": np.array(_ranks(self.names.every())),
                "version": np.array(_ranks(self.versions)),
            }
        )

    def tools(self) -> Iterator[bytes]:
        """The table of slugs."""
        ends = accumulate(self.lengths, initial=0)
        return table.pack(
            self.slugs.every(),
            self.lengths,
            (bytes(self.entries[start:end]) for start, end in pairwise(ends)),
        )

    def sets(self) -> Iterator[bytes]:
        """The table of sets."""
        return _table({name: _bitmap(members) for name, members in self.members.items()})


class _Texts:
    """Texts in their order, in the few bytes that they take as JSON: there may be millions of them."""

    def __init__(self) -> None:
        self.some = bytearray(b"[")

    def add(self, texts: Sequence[str]) -> None:
        self.some += snapshot.dump(texts)[1:-1] + b"," if texts else b""

    def every(self) -> list[str]:
        found: list[str] = orjson.loads(self.some[:-1] + b"]" if len(self.some) > 1 else b"[]")
        return found


def _ranks(texts: list[str]) -> list[int]:
    """Of each text its place among the distinct texts, by code point."""
    places = {text: place for place, text in enumerate(sorted({*texts}))}
    return [places[text] for text in texts]


def _bitmap(members: Any) -> bytes:
    bitmap = BitMap(members)
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    return data


class _Indexes:
    """The indexes of the toolkits, each written as soon as the last of its tools has come."""

    def __init__(self, assembly: Assembly, versions: Mapping[str, int]) -> None:
        self.assembly = assembly
        self.left = dict(versions)
        self.toolkits = {toolkit.slug: toolkit for toolkit in assembly.contents.toolkits}
        self.rows: defaultdict[str, list[tuple[str, str, bytes]]] = defaultdict(list)

    def add(self, part: Part) -> None:
        end = 0
        for toolkit, slug, version, size in zip(
            part.facts.toolkits, part.facts.slugs, part.facts.versions, part.facts.rows, strict=True
        ):
            start, end = end, end + size
            self.rows[toolkit].append((slug, version, part.rows[start:end]))
            self.left[toolkit] -= 1
            if not self.left[toolkit]:
                self.finish(toolkit)

    def finish(self, slug: str) -> None:
        toolkit, rows = self.toolkits[slug], self.rows.pop(slug)
        for version in toolkit.versions:
            # sorted by slug and version: the newest wins
            in_force = {tool: row for tool, of, row in rows if of <= version}
            self.assembly.write(
                snapshot.index_path(slug, version),
                [snapshot.index(toolkit, version, in_force.values())],
            )
