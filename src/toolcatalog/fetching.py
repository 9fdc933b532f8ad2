"""A snapshot of an object store into a folder of the shape of a build, every byte verified before
it has its name.

Nothing that the store says is believed: not a length, not a list, not a name. What is taken for a
chunk has its SHA-256; what is taken for the snapshot is held, file by file, against the manifest
that the digest vouches for. Chunks that a snapshot beside it has are copied from there.

What a fetch can take is bounded before it is taken: memory by the bounds of `depot` and `snapshot`,
the disk by the sizes that the manifest and the listing state, and those by what the caller allows.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from toolcatalog import depot, files, opening, publishing, snapshot, verifying
from toolcatalog.depot import Chunk, Refused
from toolcatalog.objects import Missing, Objects, TooLarge, in_parallel
from toolcatalog.snapshot import Stated

# the folder of a cache that says which snapshot has which chunks; not in the snapshot, whose files
# are all listed
_KNOWN = "chunks"
_AGAIN = "publish again, or wait until the store is mended."
_SPARE = 1.02  # of what a snapshot takes on disk, to what its files hold
_BLOCK = 1 << 12  # bytes that a file or a folder takes on disk at least


class Fetched(NamedTuple):
    """What came from the store, and not from a snapshot beside: chunks, and their bytes."""

    objects: int
    size: int


class _Place(NamedTuple):
    """Where a chunk lies on this machine."""

    file: Path
    begin: int


def fetch(objects: Objects, digest: str, cache: Path, jobs: int, most: int) -> Fetched:
    """Put the snapshot of this digest, of at most so many bytes, at `cache/snapshots/<digest>`.

    Raises Refused where what the store has is not that snapshot or is larger, SnapshotError where
    its manifest has no sense or it is of another format, StoreError where the store cannot be used,
    OSError where the disk cannot. Whatever is raised, nothing is left behind.
    """
    part = cache / "snapshots" / f"{digest}.part"
    files.remove(part)
    part.mkdir(parents=True)
    try:
        (part / snapshot.MANIFEST).write_bytes(
            _named(objects, depot.manifest_path(digest), snapshot.MOST_MANIFEST)
        )
        named = Path("snapshots", digest[:12])
        mend = f"publish to {objects.url} again, or wait until it is mended."
        manifest = verifying.read(part, named, mend)
        if manifest.digest != digest:
            raise Refused(
                f"The manifest of snapshot {digest[:12]} is that of {manifest.digest[:12]}: "
                f"{_AGAIN}"
            )
        _make_room(part, manifest.files, most)
        if manifest.files[snapshot.LISTING].size > snapshot.MOST_LISTING:
            raise Refused(
                f"{snapshot.LISTING} of snapshot {digest[:12]} has more than the "
                f"{snapshot.MOST_LISTING:,} bytes that it can have: {_AGAIN}"
            )
        chunks = depot.unpack(_named(objects, depot.chunks_path(digest), depot.MOST_CHUNKS))
        source = _Source(objects, jobs)
        listing = {snapshot.LISTING: manifest.files[snapshot.LISTING]}
        _fill(source, part, _agreed(chunks, listing), cache)
        stated = verifying.contents(part, manifest)
        _make_room(part, stated, most)
        # no more than the snapshot has: it is kept, and read again for each fetch
        agreed = _agreed(chunks, stated)
        rest = {path: listed for path, listed in agreed.items() if path != snapshot.LISTING}
        _fill(source, part, rest, cache)
        if wrong := verifying.verify(part):
            raise Refused(
                f"Snapshot {digest[:12]} is damaged in {objects.url} ({wrong[0]}): {_AGAIN}"
            )
        opening.check(part, named, mend)
        publishing.place(part, digest, stated)
        files.replace(cache / _KNOWN / f"{digest}.json", depot.pack(agreed))
    finally:
        files.remove(part)
    return Fetched(source.objects, source.size)


def forget(cache: Path) -> None:
    """Remove what is known of snapshots that are no longer there."""
    for file in (cache / _KNOWN).glob("*.json"):
        if not (cache / "snapshots" / file.stem).is_dir():
            files.remove(file)


def _named(objects: Objects, path: str, most: int) -> bytes:
    try:
        found = objects.read(path, most)
    except Missing:
        raise Refused(
            f"{depot.POINTER} in {objects.url} names a snapshot that is not there ({path}): "
            f"{_AGAIN}"
        ) from None
    except TooLarge as error:
        raise Refused(str(error)) from None
    assert found  # it was asked for without a condition
    return found.data


def _agreed(
    chunks: Mapping[str, Sequence[Chunk]], stated: Mapping[str, Stated]
) -> dict[str, Sequence[Chunk]]:
    """The chunks of these files, whose sizes must be those that the manifest states: a wrong list
    may not fill the disk, nor ask for very many objects.
    """
    for path, said in stated.items():
        if sum(chunk.size for chunk in chunks.get(path, ())) != said.size or (path not in chunks):
            raise Refused(
                f"The list of chunks does not make {path} of {said.size:,} bytes: {_AGAIN}"
            )
        if len(chunks[path]) > said.size // depot.LEAST_CHUNK + 1:
            raise Refused(f"The list of chunks makes {path} of too many pieces: {_AGAIN}")
    return {path: chunks[path] for path in stated}


def _make_room(folder: Path, stated: Mapping[str, Stated], most: int) -> None:
    """Raise Refused where these files are larger than is allowed, OSError where the disk has no
    room for them.
    """
    size = sum(said.size for said in stated.values())
    if size > most:
        raise Refused(
            f"Snapshot {folder.stem[:12]} has at least {size:,} bytes, and {most:,} are allowed: "
            "raise --max-snapshot-size if it is meant."
        )
    folders = {path.rpartition("/")[0] for path in stated}
    blocks = len(stated) + snapshot.MOST_FOLDERS * len(folders)
    if shutil.disk_usage(folder).free < size * _SPARE + _BLOCK * blocks:
        raise OSError(28, f"No room for a snapshot of {size:,} bytes")


def _fill(
    source: "_Source", folder: Path, wanted: Mapping[str, Sequence[Chunk]], cache: Path
) -> None:
    """Write files, chunk after chunk, while the next chunks are on their way."""
    chunks = [chunk for some in wanted.values() for chunk in some]
    pieces = source.pieces(chunks, _local(cache, {chunk.sha256 for chunk in chunks}))
    for path, some in wanted.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            with (folder / path).open("xb") as file:
                file.writelines(next(pieces) for _ in some)
        except FileExistsError:  # a file system that ignores case
            raise Refused(f"{path} has the name of another file on this disk: {_AGAIN}") from None


class _Source:
    """Chunks, from a snapshot beside where one has them, else from the store: so many objects and
    bytes came from there.
    """

    def __init__(self, objects: Objects, jobs: int) -> None:
        self.from_, self.jobs = objects, jobs
        self.objects = self.size = 0

    def pieces(self, chunks: Sequence[Chunk], local: Mapping[str, _Place]) -> Iterator[bytes]:
        """The bytes of the chunks, in their order, each verified; `local` is where some lie here."""

        def load(chunk: Chunk) -> tuple[bytes, bool]:
            data = _copied(local.get(chunk.sha256), chunk)
            return (data, False) if data is not None else (self._fetched(chunk), True)

        for data, is_remote in in_parallel(load, chunks, self.jobs, lambda chunk: chunk.size):
            self.objects, self.size = self.objects + is_remote, self.size + is_remote * len(data)
            yield data

    def _fetched(self, chunk: Chunk) -> bytes:
        path = depot.object_path(chunk.sha256)
        try:
            found = self.from_.read(path, chunk.size)
        except Missing:
            raise Refused(f"{path} is not in {self.from_.url}: {_AGAIN}") from None
        except TooLarge:
            found = None
        if found is None or snapshot.sha256(found.data) != chunk.sha256:
            raise Refused(
                f"{path} in {self.from_.url} has other bytes than its name says: remove that "
                "object, then publish again."
            )
        return found.data


def _copied(place: _Place | None, chunk: Chunk) -> bytes | None:
    """A chunk from a snapshot beside; None where it is not there, or not any more, or damaged."""
    if not place:
        return None
    try:
        with place.file.open("rb") as file:
            file.seek(place.begin)
            data = file.read(chunk.size)
    except OSError:
        return None
    return data if snapshot.sha256(data) == chunk.sha256 else None


def _local(cache: Path, wanted: Collection[str]) -> dict[str, _Place]:
    """Where chunks lie in the snapshots that this cache holds, of those that are wanted."""
    found: dict[str, _Place] = {}
    for known in (cache / _KNOWN).glob("*.json"):
        folder = cache / "snapshots" / known.stem
        try:
            chunks = depot.unpack(known.read_bytes())
        except (OSError, Refused):
            continue
        for path, some in chunks.items():
            begin = 0
            for chunk in some:
                if chunk.sha256 in wanted:
                    found[chunk.sha256] = _Place(folder / path, begin)
                begin += chunk.size
    return found
