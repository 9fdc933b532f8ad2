"""What nobody needs any more, out of an object store: old snapshots, and the chunks that only those
had.

Chunks are shared, so their age alone says nothing: a rule that removes old objects would remove
what is served. Here a chunk goes when no snapshot that is kept has it and it was written more than
a day ago. Whoever publishes meanwhile relies on old chunks only where the pointer's snapshot has
them, and comes to nothing if the pointer moves (`sending`). So any number may publish and sweep at
once.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from toolcatalog import depot
from toolcatalog.objects import ObjectInfo, ObjectNotFound, ObjectStorage

MIN_AGE = timedelta(days=1)


class StoragePruneResult(NamedTuple):
    """How many snapshots and objects were removed, and the bytes of those objects."""

    snapshot_count: int
    object_count: int
    bytes_freed: int


def prune_storage(storage: ObjectStorage, keep: int) -> StoragePruneResult:
    """Remove all but the snapshot in force, the `keep` newest others, and whatever is younger than
    a day.

    Raises StoreError where the store cannot be used, and Refused where what a kept snapshot has
    cannot be told: then nothing is removed.
    """
    before = datetime.now(UTC) - MIN_AGE
    snapshots = _list_snapshots(storage)
    kept = _select_kept(storage, snapshots, keep, before)
    needed = {chunk for digest in kept for chunk in read_chunk_paths(storage, digest)}
    gone = [path for digest, files in snapshots.items() if digest not in kept for path in files]
    spare = {
        path: entry
        for path, entry in storage.list_folder(depot.OBJECTS_FOLDER).items()
        if path not in needed and entry.modified < before
    }
    # snapshots first: one whose chunks are missing would be begun in vain
    storage.delete([*gone, *spare])
    return StoragePruneResult(
        len(snapshots) - len(kept), len(spare), sum(entry.size for entry in spare.values())
    )


def read_chunk_paths(storage: ObjectStorage, digest: str) -> set[str]:
    """Where the chunks of a snapshot lie; nothing where it was never completed. Raises Refused
    where its list is damaged.
    """
    try:
        read = storage.read(depot.chunk_list_path(digest), depot.MAX_CHUNK_LIST_SIZE)
    except ObjectNotFound:
        return set()
    return (
        {
            depot.object_path(chunk.sha256)
            for some in depot.parse_chunk_list(read.data).values()
            for chunk in some
        }
        if read
        else set()
    )


def _list_snapshots(storage: ObjectStorage) -> dict[str, dict[str, ObjectInfo]]:
    found: defaultdict[str, dict[str, ObjectInfo]] = defaultdict(dict)
    for path, entry in storage.list_folder(depot.SNAPSHOTS_FOLDER).items():
        found[path.split("/")[1]][path] = entry
    return found


def _select_kept(
    storage: ObjectStorage,
    snapshots: Mapping[str, Mapping[str, ObjectInfo]],
    keep: int,
    before: datetime,
) -> set[str]:
    pointer = storage.read(depot.POINTER, depot.MAX_POINTER_SIZE)
    assert pointer  # it was asked for without a condition
    current = depot.parse_pointer(pointer.data)
    written = {
        digest: max(entry.modified for entry in files.values())
        for digest, files in snapshots.items()
    }
    others = sorted(written.keys() - {current}, key=lambda digest: written[digest], reverse=True)
    return {digest for digest in written if digest == current or written[digest] >= before} | {
        *others[:keep]
    }
