"""The snapshot writer: compiled batches to the files of a snapshot, batch by batch.

Batches arrive in slug order, which is also the order of the tool numbers. The documents of the
newest versions go to the front of `tools.json`; those of older versions wait in a temporary file.
So a listing without filters is one contiguous run of bytes.
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

from toolcatalog import encoding
from toolcatalog.build.cache import CompiledBatch, ToolColumns
from toolcatalog.catalog.sessions import make_usability_check
from toolcatalog.errors import UsageError
from toolcatalog.progress import Advance
from toolcatalog.search.embeddings import vectors
from toolcatalog.search.index import frequent_terms
from toolcatalog.search.index.index_reader import TextIndex
from toolcatalog.snapshot import compression, tables
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import FileInfo, SnapshotContents
from toolcatalog.snapshot.mapped_files import Access, Buffer, map_file, release
from toolcatalog.snapshot.tables import Table
from toolcatalog.system import files

_BLOCK_SIZE = 1 << 20  # bytes
_OLDER_FILE = ".older"
# the most that the indexes of toolkits have: a small catalog must not fill the disk
_BASE_INDEX_SIZE, _INDEX_SIZE_PER_VERSION = 1 << 30, 128 << 10  # bytes


class SnapshotWriter:
    """A snapshot under construction in an empty folder.

    `written` maps the path of each file written so far to its size and digest.
    """

    def __init__(self, folder: Path, contents: SnapshotContents) -> None:
        self.folder = folder
        self.contents = contents
        self.written: dict[str, FileInfo] = {}
        self.created_folders: set[str] = set()
        self.replacements: dict[str, str] = {}  # by the slug of a deprecated tool

    def write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write one file, and record its size and SHA-256."""
        if "/" in path and path.rpartition("/")[0] not in self.created_folders:
            (self.folder / path).parent.mkdir(parents=True)
            self.created_folders.add(path.rpartition("/")[0])
        self.written[path] = FileInfo(*files.write_new(self.folder / path, pieces))

    def write_tools(
        self, batches: Iterable[CompiledBatch], versions: Mapping[str, int], advance: Advance
    ) -> None:
        """Write everything about tools except the text index.

        `versions` is the number of tool versions of each toolkit.
        """
        tool_tables, indexes = _ToolTables(self.contents), _IndexWriter(self, versions)

        def add_batches() -> Iterator[CompiledBatch]:
            for batch in batches:
                tool_tables.add(batch.facts)
                self.replacements.update(_find_replacements(batch.facts))
                indexes.add(batch)
                yield batch
                advance(1)

        older = self.folder / _OLDER_FILE
        with older.open("xb+") as older_file:
            self.write(snapshot_format.DOCUMENTS, _document_pieces(add_batches(), older_file))
        older.unlink()
        self.write(snapshot_format.NUMBERS, [tool_tables.pack_numbers()])
        self.write(snapshot_format.TOOLS, tool_tables.pack_slugs())
        self.write(snapshot_format.SETS, tool_tables.pack_sets())

    def write_compressed_documents(self, previous: Path) -> None:
        """Write the compressed documents; those of the previous snapshot are copied.

        They are not part of the digest, so they are not recorded as written.
        """
        sha256 = self.written[snapshot_format.DOCUMENTS].sha256
        compression.write_compressed_documents(self.folder, sha256, previous)

    def adopt_files(self, folder: Path, written_files: Mapping[str, FileInfo]) -> None:
        """Move files that were written to another folder into the snapshot."""
        for path in written_files:
            files.move(folder / path, self.folder / path)
        self.written |= written_files

    def write_other_files(self) -> None:
        """Write the files that are not about tools."""
        for path, data in snapshot_format.render_auth_configs(self.contents).items():
            self.write(path, [data])
        facts = snapshot_format.render_facts(self.contents)
        for slug, replacement in self.replacements.items():
            facts[f"replacement {slug}"] = encoding.dump_json(replacement)
        responses = {}  # paths by the name of the fact that ends with the response
        if self.contents.router:
            for session in self.contents.sessions:  # one at a time: they may be large
                path, name = snapshot_format.session_path(session.id), f"session {session.id}"
                response = snapshot_format.render_session_response(session, self.contents.router)
                self.write(path, [response])
                facts[name], responses[name] = snapshot_format.render_session_head(session), path
        self.write(snapshot_format.FACTS, self._pack_facts(facts, responses))

    def _pack_facts(
        self, facts: Mapping[str, bytes], responses: Mapping[str, str]
    ) -> Iterator[bytes]:
        """Yield the pieces of the table of facts; responses are read from their files."""
        names = sorted(facts)
        sizes = [
            len(facts[name]) + (self.written[responses[name]].size if name in responses else 0)
            for name in names
        ]
        values = (
            facts[name]
            + ((self.folder / responses[name]).read_bytes() if name in responses else b"")
            for name in names
        )
        return tables.pack_table(names, sizes, values)

    def finish(self, counts: Mapping[str, int]) -> str:
        """Write the file list and the manifest, and return the digest that names the snapshot.

        Raises UsageError if there are more files than a snapshot can list.
        """
        nested = {path: info for path, info in self.written.items() if "/" in path}
        listing = snapshot_format.render_file_list(nested)
        if (
            len(nested) > snapshot_format.MAX_FILES
            or len(listing) > snapshot_format.MAX_FILE_LIST_SIZE
        ):
            raise UsageError(
                f"The catalog has {len(nested):,} versions of toolkits, sessions and auth configs, "
                f"and a snapshot lists at most {snapshot_format.MAX_FILES:,}: split the catalog."
            )
        self.write(snapshot_format.FILE_LIST, [listing])
        digest, manifest = snapshot_format.seal_manifest(
            self.contents.about,
            counts,
            {path: self.written[path] for path in self.written.keys() - nested.keys()},
        )
        self.write(snapshot_format.MANIFEST, [manifest])
        return digest


def write_vectors(folder: Path, batches: Iterable[bytes]) -> dict[str, FileInfo]:
    """Write the vectors of all tools, from those of the batches in order."""
    return write_files(folder, {snapshot_format.VECTORS: vectors.pack_vectors(batches)})


def write_frequent_terms(folder: Path) -> dict[str, FileInfo]:
    """Write the frequent terms of the text index in the folder, if the catalog is large."""
    tool_count = (folder / snapshot_format.COVERS).stat().st_size // snapshot_format.COVER_SIZE
    if tool_count < frequent_terms.MIN_TOOLS:
        return {}
    data = {
        path: map_file(folder / path, Access.RANDOM)
        for path in (snapshot_format.WORDS, snapshot_format.POSTINGS, snapshot_format.COVERS)
    }
    index = TextIndex(Table(data[snapshot_format.WORDS]), data, tool_count)
    pieces = _release_after_each(index.pack_frequent_terms(), data[snapshot_format.POSTINGS])
    return write_files(folder, {snapshot_format.FREQUENT: pieces})


def _release_after_each(pieces: Iterable[bytes], data: Buffer) -> Iterator[bytes]:
    """Yield the pieces, and release the mapped file that they are made from after each."""
    for piece in pieces:
        yield piece
        release(data)


def write_files(
    folder: Path, pieces: Mapping[str, Iterable[bytes | memoryview]]
) -> dict[str, FileInfo]:
    """Write each file from its pieces, in the given order."""
    written = {}
    for path, file_pieces in pieces.items():
        (folder / path).unlink(missing_ok=True)  # left by an attempt that met a damaged batch
        written[path] = FileInfo(*files.write_new(folder / path, file_pieces))
    return written


def _pack_table(values: Mapping[str, bytes]) -> Iterator[bytes]:
    names = sorted(values)
    return tables.pack_table(
        names, [len(values[name]) for name in names], (values[name] for name in names)
    )


def _document_pieces(batches: Iterable[CompiledBatch], older_file: IO[bytes]) -> Iterator[bytes]:
    """Yield the documents as one JSON array: the newest version of each tool, then the older
    ones.
    """
    separator = b"["
    for batch in batches:
        if batch.newest:
            yield separator
            yield batch.newest
            separator = b","
        if batch.older:
            older_file.writelines((batch.older, b","))
    end = older_file.tell() - 1
    older_file.seek(0)
    if end > 0:
        yield b","
    while end > 0:
        block = older_file.read(min(_BLOCK_SIZE, end))
        end -= len(block)
        yield block
    yield b"]" if separator == b"," else b"[]"


def _find_replacements(columns: ToolColumns) -> Iterator[tuple[str, str]]:
    """Yield the slug of each tool whose newest version is deprecated, and of its replacement."""
    for slug, is_newest, replacement in zip(
        columns.slugs, columns.newest, columns.replaced, strict=True
    ):
        if is_newest and replacement:
            yield slug, replacement


class _ToolTables:
    """The query tables: what the snapshot stores of each tool version, by number."""

    def __init__(self, contents: SnapshotContents) -> None:
        self.auth_configs = defaultdict(list)  # name of the set, and its check, by toolkit
        for config in contents.auth_configs:
            self.auth_configs[config.toolkit].append(
                (f"auth_config {config.id}", make_usability_check(config))
            )
        self.sizes, self.checksums, self.newest, self.digests = (
            array("I"),
            array("I"),
            bytearray(),
            bytearray(),
        )
        self.names, self.slugs = _TextList(), _TextList()
        self.versions: list[str] = []
        self.entries, self.entry_lengths = bytearray(), array("I")
        self.members: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))

    def add(self, columns: ToolColumns) -> None:
        first_number = len(self.sizes)
        self.sizes.extend(columns.sizes)
        self.checksums.extend(columns.checks)
        self.newest += bytes(columns.newest)
        self.digests += bytes.fromhex(
            "".join([digest[: 2 * snapshot_format.TAG_SIZE] for digest in columns.digests])
        )
        self.names.add(columns.names)
        self.versions += map(sys.intern, columns.versions)
        self.slugs.add([slug for slug, _, _ in columns.entries])  # added in sorted order
        entries = [
            (first_number + position).to_bytes(4, "little") + entry.encode()
            for _, position, entry in columns.entries
        ]
        self.entries += b"".join(entries)
        self.entry_lengths.extend(map(len, entries))
        for name, positions in columns.sets.items():
            self.members[name].extend([first_number + position for position in positions])
        if not self.auth_configs.keys().isdisjoint(columns.toolkits):
            self.add_auth_config_members(columns, first_number)

    def add_auth_config_members(self, columns: ToolColumns, first_number: int) -> None:
        """Add the tool versions that the auth configs of each toolkit can use."""
        for number, (toolkit, slug, scopes) in enumerate(
            zip(columns.toolkits, columns.slugs, columns.scopes, strict=True), first_number
        ):
            for name, is_usable in self.auth_configs.get(toolkit, ()):
                if is_usable(slug, scopes):
                    self.members[name].append(number)

    def pack_numbers(self) -> bytes:
        """Return the columns of NUMBERS."""
        newest = np.frombuffer(self.newest, bool)
        number = np.concatenate(
            [np.flatnonzero(newest), np.flatnonzero(~newest)]
        )  # tool number by place in `tools.json`
        document_place = np.empty_like(number)
        document_place[number] = np.arange(len(number))
        # each document is followed by a comma or a bracket
        lengths = np.array(self.sizes, np.int64)[number] + 1
        return tables.pack_columns(
            {
                "offset": np.cumsum(np.append(1, lengths)),
                "tag": np.frombuffer(self.digests, f"V{snapshot_format.TAG_SIZE}")[number],
                "check": np.array(self.checksums)[number],
                "number": number,
                "place": document_place,
                "name": np.array(_ranks(self.names.to_list())),
                "version": np.array(_ranks(self.versions)),
            }
        )

    def pack_slugs(self) -> Iterator[bytes]:
        """Yield the pieces of the slug table."""
        ends = accumulate(self.entry_lengths, initial=0)
        return tables.pack_table(
            self.slugs.to_list(),
            self.entry_lengths,
            (bytes(self.entries[start:end]) for start, end in pairwise(ends)),
        )

    def pack_sets(self) -> Iterator[bytes]:
        """Yield the pieces of the table of sets."""
        return _pack_table(
            {name: _serialize_bitmap(members) for name, members in self.members.items()}
        )


class _TextList:
    """Texts in insertion order, stored as JSON to save memory: there may be millions of them."""

    def __init__(self) -> None:
        self.buffer = bytearray(b"[")

    def add(self, texts: Sequence[str]) -> None:
        self.buffer += encoding.dump_json(texts)[1:-1] + b"," if texts else b""

    def to_list(self) -> list[str]:
        texts: list[str] = orjson.loads(self.buffer[:-1] + b"]" if len(self.buffer) > 1 else b"[]")
        return texts


def _ranks(texts: list[str]) -> list[int]:
    """Return the rank of each text among the distinct texts, by code point."""
    ranks = {text: rank for rank, text in enumerate(sorted({*texts}))}
    return [ranks[text] for text in texts]


def _serialize_bitmap(members: Any) -> bytes:
    bitmap = BitMap(members)
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    return data


class _IndexWriter:
    """Writes the indexes of each toolkit as soon as its last tool version was added.

    Each version of a toolkit has an index of all its tools. Raises UsageError if all indexes
    together are too large.
    """

    def __init__(self, writer: SnapshotWriter, versions: Mapping[str, int]) -> None:
        version_count = sum(versions.values())
        self.max_size = _BASE_INDEX_SIZE + version_count * _INDEX_SIZE_PER_VERSION
        self.size = 0
        self.writer = writer
        self.remaining = dict(versions)
        self.toolkits = {toolkit.slug: toolkit for toolkit in writer.contents.toolkits}
        self.rows: defaultdict[str, list[tuple[str, str, bytes]]] = defaultdict(list)

    def add(self, batch: CompiledBatch) -> None:
        end = 0
        for toolkit, slug, version, size in zip(
            batch.facts.toolkits,
            batch.facts.slugs,
            batch.facts.versions,
            batch.facts.rows,
            strict=True,
        ):
            start, end = end, end + size
            self.rows[toolkit].append((slug, version, batch.rows[start:end]))
            self.remaining[toolkit] -= 1
            if not self.remaining[toolkit]:
                self.write_indexes(toolkit)

    def write_indexes(self, slug: str) -> None:
        toolkit, rows = self.toolkits[slug], self.rows.pop(slug)
        for version in toolkit.versions:
            # rows are sorted by slug and version, so the newest version wins
            effective = {tool: row for tool, of, row in rows if of <= version}
            index = snapshot_format.render_toolkit_index(toolkit, version, effective.values())
            self.size += len(index)
            if self.size > self.max_size:
                raise UsageError(
                    f"The indexes of toolkits would have more than {self.max_size >> 20:,} MiB: "
                    f"{slug} is the last of them, with {len(toolkit.versions):,} versions and "
                    f"{len(rows):,} tool versions. Give tools that change together the same "
                    "version, or split the toolkit."
                )
            self.writer.write(snapshot_format.toolkit_index_path(slug, version), [index])
