"""API keys: made, kept as hashes in one file, rotated, revoked and checked.

A key is `tc_`, 30 random base-62 characters (178 bits) and a 6-character checksum of the rest, by which a scanner or a person tells
a key from a typing error without asking anybody. Because a key is random and long, a plain SHA-256 at rest is enough. The file has
mode 0600 and is replaced in one step; a server looks at it at most every half second, so a change holds within a second.

Serves: "Keys" of the decisions.
"""

import contextlib
import hashlib
import hmac
import logging
import math
import os
import re
import secrets
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import NoneType
from typing import Any

import orjson

from toolcatalog import files
from toolcatalog.errors import KeyFileError

PREFIX = "tc_"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORMAT = 1
_LOOK_EVERY = 0.5  # seconds
_PATIENCE = 5.0  # seconds that a command waits for another one to be done with the file
_MEND = "mend its permissions, or name another with --keys."
_log = logging.getLogger("toolcatalog.keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What is kept of a key. Times are UTC in ISO 8601; `toolkits` None: all; `hint`: the key's last four characters.

    `lifetime`, in seconds, is what it was made for and what a successor gets, None: without end; `expires` may come earlier, by a rotation.
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
        return "expired" if self.expires is not None and datetime.fromisoformat(self.expires) <= now else "active"


def default_file() -> Path:
    """Where keys are kept unless said otherwise: in the user's configuration folder, so outside any git checkout."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "toolcatalog" / "keys.json"


def generate() -> str:
    """A new secret: prefix, 30 base-62 characters, checksum."""
    body = PREFIX + "".join(secrets.choice(_BASE62) for _ in range(30))
    return body + _checksum(body)


def well_formed(secret: str) -> bool:
    """Tell whether a text is a key as this room makes them, by its checksum. Says nothing of whether it is known."""
    shape = re.fullmatch(PREFIX + "[0-9A-Za-z]{36}", secret)
    return shape is not None and hmac.compare_digest(_checksum(secret[:-6]), secret[-6:])


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


def digest_of(secret: bytes) -> str:
    """What is kept of a key: its SHA-256 in hexadecimal."""
    return hashlib.sha256(secret).hexdigest()


def load(file: Path) -> tuple[Key, ...]:
    """The keys in a file, oldest first. Raises KeyFileError where it cannot be read or is not a key file."""
    try:
        value = orjson.loads(file.read_bytes())
        if value["format"] != _FORMAT:
            raise KeyFileError(f"The key file {file} has format {value['format']}, this program reads {_FORMAT}.")
        keys = tuple(_key(fields) for fields in value["keys"])
    except FileNotFoundError:
        raise KeyFileError(f"There is no key file {file}: run `toolcatalog keys create --project default --keys {file}`.") from None
    except OSError as error:
        raise KeyFileError(f"The key file {file} cannot be read ({error.strerror}): {_MEND}") from None
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise KeyFileError(f"The key file {file} is damaged: restore it from a backup, or move it away and create new keys.") from None
    return keys


def _key(fields: Mapping[str, Any]) -> Key:
    """One key of the file. Raises KeyError, TypeError or ValueError where it is none: somebody has edited the file."""
    toolkits = fields["toolkits"]
    key = Key(**{"lifetime": _lifetime(fields), **fields, "toolkits": tuple(toolkits) if isinstance(toolkits, list) else toolkits})
    if not (key.toolkits is None or isinstance(toolkits, list)) or type(key.lifetime) not in (int, NoneType):
        raise TypeError
    if not all(isinstance(text, str) for text in (key.id, key.project, key.sha256, key.hint, *(key.toolkits or ()))):
        raise TypeError
    for moment in (key.created, *(moment for moment in (key.expires, key.revoked) if moment is not None)):
        if datetime.fromisoformat(moment).tzinfo is None:
            raise ValueError
    return key


def _lifetime(fields: Mapping[str, Any]) -> int | None:
    """The lifetime of a key made before lifetimes were kept."""
    if fields.get("expires") is None:
        return None
    return int((datetime.fromisoformat(fields["expires"]) - datetime.fromisoformat(fields["created"])).total_seconds())


def _load_or_none(file: Path) -> tuple[Key, ...]:
    return load(file) if file.exists() else ()


def _save(file: Path, keys: Sequence[Key]) -> None:
    data = orjson.dumps({"format": _FORMAT, "keys": [asdict(key) for key in keys]}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write(file, data, mode=0o600)
    except OSError as error:
        raise KeyFileError(f"The key file {file} cannot be written ({error.strerror}): {_MEND}") from None


def create(file: Path, project: str, toolkits: Sequence[str] | None, lifetime: timedelta | None) -> tuple[str, Key]:
    """Make a key and keep its hash: the secret, which is told only here, and what is kept."""
    now = datetime.now(UTC)
    life = None if lifetime is None else int(lifetime.total_seconds())
    secret, key = _new(project, tuple(toolkits) if toolkits else None, life, now)
    with _locked(file):
        _save(file, (*_load_or_none(file), key))
    return secret, key


def rotate(file: Path, id: str, overlap: timedelta) -> tuple[str, Key]:
    """Make the successor of an active key, with its project, toolkits and lifetime; the old one ends after the overlap."""
    now = datetime.now(UTC)
    with _locked(file):
        keys = load(file)
        old = _active(keys, id, now, file)
        secret, new = _new(old.project, old.toolkits, old.lifetime, now)
        ends = _text(now + overlap)
        ending = replace(old, expires=min(old.expires, ends) if old.expires else ends)
        _save(file, (*(ending if key.id == id else key for key in keys), new))
    return secret, new


def revoke(file: Path, id: str) -> Key:
    """End a key now."""
    now = datetime.now(UTC)
    with _locked(file):
        keys = load(file)
        revoked = replace(_active(keys, id, now, file), revoked=_text(now))
        _save(file, [revoked if key.id == id else key for key in keys])
    return revoked


def _new(project: str, toolkits: tuple[str, ...] | None, lifetime: int | None, now: datetime) -> tuple[str, Key]:
    secret = generate()
    return secret, Key(
        id="key_" + "".join(secrets.choice(_BASE62) for _ in range(8)),
        project=project,
        toolkits=toolkits,
        sha256=digest_of(secret.encode()),
        hint=secret[-4:],
        created=_text(now),
        lifetime=lifetime,
        expires=None if lifetime is None else _text(now + timedelta(seconds=lifetime)),
    )


def _active(keys: Sequence[Key], id: str, now: datetime, file: Path) -> Key:
    for key in keys:
        if key.id == id:
            if (state := key.state(now)) != "active":
                raise KeyFileError(f"Key {id} is {state}: create a new one with `toolcatalog keys create`.")
            return key
    raise KeyFileError(f"There is no key {id} in {file}: see `toolcatalog keys list`.")


def _text(when: datetime) -> str:
    return when.isoformat(timespec="seconds")


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the key file against other commands that change it, after those that are at it already."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with files.alone(file.with_name(f".{file.name}.lock"), _PATIENCE) as got_it:
            if not got_it:
                raise KeyFileError(f"Another command is changing the key file {file}: try again when it is done.")
            yield
    except OSError as error:
        raise KeyFileError(f"The key file {file} cannot be written ({error.strerror}): {_MEND}") from None


# what an unknown key is compared with: it takes the time of a known one
_NOBODY = (Key(id="", project="", toolkits=(), sha256="0" * 64, hint="", created="", lifetime=0), 0.0)


class KeyRing:
    """The keys that a server accepts, kept in step with their file.

    A file that has become unreadable or damaged is reported in the log and the keys read last stay in force: a slip in an editor
    must not lock every client out. `toolcatalog keys` never leaves such a file behind.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = _stamp(file)
        self._looked = time.monotonic()
        self._keys = _by_hash(_load_or_none(file))

    def find(self, secret: bytes) -> Key | None:
        """The active key that this is, or None: missing, unknown, expired and revoked are not told apart."""
        return self.holder(digest_of(secret))

    def holder(self, digest: str) -> Key | None:
        """As `find`, for one whose digest is at hand."""
        if time.monotonic() - self._looked >= _LOOK_EVERY:
            self._look()
        key, until = self._keys.get(digest, _NOBODY)
        return key if hmac.compare_digest(digest, key.sha256) and time.time() < until else None

    def _look(self) -> None:
        self._looked = time.monotonic()
        seen = _stamp(self._file)
        if seen != self._seen:
            self._seen = seen
            try:
                self._keys = _by_hash(load(self._file))
                _log.info("keys read again: %d", len(self._keys))
            except KeyFileError as error:
                _log.error("keys stay as they were: %s", error)


def _by_hash(keys: Sequence[Key]) -> Mapping[str, tuple[Key, float]]:
    """Each key by its hash, and until when it is good."""
    return {key.sha256: (key, _end(key)) for key in keys}


def _end(key: Key) -> float:
    """When a key ends, in seconds since 1970."""
    if key.revoked is not None:
        return 0.0
    return math.inf if key.expires is None else datetime.fromisoformat(key.expires).timestamp()


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
