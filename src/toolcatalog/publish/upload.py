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
from collections.abc import Iterator, Mapping, Sequence
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
    TooLarge,
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


def prune_storage(storage: ObjectStorage, keep_count: int) -> StoragePruneResult:
    """Remove all snapshots except the current one, the `keep_count` newest others and recent ones.

    Snapshots of the last day are recent. Chunks that no kept snapshot has are removed too, if they
    are older than a day. Raises StoreError if the store cannot be used, and InvalidRemoteSnapshot
    if the chunks of a kept snapshot are unknown; nothing is removed then.
    """
    oldest_recent = datetime.now(UTC) - MIN_AGE
    snapshots = _list_snapshots(storage)
    kept_digests = _select_kept(storage, snapshots, keep_count, oldest_recent)
    needed_paths = {chunk for digest in kept_digests for chunk in read_chunk_paths(storage, digest)}
    removed_paths = [
        path for digest, files in snapshots.items() if digest not in kept_digests for path in files
    ]
    unused = {
        path: entry
        for path, entry in storage.list_folder(layout.OBJECTS_FOLDER).items()
        if path not in needed_paths and entry.modified < oldest_recent
    }
    # snapshots first, so that no follower starts on one without its chunks
    storage.delete([*removed_paths, *unused])
    return StoragePruneResult(
        len(snapshots) - len(kept_digests),
        len(unused),
        sum(entry.size for entry in unused.values()),
    )


def read_chunk_paths(storage: ObjectStorage, digest: str) -> set[str]:
    """Return the paths of the chunks of a snapshot; empty if its upload was not completed.

    Raises InvalidRemoteSnapshot if its chunk list is damaged.
    """
    try:
        content = storage.read(layout.chunk_list_path(digest), layout.MAX_CHUNK_LIST_SIZE)
    except ObjectNotFound:
        return set()
    return (
        {
            layout.object_path(chunk.sha256)
            for chunks in layout.parse_chunk_list(content.data).values()
            for chunk in chunks
        }
        if content
        else set()
    )


def _list_snapshots(storage: ObjectStorage) -> dict[str, dict[str, ObjectInfo]]:
    snapshots: defaultdict[str, dict[str, ObjectInfo]] = defaultdict(dict)
    for path, entry in storage.list_folder(layout.SNAPSHOTS_FOLDER).items():
        snapshots[path.split("/")[1]][path] = entry
    return snapshots


def _select_kept(
    storage: ObjectStorage,
    snapshots: Mapping[str, Mapping[str, ObjectInfo]],
    keep_count: int,
    oldest_recent: datetime,
) -> set[str]:
    pointer = storage.read(layout.POINTER, layout.MAX_POINTER_SIZE)
    assert pointer  # the read had no condition
    current = layout.parse_pointer(pointer.data)
    modified_at = {
        digest: max(entry.modified for entry in files.values())
        for digest, files in snapshots.items()
    }
    other_digests = sorted(
        modified_at.keys() - {current}, key=lambda digest: modified_at[digest], reverse=True
    )
    return {
        digest
        for digest in modified_at
        if digest == current or modified_at[digest] >= oldest_recent
    } | {*other_digests[:keep_count]}


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
    data: bytes  # empty if it is not to be sent
    is_present: bool  # whether the store has an object of this name and size


def upload_snapshot(
    storage: ObjectStorage,
    build: Path,
    jobs: int,
    progress: Progress,
    key: SigningKey | None = None,
    *,
    verify_objects: bool = False,
) -> UploadResult:
    """Verify and publish the snapshot that `build/current` names, signed if there is a key.

    The manifest and the chunk list are compared with those in the store, and objects by their
    sizes. With `verify_objects` the objects of the snapshot are read and compared too. What differs
    is sent again. Progress is reported in bytes. Raises InvalidRemoteSnapshot if the snapshot has
    too many chunks for followers, SnapshotError if it is invalid, StoreError if the store cannot be
    used, and ObjectConflict if somebody else moved the pointer meanwhile; that pointer stays.
    """
    folder = Path(os.path.realpath(build / "current"))
    manifest = verify.read_manifest(folder, build)
    _verify_build(folder, build, progress)
    previous = _read_pointer(storage)
    files, objects_sent, size = _upload_chunks(
        storage,
        folder,
        [*verify.list_files(folder, manifest)],
        _list_reusable_chunks(storage, previous),
        jobs,
        progress,
        verify_objects=verify_objects,
    )
    metadata = {
        layout.manifest_path(manifest.digest): (folder / snapshot_format.MANIFEST).read_bytes(),
        layout.chunk_list_path(manifest.digest): _render_chunk_list(manifest.digest, files),
    }
    for path, data in metadata.items():
        if not _has_content(storage, path, data):
            storage.write(path, data, layout.CACHE_FOREVER)
            objects_sent, size = objects_sent + 1, size + len(data)
    pointer_moved = _move_pointer(storage, manifest.digest, previous, key)
    was_signed = pointer_moved and key is None and previous is not None and _is_signed(previous[0])
    return UploadResult(manifest.digest, objects_sent, size, pointer_moved, was_signed)


def _has_content(storage: ObjectStorage, path: str, data: bytes) -> bool:
    """Return whether an object has exactly these bytes."""
    try:
        content = storage.read(path, len(data))
    except (ObjectNotFound, TooLarge):
        return False
    return content is not None and content.data == data


def _render_chunk_list(digest: str, files: Mapping[str, Sequence[Chunk]]) -> bytes:
    data = layout.render_chunk_list(files)
    if len(data) > layout.MAX_CHUNK_LIST_SIZE:
        raise InvalidRemoteSnapshot(
            f"Snapshot {digest[:12]} is too large for a store: its list of chunks has"
            f" {len(data):,} bytes, and {layout.MAX_CHUNK_LIST_SIZE:,} are read. Split the"
            " catalog."
        )
    return data


def _verify_build(folder: Path, build: Path, progress: Progress) -> None:
    with progress("Verifying bytes", verify.count_bytes(folder)) as advance:
        problems = verify.verify_snapshot(folder, advance)
    if problems:
        raise SnapshotError(
            f"The build in {build} is damaged ({problems[0]}), so nothing was sent: {REBUILD_HINT}"
        )


def _read_pointer(storage: ObjectStorage) -> tuple[bytes, ObjectTag] | None:
    try:
        # the limit is generous, because an invalid pointer can be replaced
        return storage.read(layout.POINTER, snapshot_format.MAX_MANIFEST_SIZE)
    except ObjectNotFound:
        return None


def _list_reusable_chunks(
    storage: ObjectStorage, previous: tuple[bytes, ObjectTag] | None
) -> dict[str, int]:
    """Return the chunks that the store has and will keep for now, with their sizes.

    Chunks that a concurrent prune may remove are left out.
    """
    served: set[str] = set()
    # a damaged pointer or chunk list does not say which chunks stay
    with contextlib.suppress(InvalidRemoteSnapshot):
        served = (
            read_chunk_paths(storage, layout.parse_pointer(previous[0])) if previous else served
        )
    oldest_usable = datetime.now(UTC) - MIN_AGE / 2
    objects = storage.list_folder(layout.OBJECTS_FOLDER)
    return {
        path: entry.size
        for path, entry in objects.items()
        if path in served or entry.modified > oldest_usable
    }


def _move_pointer(
    storage: ObjectStorage,
    digest: str,
    previous: tuple[bytes, ObjectTag] | None,
    key: SigningKey | None,
) -> bool:
    """Move the pointer, and return whether it has changed.

    With a key, it always gets a new sequence number: followers may have accepted a higher one than
    that of a pointer that was put back. Without a key, it is unchanged if it names this snapshot.
    """
    last = _read_statement(previous[0], key) if previous and key else None
    if previous and not key and _is_pointer_to(previous[0], digest):
        return False
    signed = None
    if key:
        statement = signatures.next_statement(digest, last, datetime.now(UTC))
        signed = signatures.dump_signed_statement(key.sign(statement))
    pointer = layout.render_pointer(digest, signed)
    try:
        storage.replace(
            layout.POINTER, pointer, layout.CACHE_REVALIDATE, previous[1] if previous else None
        )
    except ObjectConflict:
        current = _read_pointer(storage)
        # Otherwise it was our own write: its response was lost, and the library tried again.
        if not current or current[0] != pointer:
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
    existing: Mapping[str, int],
    jobs: int,
    progress: Progress,
    *,
    verify_objects: bool,
) -> tuple[Mapping[str, list[Chunk]], int, int]:
    """Send the missing chunks, and with `verify_objects` those with other bytes.

    Returns the chunks of all files, and the number and bytes of the sent ones.
    """
    files: dict[str, list[Chunk]] = {path: [] for path in paths}
    objects_sent = size = 0

    def put(piece: _ChunkData) -> _ChunkData:
        path = layout.object_path(piece.chunk.sha256)
        if piece.data and piece.is_present and _has_content(storage, path, piece.data):
            return piece._replace(data=b"")
        if piece.data:
            storage.write(path, piece.data, layout.CACHE_FOREVER)
        return piece

    with progress(
        "Publishing bytes", sum((folder / path).stat().st_size for path in paths)
    ) as advance:
        pieces = _read_chunks(folder, paths, existing, verify_objects=verify_objects)
        for piece in run_parallel(put, pieces, jobs, lambda piece: len(piece.data)):
            files[piece.path].append(piece.chunk)
            objects_sent, size = objects_sent + bool(piece.data), size + len(piece.data)
            advance(piece.chunk.size)
    return files, objects_sent, size


def _read_chunks(
    folder: Path, paths: list[str], existing: Mapping[str, int], *, verify_objects: bool
) -> Iterator[_ChunkData]:
    """Yield all chunks of all files, with data only for the first occurrence of a missing chunk.

    With `verify_objects`, the first occurrence of each other chunk has data too.
    """
    seen: set[str] = set()
    for path in paths:
        with _map_file(folder / path) as data:
            for start, end in chunks.split_chunks(data):
                content = data[start:end]
                chunk = Chunk(encoding.sha256_hex(content), len(content))
                is_present = existing.get(layout.object_path(chunk.sha256)) == chunk.size
                needs_data = chunk.sha256 not in seen and (verify_objects or not is_present)
                seen.add(chunk.sha256)
                yield _ChunkData(path, chunk, content if needs_data else b"", is_present)


@contextlib.contextmanager
def _map_file(file: Path) -> Iterator[bytes | mmap.mmap]:
    with file.open("rb") as source:
        if not os.fstat(source.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
