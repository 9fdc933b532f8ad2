"""The object store layout: names of objects, and documents that describe a published snapshot.

objects/<sha256>                 a chunk of a file, by its SHA-256: whoever has read it can tell that it is the right one
    snapshots/<digest>/manifest.json the manifest, byte for byte
    snapshots/<digest>/chunks.json   of which chunks each file is made, in order, with their sizes in bytes
    current.json                     the pointer: the digest of the snapshot in force, and perhaps a signature; written last

The digest vouches for the manifest, the manifest for every file. The list of chunks vouches for
nothing and is not trusted: it only says where bytes may be found, and they are held against the
manifest when they are there.
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
CACHE_FOREVER = "public, max-age=31536000, immutable"  # what lies under a digest never changes
CACHE_REVALIDATE = "no-cache"
MAX_POINTER_SIZE, MAX_CHUNK_LIST_SIZE = 1 << 12, 1 << 26  # bytes
MIN_ACCEPTED_CHUNK_SIZE, MAX_ACCEPTED_CHUNK_SIZE = (
    1 << 15,
    1 << 20,
)  # bytes, as `publish.chunks` makes them; the last may be less
_MAX_FILES = snapshot_format.MAX_FILES + 100  # with those beside the manifest

_CHUNK_LIST_HEAD = re.compile(rb'\{"format":([0-9]{1,9}),"files":\{')
_PATH_ENTRY = re.compile(rb'"([A-Za-z0-9_./-]{1,512})":\[')
_CHUNK_ENTRY = re.compile(rb'\["([0-9a-f]{64})",([1-9][0-9]{0,7})\]')


class InvalidRemoteSnapshot(ToolcatalogError):
    """What lies in a store is not a snapshot that can be taken: the sentence says why."""


class Chunk(NamedTuple):
    """A run of bytes: its SHA-256 and how many there are."""

    sha256: str
    size: int


def object_path(sha256: str) -> str:
    """Where a chunk lies."""
    return f"{OBJECTS_FOLDER}/{sha256}"


def manifest_path(digest: str) -> str:
    """Where the manifest of a snapshot lies."""
    return f"{SNAPSHOTS_FOLDER}/{digest}/manifest.json"


def chunk_list_path(digest: str) -> str:
    """Where the list of chunks of a snapshot lies."""
    return f"{SNAPSHOTS_FOLDER}/{digest}/chunks.json"


def render_pointer(digest: str, signed: Mapping[str, Any] | None = None) -> bytes:
    """`current.json`; `signed` is what `signing` writes, in the same object so that nobody ever
    reads the signature of another digest.
    """
    return orjson.dumps(
        {"format": LAYOUT_FORMAT, "digest": digest} | ({"signed": signed} if signed else {})
    )


def parse_pointer(data: bytes) -> str:
    """The digest that a pointer names. Raises Refused where it is none, or of a newer format."""
    return _parse_pointer(data)[0]


def parse_signature(data: bytes) -> object:
    """What a pointer has under `signed`, unchecked; None where there is nothing. Raises Refused as
    `named` does.
    """
    return _parse_pointer(data)[1]


def _parse_pointer(data: bytes) -> tuple[str, object]:
    try:
        said = orjson.loads(data)
        form, digest = said["format"], said.get("digest")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidRemoteSnapshot(f"{POINTER} is damaged: publish again.") from None
    _check_format(form, POINTER)
    if not (isinstance(digest, str) and encoding.is_digest(digest)):
        raise InvalidRemoteSnapshot(f"{POINTER} names no snapshot: publish again.")
    return digest, said.get("signed")


def render_chunk_list(files: Mapping[str, Sequence[Chunk]]) -> bytes:
    """`chunks.json`, of the chunks of each file by path."""
    listed = {path: [tuple(chunk) for chunk in some] for path, some in files.items()}
    return orjson.dumps({"format": LAYOUT_FORMAT, "files": listed})


def parse_chunk_list(data: bytes) -> dict[str, list[Chunk]]:
    """The chunks of each file.

    Reads chunk by chunk, so that memory grows with the number of chunks and not with what hostile
    JSON of this length could hold. Raises Refused where it is not what `pack` writes, or where a
    path would lead out of the folder.
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
    """The chunks of one file, and where the list of them ends."""
    chunks = []
    while data[position : position + 1] != b"]":
        match = _CHUNK_ENTRY.match(data, position)
        if match is None or int(match[2]) > MAX_ACCEPTED_CHUNK_SIZE:
            raise InvalidRemoteSnapshot("The list of chunks is damaged: publish again.")
        chunks.append(Chunk(match[1].decode(), int(match[2])))
        position = _next_position(data, match.end(), b"]")
    return chunks, position + 1


def _next_position(data: bytes, position: int, end: bytes) -> int:
    """Where the next item begins, behind a comma, or where the last one was."""
    following = data[position : position + 2]
    if following[:1] == end:
        return position
    if following[:1] != b"," or following[1:] in (end, b""):
        raise InvalidRemoteSnapshot("The list of chunks is damaged: publish again.")
    return position + 1


def _check_format(form: object, name: str) -> None:
    if not isinstance(form, int) or isinstance(form, bool):
        raise InvalidRemoteSnapshot(f"{name} is damaged: publish again.")
    if form != LAYOUT_FORMAT:
        raise InvalidRemoteSnapshot(
            f"{name} has format {form}, this program reads {LAYOUT_FORMAT}: upgrade toolcatalog here."
        )
