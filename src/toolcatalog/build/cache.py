"""The build cache: compiled batches, and the rule facts of all batches.

A part holds all that the rest of a build needs to know of its tools: facts for the rules and the
query tables, the documents as they are served, the rows of the toolkits' indexes, the counts of
words, advice and, where they are wanted, vectors. It lies in the cache under the digest of
everything that it was made from. The cache is never trusted: a part names its key, its head has a
seal that only this user can make (see `seals`), and the SHA-256 of each section is in the head. So
a part that is missing, cut off, damaged, another part's or somebody else's is as good as none and
made again. Deleting the cache costs time and nothing else.

A brief is found by the key of the part that it was taken from, and lies under a seal with the
others. Where it is missing, damaged or of another part, the part is asked.
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

_PREFIX_SIZE = seals.SEAL_SIZE + 8  # bytes: that of the head, and how long it is
_MAX_EXCESS_FACTOR, _MAX_EXCESS = 3, 100
SECTIONS = ("facts", "newest", "older", "rows", "words", "vectors", "advice")


class DamagedBatch(Exception):
    """A part that was whole is not so any more: its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolColumns:
    """What is known of the tool versions of a batch, in columns: a record for each would take
    longer to make than all the rest.

    `sizes` and `rows` are bytes of the document and of the row in its toolkit's index; `sets` has
    the places in the batch of the members of each set that does not depend on other files;
    `site.lists` are the slugs with the place of their oldest version and their entry; `rules` are
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
class CompiledBatch:
    """A compiled batch, sorted by slug and version. `newest` and `older` are documents with commas
    between, `rows` index rows without.

    `words` is None where nobody has counted them yet: a check has no use for them.
    """

    facts: ToolColumns = field(default_factory=ToolColumns)
    newest: bytes = b""
    older: bytes = b""
    rows: bytes = b""
    words: bytes | None = b""
    vectors: bytes = b""
    advice: bytes = b""


def batch_path(cache: Path, key: str) -> Path:
    """Where the part with this key lies."""
    return cache / "parts" / key[:2] / f"{key}.compiled"


def save_batch(cache: Path, key: str, batch: CompiledBatch) -> None:
    """Keep a part. Raises OSError where it cannot be written."""
    every = {name: getattr(batch, name) for name in SECTIONS} | {"facts": dump_json(batch.facts)}
    sections = {name: data for name, data in every.items() if data is not None}
    stated = [
        [name, len(data), hashlib.sha256(data).hexdigest()] for name, data in sections.items()
    ]
    head = dump_json({"key": key, "sections": stated})
    seal = _seal_header(key, head) + len(head).to_bytes(8, "little")
    files.write_unsynced(batch_path(cache, key), b"".join([seal, head, *sections.values()]))


def _seal_header(key: str, head: bytes) -> bytes:
    """The seal of a head, which holds the digests of all sections."""
    return seals.compute_seal(f"{key}.compiled", hashlib.sha256(head).digest())


def remove_batches_except(cache: Path, keys: Collection[str]) -> None:
    """Remove all parts but those with these keys."""
    for place in (cache / "parts").glob("*/*"):
        if place.stem not in keys:
            files.remove(place)


def prune_batches(cache: Path, keys: Collection[str]) -> None:
    """Remove all parts but those with these keys, where others have become many: some may be of a
    build that is made in another way.
    """
    if (
        len([*(cache / "parts").glob("*/*.compiled")])
        > _MAX_EXCESS_FACTOR * len(keys) + _MAX_EXCESS
    ):
        remove_batches_except(cache, keys)


def load_batch(cache: Path, key: str, sections: Collection[str] = SECTIONS) -> CompiledBatch | None:
    """The part with this key, with these of its sections and the others empty; None where there is
    none that is whole in them.
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
_SEPARATOR = ","  # that no scope and no tag holds


class RuleFacts(NamedTuple):
    """Of the tool versions of a batch what the other files go by, in columns, scopes and tags of
    each joined; and the rules with advice.
    """

    toolkits: Sequence[str]
    slugs: Sequence[str]
    versions: Sequence[str]
    scopes: Sequence[str]
    tags: Sequence[str]
    replaced_by: Sequence[str | None]
    rules: Sequence[str]

    def iter_tools(self, joined_names: "JoinedNames") -> Iterator[ToolSummary]:
        """The tool versions; what is equal in many of them is one object, and the slug of a tool in
        its versions.
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
    """The names that were joined to a text, of each text that has come so far."""

    def __missing__(self, text: str) -> tuple[str, ...]:
        self[text] = tuple(map(sys.intern, text.split(_SEPARATOR))) if text else ()
        return self[text]


def dump_rule_facts(columns: ToolColumns) -> bytes:
    """The brief of a batch as JSON. The briefs of a million tools are held so."""
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
    """The brief that was told so."""
    return RuleFacts(*orjson.loads(data))


def load_rule_facts(cache: Path) -> dict[str, bytes]:
    """The briefs that were kept last, each as it was told, by the keys of their parts."""
    lines = (files.read_sealed(_rule_facts_path(cache)) or b"").split(b"\n")
    return {
        line[:_KEY_LENGTH].decode("ascii", "replace"): line[_KEY_LENGTH:] for line in lines if line
    }


def save_rule_facts(cache: Path, rule_facts: Mapping[str, bytes]) -> None:
    """Keep the briefs of all batches, and no others, for the next time. Raises OSError."""
    cache.mkdir(exist_ok=True)
    files.write_sealed(
        _rule_facts_path(cache),
        (piece for key, told in rule_facts.items() for piece in (key.encode(), told, b"\n")),
    )


def _rule_facts_path(cache: Path) -> Path:
    return cache / "briefs"
