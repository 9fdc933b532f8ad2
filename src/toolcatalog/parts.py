"""What compiling a batch of tools gives, as one piece of bytes that a later build takes up again where nothing has changed.

A part holds all that the rest of a build needs to know of its tools: facts for the rules and the query tables, the documents as they
are served, the rows of the toolkits' indexes and the counts of words. It lies in the cache under the digest of everything that it was
made from. The cache is never trusted: a part names its key and has a checksum, and one that is missing, cut off, changed or another
one's is as good as none and made again. Deleting the cache costs time and nothing else.
"""

import contextlib
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolcatalog import files
from toolcatalog.snapshot import dump

_SEAL = 32  # bytes


class Fact(NamedTuple):
    """One tool version, as far as the rules and the query tables go. `size` and `row` are bytes of its document and of its index row."""

    path: str
    slug: str
    toolkit: str
    version: str
    name: str
    scopes: Sequence[str]
    tags: Sequence[str]
    deprecation: Mapping[str, str] | None
    newest: bool
    size: int
    row: int
    digest: str
    check: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A compiled batch, sorted by slug and version. `newest` and `older` are documents with commas between, `rows` index rows without."""

    facts: tuple[Fact, ...]
    newest: bytes
    older: bytes
    rows: bytes
    words: bytes


def path_of(cache: Path, key: str) -> Path:
    """Where the part with this key lies."""
    return cache / "parts" / key[:2] / f"{key}.compiled"


def save(cache: Path, key: str, part: Part) -> None:
    """Keep a part. Raises OSError where it cannot be written."""
    sections = (part.newest, part.older, part.rows, part.words)
    body = b"".join(sections)
    head = dump(
        {
            "key": key,
            "facts": [tuple(fact) for fact in part.facts],
            "sizes": [*map(len, sections)],
            "body": hashlib.sha256(body).hexdigest(),
        }
    )
    files.replace(path_of(cache, key), hashlib.sha256(head).digest() + len(head).to_bytes(8, "little") + head + body)


def keep(cache: Path, keys: Collection[str]) -> None:
    """Remove all parts but those with these keys."""
    for place in (cache / "parts").glob("*/*"):
        if place.stem not in keys:
            place.unlink(missing_ok=True)


def load(cache: Path, key: str) -> Part | None:
    """The part with this key; None where there is none that is whole."""
    with contextlib.suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        data = path_of(cache, key).read_bytes()
        head = _head(data, key)
        body = memoryview(data)[_SEAL + 8 + int.from_bytes(data[_SEAL : _SEAL + 8], "little") :]
        if head is not None and hashlib.sha256(body).hexdigest() == head["body"]:
            sections, end = [], 0
            for size in head["sizes"]:
                start, end = end, end + size
                sections.append(bytes(body[start:end]))
            newest, older, rows, words = sections
            facts = tuple(Fact(*row) for row in head["facts"])
            return Part(facts=facts, newest=newest, older=older, rows=rows, words=words)
    return None


def load_facts(cache: Path, key: str) -> tuple[Fact, ...] | None:
    """The facts alone of the part with this key; None where there is none with whole facts."""
    with contextlib.suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError), path_of(cache, key).open("rb") as file:
        seal = file.read(_SEAL + 8)
        size = min(int.from_bytes(seal[_SEAL:], "little"), path_of(cache, key).stat().st_size)
        head = _head(seal + file.read(size), key)
        return None if head is None else tuple(Fact(*row) for row in head["facts"])
    return None


def _head(data: bytes, key: str) -> dict[str, Any] | None:
    size = int.from_bytes(data[_SEAL : _SEAL + 8], "little")
    text = data[_SEAL + 8 : _SEAL + 8 + size]
    if hashlib.sha256(text).digest() != data[:_SEAL]:
        return None
    head: dict[str, Any] = orjson.loads(text)
    return head if head["key"] == key else None
