"""A snapshot of a build into an object store: what is not there yet, then what it is made of, then
the pointer.

However it ends on the way, the pointer still names what it named before, and what has been sent is
not sent again.
"""

import contextlib
import mmap
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from toolcatalog import chunking, depot, signing, snapshot, sweeping, verifying
from toolcatalog.depot import Chunk, Refused
from toolcatalog.errors import MEND, SnapshotError
from toolcatalog.objects import Conflict, Missing, Objects, Tag, in_parallel
from toolcatalog.progress import Track
from toolcatalog.signing import SigningKey, Statement


class Sent(NamedTuple):
    """What was published: the snapshot's digest, what was sent for it, and whether the pointer
    names another one than before; `was_signed`: the pointer had a signature, and has none now.
    """

    digest: str
    objects: int
    size: int  # bytes
    moved: bool
    was_signed: bool = False


class _Piece(NamedTuple):
    path: str
    chunk: Chunk
    data: bytes  # empty where the store has it


def send(
    objects: Objects, build: Path, jobs: int, track: Track, key: SigningKey | None = None
) -> Sent:
    """Publish the snapshot that `build/current` names, after every byte of it was verified, and
    sign it where a key is given; the work is told in bytes.

    Raises Refused where the snapshot has too many chunks for anybody to fetch it, SnapshotError where it is not whole, StoreError where the store cannot be used, and
    Conflict where somebody else has moved the pointer meanwhile: then it stays as they have put it.
    """
    folder = Path(os.path.realpath(build / "current"))
    manifest = verifying.read(folder, build)
    _verify(folder, build, track)
    before = _pointer(objects)
    files, objects_sent, size = _send_chunks(
        objects,
        folder,
        [*verifying.contents(folder, manifest)],
        _lasting(objects, before),
        jobs,
        track,
    )
    kept = objects.listed(f"{depot.SNAPSHOTS}/{manifest.digest}")
    chunks = depot.pack(files)
    if len(chunks) > depot.MOST_CHUNKS:
        raise Refused(
            f"Snapshot {manifest.digest[:12]} is too large for a store: its list of chunks has "
            f"{len(chunks):,} bytes, and {depot.MOST_CHUNKS:,} are read. Split the catalog."
        )
    for path, data in (
        (depot.manifest_path(manifest.digest), (folder / snapshot.MANIFEST).read_bytes()),
        (depot.chunks_path(manifest.digest), chunks),
    ):
        if path not in kept or kept[path].size != len(data):
            objects.write(path, data, depot.FOR_EVER)
            objects_sent, size = objects_sent + 1, size + len(data)
    moved = _point(objects, manifest.digest, before, key)
    was_signed = moved and key is None and before is not None and _is_signed(before[0])
    return Sent(manifest.digest, objects_sent, size, moved, was_signed)


def _verify(folder: Path, build: Path, track: Track) -> None:
    with track("Verifying bytes", verifying.size(folder)) as advance:
        wrong = verifying.verify(folder, advance)
    if wrong:
        raise SnapshotError(
            f"The build in {build} is damaged ({wrong[0]}), so nothing was sent: {MEND}"
        )


def _pointer(objects: Objects) -> tuple[bytes, Tag] | None:
    try:
        # whatever lies there, it can be replaced
        return objects.read(depot.POINTER, snapshot.MOST_MANIFEST)
    except Missing:
        return None


def _lasting(objects: Objects, before: tuple[bytes, Tag] | None) -> dict[str, int]:
    """The chunks that the store has and will keep for now, with their sizes: none that somebody
    else may just be sweeping out.
    """
    served: set[str] = set()
    # a pointer, or a list, that is damaged says nothing of what will stay
    with contextlib.suppress(Refused):
        served = sweeping.named(objects, depot.named(before[0])) if before else served
    since = datetime.now(UTC) - sweeping.YOUNG / 2
    listed = objects.listed(depot.OBJECTS)
    return {
        path: entry.size
        for path, entry in listed.items()
        if path in served or entry.written > since
    }


def _point(
    objects: Objects, digest: str, before: tuple[bytes, Tag] | None, key: SigningKey | None
) -> bool:
    """Move the pointer, unless it is there already and signed as it should be; tell whether it was
    moved.
    """
    last = _statement(before[0], key) if before and key else None
    if last and last.digest == digest:
        return False
    if before and not key and _names(before[0], digest):
        return False
    signed = None
    if key:
        statement = signing.next_statement(digest, last, datetime.now(UTC))
        signed = signing.dump(key.sign(statement))
    wanted = depot.pointer(digest, signed)
    try:
        objects.replace(depot.POINTER, wanted, depot.ASK, before[1] if before else None)
    except Conflict:
        now = _pointer(objects)
        # else it was us: the store took it, its answer was lost, and the library has tried again
        if not now or now[0] != wanted:
            raise
    return True


def _names(pointer: bytes, digest: str) -> bool:
    """Tell whether a pointer names this snapshot, signed or not."""
    with contextlib.suppress(Refused):
        return depot.named(pointer) == digest
    return False


def _is_signed(pointer: bytes) -> bool:
    with contextlib.suppress(Refused):
        return depot.signed(pointer) is not None
    return False


def _statement(pointer: bytes, key: SigningKey) -> Statement | None:
    """What a pointer states, where it was signed with this very key."""
    with contextlib.suppress(Refused):
        signed = signing.parse(depot.named(pointer), depot.signed(pointer))
        if signed and key.public.accept(signed):
            return signed.statement
    return None


def _send_chunks(
    objects: Objects, folder: Path, paths: list[str], there: dict[str, int], jobs: int, track: Track
) -> tuple[Mapping[str, list[Chunk]], int, int]:
    """Send the chunks that the store has not: all chunks of all files, how many were sent, and
    their bytes.
    """
    files: dict[str, list[Chunk]] = {path: [] for path in paths}
    objects_sent = size = 0

    def put(piece: _Piece) -> _Piece:
        if piece.data:
            objects.write(depot.object_path(piece.chunk.sha256), piece.data, depot.FOR_EVER)
        return piece

    with track(
        "Publishing bytes", sum((folder / path).stat().st_size for path in paths)
    ) as advance:
        pieces = _pieces(folder, paths, there)
        for piece in in_parallel(put, pieces, jobs, lambda piece: len(piece.data)):
            files[piece.path].append(piece.chunk)
            objects_sent, size = objects_sent + bool(piece.data), size + len(piece.data)
            advance(piece.chunk.size)
    return files, objects_sent, size


def _pieces(folder: Path, paths: list[str], there: dict[str, int]) -> Iterator[_Piece]:
    """All chunks of all files; the bytes of those that are not there, once."""
    for path in paths:
        with _mapped(folder / path) as data:
            for begin, end in chunking.spans(data):
                some = data[begin:end]
                chunk = Chunk(snapshot.sha256(some), len(some))
                has = there.get(depot.object_path(chunk.sha256)) == chunk.size
                there[depot.object_path(chunk.sha256)] = chunk.size
                yield _Piece(path, chunk, b"" if has else some)


@contextlib.contextmanager
def _mapped(file: Path) -> Iterator[bytes | mmap.mmap]:
    with file.open("rb") as source:
        if not os.fstat(source.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
