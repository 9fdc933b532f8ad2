"""The object store layout: names of objects, and documents that describe a published snapshot.

    objects/<sha256>                 a chunk of a file, named by its SHA-256, so that a reader can
                                     verify it
    snapshots/<digest>/manifest.json the manifest, byte for byte
    snapshots/<digest>/chunks.json   the chunks of each file, in order, with their sizes in bytes
    current.json                     the pointer: the digest of the current snapshot, and perhaps a
                                     signature; written last

The digest authenticates the manifest, and the manifest every file. The chunk list is not trusted:
it only says where to find bytes, and these are compared with the manifest once they are there.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from toolcatalog import encoding
from toolcatalog.errors import ToolcatalogError
from toolcatalog.snapshot import format as snapshot_format

LAYOUT_FORMAT = 1
POINTER = "current.json"
OBJECTS_FOLDER, SNAPSHOTS_FOLDER = "objects", "snapshots"
CACHE_FOREVER = "public, max-age=31536000, immutable"  # objects named by a digest never change
CACHE_REVALIDATE = "no-cache"
MAX_POINTER_SIZE, MAX_CHUNK_LIST_SIZE = 1 << 12, 1 << 26  # bytes
MIN_ACCEPTED_CHUNK_SIZE, MAX_ACCEPTED_CHUNK_SIZE = (
    1 << 15,
    1 << 20,
)  # bytes, the limits of `publish.chunks`; the last chunk of a file may be smaller
_MAX_FILES = snapshot_format.MAX_FILES + 100  # including those next to the manifest

_CHUNK_LIST_HEAD = re.compile(rb'\{"format":([0-9]{1,9}),"files":\{')
_PATH_ENTRY = re.compile(rb'"([A-Za-z0-9_./-]{1,512})":\[')
_CHUNK_ENTRY = re.compile(rb'\["([0-9a-f]{64})",([1-9][0-9]{0,7})\]')


class InvalidRemoteSnapshot(ToolcatalogError):
    """The store has no snapshot that can be used; the message says why."""


class Chunk(NamedTuple):
    """A run of bytes: its SHA-256 and its size."""

    sha256: str
    size: int


def object_path(sha256: str) -> str:
    """Return the path of a chunk."""
    return f"{OBJECTS_FOLDER}/{sha256}"


def manifest_path(digest: str) -> str:
    """Return the path of the manifest of a snapshot."""
    return f"{SNAPSHOTS_FOLDER}/{digest}/manifest.json"


def chunk_list_path(digest: str) -> str:
    """Return the path of the chunk list of a snapshot."""
    return f"{SNAPSHOTS_FOLDER}/{digest}/chunks.json"


def render_pointer(digest: str, signed: Mapping[str, Any] | None = None) -> bytes:
    """Return the bytes of `current.json`.

    `signed` comes from `signatures.dump_signed_statement`. It is in the same object as the digest,
    so that nobody ever reads the signature of another digest.
    """
    return orjson.dumps(
        {"format": LAYOUT_FORMAT, "digest": digest} | ({"signed": signed} if signed else {})
    )


def parse_pointer(data: bytes) -> str:
    """Return the digest that a pointer names.

    Raises InvalidRemoteSnapshot if the pointer is damaged or of a newer format.
    """
    return _parse_pointer(data)[0]


def parse_signature(data: bytes) -> object:
    """Return the value of `signed` in a pointer, unchecked; None if it is missing.

    Raises InvalidRemoteSnapshot as `parse_pointer` does.
    """
    return _parse_pointer(data)[1]


def _parse_pointer(data: bytes) -> tuple[str, object]:
    try:
        pointer = orjson.loads(data)
        format_number, digest = pointer["format"], pointer.get("digest")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidRemoteSnapshot(f"{POINTER} is damaged: publish again.") from None
    _check_format(format_number, POINTER)
    if not (isinstance(digest, str) and encoding.is_digest(digest)):
        raise InvalidRemoteSnapshot(f"{POINTER} names no snapshot: publish again.")
    return digest, pointer.get("signed")


def render_chunk_list(files: Mapping[str, Sequence[Chunk]]) -> bytes:
    """Return the bytes of `chunks.json` from the chunks of each file by path."""
    chunks_by_path = {path: [tuple(chunk) for chunk in chunks] for path, chunks in files.items()}
    return orjson.dumps({"format": LAYOUT_FORMAT, "files": chunks_by_path})


def parse_chunk_list(data: bytes) -> dict[str, list[Chunk]]:
    """Parse `chunks.json`: the chunks of each file by path.

    It is parsed chunk by chunk, so that memory grows with the number of chunks and not with what
    malicious JSON of this length could contain. Raises InvalidRemoteSnapshot if it is not what
    `render_chunk_list` writes, or if a path would lead out of the folder.
    """
    head = _CHUNK_LIST_HEAD.match(data)
    if head is None or len(data) > MAX_CHUNK_LIST_SIZE:
        raise InvalidRemoteSnapshot("chunks.json is damaged: publish again.")
    _check_format(int(head[1]), "chunks.json")
    files: dict[str, list[Chunk]] = {}
    position = head.end()
    while data[position : position + 1] != b"}":
        match = _PATH_ENTRY.match(data, position)
        if match is None or (path := match[1].decode()) in files or len(files) == _MAX_FILES:
            raise InvalidRemoteSnapshot("The list of chunks is damaged: publish again.")
        if not snapshot_format.is_safe_path(path):
            raise InvalidRemoteSnapshot(
                f"The list of chunks has the path {path!r}, which leads elsewhere: publish again."
            )
        files[path], position = _parse_chunks(data, match.end())
        position = _next_position(data, position, b"}")
    if data[position:] != b"}}":
        raise InvalidRemoteSnapshot("The list of chunks is damaged: publish again.")
    return files


def _parse_chunks(data: bytes, position: int) -> tuple[list[Chunk], int]:
    """Return the chunks of one file, and the position after its list."""
    chunks = []
    while data[position : position + 1] != b"]":
        match = _CHUNK_ENTRY.match(data, position)
        if match is None or int(match[2]) > MAX_ACCEPTED_CHUNK_SIZE:
            raise InvalidRemoteSnapshot("The list of chunks is damaged: publish again.")
        chunks.append(Chunk(match[1].decode(), int(match[2])))
        position = _next_position(data, match.end(), b"]")
    return chunks, position + 1


def _next_position(data: bytes, position: int, end: bytes) -> int:
    """Return the position of the next item after a comma, or of the end of the list."""
    following = data[position : position + 2]
    if following[:1] == end:
        return position
    if following[:1] != b"," or following[1:] in (end, b""):
        raise InvalidRemoteSnapshot("The list of chunks is damaged: publish again.")
    return position + 1


def _check_format(format_number: object, name: str) -> None:
    if not isinstance(format_number, int) or isinstance(format_number, bool):
        raise InvalidRemoteSnapshot(f"{name} is damaged: publish again.")
    if format_number != LAYOUT_FORMAT:
        raise InvalidRemoteSnapshot(
            f"{name} has format {format_number}, this program reads {LAYOUT_FORMAT}: upgrade"
            " toolcatalog here."
        )
