"""API keys: generate, hash, store, rotate, revoke and check them.

The checksum in a key lets a scanner or a person recognize a typing error offline. A key is random
and long, so a plain SHA-256 is enough for storage.

The document is in a file or, for several servers, in Redis (`keys.storage`, `keys.redis`). A server
reads the file and checks it for changes at most every half second, so a change takes effect within
a second.

    {"format": 1, "sha256": "...", "keys": [{"id": "key_...", "project": "...", ...}, ...]}

`sha256` is that of the keys as compact JSON: a flipped bit on a disk cannot extend a key's life or
give the key to another project. It is no protection against deliberate edits. Documents of older
programs have none and are accepted.
"""

import hashlib
import hmac
import logging
import math
import os
import re
import secrets
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import NoneType
from typing import Any

import orjson

from toolcatalog.errors import KeyFileError
from toolcatalog.keys.storage import FileKeyStorage, KeyStorage

SECRET_PREFIX = "tc_"  # noqa: S105
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ENCODED = "%(?:25)*"
_LETTER = f"(?:[0-9A-Za-z]|{_ENCODED}(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]))"
_PREFIX = f"(?:t|{_ENCODED}74)(?:c|{_ENCODED}63)(?:_|{_ENCODED}5[Ff])"
# up to the next key, if one follows without a space
_KEY = re.compile(f"{_PREFIX}(?:(?!{_PREFIX}){_LETTER}){{20,36}}")


def generate_secret() -> str:
    """Return a new secret: prefix, 30 base-62 characters, checksum."""
    body = SECRET_PREFIX + random_base62(30)
    return body + _secret_checksum(body)


def random_base62(length: int) -> str:
    """Return `length` random base-62 characters."""
    return "".join(secrets.choice(_BASE62) for _ in range(length))


def redact(text: str) -> str:
    """Return a text for a log, with `tc_[redacted]` in place of each key, valid or not.

    Up to 16 characters at the end of a key may be missing: with a few missing, the rest could be
    guessed. Characters may be percent-encoded, even repeatedly.
    """
    return _KEY.sub(f"{SECRET_PREFIX}[redacted]", text)


def _secret_checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


def hash_secret(secret: bytes) -> str:
    """Return the stored form of a key: its SHA-256 in hexadecimal."""
    return hashlib.sha256(secret).hexdigest()


_FORMAT = 1
_CHECK_INTERVAL = 0.5  # seconds
_EDITED_HINT = (
    "restore it from a backup. If someone edited it on purpose, remove its line `sha256`."
)
_log = logging.getLogger("toolcatalog.keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """The stored record of a key, with times in UTC in ISO 8601.

    `toolkits` None means all; `hint` is the key's last four characters. `lifetime` is in seconds
    and is passed on to a successor; None means unlimited. `expires` may be earlier, after a
    rotation.
    """

    id: str
    project: str
    toolkits: tuple[str, ...] | None
    sha256: str
    hint: str
    created: str
    lifetime: int | None
    expires: str | None = None
    revoked: str | None = None

    def state(self, now: datetime) -> str:
        """Return `active`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return (
            "expired"
            if self.expires is not None and datetime.fromisoformat(self.expires) <= now
            else "active"
        )


def default_key_file() -> Path:
    """Return the default key file: in the user's configuration folder, outside of checkouts."""
    config_folder = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config_folder) / "toolcatalog" / "keys.json"


def load_keys(source: Path | KeyStorage) -> tuple[ApiKey, ...]:
    """Load the keys of a file or storage, oldest first.

    Raises KeyFileError if it cannot be read or is invalid.
    """
    storage = _as_storage(source)
    data = storage.read()
    if data is None:
        raise _missing_error(storage)
    return parse_keys(data, storage)


def _as_storage(storage: Path | KeyStorage) -> KeyStorage:
    return FileKeyStorage(storage) if isinstance(storage, Path) else storage


def _missing_error(storage: KeyStorage) -> KeyFileError:
    return KeyFileError(
        f"There is no {storage}: run `toolcatalog keys create --project default"
        f" {storage.cli_option}`."
    )


def parse_keys(data: bytes, storage: KeyStorage) -> tuple[ApiKey, ...]:
    """Parse a key document; return its keys, oldest first.

    Raises KeyFileError, with the name of the storage, if it is invalid.
    """
    try:
        value = orjson.loads(data)
        if value["format"] != _FORMAT:
            raise KeyFileError(
                f"The {storage} has format {value['format']}, this program reads {_FORMAT}."
            )
        checksum = _document_checksum(value["keys"])
        if value.get("sha256", checksum) != checksum:
            raise KeyFileError(f"The {storage} does not match its checksum: {_EDITED_HINT}")
        # otherwise a damaged name of the checksum would disable it
        if not value.keys() <= {"format", "sha256", "keys"}:
            raise ValueError
        return tuple(_parse_key(fields) for fields in value["keys"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise KeyFileError(
            f"The {storage} is damaged: restore it from a backup, or move it away and create "
            "new keys."
        ) from None


def serialize_keys(keys: Sequence[ApiKey]) -> bytes:
    """Return the key document for these keys."""
    rows = orjson.loads(orjson.dumps([asdict(key) for key in keys]))
    return orjson.dumps(
        {"format": _FORMAT, "sha256": _document_checksum(rows), "keys": rows},
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )


def _document_checksum(keys: Any) -> str:
    return hashlib.sha256(orjson.dumps(keys)).hexdigest()


def _parse_key(fields: Mapping[str, Any]) -> ApiKey:
    """Parse one key of the document.

    Raises KeyError, TypeError or ValueError if it is invalid: the file may have been edited.
    """
    toolkits = fields["toolkits"]
    key = ApiKey(
        **{
            "lifetime": _derive_lifetime(fields),
            **fields,
            "toolkits": tuple(toolkits) if isinstance(toolkits, list) else toolkits,
        }
    )
    if not (key.toolkits is None or isinstance(toolkits, list)) or type(key.lifetime) not in (
        int,
        NoneType,
    ):
        raise TypeError
    if not all(
        isinstance(text, str)
        for text in (key.id, key.project, key.sha256, key.hint, *(key.toolkits or ()))
    ):
        raise TypeError
    for moment in (
        key.created,
        *(moment for moment in (key.expires, key.revoked) if moment is not None),
    ):
        if datetime.fromisoformat(moment).tzinfo is None:
            raise ValueError
    return key


def _derive_lifetime(fields: Mapping[str, Any]) -> int | None:
    """Return the lifetime of a key whose record has none, from its times."""
    if fields.get("expires") is None:
        return None
    return int(
        (
            datetime.fromisoformat(fields["expires"]) - datetime.fromisoformat(fields["created"])
        ).total_seconds()
    )


def create(
    source: Path | KeyStorage,
    project: str,
    toolkits: Sequence[str] | None,
    lifetime: timedelta | None,
) -> tuple[str, ApiKey]:
    """Create a key and store its hash; return the secret, which is not stored, and the record."""
    now, storage = datetime.now(UTC), _as_storage(source)
    lifetime_seconds = None if lifetime is None else int(lifetime.total_seconds())
    secret, key = _make_key(project, tuple(toolkits) if toolkits else None, lifetime_seconds, now)

    def add_key(document: bytes | None) -> tuple[bytes, None]:
        return serialize_keys(
            (*(parse_keys(document, storage) if document is not None else ()), key)
        ), None

    storage.update(add_key)
    return secret, key


def rotate(source: Path | KeyStorage, id: str, overlap: timedelta) -> tuple[str, ApiKey]:
    """Create the successor of an active key, with its project, toolkits and lifetime.

    Returns the new secret and record. The old key ends after the overlap.
    """
    now, storage = datetime.now(UTC), _as_storage(source)

    def rotate_key(document: bytes | None) -> tuple[bytes, tuple[str, ApiKey]]:
        keys, old = _find_active(document, id, now, storage)
        secret, new = _make_key(old.project, old.toolkits, old.lifetime, now)
        end = _format_time(now + overlap)
        expiring = replace(old, expires=min(old.expires, end) if old.expires else end)
        return serialize_keys((*(expiring if key.id == id else key for key in keys), new)), (
            secret,
            new,
        )

    return storage.update(rotate_key)


def revoke(source: Path | KeyStorage, id: str) -> ApiKey:
    """Revoke a key at once and return its record."""
    now, storage = datetime.now(UTC), _as_storage(source)

    def revoke_key(document: bytes | None) -> tuple[bytes, ApiKey]:
        keys, old = _find_active(document, id, now, storage)
        revoked = replace(old, revoked=_format_time(now))
        return serialize_keys([revoked if key.id == id else key for key in keys]), revoked

    return storage.update(revoke_key)


def _make_key(
    project: str, toolkits: tuple[str, ...] | None, lifetime: int | None, now: datetime
) -> tuple[str, ApiKey]:
    secret = generate_secret()
    return secret, ApiKey(
        id="key_" + random_base62(8),
        project=project,
        toolkits=toolkits,
        sha256=hash_secret(secret.encode()),
        hint=secret[-4:],
        created=_format_time(now),
        lifetime=lifetime,
        expires=None if lifetime is None else _format_time(now + timedelta(seconds=lifetime)),
    )


def _find_active(
    document: bytes | None, id: str, now: datetime, storage: KeyStorage
) -> tuple[tuple[ApiKey, ...], ApiKey]:
    """Return all keys of a document, and the active key with this id.

    Raises KeyFileError if there is no such key or if it is not active.
    """
    if document is None:
        raise _missing_error(storage)
    keys = parse_keys(document, storage)
    for key in keys:
        if key.id == id:
            if (state := key.state(now)) != "active":
                raise KeyFileError(
                    f"Key {id} is {state}: create a new one with `toolcatalog keys create`."
                )
            return keys, key
    raise KeyFileError(f"There is no key {id} in {storage.location}: see `toolcatalog keys list`.")


def _format_time(when: datetime) -> str:
    return when.isoformat(timespec="seconds")


# unknown keys are compared with this one, so that they take as long as known ones
_NO_KEY = (
    ApiKey(id="", project="", toolkits=(), sha256="0" * 64, hint="", created="", lifetime=0),
    0.0,
)


class KeyRing:
    """The keys that a server accepts, kept in sync with their file; none without a file.

    If the file becomes unreadable or damaged, an error is logged and the last keys stay valid, so
    that a slip in an editor does not lock out every client. `toolcatalog keys` never leaves such a
    file behind.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._last_stamp = _file_stamp(file) if file else None  # of the document that was read
        self._last_failure: object = None  # the document and the error that were last logged
        self._last_check = time.monotonic()
        self._keys = _index_by_hash(_load_if_present(FileKeyStorage(file)) if file else ())
        self._used: dict[bytes, tuple[ApiKey, float]] = {}  # keys with their expiry, by secret

    def find(self, secret: bytes) -> ApiKey | None:
        """Return the active key with this secret; None if it is unknown, expired or revoked.

        A secret that was found is not hashed again until the keys change. The time to look it up
        shows nothing of other secrets: a dictionary compares only secrets of the same seeded
        64-bit hash.
        """
        if time.monotonic() - self._last_check >= _CHECK_INTERVAL:
            self._reload_if_changed()
        used = self._used  # a reload replaces it, so that no old key gets into the new one
        entry = used.get(secret)
        if entry is None:
            key = self.find_by_digest(hash_secret(secret))
            if key is not None:
                used[secret] = (key, compute_expiry(key))
            return key
        return entry[0] if time.time() < entry[1] else None

    def find_by_digest(self, digest: str) -> ApiKey | None:
        """Return the active key with this SHA-256; None as for `find`."""
        if time.monotonic() - self._last_check >= _CHECK_INTERVAL:
            self._reload_if_changed()
        key, expiry = self._keys.get(digest, _NO_KEY)
        return key if hmac.compare_digest(digest, key.sha256) and time.time() < expiry else None

    def _reload_if_changed(self) -> None:
        """Read a changed document; one that cannot be read now is tried again at the next check."""
        self._last_check = time.monotonic()
        if not self._file or (stamp := _file_stamp(self._file)) == self._last_stamp:
            return
        try:
            self._keys = _index_by_hash(load_keys(self._file))
        except KeyFileError as error:
            if self._last_failure != (stamp, str(error)):
                _log.error("keeping the current keys: %s", error)
            self._last_failure = stamp, str(error)
            return
        self._used = {}
        self._last_stamp, self._last_failure = stamp, None
        _log.info("keys reloaded: %d", len(self._keys))


def _load_if_present(storage: KeyStorage) -> tuple[ApiKey, ...]:
    """Return the keys of a document; none if it does not exist yet."""
    document = storage.read()
    return parse_keys(document, storage) if document is not None else ()


def _index_by_hash(keys: Sequence[ApiKey]) -> Mapping[str, tuple[ApiKey, float]]:
    """Return each key and its expiry time by hash."""
    return {key.sha256: (key, compute_expiry(key)) for key in keys}


def compute_expiry(key: ApiKey) -> float:
    """Return when a key ends, in seconds since 1970.

    It is 0 for a revoked key, and infinity for a key without end.
    """
    if key.revoked is not None:
        return 0.0
    return math.inf if key.expires is None else datetime.fromisoformat(key.expires).timestamp()


def _file_stamp(file: Path) -> tuple[int, ...] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    # the last is also that of a change of owner or permissions
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
