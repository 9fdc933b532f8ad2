"""Build state: what one build records for the next, in the cache.

The state never decides the result of a build, only which work can be skipped. A state that is
missing, damaged, or written by another program or user is ignored, and the build looks at
everything again.
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
_PAGE_MARK = b'.html":'  # the end of the path of an HTML page in a state

Signatures = Mapping[str, int]  # signatures of files by path


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildState:
    """The state that the last build of this program recorded.

    `made_from` is the digest of everything that the last snapshot was made from, `digest` names the
    snapshot, and `stamp` is a digest of the state of its files when it was written. `batches` has
    the cache entry of each batch, by the name of its first folder, and `heads` the SHA-256 of the
    toolkit files that they were compiled with.
    """

    made_from: str = ""
    digest: str = ""
    stamp: str = ""
    heads: Mapping[str, str] = field(default_factory=dict)
    batches: Mapping[bytes, CacheEntry] = field(default_factory=dict)

    def find_entry(self, folders: Sequence[str], toolkit_digests: Mapping[str, str]) -> CacheEntry:
        """Return the cache entry of a batch; its key is empty if a toolkit file has changed."""
        known = self.batches.get(_batch_name(folders), NO_ENTRY)
        same = all(self.heads.get(toolkit) == digest for toolkit, digest in toolkit_digests.items())
        return known if same else known._replace(key="")


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
    """The recorded state of a site: its source digest, and the state of its page groups by
    digest.
    """

    made_from: str = ""
    groups: Mapping[str, PageGroupState] = field(default_factory=dict)

    @property
    def page_count(self) -> int:
        """The number of HTML pages of the site."""
        return sum(noted.page_count for noted in self.groups.values())

    def select(self, groups: Collection[str]) -> "SiteState":
        """Return the state with these groups only.

        If this drops any group, the site is not complete, and `made_from` is empty.
        """
        whole = len(groups) == len(self.groups)
        return (
            self if whole else SiteState(groups={digest: self.groups[digest] for digest in groups})
        )


class CheckResult(NamedTuple):
    """The result of a check.

    `problems` are sorted by place, `files` is the number of files that were read, and `rules` the
    severities that catalog.yaml sets.
    """

    problems: Sequence[Problem]
    files: int
    rules: Mapping[str, str]


def load_state(cache: Path, program_digest: str) -> BuildState:
    """Return the state that the last build of this program recorded; an empty one if there is
    none.
    """
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
    """Save the cache entries of batches for the next build."""
    lines = (
        piece
        for first, known in batches.items()
        for piece in (b"\n", first, b"\t", known.key.ljust(_KEY_LENGTH).encode(), known.rows_json)
    )
    cache.mkdir(exist_ok=True)
    # keep the cache out of git, also for users who only run checks
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
    """Save what a snapshot was made from."""
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
    """Return the result of the last check if its request had the same digest, otherwise None.

    An empty digest matches nothing.
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
    """Save the result of a check."""
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
    """Return the cache entries of compiled batches, as the build state stores them.

    The key is left out unless the words of the batch have been counted, now or before.
    """
    found: dict[bytes, CacheEntry] = {}
    for task in tasks:
        name = _batch_name(task.folders)
        whole = task.with_words or previous.batches.get(name, NO_ENTRY).key == task.cache_entry.key
        found[name] = task.cache_entry if whole else task.cache_entry._replace(key="")
    return found


def _batch_name(folders: Sequence[str]) -> bytes:
    """Return the key of a batch in the state; in ASCII, because a folder may have any name."""
    return json.dumps(folders[0]).encode()


def encode_group_state(signatures: Signatures, sources: Mapping[str, str]) -> PageGroupState:
    """Return the signatures and the source digests of a group's files, as a site state stores
    them.
    """
    return PageGroupState(orjson.dumps(signatures), orjson.dumps(sources))


def decode_signatures(group: PageGroupState) -> Signatures:
    """Return the recorded signatures of the files of a group, by path."""
    state: Signatures = orjson.loads(group.signatures_json)
    return state


def decode_sources(group: PageGroupState) -> Mapping[str, str]:
    """Return the recorded source digests of files of a group, by path."""
    sources: Mapping[str, str] = orjson.loads(group.sources_json)
    return sources


def load_site_state(cache: Path, site: Path, program_digest: str) -> SiteState:
    """Return the state that the last build of this program recorded for this site."""
    lines = files.iter_sealed_lines(_site_state_path(cache, site))
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        said: dict[str, Any] = orjson.loads(next(lines, b"{}"))
        if said.pop("program") == program_digest:
            return SiteState(**said, groups=dict(map(_parse_group, lines)))
    return SiteState()


def iter_site_groups(
    cache: Path, site: Path, program_digest: str
) -> Iterator[tuple[str, PageGroupState]]:
    """Yield the groups of a site state one by one, without keeping them in memory."""
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
    """Save the state of a site group by group as it arrives, and return the number of pages."""
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
    """Delete the state of a site that is about to change."""
    _site_state_path(cache, site).unlink(missing_ok=True)


def _site_state_path(cache: Path, site: Path) -> Path:
    return (
        cache
        / f"site-{hashlib.sha256(str(site.resolve()).encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
    )
