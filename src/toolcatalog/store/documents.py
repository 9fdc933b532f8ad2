"""Documents of an opened snapshot: where each is, and its checksum; returned as views without a
copy.

Documents are ordered by position in the file, the newest version of each tool first; callers use
tool ids. The first read of each document checks its checksum.

A snapshot may have its documents in compressed form, too. If a part of that is damaged, it is no
longer used, and one line in the log says so.
"""

import hashlib
import logging
from binascii import hexlify
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zlib_ng import zlib_ng

from toolcatalog.errors import REBUILD_HINT, SnapshotError
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.compressed_documents import CompressedDocuments, find_runs
from toolcatalog.snapshot.gzip_fragments import Fragments
from toolcatalog.snapshot.mapped_files import Buffer, FileSlices
from toolcatalog.snapshot.tables import ToolIds

_log = logging.getLogger("toolcatalog.store")


class Documents:
    """The documents in `data`, located by the columns of `query.numbers`."""

    def __init__(
        self,
        data: Buffer,
        columns: Mapping[str, NDArray[Any]],
        compressed: CompressedDocuments | None = None,
    ) -> None:
        self._data = data
        self._documents = memoryview(data)
        self._columns = columns
        self._offsets, self._checksums, self._positions = (
            columns[name].data for name in ("offset", "check", "place")
        )
        self._tags = columns["tag"].view(np.uint8).data
        self._tag_column = columns["tag"].view(f"V{snapshot_format.TAG_SIZE}")
        # documents, by position, that matched their checksum
        self._verified = bytearray(len(self._positions))
        self._verified_column = np.frombuffer(self._verified, np.bool_)
        self._compressed = compressed

    def read_document(self, tool_id: int) -> tuple[memoryview, bytes]:
        """Return the document of a tool version, and its tag.

        The tag is the first 32 hex digits of its SHA-256. Raises SnapshotError if the document is
        not what was written.
        """
        position = self._positions[tool_id]
        if not self._verified[position]:
            self._verify(position)
        tag = self._tags[
            snapshot_format.TAG_SIZE * position : snapshot_format.TAG_SIZE * (position + 1)
        ]
        return self._documents[self._offsets[position] : self._offsets[position + 1] - 1], hexlify(
            tag
        )

    def read_documents(self, tool_ids: ToolIds) -> tuple[FileSlices, bytes]:
        """Return documents in the order of the ids as pieces, and a tag of all of them.

        The tag has 32 hex digits. Join the pieces with commas. Documents that are adjacent in the
        file are one piece, with the commas between them. Raises SnapshotError if one is not what
        was written.
        """
        positions = self._columns["place"].take(tool_ids)
        if not self._verified_column.take(positions).all():
            for position in positions.tolist():
                self._verify(position)
        runs = find_runs(positions)
        starts = [self._offsets[first] for first, _ in runs]
        stops = [self._offsets[stop] - 1 for _, stop in runs]
        return FileSlices(self._documents, starts, stops), self._combine_tags(positions)

    def _combine_tags(self, positions: NDArray[np.uint32]) -> bytes:
        tags = self._tag_column.take(positions).tobytes()
        return hexlify(hashlib.blake2b(tags, digest_size=snapshot_format.TAG_SIZE).digest())

    def read_tag(self, tool_id: int) -> bytes:
        """Return the tag of a document: the first 32 hex digits of its SHA-256."""
        start = snapshot_format.TAG_SIZE * self._positions[tool_id]
        return hexlify(self._tags[start : start + snapshot_format.TAG_SIZE])

    def read_fragment(self, tool_id: int) -> Fragments | None:
        """Return the document of a tool version as a gzip fragment.

        Returns None if the snapshot has no compressed documents, or damaged ones.
        """
        return self._read_compressed(self._columns["place"][tool_id : tool_id + 1])

    def read_fragments(self, tool_ids: ToolIds) -> tuple[Fragments, bytes] | None:
        """Return documents in the order of the ids as gzip fragments, and a tag of all of them.

        Commas are between the documents. Those that are adjacent in the file are one chunk. Their
        plain bytes are not read. The tag is that of `read_documents`. Returns None as
        `read_fragment` does.
        """
        positions = self._columns["place"].take(tool_ids)
        fragments = self._read_compressed(positions)
        return None if fragments is None else (fragments, self._combine_tags(positions))

    def _read_compressed(self, positions: NDArray[np.uint32]) -> Fragments | None:
        if self._compressed is None:
            return None
        try:
            return self._compressed.read_documents(positions, self._offsets)
        except (SnapshotError, IndexError) as error:
            self._compressed = None
            log_damaged_compressed_documents(error)
            return None

    def document_sizes(self, tool_ids: ToolIds) -> NDArray[np.int64]:
        """Return the sizes of documents in bytes."""
        positions = self._columns["place"][tool_ids].astype(np.int64)
        offset = self._columns["offset"].astype(np.int64)
        return offset[positions + 1] - offset[positions] - 1

    def _verify(self, position: int) -> None:
        """Check the checksum of a document, and that a comma or the bracket follows it.

        The separator is checked because `read_documents` returns it too.
        """
        start, end = self._offsets[position], self._offsets[position + 1] - 1
        separator = b"]" if end == len(self._data) - 1 else b","
        if (
            zlib_ng.crc32(self._documents[start:end]) != self._checksums[position]
            or self._data[end : end + 1] != separator
        ):
            raise SnapshotError(
                f"The document of tool version {self._columns['number'][position]} is not "
                f"what was written: {REBUILD_HINT}"
            )
        self._verified[position] = 1


def log_damaged_compressed_documents(error: Exception) -> None:
    """Log that the compressed documents of a snapshot are not used."""
    _log.warning(
        "%s is damaged (%s), so answers are not precompressed: remove it and build again.",
        snapshot_format.COMPRESSED_DOCUMENTS,
        error,
    )
