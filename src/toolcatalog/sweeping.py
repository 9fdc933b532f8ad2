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
from toolcatalog.objects import Entry, Missing, Objects

YOUNG = timedelta(days=1)


class Swept(NamedTuple):
    """How many snapshots and objects were removed, and the bytes of those objects."""

    snapshots: int
    objects: int
    size: int


def sweep(objects: Objects, keep: int) -> Swept:
    """Remove all but the snapshot in force, the `keep` newest others, and whatever is younger than
    a day.

    Raises StoreError where the store cannot be used, and Refused where what a kept snapshot has
    cannot be told: then nothing is removed.
    """
    before = datetime.now(UTC) - YOUNG
    snapshots = _snapshots(objects)
    kept = _kept(objects, snapshots, keep, before)
    needed = {chunk for digest in kept for chunk in named(objects, digest)}
    gone = [path for digest, files in snapshots.items() if digest not in kept for path in files]
    spare = {
        path: entry
        for path, entry in objects.listed(depot.OBJECTS).items()
        if path not in needed and entry.written < before
    }
    # snapshots first: one whose chunks are missing would be begun in vain
    objects.delete([*gone, *spare])
    return Swept(
        len(snapshots) - len(kept), len(spare), sum(entry.size for entry in spare.values())
    )


def named(objects: Objects, digest: str) -> set[str]:
    """Where the chunks of a snapshot lie; nothing where it was never completed. Raises Refused
    where its list is damaged.
    """
    try:
        read = objects.read(depot.chunks_path(digest), depot.MOST_CHUNKS)
    except Missing:
        return set()
    return (
        {
            depot.object_path(chunk.sha256)
            for some in depot.unpack(read.data).values()
            for chunk in some
        }
        if read
        else set()
    )


def _snapshots(objects: Objects) -> dict[str, dict[str, Entry]]:
    found: defaultdict[str, dict[str, Entry]] = defaultdict(dict)
    for path, entry in objects.listed(depot.SNAPSHOTS).items():
        found[path.split("/")[1]][path] = entry
    return found


def _kept(
    objects: Objects, snapshots: Mapping[str, Mapping[str, Entry]], keep: int, before: datetime
) -> set[str]:
    pointer = objects.read(depot.POINTER, depot.MOST_POINTER)
    assert pointer  # it was asked for without a condition
    current = depot.named(pointer.data)
    written = {
        digest: max(entry.written for entry in files.values())
        for digest, files in snapshots.items()
    }
    others = sorted(written.keys() - {current}, key=lambda digest: written[digest], reverse=True)
    return {digest for digest in written if digest == current or written[digest] >= before} | {
        *others[:keep]
    }
