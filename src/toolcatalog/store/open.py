"""Open a snapshot: map its files into memory and check them against the manifest."""

import hashlib
import logging
import os
import stat
import struct
from collections.abc import Mapping
from pathlib import Path

from toolcatalog.errors import REBUILD_HINT, SnapshotError, remedy
from toolcatalog.search.embeddings import encoder, model_files
from toolcatalog.search.embeddings.encoder import QueryEncoder
from toolcatalog.snapshot import compressed_documents, directory, verify
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.compressed_documents import CompressedDocuments
from toolcatalog.snapshot.mapped_files import Access, Buffer, map_file
from toolcatalog.snapshot.tables import Table
from toolcatalog.store import content_checks
from toolcatalog.store.documents import log_damaged_compressed_documents
from toolcatalog.store.store import TABLES, Store

# Files that have no checksums of their own, so they are read completely at opening.
_WITHOUT_CHECKSUMS = {snapshot_format.NUMBERS, snapshot_format.COVERS}
_OF_MEANING = {snapshot_format.VECTORS, snapshot_format.MODEL, snapshot_format.TOKENIZER}
_OLDER_VECTORS = "query.vectors"  # of older releases
_log = logging.getLogger("toolcatalog.store")


def open_build(build: Path) -> Store:
    """Open the snapshot that `build/current` names.

    Raises SnapshotError, with a hint how to fix it, if there is none, or if it is incomplete,
    damaged or has another format.
    """
    # resolve it once: it may move to a newer snapshot while this one is opened
    return open_snapshot(Path(os.path.realpath(build / "current")), build)


def open_snapshot(
    folder: Path, display_folder: Path | None = None, *, is_signed: bool = False
) -> Store:
    """Open the snapshot in a folder; messages show `display_folder`.

    The model of a downloaded snapshot is loaded only if the caller has verified the snapshot's
    signature: then `is_signed` is true. Raises SnapshotError as `open_build` does.
    """
    build = display_folder or folder
    return _open(folder, build, REBUILD_HINT, is_served=True, is_signed=is_signed)


def check_snapshot(folder: Path, display_folder: Path, help: str) -> None:
    """Raise SnapshotError if `open_snapshot` would, with `help` as the hint; loads no model.

    Contents that no build writes are refused, too.
    """
    _open(folder, display_folder, help, is_served=False)


def _open(
    folder: Path, build: Path, help: str, *, is_served: bool, is_signed: bool = False
) -> Store:
    manifest = verify.read_manifest(folder, build, help)
    try:
        data = {
            path: _map_file(folder / path, path, file_info.size)
            for path, file_info in manifest.files.items()
        }
        has_meaning = is_served and _has_usable_model(folder, data, is_signed=is_signed)
        for path in _WITHOUT_CHECKSUMS | (_OF_MEANING if has_meaning else set()):
            if hashlib.sha256(data[path]).hexdigest() != manifest.files[path].sha256:
                raise _DamagedFile(f"{path} has {verify.WRONG_CONTENT}")
        encode = _load_query_encoder(data, manifest) if has_meaning else None
        tables = {path: _open_table(data[path], path) for path in TABLES}
        if not is_served:
            _check_contents(data, tables)
        compressed = _open_compressed(folder, manifest) if is_served else None
        return _open_store(manifest.digest, data, tables, encode, compressed)
    except _DamagedFile as error:
        raise SnapshotError(f"The build in {build} is damaged ({error}): {help}") from None
    except OSError as error:
        raise SnapshotError(
            f"The build in {build} cannot be read ({error.strerror}): {remedy(error)}, or {help}"
        ) from None
    except KeyError as error:
        raise SnapshotError(
            f"The manifest of the build in {build} is damaged (it does not name {error}): {help}"
        ) from None


def _has_usable_model(folder: Path, data: Mapping[str, Buffer], *, is_signed: bool) -> bool:
    """Return whether to load the model of a snapshot; log why not if it could be.

    A model is parsed by native code, so anyone who can write to an unsigned store could attack it.
    """
    if not data.keys() & {_OLDER_VECTORS, *_OF_MEANING} or not model_files.has_runtime():
        return False
    if not data.keys() >= _OF_MEANING:
        _log.warning(
            "Searching by words only: the snapshot has no model, or vectors of an older release. "
            "Build it again with --semantic."
        )
        return False
    if directory.is_downloaded(folder) and not is_signed:
        _log.warning(
            "Searching by words only: the model of a snapshot from a store is loaded only by "
            "`serve --verify-key`, after `publish --sign`."
        )
        return False
    return True


# The encoder of the last snapshot with vectors. The next one mostly has the same model, which takes
# half a second to load.
_encoders: dict[tuple[str, ...], encoder.Encoder] = {}


def _load_query_encoder(data: Mapping[str, Buffer], manifest: verify.Manifest) -> QueryEncoder:
    """Return the encoder for queries with the model in the snapshot."""
    paths = (snapshot_format.MODEL, snapshot_format.TOKENIZER)
    key = tuple(manifest.files[path].sha256 for path in paths)
    if key not in _encoders:
        try:
            model = model_files.Model(*(bytes(data[path]) for path in paths))
            loaded = encoder.Encoder(model_files.open_model(model))
        except Exception:  # noqa: BLE001 - what the libraries raise has no common base class
            raise _DamagedFile(f"{snapshot_format.MODEL} is no model of sentences") from None
        _encoders.clear()
        _encoders[key] = loaded
    return encoder.cache_queries(_encoders[key].encode_query)


class _DamagedFile(Exception):
    """A file of the snapshot differs from the manifest."""


def _open_table(data: Buffer, path: str) -> Table:
    try:
        return Table(data)
    except SnapshotError:
        raise _DamagedFile(f"{path} has {verify.WRONG_CONTENT}") from None


def _check_contents(data: Mapping[str, Buffer], tables: Mapping[str, Table]) -> None:
    try:
        content_checks.check_contents(data, tables)
    except SnapshotError as error:
        raise _DamagedFile(str(error)) from None
    except (ValueError, struct.error):
        raise _DamagedFile("its files do not match") from None


def _open_compressed(folder: Path, manifest: verify.Manifest) -> CompressedDocuments | None:
    """Open the compressed documents; None if there are none, or if they cannot be used."""
    documents = manifest.files[snapshot_format.DOCUMENTS]
    try:
        return compressed_documents.open_compressed_documents(folder, documents.sha256)
    except (SnapshotError, OSError) as error:
        log_damaged_compressed_documents(error)
        return None


def _open_store(
    digest: str,
    data: Mapping[str, Buffer],
    tables: Mapping[str, Table],
    encode: QueryEncoder | None,
    compressed: CompressedDocuments | None,
) -> Store:
    try:
        return Store(digest, data, tables, encode, compressed)
    except SnapshotError as error:
        raise _DamagedFile(str(error)) from None
    # the files match the manifest, but the manifest itself may be malicious
    except (ValueError, IndexError, struct.error):
        raise _DamagedFile("its files do not match") from None


def _map_file(file: Path, path: str, size: int) -> Buffer:
    try:
        status = file.stat()
    except FileNotFoundError:
        raise _DamagedFile(f"{path} is missing") from None
    if not stat.S_ISREG(status.st_mode):
        raise _DamagedFile(f"{path} is not a regular file")  # opening a pipe would block
    if status.st_size != size:
        raise _DamagedFile(f"{path} has {status.st_size} bytes and should have {size}")
    return map_file(
        file, Access.WHOLE if path in _WITHOUT_CHECKSUMS | _OF_MEANING else Access.RANDOM
    )
