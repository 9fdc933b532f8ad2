"""API keys: made, kept as hashes in one document, rotated, revoked and checked.

The document lies in a file or, for several servers, in Redis (`keeping`, `remote`); a server reads
the file, and looks at it at most every half second, so a change holds within a second. What the
text of a key is made of: `minting`.

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
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import NoneType
from typing import Any

import orjson

from toolcatalog.errors import KeyFileError
from toolcatalog.keeping import KeyFile, Place
from toolcatalog.minting import chance, digest_of, generate

_FORMAT = 1
_LOOK_EVERY = 0.5  # seconds
_EDITED = "restore it from a backup or, where somebody has edited it and it is right as it is, remove its line `sha256`."
_log = logging.getLogger("toolcatalog.keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
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


def default_file() -> Path:
    """Where keys are kept unless said otherwise: in the user's configuration folder, so outside any
    git checkout.
    """
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "toolcatalog" / "keys.json"


def load(where: Path | Place) -> tuple[Key, ...]:
    """The keys in a file or another place, oldest first. Raises KeyFileError where it cannot be
    read or holds something else.
    """
    place = _place(where)
    data = place.read()
    if data is None:
        raise _none(place)
    return read(data, place)


def _place(where: Path | Place) -> Place:
    return KeyFile(where) if isinstance(where, Path) else where


def _none(place: Place) -> KeyFileError:
    return KeyFileError(
        f"There is no {place}: run `toolcatalog keys create --project default {place.option}`."
    )


def read(data: bytes, place: Place) -> tuple[Key, ...]:
    """The keys of a document, oldest first. Raises KeyFileError, naming the place it comes from,
    where it is none.
    """
    try:
        value = orjson.loads(data)
        if value["format"] != _FORMAT:
            raise KeyFileError(
                f"The {place} has format {value['format']}, this program reads {_FORMAT}."
            )
        if value.get("sha256", sealed := _seal(value["keys"])) != sealed:
            raise KeyFileError(f"The {place} is not as it was written: {_EDITED}")
        # a seal under a damaged name is no seal
        if not value.keys() <= {"format", "sha256", "keys"}:
            raise ValueError
        return tuple(_key(fields) for fields in value["keys"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise KeyFileError(
            f"The {place} is damaged: restore it from a backup, or move it away and create "
            "new keys."
        ) from None


def document(keys: Sequence[Key]) -> bytes:
    """Keys as they are kept."""
    kept = orjson.loads(orjson.dumps([asdict(key) for key in keys]))
    return orjson.dumps(
        {"format": _FORMAT, "sha256": _seal(kept), "keys": kept},
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )


def _seal(keys: Any) -> str:
    return hashlib.sha256(orjson.dumps(keys)).hexdigest()


def _key(fields: Mapping[str, Any]) -> Key:
    """One key of the file. Raises KeyError, TypeError or ValueError where it is none: somebody has
    edited the file.
    """
    toolkits = fields["toolkits"]
    key = Key(
        **{
            "lifetime": _lifetime(fields),
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


def _lifetime(fields: Mapping[str, Any]) -> int | None:
    """The lifetime of a key made before lifetimes were kept."""
    if fields.get("expires") is None:
        return None
    return int(
        (
            datetime.fromisoformat(fields["expires"]) - datetime.fromisoformat(fields["created"])
        ).total_seconds()
    )


def create(
    where: Path | Place, project: str, toolkits: Sequence[str] | None, lifetime: timedelta | None
) -> tuple[str, Key]:
    """Make a key and keep its hash: the secret, which is told only here, and what is kept."""
    now, place = datetime.now(UTC), _place(where)
    life = None if lifetime is None else int(lifetime.total_seconds())
    secret, key = _new(project, tuple(toolkits) if toolkits else None, life, now)

    def grown(before: bytes | None) -> tuple[bytes, None]:
        return document((*(read(before, place) if before is not None else ()), key)), None

    place.change(grown)
    return secret, key


def rotate(where: Path | Place, id: str, overlap: timedelta) -> tuple[str, Key]:
    """Make the successor of an active key, with its project, toolkits and lifetime; the old one
    ends after the overlap.
    """
    now, place = datetime.now(UTC), _place(where)

    def rotated(before: bytes | None) -> tuple[bytes, tuple[str, Key]]:
        keys, old = _found(before, id, now, place)
        secret, new = _new(old.project, old.toolkits, old.lifetime, now)
        ends = _text(now + overlap)
        ending = replace(old, expires=min(old.expires, ends) if old.expires else ends)
        return document((*(ending if key.id == id else key for key in keys), new)), (secret, new)

    return place.change(rotated)


def revoke(where: Path | Place, id: str) -> Key:
    """End a key now."""
    now, place = datetime.now(UTC), _place(where)

    def without(before: bytes | None) -> tuple[bytes, Key]:
        keys, old = _found(before, id, now, place)
        revoked = replace(old, revoked=_text(now))
        return document([revoked if key.id == id else key for key in keys]), revoked

    return place.change(without)


def _new(
    project: str, toolkits: tuple[str, ...] | None, lifetime: int | None, now: datetime
) -> tuple[str, Key]:
    secret = generate()
    return secret, Key(
        id="key_" + chance(8),
        project=project,
        toolkits=toolkits,
        sha256=digest_of(secret.encode()),
        hint=secret[-4:],
        created=_text(now),
        lifetime=lifetime,
        expires=None if lifetime is None else _text(now + timedelta(seconds=lifetime)),
    )


def _found(
    before: bytes | None, id: str, now: datetime, place: Place
) -> tuple[tuple[Key, ...], Key]:
    """All keys of a document, and the active one that is meant."""
    if before is None:
        raise _none(place)
    keys = read(before, place)
    for key in keys:
        if key.id == id:
            if (state := key.state(now)) != "active":
                raise KeyFileError(
                    f"Key {id} is {state}: create a new one with `toolcatalog keys create`."
                )
            return keys, key
    raise KeyFileError(f"There is no key {id} in {place.name}: see `toolcatalog keys list`.")


def _text(when: datetime) -> str:
    return when.isoformat(timespec="seconds")


# what an unknown key is compared with: it takes the time of a known one
_NOBODY = (
    Key(id="", project="", toolkits=(), sha256="0" * 64, hint="", created="", lifetime=0),
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
        self._seen = _stamp(file) if file else None
        self._looked = time.monotonic()
        self._keys = _by_hash(_there(KeyFile(file)) if file else ())

    def find(self, secret: bytes) -> Key | None:
        """The active key that this is, or None: missing, unknown, expired and revoked are not told
        apart.
        """
        return self.holder(digest_of(secret))

    def holder(self, digest: str) -> Key | None:
        """As `find`, for one whose digest is at hand."""
        if time.monotonic() - self._looked >= _LOOK_EVERY:
            self._look()
        key, until = self._keys.get(digest, _NOBODY)
        return key if hmac.compare_digest(digest, key.sha256) and time.time() < until else None

    def _look(self) -> None:
        self._looked = time.monotonic()
        if self._file and (seen := _stamp(self._file)) != self._seen:
            self._seen = seen
            try:
                self._keys = _by_hash(load(self._file))
                _log.info("keys read again: %d", len(self._keys))
            except KeyFileError as error:
                _log.error("keys stay as they were: %s", error)


def _there(place: Place) -> tuple[Key, ...]:
    """The keys of a document that may come later."""
    document = place.read()
    return read(document, place) if document is not None else ()


def _by_hash(keys: Sequence[Key]) -> Mapping[str, tuple[Key, float]]:
    """Each key by its hash, and until when it is good."""
    return {key.sha256: (key, end_of(key)) for key in keys}


def end_of(key: Key) -> float:
    """When a key ends, in seconds since 1970; 0 where it has been revoked, infinity where it never
    does.
    """
    if key.revoked is not None:
        return 0.0
    return math.inf if key.expires is None else datetime.fromisoformat(key.expires).timestamp()


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
