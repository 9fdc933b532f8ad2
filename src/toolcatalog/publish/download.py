"""Download a snapshot from an object store and verify every byte.

Nothing that the store says is believed: not a length, not a list, not a name. What is taken for a
chunk has its SHA-256; what is taken for the snapshot is held, file by file, against the manifest
that the digest vouches for. Chunks that a snapshot beside it has are copied from there.

What a fetch can take is bounded before it is taken: memory by the bounds of `publish.layout` and `snapshot`,
the disk by the sizes that the manifest and the listing state, and those by what the caller allows.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from toolcatalog import encoding
from toolcatalog.publish import layout
from toolcatalog.publish.layout import Chunk, InvalidRemoteSnapshot
from toolcatalog.publish.object_store import ObjectNotFound, ObjectStorage, TooLarge, run_parallel
from toolcatalog.snapshot import directory, verify
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import FileInfo
from toolcatalog.store import open as store_open
from toolcatalog.system import files

# the folder of a cache that says which snapshot has which chunks; not in the snapshot, whose files
# are all listed
_CHUNK_LISTS_FOLDER = "chunks"
_RETRY_HINT = "publish again, or wait until the store is mended."
_DISK_MARGIN = 1.02  # of what a snapshot takes on disk, to what its files hold
_DISK_BLOCK_SIZE = 1 << 12  # bytes that a file or a folder takes on disk at least


class DownloadResult(NamedTuple):
    """What came from the store, and not from a snapshot beside: chunks, and their bytes."""

    object_count: int
    bytes_received: int


class _ChunkLocation(NamedTuple):
    """Where a chunk lies on this machine."""

    file: Path
    offset: int


def download_snapshot(
    storage: ObjectStorage, digest: str, cache: Path, jobs: int, max_size: int
) -> DownloadResult:
    """Put the snapshot of this digest, of at most so many bytes, at `cache/snapshots/<digest>`.

    Raises Refused where what the store has is not that snapshot or is larger, SnapshotError where
    its manifest has no sense or it is of another format, StoreError where the store cannot be used,
    OSError where the disk cannot. Whatever is raised, nothing is left behind.
    """
    part = cache / "snapshots" / f"{digest}.part"
    files.remove(part)
    part.mkdir(parents=True)
    try:
        (part / snapshot_format.MANIFEST).write_bytes(
            _read_object(storage, layout.manifest_path(digest), snapshot_format.MAX_MANIFEST_SIZE)
        )
        named = Path("snapshots", digest[:12])
        mend = f"publish to {storage.url} again, or wait until it is mended."
        manifest = verify.read_manifest(part, named, mend)
        if manifest.digest != digest:
            raise InvalidRemoteSnapshot(
                f"The manifest of snapshot {digest[:12]} is that of {manifest.digest[:12]}: "
                f"{_RETRY_HINT}"
            )
        _check_disk_space(part, manifest.files, max_size)
        if manifest.files[snapshot_format.FILE_LIST].size > snapshot_format.MAX_FILE_LIST_SIZE:
            raise InvalidRemoteSnapshot(
                f"{snapshot_format.FILE_LIST} of snapshot {digest[:12]} has more than the "
                f"{snapshot_format.MAX_FILE_LIST_SIZE:,} bytes that it can have: {_RETRY_HINT}"
            )
        chunks = layout.parse_chunk_list(
            _read_object(storage, layout.chunk_list_path(digest), layout.MAX_CHUNK_LIST_SIZE)
        )
        source = _ChunkSource(storage, jobs)
        listing = {snapshot_format.FILE_LIST: manifest.files[snapshot_format.FILE_LIST]}
        _write_files(source, part, _check_chunk_sizes(chunks, listing), cache)
        stated = verify.list_files(part, manifest)
        _check_disk_space(part, stated, max_size)
        # no more than the snapshot has: it is kept, and read again for each fetch
        agreed = _check_chunk_sizes(chunks, stated)
        rest = {
            path: listed for path, listed in agreed.items() if path != snapshot_format.FILE_LIST
        }
        _write_files(source, part, rest, cache)
        if wrong := verify.verify_snapshot(part):
            raise InvalidRemoteSnapshot(
                f"Snapshot {digest[:12]} is damaged in {storage.url} ({wrong[0]}): {_RETRY_HINT}"
            )
        store_open.check(part, named, mend)
        directory.install_snapshot(part, digest, stated)
        files.write_unsynced(
            cache / _CHUNK_LISTS_FOLDER / f"{digest}.json", layout.render_chunk_list(agreed)
        )
    finally:
        files.remove(part)
    return DownloadResult(source.object_count, source.byte_count)


def remove_stale_chunk_lists(cache: Path) -> None:
    """Remove what is known of snapshots that are no longer there."""
    for file in (cache / _CHUNK_LISTS_FOLDER).glob("*.json"):
        if not (cache / "snapshots" / file.stem).is_dir():
            files.remove(file)


def _read_object(storage: ObjectStorage, path: str, max_bytes: int) -> bytes:
    try:
        found = storage.read(path, max_bytes)
    except ObjectNotFound:
        raise InvalidRemoteSnapshot(
            f"{layout.POINTER} in {storage.url} names a snapshot that is not there ({path}): "
            f"{_RETRY_HINT}"
        ) from None
    except TooLarge as error:
        raise InvalidRemoteSnapshot(str(error)) from None
    assert found  # it was asked for without a condition
    return found.data


def _check_chunk_sizes(
    chunks: Mapping[str, Sequence[Chunk]], expected: Mapping[str, FileInfo]
) -> dict[str, Sequence[Chunk]]:
    """The chunks of these files, whose sizes must be those that the manifest states: a wrong list
    may not fill the disk, nor ask for very many objects.
    """
    for path, said in expected.items():
        if sum(chunk.size for chunk in chunks.get(path, ())) != said.size or (path not in chunks):
            raise InvalidRemoteSnapshot(
                f"The list of chunks does not make {path} of {said.size:,} bytes: {_RETRY_HINT}"
            )
        if len(chunks[path]) > said.size // layout.MIN_ACCEPTED_CHUNK_SIZE + 1:
            raise InvalidRemoteSnapshot(
                f"The list of chunks makes {path} of too many pieces: {_RETRY_HINT}"
            )
    return {path: chunks[path] for path in expected}


def _check_disk_space(folder: Path, file_infos: Mapping[str, FileInfo], max_size: int) -> None:
    """Raise Refused where these files are larger than is allowed, OSError where the disk has no
    room for them.
    """
    size = sum(said.size for said in file_infos.values())
    if size > max_size:
        raise InvalidRemoteSnapshot(
            f"Snapshot {folder.stem[:12]} has at least {size:,} bytes, and {max_size:,} are allowed: "
            "raise --max-snapshot-size if it is meant."
        )
    folders = {path.rpartition("/")[0] for path in file_infos}
    blocks = len(file_infos) + snapshot_format.MOST_FOLDERS * len(folders)
    if shutil.disk_usage(folder).free < size * _DISK_MARGIN + _DISK_BLOCK_SIZE * blocks:
        raise OSError(28, f"No room for a snapshot of {size:,} bytes")


def _write_files(
    source: "_ChunkSource", folder: Path, chunks_by_path: Mapping[str, Sequence[Chunk]], cache: Path
) -> None:
    """Write files, chunk after chunk, while the next chunks are on their way."""
    chunks = [chunk for some in chunks_by_path.values() for chunk in some]
    pieces = source.read_chunks(
        chunks, _find_local_chunks(cache, {chunk.sha256 for chunk in chunks})
    )
    for path, some in chunks_by_path.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            with (folder / path).open("xb") as file:
                file.writelines(next(pieces) for _ in some)
        except FileExistsError:  # a file system that ignores case
            raise InvalidRemoteSnapshot(
                f"{path} has the name of another file on this disk: {_RETRY_HINT}"
            ) from None


class _ChunkSource:
    """Chunks, from a snapshot beside where one has them, else from the store: so many objects and
    bytes came from there.
    """

    def __init__(self, storage: ObjectStorage, jobs: int) -> None:
        self.storage, self.jobs = storage, jobs
        self.object_count = self.byte_count = 0

    def read_chunks(
        self, chunks: Sequence[Chunk], local: Mapping[str, _ChunkLocation]
    ) -> Iterator[bytes]:
        """The bytes of the chunks, in their order, each verified; `local` is where some lie here."""

        def load(chunk: Chunk) -> tuple[bytes, bool]:
            data = _copy_local_chunk(local.get(chunk.sha256), chunk)
            return (data, False) if data is not None else (self._download_chunk(chunk), True)

        for data, is_remote in run_parallel(load, chunks, self.jobs, lambda chunk: chunk.size):
            self.object_count, self.byte_count = (
                self.object_count + is_remote,
                self.byte_count + is_remote * len(data),
            )
            yield data

    def _download_chunk(self, chunk: Chunk) -> bytes:
        path = layout.object_path(chunk.sha256)
        try:
            found = self.storage.read(path, chunk.size)
        except ObjectNotFound:
            raise InvalidRemoteSnapshot(
                f"{path} is not in {self.storage.url}: {_RETRY_HINT}"
            ) from None
        except TooLarge:
            found = None
        if found is None or encoding.sha256_hex(found.data) != chunk.sha256:
            raise InvalidRemoteSnapshot(
                f"{path} in {self.storage.url} has other bytes than its name says: remove that "
                "object, then publish again."
            )
        return found.data


def _copy_local_chunk(location: _ChunkLocation | None, chunk: Chunk) -> bytes | None:
    """A chunk from a snapshot beside; None where it is not there, or not any more, or damaged."""
    if not location:
        return None
    try:
        with location.file.open("rb") as file:
            file.seek(location.offset)
            data = file.read(chunk.size)
    except OSError:
        return None
    return data if encoding.sha256_hex(data) == chunk.sha256 else None


def _find_local_chunks(cache: Path, wanted: Collection[str]) -> dict[str, _ChunkLocation]:
    """Where chunks lie in the snapshots that this cache holds, of those that are wanted."""
    found: dict[str, _ChunkLocation] = {}
    for known in (cache / _CHUNK_LISTS_FOLDER).glob("*.json"):
        folder = cache / "snapshots" / known.stem
        try:
            chunks = layout.parse_chunk_list(known.read_bytes())
        except (OSError, InvalidRemoteSnapshot):
            continue
        for path, some in chunks.items():
            begin = 0
            for chunk in some:
                if chunk.sha256 in wanted:
                    found[chunk.sha256] = _ChunkLocation(folder / path, begin)
                begin += chunk.size
    return found
