"""The build cache: compiled batches, and the rule facts of all batches.

A compiled batch has everything that the rest of a build needs of its tools: facts for the rules and
the query tables, the documents as served, the rows of the toolkit indexes, the word counts, the
lint findings and, if wanted, vectors. Its file name is the digest of everything that it was made
from.

The cache is never trusted. A compiled batch contains its key, its header has a seal that only this
user can make (see `system.seals`), and the header has the SHA-256 of each section. A batch that is
missing, truncated, damaged, misplaced or written by another user is compiled again. Deleting the
cache costs time and nothing else.

The rule facts of all batches are in one sealed file, each under the key of its batch. If the facts
of a batch are missing or damaged, they are read from the compiled batch.
"""

import contextlib
import hashlib
import hmac
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolcatalog.catalog.model import ToolSummary
from toolcatalog.encoding import dump_json, dump_json_compact
from toolcatalog.system import files, seals

_PREFIX_SIZE = seals.SEAL_SIZE + 8  # bytes: the seal of the header and its length
_MAX_EXCESS_FACTOR, _MAX_EXCESS = 3, 100
SECTIONS = ("facts", "newest", "older", "rows", "words", "vectors", "advice")


class DamagedBatch(Exception):
    """A compiled batch was valid before and no longer is; the argument is its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolColumns:
    """The facts of the tool versions of a batch, in columns, because one record per version is
    slow.

    `sizes` and `rows` are the sizes in bytes of the document and of the row in its toolkit's index.
    `checks` are the CRC-32 of the documents. `sets` has the positions in the batch of the members
    of each set that does not depend on other files. `entries` are the slugs, each with the position
    of its oldest version and its entry in the slug table. `rules` are the lint rules with findings.
    """

    toolkits: Sequence[str] = ()
    slugs: Sequence[str] = ()
    versions: Sequence[str] = ()
    names: Sequence[str] = ()
    scopes: Sequence[Sequence[str]] = ()
    tags: Sequence[Sequence[str]] = ()
    deprecations: Sequence[Mapping[str, str] | None] = ()
    sources: Sequence[Mapping[str, str] | None] = ()
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
class CompiledBatch:
    """A compiled batch, sorted by slug and version.

    `newest` and `older` are documents separated by commas, `rows` index rows without separators.
    `words` is None if the words have not been counted: a check does not need them.
    """

    facts: ToolColumns = field(default_factory=ToolColumns)
    newest: bytes = b""
    older: bytes = b""
    rows: bytes = b""
    words: bytes | None = b""
    vectors: bytes = b""
    advice: bytes = b""


def batch_path(cache: Path, key: str) -> Path:
    """Return the path of the compiled batch with this key."""
    return cache / "parts" / key[:2] / f"{key}.compiled"


def save_batch(cache: Path, key: str, batch: CompiledBatch) -> None:
    """Write a compiled batch. Raises OSError if it cannot be written."""
    every = {name: getattr(batch, name) for name in SECTIONS} | {"facts": dump_json(batch.facts)}
    sections = {name: data for name, data in every.items() if data is not None}
    stated = [
        [name, len(data), hashlib.sha256(data).hexdigest()] for name, data in sections.items()
    ]
    head = dump_json({"key": key, "sections": stated})
    seal = _seal_header(key, head) + len(head).to_bytes(8, "little")
    files.write_unsynced(batch_path(cache, key), b"".join([seal, head, *sections.values()]))


def _seal_header(key: str, head: bytes) -> bytes:
    """Return the seal of a header, which contains the digests of all sections."""
    return seals.compute_seal(f"{key}.compiled", hashlib.sha256(head).digest())


def remove_batches_except(cache: Path, keys: Collection[str]) -> None:
    """Remove all compiled batches except those with these keys."""
    for place in (cache / "parts").glob("*/*"):
        if place.stem not in keys:
            files.remove(place)


def prune_batches(cache: Path, keys: Collection[str]) -> None:
    """Remove all compiled batches except those with these keys, if there are many others.

    A few others are kept, because they may belong to a build with other options.
    """
    if (
        len([*(cache / "parts").glob("*/*.compiled")])
        > _MAX_EXCESS_FACTOR * len(keys) + _MAX_EXCESS
    ):
        remove_batches_except(cache, keys)


def load_batch(cache: Path, key: str, sections: Collection[str] = SECTIONS) -> CompiledBatch | None:
    """Return the compiled batch with this key, with only these sections; the others are empty.

    Returns None if there is no such batch or any of the sections is damaged.
    """
    with (
        contextlib.suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError),
        files.open_regular(batch_path(cache, key)) as file,
    ):
        seal = file.read(_PREFIX_SIZE)
        size = min(
            int.from_bytes(seal[seals.SEAL_SIZE :], "little"), os.fstat(file.fileno()).st_size
        )
        text = file.read(size)
        if not hmac.compare_digest(_seal_header(key, text), seal[: seals.SEAL_SIZE]):
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
        facts = ToolColumns(**orjson.loads(found["facts"] or b"{}"))
        return CompiledBatch(**{**found, "facts": facts})
    return None


_KEY_LENGTH = 64  # characters
_SEPARATOR = ","  # neither scopes nor tags contain it


class RuleFacts(NamedTuple):
    """What checks across files need of the tool versions of a batch, in columns.

    The scopes and the tags of each version are joined to one string. `rules` are the lint rules
    with findings in the batch.
    """

    toolkits: Sequence[str]
    slugs: Sequence[str]
    versions: Sequence[str]
    scopes: Sequence[str]
    tags: Sequence[str]
    replaced_by: Sequence[str | None]
    rules: Sequence[str]

    def iter_tools(self, joined_names: "JoinedNames") -> Iterator[ToolSummary]:
        """Return an iterator over the tool versions; equal values share one object, to save
        memory.
        """
        slugs: dict[str, str] = {}
        texts = (
            map(sys.intern, self.toolkits),
            map(slugs.setdefault, self.slugs, self.slugs),
            map(sys.intern, self.versions),
        )
        names = (map(joined_names.__getitem__, column) for column in (self.scopes, self.tags))
        return map(ToolSummary._make, zip(*texts, *names, self.replaced_by, strict=True))


class JoinedNames(dict[str, tuple[str, ...]]):
    """A cache of split names: maps a joined string to its tuple of names."""

    def __missing__(self, text: str) -> tuple[str, ...]:
        self[text] = tuple(map(sys.intern, text.split(_SEPARATOR))) if text else ()
        return self[text]


def dump_rule_facts(columns: ToolColumns) -> bytes:
    """Return the rule facts of a batch as JSON; they stay in this form in memory to save space."""
    scopes, tags = (list(map(_SEPARATOR.join, column)) for column in (columns.scopes, columns.tags))
    return dump_json_compact(
        [
            *RuleFacts(
                columns.toolkits,
                columns.slugs,
                columns.versions,
                scopes,
                tags,
                columns.replaced,
                columns.rules,
            )
        ]
    )


def parse_rule_facts(data: bytes) -> RuleFacts:
    """Parse the JSON form of rule facts."""
    return RuleFacts(*orjson.loads(data))


def load_rule_facts(cache: Path) -> dict[str, bytes]:
    """Return the saved rule facts, as JSON, by the keys of their batches."""
    lines = (files.read_sealed(_rule_facts_path(cache)) or b"").split(b"\n")
    return {
        line[:_KEY_LENGTH].decode("ascii", "replace"): line[_KEY_LENGTH:] for line in lines if line
    }


def save_rule_facts(cache: Path, rule_facts: Mapping[str, bytes]) -> None:
    """Save the rule facts of exactly these batches for the next build. Raises OSError."""
    cache.mkdir(exist_ok=True)
    files.write_sealed(
        _rule_facts_path(cache),
        (piece for key, told in rule_facts.items() for piece in (key.encode(), told, b"\n")),
    )


def _rule_facts_path(cache: Path) -> Path:
    return cache / "briefs"
