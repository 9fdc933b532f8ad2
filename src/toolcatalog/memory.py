"""What one build tells the next, kept in the cache beside the parts: which files were in which
state, and what came of them.

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

from toolcatalog import files
from toolcatalog.batches import NOTHING, Known, Task
from toolcatalog.errors import Problem

_KEY = 64  # characters
_SEEN, _MADE, _FOUND = "seen", "made", "found"
_PAGE = b'.html":'  # the end of the path of a page in a state

State = Mapping[str, int]  # the signatures of files by their paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`made_from`: the digest of all that the last snapshot was made from; `stamp`: of the state of
    its files when it was written.

    `batches` are what is known of each, by its first folder; `heads` the SHA-256 of the toolkits'
    files that they were made with.
    """

    made_from: str = ""
    digest: str = ""
    stamp: str = ""
    heads: Mapping[str, str] = field(default_factory=dict)
    batches: Mapping[bytes, Known] = field(default_factory=dict)

    def known(self, folders: Sequence[str], heads: Mapping[str, str]) -> Known:
        """What is known of a batch, and of its part where its toolkits' files are the same."""
        known = self.batches.get(_name(folders), NOTHING)
        same = all(self.heads.get(toolkit) == digest for toolkit, digest in heads.items())
        return known if same else known._replace(key="")


class Noted(NamedTuple):
    """What is noted of the files of a group of pages, as JSON, for of a million tools there are
    three million files: the state of each by its path; and, where it is known of a single file, by
    path, the digest of what that was made from.
    """

    state: bytes
    sources: bytes

    @property
    def pages(self) -> int:
        """How many HTML pages are among them."""
        return self.state.count(_PAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteMemory:
    """Of a site: what all of it was made from, and what is noted of each group of its pages, by
    digest.
    """

    made_from: str = ""
    groups: Mapping[str, Noted] = field(default_factory=dict)

    @property
    def pages(self) -> int:
        """How many HTML pages there are."""
        return sum(noted.pages for noted in self.groups.values())

    def only(self, groups: Collection[str]) -> "SiteMemory":
        """The same without the other groups; where there are any, this is no whole site that was
        made from anything.
        """
        whole = len(groups) == len(self.groups)
        return (
            self if whole else SiteMemory(groups={digest: self.groups[digest] for digest in groups})
        )


class Verdict(NamedTuple):
    """What a check has found: all problems, sorted by place; how many files were read; and what
    catalog.yaml says of rules.
    """

    problems: Sequence[Problem]
    files: int
    rules: Mapping[str, str]


def load(cache: Path, program: str) -> Memory:
    """What the last build of this program has left."""
    seen, *lines = (files.unsealed(cache / _SEEN) or b"").split(b"\n")
    made = files.unsealed(cache / _MADE) or b"{}"
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        head: dict[str, Any] = orjson.loads(seen)
        told: dict[str, Any] = orjson.loads(made)
        if head.pop("program") == program:
            return Memory(
                **head,
                **(told if told.pop("program", "") == program else {}),
                batches=dict(map(_batch, lines)),
            )
    return Memory()


def save(
    cache: Path, program: str, heads: Mapping[str, str], batches: Mapping[bytes, Known]
) -> None:
    """Keep what is known of batches for the next build."""
    lines = (
        piece
        for first, known in batches.items()
        for piece in (b"\n", first, b"\t", known.key.ljust(_KEY).encode(), known.noted)
    )
    cache.mkdir(exist_ok=True)
    # who only checks need not know that there is a cache
    files.replace(cache / ".gitignore", b"*\n")
    files.seal(
        cache / _SEEN, itertools.chain([orjson.dumps({"program": program, "heads": heads})], lines)
    )


def save_made(cache: Path, program: str, made_from: str, digest: str, stamp: str) -> None:
    """Keep what a snapshot was made from."""
    files.seal(
        cache / _MADE,
        [
            orjson.dumps(
                {"program": program, "made_from": made_from, "digest": digest, "stamp": stamp}
            )
        ],
    )


def load_verdict(cache: Path, asked: str) -> Verdict | None:
    """What the last check has found, if it was asked the same: a digest of all that its answer goes
    by; none where that is empty.
    """
    data = files.unsealed(cache / _FOUND) if asked else None
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        said: dict[str, Any] = orjson.loads(data or b"")
        if said["asked"] == asked:
            return Verdict(
                [Problem.of(row) for row in said["problems"]], said["files"], said["rules"]
            )
    return None


def save_verdict(cache: Path, asked: str, verdict: Verdict) -> None:
    """Keep what a check has found."""
    problems = [problem.row for problem in verdict.problems]
    files.seal(
        cache / _FOUND, [orjson.dumps({"asked": asked, **verdict._asdict(), "problems": problems})]
    )


def _batch(line: bytes) -> tuple[bytes, Known]:
    first, known = line.split(b"\t", 1)
    return first, Known(known[:_KEY].decode("ascii", "replace").strip(), known[_KEY:])


def batches(tasks: Sequence[Task], before: Memory) -> dict[bytes, Known]:
    """Batches that are in the cache, as a memory holds them: the part only of one whose words have
    been counted, now or before.
    """
    found: dict[bytes, Known] = {}
    for task in tasks:
        name = _name(task.folders)
        whole = task.words or before.batches.get(name, NOTHING).key == task.known.key
        found[name] = task.known if whole else task.known._replace(key="")
    return found


def _name(folders: Sequence[str]) -> bytes:
    """What a batch is found by; in ASCII, because a folder may have any name."""
    return json.dumps(folders[0]).encode()


def noted(state: State, sources: Mapping[str, str]) -> Noted:
    """The state of the files of a group, and what some of them were made from, as a memory of a
    site holds them.
    """
    return Noted(orjson.dumps(state), orjson.dumps(sources))


def state_of(noted: Noted) -> State:
    """The state that was noted so."""
    state: State = orjson.loads(noted.state)
    return state


def sources_of(noted: Noted) -> Mapping[str, str]:
    """What was noted that files were made from."""
    sources: Mapping[str, str] = orjson.loads(noted.sources)
    return sources


def load_site(cache: Path, site: Path, program: str) -> SiteMemory:
    """What the last build of this program has left of this site."""
    lines = files.unsealed_lines(_place(cache, site))
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        said: dict[str, Any] = orjson.loads(next(lines, b"{}"))
        if said.pop("program") == program:
            return SiteMemory(**said, groups=dict(map(_group, lines)))
    return SiteMemory()


def site_groups(cache: Path, site: Path, program: str) -> Iterator[tuple[str, Noted]]:
    """The groups of it one after another, for whoever need not hold them."""
    lines = files.unsealed_lines(_place(cache, site))
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        if orjson.loads(next(lines, b"{}"))["program"] == program:
            yield from map(_group, lines)


def _group(line: bytes) -> tuple[str, Noted]:
    digest, *noted = line.split(b"\t")
    return digest.decode(), Noted(*noted)


def save_site(
    cache: Path, site: Path, program: str, made_from: str, groups: Iterable[tuple[str, Noted]]
) -> int:
    """Keep what is known of a site for the next build, group by group as it comes: how many pages
    there are.
    """
    pages = 0

    def lines() -> Iterator[bytes]:
        nonlocal pages
        yield orjson.dumps({"program": program, "made_from": made_from})
        for digest, noted in groups:
            yield b"\n%b\t%b\t%b" % (digest.encode(), *noted)
            pages += noted.pages

    files.seal(_place(cache, site), lines())
    return pages


def forget_site(cache: Path, site: Path) -> None:
    """Know nothing of a site: it is about to change."""
    _place(cache, site).unlink(missing_ok=True)


def _place(cache: Path, site: Path) -> Path:
    return (
        cache
        / f"site-{hashlib.sha256(str(site.resolve()).encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
    )
