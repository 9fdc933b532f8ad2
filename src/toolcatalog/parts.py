"""What compiling a batch of tools gives, as one piece of bytes that a later build takes up again
where nothing has changed.

A part holds all that the rest of a build needs to know of its tools: facts for the rules and the
query tables, the documents as they are served, the rows of the toolkits' indexes, the counts of
words, advice and, where they are wanted, vectors. It lies in the cache under the digest of
everything that it was made from. The cache is never trusted: a part names its key, its head has a
seal that only this user can make (see `seals`), and the SHA-256 of each section is in the head. So
a part that is missing, cut off, damaged, another part's or somebody else's is as good as none and
made again. Deleting the cache costs time and nothing else.
"""

import contextlib
import hashlib
import hmac
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from toolcatalog import files, seals
from toolcatalog.snapshot import dump

_SEAL = seals.SIZE + 8  # bytes: that of the head, and how long it is
_MANY, _FEW = 3, 100
SECTIONS = ("facts", "newest", "older", "rows", "words", "vectors", "advice")


class Damaged(Exception):
    """A part that was whole is not so any more: its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of the tool versions of a batch, in columns: a record for each would take
    longer to make than all the rest.

    `sizes` and `rows` are bytes of the document and of the row in its toolkit's index; `sets` has
    the places in the batch of the members of each set that does not depend on other files;
    `entries` are the slugs with the place of their oldest version and their entry; `rules` are
    those that have advice.
    """

    toolkits: Sequence[str] = ()
    slugs: Sequence[str] = ()
    versions: Sequence[str] = ()
    names: Sequence[str] = ()
    scopes: Sequence[Sequence[str]] = ()
    tags: Sequence[Sequence[str]] = ()
    deprecations: Sequence[Mapping[str, str] | None] = ()
    replaced: Sequence[str | None] = ()
    newest: Sequence[bool] = ()
    sizes: Sequence[int] = ()
    rows: Sequence[int] = ()
    digests: Sequence[str] = ()
    checks: Sequence[int] = ()
    sets: Mapping[str, Sequence[int]] = field(default_factory=dict)
    entries: Sequence[tuple[str, int, str]] = ()
    rules: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.slugs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A compiled batch, sorted by slug and version. `newest` and `older` are documents with commas
    between, `rows` index rows without.

    `words` is None where nobody has counted them yet: a check has no use for them.
    """

    facts: Facts = field(default_factory=Facts)
    newest: bytes = b""
    older: bytes = b""
    rows: bytes = b""
    words: bytes | None = b""
    vectors: bytes = b""
    advice: bytes = b""


def path_of(cache: Path, key: str) -> Path:
    """Where the part with this key lies."""
    return cache / "parts" / key[:2] / f"{key}.compiled"


def save(cache: Path, key: str, part: Part) -> None:
    """Keep a part. Raises OSError where it cannot be written."""
    every = {name: getattr(part, name) for name in SECTIONS} | {"facts": dump(part.facts)}
    sections = {name: data for name, data in every.items() if data is not None}
    stated = [
        [name, len(data), hashlib.sha256(data).hexdigest()] for name, data in sections.items()
    ]
    head = dump({"key": key, "sections": stated})
    seal = _seal(key, head) + len(head).to_bytes(8, "little")
    files.replace(path_of(cache, key), b"".join([seal, head, *sections.values()]))


def _seal(key: str, head: bytes) -> bytes:
    """The seal of a head, which holds the digests of all sections."""
    return seals.seal(f"{key}.compiled", hashlib.sha256(head).digest())


def keep(cache: Path, keys: Collection[str]) -> None:
    """Remove all parts but those with these keys."""
    for place in (cache / "parts").glob("*/*"):
        if place.stem not in keys:
            files.remove(place)


def tidy(cache: Path, keys: Collection[str]) -> None:
    """Remove all parts but those with these keys, where others have become many: some may be of a
    build that is made in another way.
    """
    if len([*(cache / "parts").glob("*/*.compiled")]) > _MANY * len(keys) + _FEW:
        keep(cache, keys)


def load(cache: Path, key: str, sections: Collection[str] = SECTIONS) -> Part | None:
    """The part with this key, with these of its sections and the others empty; None where there is
    none that is whole in them.
    """
    with (
        contextlib.suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError),
        path_of(cache, key).open("rb") as file,
    ):
        seal = file.read(_SEAL)
        size = min(int.from_bytes(seal[seals.SIZE :], "little"), os.fstat(file.fileno()).st_size)
        text = file.read(size)
        if not hmac.compare_digest(_seal(key, text), seal[: seals.SIZE]):
            return None
        head: dict[str, Any] = orjson.loads(text)
        if head["key"] != key or not {name for name, *_ in head["sections"]}.issuperset(sections):
            return None
        found: dict[str, Any] = dict.fromkeys(SECTIONS, b"")
        for name, length, digest in head["sections"]:
            if name in sections:
                found[name] = file.read(length)
                if hashlib.sha256(found[name]).hexdigest() != digest:
                    return None
            else:
                file.seek(length, os.SEEK_CUR)
        facts = Facts(**orjson.loads(found["facts"] or b"{}"))
        return Part(**{**found, "facts": facts})
    return None
