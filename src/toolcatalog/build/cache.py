"""The build cache: compiled batches, and the rule facts of all batches.

A compiled batch has everything that the rest of a build needs of its tools: facts for the rules and
the query tables, the documents as served, the rows of the toolkit indexes, the word counts, the
lint findings and, if wanted, vectors. Its file name is the digest of everything that it was made
from.

The cache is never trusted. A compiled batch contains its key, its header has a seal that only this
user can make (see `system.seals`), and the header has the SHA-256 of each section. A batch that is
missing, truncated, damaged, misplaced or written by another user is compiled again. Deleting the
cache costs time and nothing else.

A batch also depends on the program that compiled it (`compute_program_digest`). What checks across
files need of a batch, its rule facts, is also kept in the build state (see
`build.state`), which is faster to read.
"""

import contextlib
import hashlib
import hmac
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolcatalog.catalog.model import ToolSummary
from toolcatalog.encoding import dump_json, dump_json_compact
from toolcatalog.errors import UsageError
from toolcatalog.system import files, seals

# libraries whose output is cached
_LIBRARIES = (
    "jinja2",
    "jsonschema-rs",
    "markdown-it-py",
    "nh3",
    "numpy",
    "orjson",
    "pyroaring",
    "pystemmer",
    "pyyaml",
)
_DIST_INFO = re.compile(r"(.+?)-([^-]+)(?:-.*)?\.(?:dist|egg)-info")
_PREFIX_SIZE = seals.SEAL_SIZE + 8  # bytes: the seal of the header and its length
_MAX_EXCESS_FACTOR, _MAX_EXCESS = 3, 100
_SEPARATOR = ","  # neither scopes nor tags contain it
SECTIONS = ("facts", "newest", "older", "rows", "words", "vectors", "advice")

# name, size in bytes and SHA-256 of each section
Sections = Sequence[tuple[str, int, str]]


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


def require_private_secret(catalog: Path) -> None:
    """Raise UsageError if the secret of the seals is in the checkout that contains the catalog.

    A change could commit the secret together with a forged cache. The checkout is the folder with
    the nearest `.git`, or the catalog itself if there is none; around a submodule, the outer one.
    """
    secret = seals.get_secret_path()
    top = _find_checkout(Path(os.path.realpath(catalog)))
    if secret and Path(os.path.realpath(secret)).is_relative_to(top):
        raise UsageError(
            f"The secret of the build cache ({secret}) is in the checkout in {top}, and anyone "
            f"who changes the catalog could commit one: set XDG_CACHE_HOME to a folder outside "
            f"of it."
        )


def _find_checkout(catalog: Path) -> Path:
    top = catalog
    for path in (catalog, *catalog.parents):
        if (path / ".git").is_dir():
            return path
        top = path if os.path.lexists(path / ".git") else top
    return top


def batch_path(cache: Path, key: str) -> Path:
    """Return the path of the compiled batch with this key."""
    return cache / "parts" / key[:2] / f"{key}.compiled"


def save_batch(cache: Path, key: str, batch: CompiledBatch) -> None:
    """Write a compiled batch. Raises OSError if it cannot be written."""
    sections = {name: getattr(batch, name) for name in SECTIONS if name != "facts"}
    data = {"facts": dump_json(batch.facts)}
    data |= {name: section for name, section in sections.items() if section is not None}
    table = [
        (name, len(section), hashlib.sha256(section).hexdigest()) for name, section in data.items()
    ]
    header = dump_json({"key": key, "sections": table})
    prefix = _seal_header(key, header) + len(header).to_bytes(8, "little")
    files.write_unsynced(batch_path(cache, key), b"".join([prefix, header, *data.values()]))


def _seal_header(key: str, header: bytes) -> bytes:
    """Return the seal of a header, which contains the digests of all sections."""
    return seals.compute_seal(f"{key}.compiled", hashlib.sha256(header).digest())


def remove_batches_except(cache: Path, keys: Collection[str]) -> None:
    """Remove all compiled batches except those with these keys."""
    for path in (cache / "parts").glob("*/*"):
        if path.stem not in keys:
            files.remove(path)


def prune_batches(cache: Path, keys: Collection[str]) -> None:
    """Remove all compiled batches except those with these keys, if there are many others.

    A few others are kept, because they may belong to a build with other options.
    """
    count = sum(1 for _ in (cache / "parts").glob("*/*.compiled"))
    if count > _MAX_EXCESS_FACTOR * len(keys) + _MAX_EXCESS:
        remove_batches_except(cache, keys)


def load_batch(cache: Path, key: str, sections: Collection[str] = SECTIONS) -> CompiledBatch | None:
    """Return the compiled batch with this key, with only these sections; the others are empty.

    Returns None if there is no such batch or any of the sections is damaged.
    """
    with (
        contextlib.suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError),
        files.open_regular(batch_path(cache, key)) as file,
    ):
        data: dict[str, Any] = dict.fromkeys(SECTIONS, b"")
        data |= _read_sections(file, _read_section_table(file, key), sections)
        data["facts"] = ToolColumns(**orjson.loads(data["facts"] or b"{}"))
        return CompiledBatch(**data)
    return None


def _read_section_table(file: BufferedReader, key: str) -> Sections:
    """Return the table of sections. Raises ValueError if the header is not valid."""
    prefix = file.read(_PREFIX_SIZE)
    length = int.from_bytes(prefix[seals.SEAL_SIZE :], "little")
    header = file.read(min(length, os.fstat(file.fileno()).st_size))
    if not hmac.compare_digest(_seal_header(key, header), prefix[: seals.SEAL_SIZE]):
        raise ValueError("not sealed by this user")
    value: dict[str, Any] = orjson.loads(header)
    if value["key"] != key:
        raise ValueError("the batch of another key")
    table: Sections = value["sections"]
    return table


def _read_sections(
    file: BufferedReader, table: Sections, sections: Collection[str]
) -> dict[str, bytes]:
    """Return the bytes of these sections. Raises ValueError if one is missing or damaged."""
    data: dict[str, bytes] = {}
    for name, length, digest in table:
        if name not in sections:
            file.seek(length, os.SEEK_CUR)
            continue
        data[name] = file.read(length)
        if hashlib.sha256(data[name]).hexdigest() != digest:
            raise ValueError(f"the section {name} is damaged")
    if len(data) < len({*sections}):
        raise ValueError("a section is missing")
    return data


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
    facts = RuleFacts(
        toolkits=columns.toolkits,
        slugs=columns.slugs,
        versions=columns.versions,
        scopes=[*map(_SEPARATOR.join, columns.scopes)],
        tags=[*map(_SEPARATOR.join, columns.tags)],
        replaced_by=columns.replaced,
        rules=columns.rules,
    )
    return dump_json_compact([*facts])


def parse_rule_facts(data: bytes) -> RuleFacts:
    """Parse the JSON form of rule facts."""
    return RuleFacts(*orjson.loads(data))


def compute_program_digest(*extra: str) -> str:
    """Return a digest of everything that determines what this program produces.

    It covers the files of this package, the running Python, the versions of the libraries in use,
    and `extra`.
    """
    digest = hashlib.sha256(f"{sys.version}\n{extra!r}\n".encode())
    # the first match on `sys.path` is the one imported
    versions = dict(reversed([*_installed_versions()]))
    for library in _LIBRARIES:
        version = versions.get(library.replace("-", "_")) or _library_version(library)
        digest.update(f"{library} {version}\n".encode())
    _hash_folder(Path(__file__).parents[1], digest)
    return digest.hexdigest()


def _installed_versions() -> Iterator[tuple[str, str]]:
    """Yield the name and version of each installed library, from the names of its metadata folder.

    Listing folders is faster than `importlib.metadata`: nine queries to it take longer than the
    rest of `compute_program_digest`.
    """
    for path in filter(Path.is_dir, map(Path, sys.path)):
        for entry in path.iterdir():
            match = _DIST_INFO.fullmatch(entry.name)
            if match:
                yield re.sub("[-_.]+", "_", match[1]).lower(), match[2]


def _library_version(library: str) -> str:
    """Return the version of a library that has no metadata folder on `sys.path`."""
    return metadata.version(library)


def _hash_folder(path: Path, digest: "hashlib._Hash") -> None:
    with os.scandir(path) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir() and entry.name != "__pycache__":
            _hash_folder(Path(entry.path), digest)
        elif entry.is_file():
            with open(entry.path, "rb", buffering=0) as file:
                digest.update(entry.name.encode() + b"\0" + file.read())
