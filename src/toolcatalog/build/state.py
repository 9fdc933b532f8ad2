"""Build state: what one build records for the next, in the cache.

The state never decides the result of a build, only which work can be skipped. A state that is
missing, damaged, or written by another program or user is ignored, and the build looks at
everything again.

Each file of the state has the same form: a seal (see `system.seals`), then a JSON object in one
line, then a line for each record. The fields of a record are separated by tabs; they are digests or
JSON, which contain neither tabs nor line ends.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolcatalog.build.batches import CachedBatch, CacheEntry
from toolcatalog.build.cache import batch_path
from toolcatalog.errors import Problem
from toolcatalog.system import files

_BATCHES_FILE, _RULE_FACTS_FILE = "batches", "rule-facts"
_SNAPSHOT_FILE, _CHECK_FILE = "snapshot", "check-result"
_FINDINGS_SUFFIX = ".findings"
_PAGE_MARK = b'.html":'  # the end of the path of an HTML page in a state

Signatures = Mapping[str, int]  # signatures of files by path
Record = Sequence[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildState:
    """The state that the last build of this program recorded.

    `source_digest` is the digest of everything that the last snapshot was made from, `digest` names
    the snapshot, and `stamp` is a digest of the state of its files when it was written. `batches`
    has the cache entry of each batch, by the name of its first folder.
    """

    source_digest: str = ""
    digest: str = ""
    stamp: str = ""
    batches: Mapping[bytes, CacheEntry] = field(default_factory=dict)

    def find_entry(self, folders: Sequence[str]) -> CacheEntry | None:
        """Return the recorded cache entry of a batch."""
        return self.batches.get(_batch_name(folders))


class PageGroupState(NamedTuple):
    """The recorded state of the files of a page group, as JSON.

    It stays JSON because a million tools have three million files. `signatures_json` has the
    signature of each file by path; `sources_json` the source digest of single files by path, where
    there is one.
    """

    signatures_json: bytes
    sources_json: bytes

    @property
    def page_count(self) -> int:
        """The number of HTML pages in the group."""
        return self.signatures_json.count(_PAGE_MARK)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteState:
    """The recorded state of a site: its source digest, and its page groups by digest."""

    source_digest: str = ""
    groups: Mapping[str, PageGroupState] = field(default_factory=dict)

    @property
    def page_count(self) -> int:
        """The number of HTML pages of the site."""
        return sum(group.page_count for group in self.groups.values())

    def select(self, digests: Collection[str]) -> "SiteState":
        """Return the state with these groups only.

        If this drops any group, the site is not complete, and `source_digest` is empty.
        """
        if len(digests) == len(self.groups):
            return self
        return SiteState(groups={digest: self.groups[digest] for digest in digests})


class CheckResult(NamedTuple):
    """The result of a check.

    `problems` are sorted by place, `files` is the number of files that were read, and `rules` the
    severities that catalog.yaml sets.
    """

    problems: Sequence[Problem]
    files: int
    rules: Mapping[str, str]


def load_state(cache: Path, program_digest: str) -> BuildState:
    """Return the state that the last build of this program recorded, or else an empty one."""
    _, batches = _read(cache / _BATCHES_FILE, program=program_digest)
    snapshot, _ = _read(cache / _SNAPSHOT_FILE, program=program_digest)
    return BuildState(
        source_digest=snapshot.get("source", ""),
        digest=snapshot.get("digest", ""),
        stamp=snapshot.get("stamp", ""),
        batches={name: _parse_entry(*fields) for name, *fields in batches},
    )


def _parse_entry(
    key: bytes, with_words: bytes, toolkits_json: bytes, rows_json: bytes
) -> CacheEntry:
    return CacheEntry(key.decode(), with_words == b"true", toolkits_json, rows_json)


def save_batches(cache: Path, program_digest: str, entries: Mapping[bytes, CacheEntry]) -> None:
    """Save the cache entries of batches for the next build. Raises OSError."""
    cache.mkdir(exist_ok=True)
    # keep the cache out of git, also for users who only run checks
    files.write_unsynced(cache / ".gitignore", b"*\n")
    records = (
        (name, entry.key.encode(), orjson.dumps(entry.with_words), *entry[2:])
        for name, entry in entries.items()
    )
    _write(cache / _BATCHES_FILE, {"program": program_digest}, records)


def save_snapshot_source(
    cache: Path, program_digest: str, source_digest: str, digest: str, stamp: str
) -> None:
    """Save what a snapshot was made from."""
    header = {"program": program_digest, "source": source_digest, "digest": digest, "stamp": stamp}
    _write(cache / _SNAPSHOT_FILE, header)


def batch_entries(batches: Sequence[CachedBatch]) -> dict[bytes, CacheEntry]:
    """Return the cache entries of compiled batches, as the build state stores them."""
    return {_batch_name(task.folders): entry for task, entry in batches}


def _batch_name(folders: Sequence[str]) -> bytes:
    """Return the name of a batch in the state; in ASCII, because a folder may have any name."""
    return json.dumps(folders[0]).encode()


def load_rule_facts(cache: Path, program_digest: str) -> dict[str, bytes]:
    """Return the saved rule facts, as JSON, by the keys of their batches."""
    _, records = _read(cache / _RULE_FACTS_FILE, program=program_digest)
    return {key.decode(): facts for key, facts in records}


def save_rule_facts(cache: Path, program_digest: str, rule_facts: Mapping[str, bytes]) -> None:
    """Save the rule facts of exactly these batches for the next build. Raises OSError."""
    cache.mkdir(exist_ok=True)
    records = ((key.encode(), facts) for key, facts in rule_facts.items())
    _write(cache / _RULE_FACTS_FILE, {"program": program_digest}, records)


def load_check_result(cache: Path, request_digest: str) -> CheckResult | None:
    """Return the result of the last check if its request had the same digest, otherwise None.

    An empty digest matches nothing.
    """
    if not request_digest:
        return None
    header, rows = _read(cache / _CHECK_FILE, request=request_digest)
    if not header:
        return None
    return CheckResult([_parse_problem(row) for (row,) in rows], header["files"], header["rules"])


def save_check_result(cache: Path, request_digest: str, result: CheckResult) -> None:
    """Save the result of a check."""
    header = {"request": request_digest, "files": result.files, "rules": result.rules}
    rows = ([orjson.dumps(problem.row)] for problem in result.problems)
    _write(cache / _CHECK_FILE, header, rows)


def has_findings(cache: Path, key: str) -> bool:
    """Return whether there is a file with the located lint findings of a compiled batch."""
    return _findings_path(cache, key).exists()


def load_findings(
    cache: Path, key: str, catalog_name: str, rules: Collection[str]
) -> list[Problem] | None:
    """Return the located lint findings of these rules for a compiled batch; None if unknown.

    Displayed paths begin with the name of the catalog, so another name needs other findings.
    """
    header, records = _read(_findings_path(cache, key), catalog=catalog_name)
    if not header:
        return None
    return [_parse_problem(row) for rule, row in records if rule.decode() in rules]


def save_findings(cache: Path, key: str, catalog_name: str, problems: Sequence[Problem]) -> None:
    """Save the located lint findings of a compiled batch. Raises OSError."""
    records = ((problem.rule.encode(), orjson.dumps(problem.row)) for problem in problems)
    _write(_findings_path(cache, key), {"catalog": catalog_name}, records)


def _findings_path(cache: Path, key: str) -> Path:
    return batch_path(cache, key).with_suffix(_FINDINGS_SUFFIX)


def _parse_problem(row: bytes) -> Problem:
    return Problem.from_row(orjson.loads(row))


def encode_group_state(signatures: Signatures, sources: Mapping[str, str]) -> PageGroupState:
    """Return the signatures and source digests of a group's files, as a site state stores them."""
    return PageGroupState(orjson.dumps(signatures), orjson.dumps(sources))


def decode_signatures(group: PageGroupState) -> Signatures:
    """Return the recorded signatures of the files of a group, by path."""
    signatures: Signatures = orjson.loads(group.signatures_json)
    return signatures


def decode_sources(group: PageGroupState) -> Mapping[str, str]:
    """Return the recorded source digests of files of a group, by path."""
    sources: Mapping[str, str] = orjson.loads(group.sources_json)
    return sources


def load_site_state(cache: Path, site: Path, program_digest: str) -> SiteState:
    """Return the state that the last build of this program recorded for this site."""
    header, records = _read(_site_state_path(cache, site), program=program_digest)
    groups = {digest.decode(): PageGroupState(*fields) for digest, *fields in records}
    return SiteState(source_digest=header.get("source", ""), groups=groups)


def iter_site_groups(
    cache: Path, site: Path, program_digest: str
) -> Iterator[tuple[str, PageGroupState]]:
    """Yield the groups of a site state one by one, without keeping them in memory."""
    _, records = _read(_site_state_path(cache, site), program=program_digest)
    return ((digest.decode(), PageGroupState(*fields)) for digest, *fields in records)


class SiteStateWriter:
    """Writes the state of a site group by group; `page_count` is the number of HTML pages."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self.page_count = 0

    def add(self, digest: str, group: PageGroupState) -> None:
        """Write the state of a group."""
        self._write(_format_record((digest.encode(), *group)))
        self.page_count += group.page_count


@contextlib.contextmanager
def write_site_state(
    cache: Path, site: Path, program_digest: str, source_digest: str
) -> Iterator[SiteStateWriter]:
    """Replace the state of a site, unless the block raises an exception."""
    with files.open_sealed(_site_state_path(cache, site)) as write:
        write(orjson.dumps({"program": program_digest, "source": source_digest}))
        yield SiteStateWriter(write)


def delete_site_state(cache: Path, site: Path) -> None:
    """Delete the state of a site that is about to change."""
    _site_state_path(cache, site).unlink(missing_ok=True)


def _site_state_path(cache: Path, site: Path) -> Path:
    path = str(site.resolve()).encode("utf-8", "surrogateescape")
    return cache / f"site-{hashlib.sha256(path).hexdigest()[:16]}"


def _write(path: Path, header: Mapping[str, Any], records: Iterable[Record] = ()) -> None:
    with files.open_sealed(path) as write:
        write(orjson.dumps(header))
        for record in records:
            write(_format_record(record))


def _format_record(record: Record) -> bytes:
    return b"\n" + b"\t".join(record)


def _read(path: Path, **expected: str) -> tuple[dict[str, Any], Iterator[list[bytes]]]:
    """Return the header of a file, and its records.

    Both are empty if there is no such file, or if its header lacks one of the expected values.
    """
    lines = files.iter_sealed_lines(path)
    header: dict[str, Any] = orjson.loads(next(lines, b"{}"))
    if not expected.items() <= header.items():
        return {}, iter(())
    return header, (line.split(b"\t") for line in lines)
