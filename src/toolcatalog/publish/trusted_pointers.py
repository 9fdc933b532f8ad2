"""Trusted pointers: what a follower with a verify key has accepted, kept in its cache.

    <cache>/signatures/<digest>.json  the last signed pointer that named this snapshot
    <cache>/accepted.json             digest and sequence number of the last accepted pointer

A snapshot of the cache is opened only if its signature is valid. This also holds after a restart
with another key, and if another program has changed `current`.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from toolcatalog import encoding
from toolcatalog.errors import SnapshotError
from toolcatalog.publish import layout, signatures
from toolcatalog.publish.layout import InvalidRemoteSnapshot
from toolcatalog.publish.signatures import SignedStatement, VerifyKeys
from toolcatalog.snapshot import verify
from toolcatalog.store import open as store_open
from toolcatalog.store.store import Store
from toolcatalog.system import files

_SIGNATURES_FOLDER, _ACCEPTED_FILE = "signatures", "accepted.json"


class _AcceptedPointer(NamedTuple):
    digest: str
    sequence: int


def verify_pointer(
    pointer: bytes, keys: VerifyKeys, cache: Path, *, allow_rollback: bool
) -> SignedStatement:
    """Return the signed statement of a pointer that may be followed.

    Raises InvalidRemoteSnapshot if it has no signature, if the signature is not by one of the keys,
    if its sequence number is lower than the last accepted one, or if it is more than a year ahead
    of the clock, which would block all later ones. `allow_rollback` permits a lower one.
    """
    digest, signature = layout.parse_pointer(pointer), layout.parse_signature(pointer)
    short_digest = digest[:12]
    if signature is None:
        raise InvalidRemoteSnapshot(
            f"Snapshot {short_digest} is not signed, and --verify-key is given: publish it with "
            "--sign KEYFILE."
        )
    signed = signatures.parse_signed_statement(digest, signature)
    if signed is None or not keys.is_valid(signed):
        raise InvalidRemoteSnapshot(
            f"The signature of snapshot {short_digest} is not by the key of --verify-key: publish"
            " it with the private half of that key, or find out who has written to the store."
        )
    last, sequence = _read_last_accepted(cache), signed.statement.sequence
    if signatures.is_far_ahead(sequence, datetime.now(UTC)):
        raise InvalidRemoteSnapshot(
            f"Snapshot {short_digest} has the sequence number {sequence}, which is a time more than"
            " a year ahead: check the clocks of this machine and of the publisher, then publish"
            " again."
        )
    if last and sequence == last.sequence and digest != last.digest:
        raise InvalidRemoteSnapshot(
            f"Snapshot {short_digest} has the sequence number {sequence}, as {last.digest[:12]} had"
            " before: two publishers ran at the same time, or the key is used elsewhere. Publish "
            "again."
        )
    if last and sequence < last.sequence and not allow_rollback:
        raise InvalidRemoteSnapshot(
            f"Snapshot {short_digest} has the sequence number {sequence}, and {last.sequence} was "
            "accepted before: the store was restored. Publish again with --sign, or start once "
            "with --allow-rollback if this is intended."
        )
    return signed


def require_no_signatures(cache: Path) -> None:
    """Raise InvalidRemoteSnapshot if a server with a verify key uses this cache.

    Otherwise a server without a key would change what the other one serves.
    """
    if (cache / _ACCEPTED_FILE).exists():
        raise InvalidRemoteSnapshot(
            f"{cache} has snapshots that were accepted by --verify-key, and this server has no key:"
            f" start it with --verify-key or another --cache, or remove {cache / _ACCEPTED_FILE}."
        )


def record_accepted(pointer: bytes, signed: SignedStatement, cache: Path) -> None:
    """Record that this pointer was accepted and its snapshot is in the cache."""
    statement = signed.statement
    files.write_unsynced(cache / _SIGNATURES_FOLDER / f"{statement.digest}.json", pointer)
    record = {"digest": statement.digest, "sequence": statement.sequence}
    # flushed to disk: otherwise an older pointer could be accepted after a power failure
    files.write_synced(cache / _ACCEPTED_FILE, orjson.dumps(record))


def require_signature(cache: Path, digest: str, keys: VerifyKeys) -> None:
    """Raise SnapshotError unless the cache has a valid signature of this snapshot."""
    try:
        pointer = files.read_plain_file(cache / _SIGNATURES_FOLDER / f"{digest}.json")[
            : layout.MAX_POINTER_SIZE
        ]
        signed = signatures.parse_signed_statement(digest, layout.parse_signature(pointer))
    except (OSError, InvalidRemoteSnapshot):
        signed = None
    if signed is None or not keys.is_valid(signed):
        raise SnapshotError(
            f"Snapshot {digest[:12]} in {cache} was not accepted by the key of --verify-key: it "
            "is served when it was published with a signature and fetched again."
        )


def open_verified_build(cache: Path, keys: VerifyKeys | None) -> Store:
    """Open the snapshot that `current` names; with keys, only if its signature is valid.

    Raises SnapshotError if it cannot be opened.
    """
    folder = Path(os.path.realpath(cache / "current"))
    if keys and folder.exists():
        require_signature(cache, folder.name, keys)
        if verify.read_manifest(folder, cache).digest != folder.name:
            raise SnapshotError(
                f"The snapshot in {folder} is not the one that its folder is named by: remove it."
            )
    return store_open.open_snapshot(folder, cache, is_signed=keys is not None)


def remove_stale_signatures(cache: Path) -> None:
    """Remove the signatures of snapshots that are no longer in the cache."""
    for file in (cache / _SIGNATURES_FOLDER).glob("*.json"):
        if not (cache / "snapshots" / file.stem).is_dir():
            files.remove(file)


def _read_last_accepted(cache: Path) -> _AcceptedPointer | None:
    """Return what was accepted last; None if nothing was.

    Raises InvalidRemoteSnapshot if the record is damaged, because a rollback could not be
    recognized.
    """
    file = cache / _ACCEPTED_FILE
    try:
        record = orjson.loads(files.read_plain_file(file))
        accepted = _AcceptedPointer(record["digest"], record["sequence"])
        if encoding.is_digest(accepted.digest) and isinstance(accepted.sequence, int):
            return accepted
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise InvalidRemoteSnapshot(
        f"{file}, which says what was accepted last, is damaged: remove it if you know that the "
        "store is in order."
    )
