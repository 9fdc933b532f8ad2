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

from toolcatalog import chunking, depot, encoding, signing, sweeping
from toolcatalog.depot import Chunk, InvalidRemoteSnapshot
from toolcatalog.errors import REBUILD_HINT, SnapshotError
from toolcatalog.objects import (
    ObjectConflict,
    ObjectNotFound,
    ObjectStorage,
    ObjectTag,
    run_parallel,
)
from toolcatalog.progress import Progress
from toolcatalog.signing import SigningKey, SnapshotStatement
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import verify


class UploadResult(NamedTuple):
    """What was published: the snapshot's digest, what was sent for it, and whether the pointer
    names another one than before; `was_signed`: the pointer had a signature, and has none now.
    """

    digest: str
    object_count: int
    bytes_sent: int  # bytes
    pointer_moved: bool
    signature_removed: bool = False


class _ChunkData(NamedTuple):
    path: str
    chunk: Chunk
    data: bytes  # empty where the store has it


def upload_snapshot(
    storage: ObjectStorage,
    build: Path,
    jobs: int,
    progress: Progress,
    key: SigningKey | None = None,
) -> UploadResult:
    """Publish the snapshot that `build/current` names, after every byte of it was verified, and
    sign it where a key is given; the work is told in bytes.

    Raises Refused where the snapshot has too many chunks for anybody to fetch it, SnapshotError where it is not whole, StoreError where the store cannot be used, and
    ObjectConflict where somebody else has moved the pointer meanwhile: then it stays as they have put it.
    """
    folder = Path(os.path.realpath(build / "current"))
    manifest = verify.read_manifest(folder, build)
    _verify_build(folder, build, progress)
    before = _read_pointer(storage)
    files, objects_sent, size = _upload_chunks(
        storage,
        folder,
        [*verify.list_files(folder, manifest)],
        _list_reusable_chunks(storage, before),
        jobs,
        progress,
    )
    kept = storage.list_folder(f"{depot.SNAPSHOTS_FOLDER}/{manifest.digest}")
    chunks = depot.render_chunk_list(files)
    if len(chunks) > depot.MAX_CHUNK_LIST_SIZE:
        raise InvalidRemoteSnapshot(
            f"Snapshot {manifest.digest[:12]} is too large for a store: its list of chunks has "
            f"{len(chunks):,} bytes, and {depot.MAX_CHUNK_LIST_SIZE:,} are read. Split the catalog."
        )
    for path, data in (
        (depot.manifest_path(manifest.digest), (folder / snapshot_format.MANIFEST).read_bytes()),
        (depot.chunk_list_path(manifest.digest), chunks),
    ):
        if path not in kept or kept[path].size != len(data):
            storage.write(path, data, depot.CACHE_FOREVER)
            objects_sent, size = objects_sent + 1, size + len(data)
    moved = _move_pointer(storage, manifest.digest, before, key)
    was_signed = moved and key is None and before is not None and _is_signed(before[0])
    return UploadResult(manifest.digest, objects_sent, size, moved, was_signed)


def _verify_build(folder: Path, build: Path, progress: Progress) -> None:
    with progress("Verifying bytes", verify.count_bytes(folder)) as advance:
        wrong = verify.verify_snapshot(folder, advance)
    if wrong:
        raise SnapshotError(
            f"The build in {build} is damaged ({wrong[0]}), so nothing was sent: {REBUILD_HINT}"
        )


def _read_pointer(storage: ObjectStorage) -> tuple[bytes, ObjectTag] | None:
    try:
        # whatever lies there, it can be replaced
        return storage.read(depot.POINTER, snapshot_format.MAX_MANIFEST_SIZE)
    except ObjectNotFound:
        return None


def _list_reusable_chunks(
    storage: ObjectStorage, before: tuple[bytes, ObjectTag] | None
) -> dict[str, int]:
    """The chunks that the store has and will keep for now, with their sizes: none that somebody
    else may just be sweeping out.
    """
    served: set[str] = set()
    # a pointer, or a list, that is damaged says nothing of what will stay
    with contextlib.suppress(InvalidRemoteSnapshot):
        served = (
            sweeping.read_chunk_paths(storage, depot.parse_pointer(before[0])) if before else served
        )
    since = datetime.now(UTC) - sweeping.MIN_AGE / 2
    listed = storage.list_folder(depot.OBJECTS_FOLDER)
    return {
        path: entry.size
        for path, entry in listed.items()
        if path in served or entry.modified > since
    }


def _move_pointer(
    storage: ObjectStorage,
    digest: str,
    before: tuple[bytes, ObjectTag] | None,
    key: SigningKey | None,
) -> bool:
    """Move the pointer, unless it is there already and signed as it should be; tell whether it was
    moved.
    """
    last = _read_statement(before[0], key) if before and key else None
    if last and last.digest == digest:
        return False
    if before and not key and _is_pointer_to(before[0], digest):
        return False
    signed = None
    if key:
        statement = signing.next_statement(digest, last, datetime.now(UTC))
        signed = signing.dump_signed_statement(key.sign(statement))
    wanted = depot.render_pointer(digest, signed)
    try:
        storage.replace(
            depot.POINTER, wanted, depot.CACHE_REVALIDATE, before[1] if before else None
        )
    except ObjectConflict:
        now = _read_pointer(storage)
        # else it was us: the store took it, its answer was lost, and the library has tried again
        if not now or now[0] != wanted:
            raise
    return True


def _is_pointer_to(pointer: bytes, digest: str) -> bool:
    """Tell whether a pointer names this snapshot, signed or not."""
    with contextlib.suppress(InvalidRemoteSnapshot):
        return depot.parse_pointer(pointer) == digest
    return False


def _is_signed(pointer: bytes) -> bool:
    with contextlib.suppress(InvalidRemoteSnapshot):
        return depot.parse_signature(pointer) is not None
    return False


def _read_statement(pointer: bytes, key: SigningKey) -> SnapshotStatement | None:
    """What a pointer states, where it was signed with this very key."""
    with contextlib.suppress(InvalidRemoteSnapshot):
        signed = signing.parse_signed_statement(
            depot.parse_pointer(pointer), depot.parse_signature(pointer)
        )
        if signed and key.public.is_valid(signed):
            return signed.statement
    return None


def _upload_chunks(
    storage: ObjectStorage,
    folder: Path,
    paths: list[str],
    existing: dict[str, int],
    jobs: int,
    progress: Progress,
) -> tuple[Mapping[str, list[Chunk]], int, int]:
    """Send the chunks that the store has not: all chunks of all files, how many were sent, and
    their bytes.
    """
    files: dict[str, list[Chunk]] = {path: [] for path in paths}
    objects_sent = size = 0

    def put(piece: _ChunkData) -> _ChunkData:
        if piece.data:
            storage.write(depot.object_path(piece.chunk.sha256), piece.data, depot.CACHE_FOREVER)
        return piece

    with progress(
        "Publishing bytes", sum((folder / path).stat().st_size for path in paths)
    ) as advance:
        pieces = _read_chunks(folder, paths, existing)
        for piece in run_parallel(put, pieces, jobs, lambda piece: len(piece.data)):
            files[piece.path].append(piece.chunk)
            objects_sent, size = objects_sent + bool(piece.data), size + len(piece.data)
            advance(piece.chunk.size)
    return files, objects_sent, size


def _read_chunks(folder: Path, paths: list[str], existing: dict[str, int]) -> Iterator[_ChunkData]:
    """All chunks of all files; the bytes of those that are not there, once."""
    for path in paths:
        with _map_file(folder / path) as data:
            for begin, end in chunking.split_chunks(data):
                some = data[begin:end]
                chunk = Chunk(encoding.sha256_hex(some), len(some))
                has = existing.get(depot.object_path(chunk.sha256)) == chunk.size
                existing[depot.object_path(chunk.sha256)] = chunk.size
                yield _ChunkData(path, chunk, b"" if has else some)


@contextlib.contextmanager
def _map_file(file: Path) -> Iterator[bytes | mmap.mmap]:
    with file.open("rb") as source:
        if not os.fstat(source.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
