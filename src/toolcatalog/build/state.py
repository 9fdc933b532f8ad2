"""Build state: what one build records for the next, in the cache.

Nothing here decides what a build gives, only what it need not do again. A memory that is missing,
damaged, another program's or somebody else's is none, and everything is looked at anew.
"""

import contextlib
import hashlib
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from toolcatalog.build.batches import NO_ENTRY, CacheEntry, Task
from toolcatalog.errors import Problem
from toolcatalog.system import files

_KEY_LENGTH = 64  # characters
_BATCHES_FILE, _SNAPSHOT_FILE, _CHECK_FILE = "seen", "made", "found"
_PAGE_MARK = b'.html":'  # the end of the path of a page in a state

Signatures = Mapping[str, int]  # the signatures of files by their paths


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildState:
    """`made_from`: the digest of all that the last snapshot was made from; `stamp`: of the state of
    its files when it was written.

    `batches` are what is known of each, by its first folder; `heads` the SHA-256 of the toolkits'
    files that they were made with.
    """

    made_from: str = ""
    digest: str = ""
    stamp: str = ""
    heads: Mapping[str, str] = field(default_factory=dict)
    batches: Mapping[bytes, CacheEntry] = field(default_factory=dict)

    def find_entry(self, folders: Sequence[str], toolkit_digests: Mapping[str, str]) -> CacheEntry:
        """What is known of a batch, and of its part where its toolkits' files are the same."""
        known = self.batches.get(_batch_name(folders), NO_ENTRY)
        same = all(self.heads.get(toolkit) == digest for toolkit, digest in toolkit_digests.items())
        return known if same else known._replace(key="")


class PageGroupState(NamedTuple):
    """What is noted of the files of a group of pages, as JSON, for of a million tools there are
    three million files: the state of each by its path; and, where it is known of a single file, by
    path, the digest of what that was made from.
    """

    signatures_json: bytes
    sources_json: bytes

    @property
    def page_count(self) -> int:
        """How many HTML pages are among them."""
        return self.signatures_json.count(_PAGE_MARK)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteState:
    """Of a site: what all of it was made from, and what is noted of each group of its pages, by
    digest.
    """

    made_from: str = ""
    groups: Mapping[str, PageGroupState] = field(default_factory=dict)

    @property
    def page_count(self) -> int:
        """How many HTML pages there are."""
        return sum(noted.page_count for noted in self.groups.values())

    def select(self, groups: Collection[str]) -> "SiteState":
        """The same without the other groups; where there are any, this is no whole site that was
        made from anything.
        """
        whole = len(groups) == len(self.groups)
        return (
            self if whole else SiteState(groups={digest: self.groups[digest] for digest in groups})
        )


class CheckResult(NamedTuple):
    """What a check has found: all problems, sorted by place; how many files were read; and what
    catalog.yaml says of rules.
    """

    problems: Sequence[Problem]
    files: int
    rules: Mapping[str, str]


def load_state(cache: Path, program_digest: str) -> BuildState:
    """What the last build of this program has left."""
    seen, *lines = (files.read_sealed(cache / _BATCHES_FILE) or b"").split(b"\n")
    made = files.read_sealed(cache / _SNAPSHOT_FILE) or b"{}"
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        head: dict[str, Any] = orjson.loads(seen)
        told: dict[str, Any] = orjson.loads(made)
        if head.pop("program") == program_digest:
            return BuildState(
                **head,
                **(told if told.pop("program", "") == program_digest else {}),
                batches=dict(map(_parse_batch, lines)),
            )
    return BuildState()


def save_batches(
    cache: Path,
    program_digest: str,
    toolkit_digests: Mapping[str, str],
    batches: Mapping[bytes, CacheEntry],
) -> None:
    """Keep what is known of batches for the next build."""
    lines = (
        piece
        for first, known in batches.items()
        for piece in (b"\n", first, b"\t", known.key.ljust(_KEY_LENGTH).encode(), known.rows_json)
    )
    cache.mkdir(exist_ok=True)
    # who only checks need not know that there is a cache
    files.write_unsynced(cache / ".gitignore", b"*\n")
    files.write_sealed(
        cache / _BATCHES_FILE,
        itertools.chain(
            [orjson.dumps({"program": program_digest, "heads": toolkit_digests})], lines
        ),
    )


def save_snapshot_source(
    cache: Path, program_digest: str, source_digest: str, digest: str, stamp: str
) -> None:
    """Keep what a snapshot was made from."""
    files.write_sealed(
        cache / _SNAPSHOT_FILE,
        [
            orjson.dumps(
                {
                    "program": program_digest,
                    "made_from": source_digest,
                    "digest": digest,
                    "stamp": stamp,
                }
            )
        ],
    )


def load_check_result(cache: Path, request_digest: str) -> CheckResult | None:
    """What the last check has found, if it was asked the same: a digest of all that its answer goes
    by; none where that is empty.
    """
    data = files.read_sealed(cache / _CHECK_FILE) if request_digest else None
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        said: dict[str, Any] = orjson.loads(data or b"")
        if said["asked"] == request_digest:
            return CheckResult(
                [Problem.from_row(row) for row in said["problems"]], said["files"], said["rules"]
            )
    return None


def save_check_result(cache: Path, request_digest: str, result: CheckResult) -> None:
    """Keep what a check has found."""
    problems = [problem.row for problem in result.problems]
    files.write_sealed(
        cache / _CHECK_FILE,
        [orjson.dumps({"asked": request_digest, **result._asdict(), "problems": problems})],
    )


def _parse_batch(line: bytes) -> tuple[bytes, CacheEntry]:
    first, known = line.split(b"\t", 1)
    return first, CacheEntry(
        known[:_KEY_LENGTH].decode("ascii", "replace").strip(), known[_KEY_LENGTH:]
    )


def batch_entries(tasks: Sequence[Task], previous: BuildState) -> dict[bytes, CacheEntry]:
    """Batches that are in the cache, as a memory holds them: the part only of one whose words have
    been counted, now or before.
    """
    found: dict[bytes, CacheEntry] = {}
    for task in tasks:
        name = _batch_name(task.folders)
        whole = task.with_words or previous.batches.get(name, NO_ENTRY).key == task.cache_entry.key
        found[name] = task.cache_entry if whole else task.cache_entry._replace(key="")
    return found


def _batch_name(folders: Sequence[str]) -> bytes:
    """What a batch is found by; in ASCII, because a folder may have any name."""
    return json.dumps(folders[0]).encode()


def encode_group_state(signatures: Signatures, sources: Mapping[str, str]) -> PageGroupState:
    """The state of the files of a group, and what some of them were made from, as a memory of a
    site holds them.
    """
    return PageGroupState(orjson.dumps(signatures), orjson.dumps(sources))


def decode_signatures(group: PageGroupState) -> Signatures:
    """The state that was noted so."""
    state: Signatures = orjson.loads(group.signatures_json)
    return state


def decode_sources(group: PageGroupState) -> Mapping[str, str]:
    """What was noted that files were made from."""
    sources: Mapping[str, str] = orjson.loads(group.sources_json)
    return sources


def load_site_state(cache: Path, site: Path, program_digest: str) -> SiteState:
    """What the last build of this program has left of this site."""
    lines = files.iter_sealed_lines(_site_state_path(cache, site))
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        said: dict[str, Any] = orjson.loads(next(lines, b"{}"))
        if said.pop("program") == program_digest:
            return SiteState(**said, groups=dict(map(_parse_group, lines)))
    return SiteState()


def iter_site_groups(
    cache: Path, site: Path, program_digest: str
) -> Iterator[tuple[str, PageGroupState]]:
    """The groups of it one after another, for whoever need not hold them."""
    lines = files.iter_sealed_lines(_site_state_path(cache, site))
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        if orjson.loads(next(lines, b"{}"))["program"] == program_digest:
            yield from map(_parse_group, lines)


def _parse_group(line: bytes) -> tuple[str, PageGroupState]:
    digest, *noted = line.split(b"\t")
    return digest.decode(), PageGroupState(*noted)


def save_site_state(
    cache: Path,
    site: Path,
    program_digest: str,
    source_digest: str,
    groups: Iterable[tuple[str, PageGroupState]],
) -> int:
    """Keep what is known of a site for the next build, group by group as it comes: how many pages
    there are.
    """
    pages = 0

    def lines() -> Iterator[bytes]:
        nonlocal pages
        yield orjson.dumps({"program": program_digest, "made_from": source_digest})
        for digest, noted in groups:
            yield b"\n%b\t%b\t%b" % (digest.encode(), *noted)
            pages += noted.page_count

    files.write_sealed(_site_state_path(cache, site), lines())
    return pages


def delete_site_state(cache: Path, site: Path) -> None:
    """Know nothing of a site: it is about to change."""
    _site_state_path(cache, site).unlink(missing_ok=True)


def _site_state_path(cache: Path, site: Path) -> Path:
    return (
        cache
        / f"site-{hashlib.sha256(str(site.resolve()).encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
    )
