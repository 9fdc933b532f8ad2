"""Upload a snapshot to an object store, and prune old snapshots there.

Snapshots share chunks, so the age of a chunk alone does not say whether it is needed: a lifecycle
rule that removes old objects would remove chunks in use. Pruning removes a chunk if no kept
snapshot has it and it was written more than a day ago. An upload relies on older chunks only if the
pointer's snapshot has them, and fails if the pointer moves meanwhile. So any number of uploads and
prunes may run at once.

If an upload is interrupted, the pointer is unchanged, and what was sent is not sent again.
"""

import contextlib
import mmap
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from toolcatalog import encoding
from toolcatalog.errors import REBUILD_HINT, SnapshotError
from toolcatalog.progress import Progress
from toolcatalog.publish import chunks, layout, signatures
from toolcatalog.publish.layout import Chunk, InvalidRemoteSnapshot
from toolcatalog.publish.object_store import (
    ObjectConflict,
    ObjectInfo,
    ObjectNotFound,
    ObjectStorage,
    ObjectTag,
    run_parallel,
)
from toolcatalog.publish.signatures import SigningKey, SnapshotStatement
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import verify

MIN_AGE = timedelta(days=1)


class StoragePruneResult(NamedTuple):
    """The numbers of removed snapshots and objects, and the bytes of those objects."""

    snapshot_count: int
    object_count: int
    bytes_freed: int


def prune_storage(storage: ObjectStorage, keep: int) -> StoragePruneResult:
    """Remove all snapshots except the current one, the `keep` newest others and recent ones.

    Snapshots of the last day are recent. Chunks that no kept snapshot has are removed too, if they
    are older than a day. Raises StoreError if the store cannot be used, and InvalidRemoteSnapshot
    if the chunks of a kept snapshot are unknown; nothing is removed then.
    """
    before = datetime.now(UTC) - MIN_AGE
    snapshots = _list_snapshots(storage)
    kept = _select_kept(storage, snapshots, keep, before)
    needed = {chunk for digest in kept for chunk in read_chunk_paths(storage, digest)}
    gone = [path for digest, files in snapshots.items() if digest not in kept for path in files]
    spare = {
        path: entry
        for path, entry in storage.list_folder(layout.OBJECTS_FOLDER).items()
        if path not in needed and entry.modified < before
    }
    # snapshots first, so that no follower starts on one without its chunks
    storage.delete([*gone, *spare])
    return StoragePruneResult(
        len(snapshots) - len(kept), len(spare), sum(entry.size for entry in spare.values())
    )


def read_chunk_paths(storage: ObjectStorage, digest: str) -> set[str]:
    """Return the paths of the chunks of a snapshot; empty if its upload was not completed.

    Raises InvalidRemoteSnapshot if its chunk list is damaged.
    """
    try:
        read = storage.read(layout.chunk_list_path(digest), layout.MAX_CHUNK_LIST_SIZE)
    except ObjectNotFound:
        return set()
    return (
        {
            layout.object_path(chunk.sha256)
            for some in layout.parse_chunk_list(read.data).values()
            for chunk in some
        }
        if read
        else set()
    )


def _list_snapshots(storage: ObjectStorage) -> dict[str, dict[str, ObjectInfo]]:
    found: defaultdict[str, dict[str, ObjectInfo]] = defaultdict(dict)
    for path, entry in storage.list_folder(layout.SNAPSHOTS_FOLDER).items():
        found[path.split("/")[1]][path] = entry
    return found


def _select_kept(
    storage: ObjectStorage,
    snapshots: Mapping[str, Mapping[str, ObjectInfo]],
    keep: int,
    before: datetime,
) -> set[str]:
    pointer = storage.read(layout.POINTER, layout.MAX_POINTER_SIZE)
    assert pointer  # the read had no condition
    current = layout.parse_pointer(pointer.data)
    written = {
        digest: max(entry.modified for entry in files.values())
        for digest, files in snapshots.items()
    }
    others = sorted(written.keys() - {current}, key=lambda digest: written[digest], reverse=True)
    return {digest for digest in written if digest == current or written[digest] >= before} | {
        *others[:keep]
    }


class UploadResult(NamedTuple):
    """The result of an upload: the digest, what was sent, and whether the pointer has changed.

    `signature_removed`: the previous pointer was signed and the new one is not.
    """

    digest: str
    object_count: int
    bytes_sent: int
    pointer_moved: bool
    signature_removed: bool = False


class _ChunkData(NamedTuple):
    path: str
    chunk: Chunk
    data: bytes  # empty if the store has the chunk


def upload_snapshot(
    storage: ObjectStorage,
    build: Path,
    jobs: int,
    progress: Progress,
    key: SigningKey | None = None,
) -> UploadResult:
    """Verify and publish the snapshot that `build/current` names, signed if there is a key.

    Progress is reported in bytes. Raises InvalidRemoteSnapshot if the snapshot has too many chunks
    for followers, SnapshotError if it is invalid, StoreError if the store cannot be used, and
    ObjectConflict if somebody else moved the pointer meanwhile; that pointer stays.
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
    kept = storage.list_folder(f"{layout.SNAPSHOTS_FOLDER}/{manifest.digest}")
    chunks = layout.render_chunk_list(files)
    if len(chunks) > layout.MAX_CHUNK_LIST_SIZE:
        raise InvalidRemoteSnapshot(
            f"Snapshot {manifest.digest[:12]} is too large for a store: its list of chunks has "
            f"{len(chunks):,} bytes, and {layout.MAX_CHUNK_LIST_SIZE:,} are read. Split the catalog."
        )
    for path, data in (
        (layout.manifest_path(manifest.digest), (folder / snapshot_format.MANIFEST).read_bytes()),
        (layout.chunk_list_path(manifest.digest), chunks),
    ):
        if path not in kept or kept[path].size != len(data):
            storage.write(path, data, layout.CACHE_FOREVER)
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
        # the limit is generous, because an invalid pointer can be replaced
        return storage.read(layout.POINTER, snapshot_format.MAX_MANIFEST_SIZE)
    except ObjectNotFound:
        return None


def _list_reusable_chunks(
    storage: ObjectStorage, before: tuple[bytes, ObjectTag] | None
) -> dict[str, int]:
    """Return the chunks that the store has and will keep for now, with their sizes.

    Chunks that a concurrent prune may remove are left out.
    """
    served: set[str] = set()
    # a damaged pointer or chunk list does not say which chunks stay
    with contextlib.suppress(InvalidRemoteSnapshot):
        served = read_chunk_paths(storage, layout.parse_pointer(before[0])) if before else served
    since = datetime.now(UTC) - MIN_AGE / 2
    listed = storage.list_folder(layout.OBJECTS_FOLDER)
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
    """Move the pointer, and return whether it has changed.

    With a key, it always gets a new sequence number: followers may have accepted a higher one than
    that of a pointer that was put back. Without a key, it is unchanged if it names this snapshot.
    """
    last = _read_statement(before[0], key) if before and key else None
    if before and not key and _is_pointer_to(before[0], digest):
        return False
    signed = None
    if key:
        statement = signatures.next_statement(digest, last, datetime.now(UTC))
        signed = signatures.dump_signed_statement(key.sign(statement))
    wanted = layout.render_pointer(digest, signed)
    try:
        storage.replace(
            layout.POINTER, wanted, layout.CACHE_REVALIDATE, before[1] if before else None
        )
    except ObjectConflict:
        now = _read_pointer(storage)
        # Otherwise it was our own write: its response was lost, and the library tried again.
        if not now or now[0] != wanted:
            raise
    return True


def _is_pointer_to(pointer: bytes, digest: str) -> bool:
    """Return whether a pointer names this snapshot, signed or not."""
    with contextlib.suppress(InvalidRemoteSnapshot):
        return layout.parse_pointer(pointer) == digest
    return False


def _is_signed(pointer: bytes) -> bool:
    with contextlib.suppress(InvalidRemoteSnapshot):
        return layout.parse_signature(pointer) is not None
    return False


def _read_statement(pointer: bytes, key: SigningKey) -> SnapshotStatement | None:
    """Return the statement of a pointer if it was signed with this key; else None."""
    with contextlib.suppress(InvalidRemoteSnapshot):
        signed = signatures.parse_signed_statement(
            layout.parse_pointer(pointer), layout.parse_signature(pointer)
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
    """Send the missing chunks.

    Returns the chunks of all files, and the number and bytes of the sent ones.
    """
    files: dict[str, list[Chunk]] = {path: [] for path in paths}
    objects_sent = size = 0

    def put(piece: _ChunkData) -> _ChunkData:
        if piece.data:
            storage.write(layout.object_path(piece.chunk.sha256), piece.data, layout.CACHE_FOREVER)
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
    """Yield all chunks of all files, with data only for the first occurrence of a missing chunk."""
    for path in paths:
        with _map_file(folder / path) as data:
            for begin, end in chunks.split_chunks(data):
                some = data[begin:end]
                chunk = Chunk(encoding.sha256_hex(some), len(some))
                has = existing.get(layout.object_path(chunk.sha256)) == chunk.size
                existing[layout.object_path(chunk.sha256)] = chunk.size
                yield _ChunkData(path, chunk, b"" if has else some)


@contextlib.contextmanager
def _map_file(file: Path) -> Iterator[bytes | mmap.mmap]:
    with file.open("rb") as source:
        if not os.fstat(source.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
