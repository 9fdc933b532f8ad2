"""Snapshot signatures: sign the pointer with Ed25519, and verify it.

A publisher signs a small statement with an Ed25519 key: the digest of the snapshot, a sequence
number and the time. The digest authenticates the manifest, and the manifest every file, so the
signature covers everything that is served. Sequence numbers only increase, so an older statement
can be recognized. Keys are PEM files as OpenSSL writes them.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import orjson

from toolcatalog import encoding
from toolcatalog.errors import UsageError, remedy
from toolcatalog.system import files

_FORMAT = 1
# Domain separation: signatures of this key for other purposes never fit a statement.
_DOMAIN = b"toolcatalog: the snapshot in force, format 1\n"
_MAX_SEQUENCE = 1 << 53
# seconds by which a sequence number may be ahead of the clock: a larger one would make all later
# snapshots look old
_MAX_AHEAD = 366 * 24 * 3600
_CREATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_MAX_FILE_SIZE = 1 << 16  # bytes of a key file
_PEM_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_CREATE_KEY_COMMAND = "`openssl genpkey -algorithm ed25519 -out sign.pem`"
_EXPORT_KEY_COMMAND = "`openssl pkey -in sign.pem -pubout -out verify.pem`"


class SnapshotStatement(NamedTuple):
    """What is signed: a snapshot digest, its sequence number, and the time.

    The time is like 2026-01-31T12:00:00Z.
    """

    digest: str
    sequence: int
    created: str

    def message(self) -> bytes:
        """Return the bytes to sign; equal statements have equal bytes."""
        fields = {"format": _FORMAT, **self._asdict()}
        return _DOMAIN + orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)


class SignedStatement(NamedTuple):
    """A statement and its signature, which is not verified yet."""

    statement: SnapshotStatement
    signature: bytes


class SigningKey:
    """A private key; raises UsageError if the file has no usable one."""

    def __init__(self, file: Path) -> None:
        ed25519 = _load_library()
        data = _read_key_file(file, "--sign")
        if file.stat().st_mode & 0o077:
            raise UsageError(
                f"The signing key {file} can be read or changed by other users of this machine: "
                f"run `chmod 600 {file}`."
            )
        if b"PUBLIC KEY-----" in data and b"PRIVATE KEY-----" not in data:
            raise UsageError(
                f"{file} contains a public key, and --sign needs a private one: name the file of "
                f"{_CREATE_KEY_COMMAND}."
            )
        try:
            key = ed25519.load_private_key(data)
        except TypeError:
            raise UsageError(
                f"The signing key {file} is encrypted: write it without a password with `openssl "
                f"pkey -in {file} -out sign.pem`."
            ) from None
        if key is None:
            raise UsageError(
                f"{file} contains no Ed25519 private key in PEM form: create one with "
                f"{_CREATE_KEY_COMMAND}."
            )
        self._key = key
        self.public = VerifyKeys((key.public_key().public_bytes_raw(),))

    def sign(self, statement: SnapshotStatement) -> SignedStatement:
        """Sign a statement."""
        return SignedStatement(statement, self._key.sign(statement.message()))


class VerifyKeys(NamedTuple):
    """Public keys, 32 bytes each; a signature by any of them is valid."""

    keys: tuple[bytes, ...]

    @classmethod
    def load(cls, file: Path) -> "VerifyKeys":
        """Load the public keys of a PEM file; raises UsageError if it contains anything else."""
        ed25519 = _load_library()
        data = _read_key_file(file, "--verify-key")
        if b"PRIVATE KEY-----" in data:
            raise UsageError(
                f"{file} contains a private key, which no server needs: name its public half, "
                f"created with {_EXPORT_KEY_COMMAND}."
            )
        keys = [ed25519.load_public_key(block[0]) for block in _PEM_BLOCK.finditer(data)]
        if not keys or None in keys:
            raise UsageError(
                f"{file} contains no Ed25519 public key in PEM form, or others too: create one "
                f"with "
                f"{_EXPORT_KEY_COMMAND}."
            )
        return cls(tuple(keys))

    def is_valid(self, signed: SignedStatement) -> bool:
        """Return whether the signature of the statement is by one of these keys."""
        ed25519, message = _load_library(), signed.statement.message()
        return any(ed25519.is_valid(key, signed.signature, message) for key in self.keys)


def next_statement(
    digest: str, previous: SnapshotStatement | None, now: datetime
) -> SnapshotStatement:
    """Return the statement that follows `previous`, or the first one.

    The sequence number is the time in seconds since 1970, or the previous number plus one if that
    is higher. So a publisher needs no state, and numbers increase even if the previous statement is
    lost. A previous number that is far ahead does not count, because no follower accepts it. Two
    publishers that follow the same statement cannot both succeed, because the pointer is replaced
    only if it is still the one that they read.
    """
    sequence = int(now.timestamp())
    if previous and not is_far_ahead(previous.sequence + 1, now):
        sequence = max(sequence, previous.sequence + 1)
    return SnapshotStatement(digest, sequence, f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")


def is_far_ahead(sequence: int, now: datetime) -> bool:
    """Return whether a sequence number is more than a year ahead of the time."""
    return sequence > now.timestamp() + _MAX_AHEAD


def dump_signed_statement(signed: SignedStatement) -> dict[str, Any]:
    """Return a signed statement as JSON values, without the digest."""
    return {
        "format": _FORMAT,
        "sequence": signed.statement.sequence,
        "created": signed.statement.created,
        "signature": base64.b64encode(signed.signature).decode(),
    }


def parse_signed_statement(digest: str, value: object) -> SignedStatement | None:
    """Parse the output of `dump_signed_statement` for a digest; None if it is invalid."""
    if not isinstance(value, Mapping) or value.get("format") != _FORMAT:
        return None
    sequence, created, signature = (
        value.get(name) for name in ("sequence", "created", "signature")
    )
    if (
        not encoding.is_digest(digest)
        or not isinstance(sequence, int)
        or isinstance(sequence, bool)
        or not 0 <= sequence < _MAX_SEQUENCE
        or not (isinstance(created, str) and _CREATED.fullmatch(created))
        or not isinstance(signature, str)
    ):
        return None
    try:
        data = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return None
    return SignedStatement(SnapshotStatement(digest, sequence, created), data)


def _read_key_file(file: Path, option: str) -> bytes:
    try:
        data = files.read_plain_file(file)
    except OSError as error:
        raise UsageError(
            f"The key file {file} cannot be read ({error.strerror}): {remedy(error)}, or name "
            f"another with {option}."
        ) from None
    return data[:_MAX_FILE_SIZE]


def _load_library() -> ModuleType:
    """Import the module that needs the extra. Raises UsageError if it is not installed."""
    try:
        from toolcatalog.publish import ed25519  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise UsageError(
            "Signatures need the package cryptography: run `pip install 'toolcatalog[sign]'`."
        ) from None
    return ed25519
