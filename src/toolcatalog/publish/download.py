"""Download a snapshot from an object store and verify every byte.

No data of the store is trusted: no length, no list, no name. Every chunk is compared with its
SHA-256, and every file with the manifest that the digest authenticates. Chunks that another local
snapshot has are copied from there.

All resources are limited before they are used: memory by the limits of `publish.layout` and
`snapshot`, and the disk by the sizes in the manifest and the file list, which must not exceed the
caller's limit.
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

# The folder of a cache for the chunk lists. They are not in the snapshots, because all files of
# a snapshot must be listed.
_CHUNK_LISTS_FOLDER = "chunks"
_RETRY_HINT = "publish again, or wait until the store is fixed."
_DISK_MARGIN = 1.02  # size of a snapshot on disk, relative to its bytes
_DISK_BLOCK_SIZE = 1 << 12  # minimum size of a file or folder on disk in bytes


class DownloadResult(NamedTuple):
    """The number and bytes of the chunks from the store, without those copied locally."""

    object_count: int
    bytes_received: int


class _ChunkLocation(NamedTuple):
    """The location of a chunk on this machine."""

    file: Path
    offset: int


def download_snapshot(
    storage: ObjectStorage, digest: str, cache: Path, jobs: int, max_size: int
) -> DownloadResult:
    """Download a snapshot of at most `max_size` bytes to `cache/snapshots/<digest>`.

    Raises InvalidRemoteSnapshot if the store has another snapshot under this digest or a larger
    one, SnapshotError if its manifest is invalid or of another format, StoreError if the store
    cannot be used, and OSError if the disk cannot. No partial files remain after an error.
    """
    part = cache / "snapshots" / f"{digest}.part"
    files.remove(part)
    part.mkdir(parents=True)
    display_folder = Path("snapshots", digest[:12])
    help = f"publish to {storage.url} again, or wait until it is fixed."
    try:
        manifest = _download_manifest(storage, digest, part, display_folder, help)
        _check_disk_space(part, manifest.files, max_size)
        _check_file_list_size(manifest)
        chunks = layout.parse_chunk_list(
            _read_object(storage, layout.chunk_list_path(digest), layout.MAX_CHUNK_LIST_SIZE)
        )
        source = _ChunkSource(storage, jobs)
        listing = {snapshot_format.FILE_LIST: manifest.files[snapshot_format.FILE_LIST]}
        _write_files(source, part, _check_chunk_sizes(chunks, listing), cache)
        file_infos = verify.list_files(part, manifest)
        _check_disk_space(part, file_infos, max_size)
        # only the files of the snapshot: this list is stored, and read for each download
        file_chunks = _check_chunk_sizes(chunks, file_infos)
        remaining = {
            path: chunks_of_file
            for path, chunks_of_file in file_chunks.items()
            if path != snapshot_format.FILE_LIST
        }
        _write_files(source, part, remaining, cache)
        if problems := verify.verify_snapshot(part):
            raise InvalidRemoteSnapshot(
                f"Snapshot {digest[:12]} is damaged in {storage.url} ({problems[0]}): {_RETRY_HINT}"
            )
        store_open.check_snapshot(part, display_folder, help)
        directory.install_snapshot(part, digest, file_infos)
        files.write_unsynced(
            cache / _CHUNK_LISTS_FOLDER / f"{digest}.json", layout.render_chunk_list(file_chunks)
        )
    finally:
        files.remove(part)
    return DownloadResult(source.object_count, source.byte_count)


def _download_manifest(
    storage: ObjectStorage, digest: str, folder: Path, display_folder: Path, help: str
) -> verify.Manifest:
    data = _read_object(storage, layout.manifest_path(digest), snapshot_format.MAX_MANIFEST_SIZE)
    (folder / snapshot_format.MANIFEST).write_bytes(data)
    manifest = verify.read_manifest(folder, display_folder, help)
    if manifest.digest != digest:
        raise InvalidRemoteSnapshot(
            f"The manifest of snapshot {digest[:12]} is that of {manifest.digest[:12]}: "
            f"{_RETRY_HINT}"
        )
    return manifest


def _check_file_list_size(manifest: verify.Manifest) -> None:
    if manifest.files[snapshot_format.FILE_LIST].size > snapshot_format.MAX_FILE_LIST_SIZE:
        raise InvalidRemoteSnapshot(
            f"{snapshot_format.FILE_LIST} of snapshot {manifest.digest[:12]} has more than the "
            f"{snapshot_format.MAX_FILE_LIST_SIZE:,} bytes that it can have: {_RETRY_HINT}"
        )


def remove_stale_chunk_lists(cache: Path) -> None:
    """Remove the chunk lists of snapshots that are no longer in the cache."""
    for file in (cache / _CHUNK_LISTS_FOLDER).glob("*.json"):
        if not (cache / "snapshots" / file.stem).is_dir():
            files.remove(file)


def _read_object(storage: ObjectStorage, path: str, max_bytes: int) -> bytes:
    try:
        content = storage.read(path, max_bytes)
    except ObjectNotFound:
        raise InvalidRemoteSnapshot(
            f"{layout.POINTER} in {storage.url} names a snapshot that is not there ({path}): "
            f"{_RETRY_HINT}"
        ) from None
    except TooLarge as error:
        raise InvalidRemoteSnapshot(str(error)) from None
    assert content  # the read had no condition
    return content.data


def _check_chunk_sizes(
    chunks: Mapping[str, Sequence[Chunk]], expected: Mapping[str, FileInfo]
) -> dict[str, Sequence[Chunk]]:
    """Return the chunks of the expected files, after a check of their sizes and number.

    The sizes must add up to those in the manifest, so that a wrong list cannot fill the disk or
    cause very many requests. Raises InvalidRemoteSnapshot otherwise.
    """
    for path, file_info in expected.items():
        if sum(chunk.size for chunk in chunks.get(path, ())) != file_info.size or (
            path not in chunks
        ):
            raise InvalidRemoteSnapshot(
                f"The list of chunks does not make {path} of {file_info.size:,} bytes:"
                f" {_RETRY_HINT}"
            )
        if len(chunks[path]) > file_info.size // layout.MIN_ACCEPTED_CHUNK_SIZE + 1:
            raise InvalidRemoteSnapshot(
                f"The list of chunks makes {path} of too many pieces: {_RETRY_HINT}"
            )
    return {path: chunks[path] for path in expected}


def _check_disk_space(folder: Path, file_infos: Mapping[str, FileInfo], max_size: int) -> None:
    """Raise InvalidRemoteSnapshot if the files exceed `max_size`, OSError if the disk is full.

    Files and folders take whole blocks of the disk, so many empty files are large, too.
    """
    folders = {path.rpartition("/")[0] for path in file_infos}
    blocks = len(file_infos) + snapshot_format.MAX_FOLDER_DEPTH * len(folders)
    size = sum(file_info.size for file_info in file_infos.values()) + _DISK_BLOCK_SIZE * blocks
    if size > max_size:
        raise InvalidRemoteSnapshot(
            f"Snapshot {folder.stem[:12]} takes at least {size:,} bytes, and {max_size:,} are"
            " allowed: raise --max-snapshot-size if this is intended."
        )
    if shutil.disk_usage(folder).free < size * _DISK_MARGIN:
        raise OSError(28, f"Not enough disk space for a snapshot of {size:,} bytes")


def _write_files(
    source: "_ChunkSource", folder: Path, chunks_by_path: Mapping[str, Sequence[Chunk]], cache: Path
) -> None:
    """Write files chunk by chunk, while the next chunks are downloaded."""
    chunks = [chunk for file_chunks in chunks_by_path.values() for chunk in file_chunks]
    pieces = source.read_chunks(
        chunks, _find_local_chunks(cache, {chunk.sha256 for chunk in chunks})
    )
    for path, file_chunks in chunks_by_path.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            with (folder / path).open("xb") as file:
                file.writelines(next(pieces) for _ in file_chunks)
        except FileExistsError:  # on a case-insensitive file system
            raise InvalidRemoteSnapshot(
                f"{path} has the name of another file on this disk: {_RETRY_HINT}"
            ) from None


class _ChunkSource:
    """Reads chunks from other local snapshots or from the store; counts those from the store."""

    def __init__(self, storage: ObjectStorage, jobs: int) -> None:
        self.storage, self.jobs = storage, jobs
        self.object_count = self.byte_count = 0

    def read_chunks(
        self, chunks: Sequence[Chunk], local: Mapping[str, _ChunkLocation]
    ) -> Iterator[bytes]:
        """Yield the verified bytes of the chunks, in order; `local` locates local ones."""

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
            content = self.storage.read(path, chunk.size)
        except ObjectNotFound:
            raise InvalidRemoteSnapshot(
                f"{path} is not in {self.storage.url}: {_RETRY_HINT}"
            ) from None
        except TooLarge:
            content = None
        if content is None or encoding.sha256_hex(content.data) != chunk.sha256:
            raise InvalidRemoteSnapshot(
                f"{path} in {self.storage.url} has other bytes than its name says: run "
                "`toolcatalog publish --verify`."
            )
        return content.data


def _copy_local_chunk(location: _ChunkLocation | None, chunk: Chunk) -> bytes | None:
    """Return a chunk of a local snapshot; None if it is missing or damaged."""
    if not location:
        return None
    try:
        with location.file.open("rb") as file:
            file.seek(location.offset)
            data = file.read(chunk.size)
    except OSError:
        return None
    return data if encoding.sha256_hex(data) == chunk.sha256 else None


def _find_local_chunks(cache: Path, digests: Collection[str]) -> dict[str, _ChunkLocation]:
    """Return the locations of the wanted chunks in the snapshots of this cache."""
    locations: dict[str, _ChunkLocation] = {}
    for chunk_list in (cache / _CHUNK_LISTS_FOLDER).glob("*.json"):
        folder = cache / "snapshots" / chunk_list.stem
        try:
            chunks = layout.parse_chunk_list(chunk_list.read_bytes())
        except (OSError, InvalidRemoteSnapshot):
            continue
        for path, file_chunks in chunks.items():
            offset = 0
            for chunk in file_chunks:
                if chunk.sha256 in digests:
                    locations[chunk.sha256] = _ChunkLocation(folder / path, offset)
                offset += chunk.size
    return locations
