"""API keys: generate, hash, store, rotate, revoke and check them.

By the checksum a scanner or a person tells a key from a typing error without asking anybody.
Because a key is random and long, a plain SHA-256 at rest is enough.

The document lies in a file or, for several servers, in Redis (`keys.storage`, `remote`); a server reads
the file, and looks at it at most every half second, so a change holds within a second. What the
text of a key is made of: `keys.api_keys`.

    {"format": 1, "sha256": "...", "keys": [{"id": "key_...", "project": "...", ...}, ...]}

`sha256` is that of the keys as JSON without blanks: a bit that a disk has lost can make no key live
longer, nor give it to another project. It keeps nobody out who writes on purpose. A document of an
older program has none, and is read all the same.
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
_KEY = re.compile(f"(?:t|{_ENCODED}74)(?:c|{_ENCODED}63)(?:_|{_ENCODED}5[Ff]){_LETTER}{{36}}")


def generate_secret() -> str:
    """A new secret: prefix, 30 base-62 characters, checksum."""
    body = SECRET_PREFIX + random_base62(30)
    return body + _secret_checksum(body)


def random_base62(length: int) -> str:
    """So many random base-62 characters."""
    return "".join(secrets.choice(_BASE62) for _ in range(length))


def is_well_formed(secret: str) -> bool:
    """Tell whether a text is a key as this room makes them, by its checksum. Says nothing of
    whether it is known.
    """
    shape = re.fullmatch(SECRET_PREFIX + "[0-9A-Za-z]{36}", secret)
    return shape is not None and hmac.compare_digest(_secret_checksum(secret[:-6]), secret[-6:])


def redact(text: str) -> str:
    """A text for a log, with `tc_[redacted]` in place of each key, be it a good one or not.

    Characters of a key may be percent-encoded, also more than once.
    """
    return _KEY.sub(f"{SECRET_PREFIX}[redacted]", text)


def _secret_checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


def hash_secret(secret: bytes) -> str:
    """What is kept of a key: its SHA-256 in hexadecimal."""
    return hashlib.sha256(secret).hexdigest()


_FORMAT = 1
_CHECK_INTERVAL = 0.5  # seconds
_EDITED_HINT = "restore it from a backup or, where somebody has edited it and it is right as it is, remove its line `sha256`."
_log = logging.getLogger("toolcatalog.keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """What is kept of a key. Times are UTC in ISO 8601; `toolkits` None: all; `hint`: the key's
    last four characters.

    `lifetime`, in seconds, is what it was made for and what a successor gets, None: without end;
    `expires` may come earlier, by a rotation.
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
        """`active`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return (
            "expired"
            if self.expires is not None and datetime.fromisoformat(self.expires) <= now
            else "active"
        )


def default_key_file() -> Path:
    """Where keys are kept unless said otherwise: in the user's configuration folder, so outside any
    git checkout.
    """
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "toolcatalog" / "keys.json"


def load_keys(storage: Path | KeyStorage) -> tuple[ApiKey, ...]:
    """The keys in a file or another place, oldest first. Raises KeyFileError where it cannot be
    read or holds something else.
    """
    place = _as_storage(storage)
    data = place.read()
    if data is None:
        raise _missing_error(place)
    return parse_keys(data, place)


def _as_storage(storage: Path | KeyStorage) -> KeyStorage:
    return FileKeyStorage(storage) if isinstance(storage, Path) else storage


def _missing_error(storage: KeyStorage) -> KeyFileError:
    return KeyFileError(
        f"There is no {storage}: run `toolcatalog keys create --project default {storage.cli_option}`."
    )


def parse_keys(data: bytes, storage: KeyStorage) -> tuple[ApiKey, ...]:
    """The keys of a document, oldest first. Raises KeyFileError, naming the place it comes from,
    where it is none.
    """
    try:
        value = orjson.loads(data)
        if value["format"] != _FORMAT:
            raise KeyFileError(
                f"The {storage} has format {value['format']}, this program reads {_FORMAT}."
            )
        if value.get("sha256", sealed := _document_checksum(value["keys"])) != sealed:
            raise KeyFileError(f"The {storage} is not as it was written: {_EDITED_HINT}")
        # a seal under a damaged name is no seal
        if not value.keys() <= {"format", "sha256", "keys"}:
            raise ValueError
        return tuple(_parse_key(fields) for fields in value["keys"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise KeyFileError(
            f"The {storage} is damaged: restore it from a backup, or move it away and create "
            "new keys."
        ) from None


def serialize_keys(keys: Sequence[ApiKey]) -> bytes:
    """Keys as they are kept."""
    kept = orjson.loads(orjson.dumps([asdict(key) for key in keys]))
    return orjson.dumps(
        {"format": _FORMAT, "sha256": _document_checksum(kept), "keys": kept},
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )


def _document_checksum(keys: Any) -> str:
    return hashlib.sha256(orjson.dumps(keys)).hexdigest()


def _parse_key(fields: Mapping[str, Any]) -> ApiKey:
    """One key of the file. Raises KeyError, TypeError or ValueError where it is none: somebody has
    edited the file.
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
    """The lifetime of a key made before lifetimes were kept."""
    if fields.get("expires") is None:
        return None
    return int(
        (
            datetime.fromisoformat(fields["expires"]) - datetime.fromisoformat(fields["created"])
        ).total_seconds()
    )


def create(
    storage: Path | KeyStorage,
    project: str,
    toolkits: Sequence[str] | None,
    lifetime: timedelta | None,
) -> tuple[str, ApiKey]:
    """Make a key and keep its hash: the secret, which is told only here, and what is kept."""
    now, place = datetime.now(UTC), _as_storage(storage)
    life = None if lifetime is None else int(lifetime.total_seconds())
    secret, key = _make_key(project, tuple(toolkits) if toolkits else None, life, now)

    def grown(before: bytes | None) -> tuple[bytes, None]:
        return serialize_keys(
            (*(parse_keys(before, place) if before is not None else ()), key)
        ), None

    place.update(grown)
    return secret, key


def rotate(storage: Path | KeyStorage, id: str, overlap: timedelta) -> tuple[str, ApiKey]:
    """Make the successor of an active key, with its project, toolkits and lifetime; the old one
    ends after the overlap.
    """
    now, place = datetime.now(UTC), _as_storage(storage)

    def rotated(before: bytes | None) -> tuple[bytes, tuple[str, ApiKey]]:
        keys, old = _find_active(before, id, now, place)
        secret, new = _make_key(old.project, old.toolkits, old.lifetime, now)
        ends = _format_time(now + overlap)
        ending = replace(old, expires=min(old.expires, ends) if old.expires else ends)
        return serialize_keys((*(ending if key.id == id else key for key in keys), new)), (
            secret,
            new,
        )

    return place.update(rotated)


def revoke(storage: Path | KeyStorage, id: str) -> ApiKey:
    """End a key now."""
    now, place = datetime.now(UTC), _as_storage(storage)

    def without(before: bytes | None) -> tuple[bytes, ApiKey]:
        keys, old = _find_active(before, id, now, place)
        revoked = replace(old, revoked=_format_time(now))
        return serialize_keys([revoked if key.id == id else key for key in keys]), revoked

    return place.update(without)


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
    before: bytes | None, id: str, now: datetime, storage: KeyStorage
) -> tuple[tuple[ApiKey, ...], ApiKey]:
    """All keys of a document, and the active one that is meant."""
    if before is None:
        raise _missing_error(storage)
    keys = parse_keys(before, storage)
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


# what an unknown key is compared with: it takes the time of a known one
_NO_KEY = (
    ApiKey(id="", project="", toolkits=(), sha256="0" * 64, hint="", created="", lifetime=0),
    0.0,
)


class KeyRing:
    """The keys that a server accepts, kept in step with their file; none, where there is no file
    that they could be in.

    A file that has become unreadable or damaged is reported in the log and the keys read last stay
    in force: a slip in an editor must not lock every client out. `toolcatalog keys` never leaves
    such a file behind.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._last_stamp = _file_stamp(file) if file else None
        self._last_check = time.monotonic()
        self._keys = _index_by_hash(_load_if_present(FileKeyStorage(file)) if file else ())

    def find(self, secret: bytes) -> ApiKey | None:
        """The active key that this is, or None: missing, unknown, expired and revoked are not told
        apart.
        """
        return self.find_by_digest(hash_secret(secret))

    def find_by_digest(self, digest: str) -> ApiKey | None:
        """As `find`, for one whose digest is at hand."""
        if time.monotonic() - self._last_check >= _CHECK_INTERVAL:
            self._reload_if_changed()
        key, until = self._keys.get(digest, _NO_KEY)
        return key if hmac.compare_digest(digest, key.sha256) and time.time() < until else None

    def _reload_if_changed(self) -> None:
        self._last_check = time.monotonic()
        if self._file and (seen := _file_stamp(self._file)) != self._last_stamp:
            self._last_stamp = seen
            try:
                self._keys = _index_by_hash(load_keys(self._file))
                _log.info("keys read again: %d", len(self._keys))
            except KeyFileError as error:
                _log.error("keys stay as they were: %s", error)


def _load_if_present(storage: KeyStorage) -> tuple[ApiKey, ...]:
    """The keys of a document that may come later."""
    document = storage.read()
    return parse_keys(document, storage) if document is not None else ()


def _index_by_hash(keys: Sequence[ApiKey]) -> Mapping[str, tuple[ApiKey, float]]:
    """Each key by its hash, and until when it is good."""
    return {key.sha256: (key, compute_expiry(key)) for key in keys}


def compute_expiry(key: ApiKey) -> float:
    """When a key ends, in seconds since 1970; 0 where it has been revoked, infinity where it never
    does.
    """
    if key.revoked is not None:
        return 0.0
    return math.inf if key.expires is None else datetime.fromisoformat(key.expires).timestamp()


def _file_stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
