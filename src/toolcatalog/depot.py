"""How snapshots lie in an object store, so that what two of them share lies there once. Pure.

    objects/<sha256>                 a chunk of a file, by its SHA-256: whoever has read it can tell that it is the right one
    snapshots/<digest>/manifest.json the manifest, byte for byte
    snapshots/<digest>/chunks.json   of which chunks each file is made, in order, with their sizes in bytes
    current.json                     the pointer: the digest of the snapshot in force; written last

The digest vouches for the manifest, the manifest for every file. The list of chunks vouches for
nothing and is not trusted: it only says where bytes may be found, and they are held against the
manifest when they are there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from toolcatalog import snapshot
from toolcatalog.errors import ToolcatalogError

FORMAT = 1
POINTER = "current.json"
OBJECTS, SNAPSHOTS = "objects", "snapshots"
FOR_EVER = "public, max-age=31536000, immutable"  # what lies under a digest never changes
ASK = "no-cache"
MOST_POINTER, MOST_MANIFEST, MOST_CHUNKS = 1 << 12, 1 << 20, 1 << 28  # bytes
MOST_CHUNK = 1 << 24  # what is larger is not read into memory


class Refused(ToolcatalogError):
    """What lies in a store is not a snapshot that can be taken: the sentence says why."""


class Chunk(NamedTuple):
    """A run of bytes: its SHA-256 and how many there are."""

    sha256: str
    size: int


def object_path(sha256: str) -> str:
    """Where a chunk lies."""
    return f"{OBJECTS}/{sha256}"


def manifest_path(digest: str) -> str:
    """Where the manifest of a snapshot lies."""
    return f"{SNAPSHOTS}/{digest}/manifest.json"


def chunks_path(digest: str) -> str:
    """Where the list of chunks of a snapshot lies."""
    return f"{SNAPSHOTS}/{digest}/chunks.json"


def pointer(digest: str) -> bytes:
    """`current.json`."""
    return orjson.dumps({"format": FORMAT, "digest": digest})


def named(data: bytes) -> str:
    """The digest that a pointer names. Raises Refused where it is none, or of a newer format."""
    digest = _checked(data, POINTER).get("digest")
    if not (isinstance(digest, str) and snapshot.is_digest(digest)):
        raise Refused(f"{POINTER} names no snapshot: publish again.")
    return digest


def pack(files: Mapping[str, Sequence[Chunk]]) -> bytes:
    """`chunks.json`, of the chunks of each file by path."""
    listed = {path: [tuple(chunk) for chunk in some] for path, some in files.items()}
    return orjson.dumps({"format": FORMAT, "files": listed})


def unpack(data: bytes) -> dict[str, list[Chunk]]:
    """The chunks of each file. Raises Refused where it is no such list, or where a path would lead
    out of the folder.
    """
    try:
        files = {
            path: [Chunk(*_chunk(*one)) for one in some]
            for path, some in _checked(data, "chunks.json")["files"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Refused("The list of chunks is damaged: publish again.") from None
    if astray := [path for path in files if not snapshot.stays_within(path)]:
        raise Refused(
            f"The list of chunks has the path {astray[0]!r}, which leads elsewhere: publish again."
        )
    return files


def _checked(data: bytes, name: str) -> dict[str, Any]:
    try:
        said = orjson.loads(data)
        found = said["format"]
    except (ValueError, KeyError, TypeError):
        raise Refused(f"{name} is damaged: publish again.") from None
    if found != FORMAT:
        raise Refused(
            f"{name} has format {found}, this program reads {FORMAT}: upgrade toolcatalog here."
        )
    checked: dict[str, Any] = said
    return checked


def _chunk(sha256: object, size: object) -> tuple[str, int]:
    if (
        isinstance(sha256, str)
        and snapshot.is_digest(sha256)
        and isinstance(size, int)
        and 0 <= size <= MOST_CHUNK
    ):
        return sha256, size
    raise ValueError(sha256)
