"""Change detection: what has to be built, and what the cache still has."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from toolcatalog.build import batches, state
from toolcatalog.build.batches import CacheEntry, Task
from toolcatalog.build.state import BuildState, SiteState
from toolcatalog.catalog import folder
from toolcatalog.errors import Problem
from toolcatalog.progress import Progress
from toolcatalog.system import file_state
from toolcatalog.system.processes import WorkerPool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPaths:
    """Where a build reads and writes; `site` None: no pages; `vectors`: tools get them; `words`:
    all are counted.
    """

    catalog: Path
    out: Path
    site: Path | None
    with_vectors: bool = False
    with_words: bool = True

    @property
    def cache(self) -> Path:
        """Where parts and memories lie."""
        return self.out / ".cache"

    def to_absolute(self) -> "BuildPaths":
        """The same, told so that processes that work in other folders find them."""
        return replace(
            self,
            catalog=self.catalog.absolute(),
            out=self.out.absolute(),
            site=self.site and self.site.absolute(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogListing:
    """The files that are not tools', the folders of tools, and what cannot be read."""

    other_paths: Sequence[str]
    tool_folders: Sequence[str]
    unreadable: Sequence[Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """A catalog as it is found: the SHA-256 of each file that is not a tool's, and the tools in
    batches.

    `known` says of each batch what is in the cache, None where it must be compiled; `site` what is
    as the last build has left it.
    """

    other_digests: Mapping[str, str]
    tasks: Sequence[Task]
    cache_entries: list[CacheEntry | None]
    site_state: SiteState
    unreadable: Sequence[Problem]
    program_digest: str

    @property
    def toolkit_digests(self) -> Mapping[str, str]:
        """The SHA-256 of each toolkit's file."""
        return _toolkit_digests(self.other_digests)

    @property
    def source_digest(self) -> str:
        """The digest of all that a snapshot is made from; empty where something cannot be read, or
        must be compiled first.
        """
        sure = not self.unreadable and all(self.other_digests.values()) and all(self.cache_entries)
        return (
            ""
            if not sure
            else compute_source_digest(
                self.program_digest, self.other_digests, [one for one in self.cache_entries if one]
            )
        )


def compute_source_digest(
    program_digest: str, other_digests: Mapping[str, str], entries: Sequence[CacheEntry]
) -> str:
    """The digest of all that a snapshot is made from."""
    return hashlib.sha256(
        json.dumps(
            [program_digest, sorted(other_digests.items()), [one.key for one in entries]]
        ).encode()
    ).hexdigest()


def list_catalog(catalog: Path) -> CatalogListing:
    """What there is. Raises UsageError where there is no such folder."""
    paths, folders, unreadable = folder.list_layout(catalog)
    return CatalogListing(other_paths=paths, tool_folders=folders, unreadable=unreadable)


def detect_changes(
    paths: BuildPaths,
    listing: CatalogListing,
    previous: BuildState,
    program_digest: str,
    pool: WorkerPool,
    progress: Progress,
) -> ChangeSet:
    """Find out what of the catalog has changed since the build before; `program` is the digest of
    this one.
    """
    others = {path: folder.file_digest(paths.catalog, path) for path in listing.other_paths}
    heads = _toolkit_digests(others)
    tasks = [
        _make_task(paths, program_digest, batch, heads, previous)
        for batch in batches.split_into_batches(listing.tool_folders)
    ]
    known: list[CacheEntry | None] = []
    if (paths.cache / "parts").exists():
        found = pool.map(batches.find_cached, tasks)
        with progress("Looking for changes", len(tasks)) as advance:
            for one in found:
                known.append(one)
                advance(1)
    else:
        known = [None] * len(tasks)
    # what was known before is said once more in `known`
    forgotten = [replace(task, cache_entry=batches.NO_ENTRY) for task in tasks]
    return ChangeSet(
        other_digests=others,
        tasks=forgotten,
        cache_entries=known,
        site_state=SiteState(),
        unreadable=listing.unreadable,
        program_digest=program_digest,
    )


def start_site_scan(
    paths: BuildPaths, program_digest: str, pool: WorkerPool
) -> Callable[[], SiteState]:
    """Begin to look at the site; call what comes back for the groups of pages that are as they were
    left, all of them or not.
    """
    return (
        SiteState
        if paths.site is None
        else partial(
            _load_unchanged_groups,
            pool.submit(partial(_find_unchanged_groups, paths, program_digest)),
            paths,
            program_digest,
        )
    )


def _load_unchanged_groups(
    unchanged_groups: Callable[[], Sequence[str]], paths: BuildPaths, program_digest: str
) -> SiteState:
    """What is known of the groups that are left. It is read here too, which is sooner done than
    sent from one process to another.
    """
    assert paths.site
    noted = state.load_site_state(paths.cache, paths.site, program_digest)
    return noted.select(unchanged_groups())


def _find_unchanged_groups(paths: BuildPaths, program_digest: str) -> list[str]:
    """The digests of the groups whose files are as they were left."""
    assert paths.site
    noted = state.iter_site_groups(paths.cache, paths.site, program_digest)
    return [
        digest
        for digest, group in noted
        if file_state.are_unchanged(paths.site, state.decode_signatures(group))
    ]


def _toolkit_digests(other_digests: Mapping[str, str]) -> dict[str, str]:
    return {
        toolkit: digest
        for path, digest in other_digests.items()
        if (toolkit := _toolkit_slug(path))
    }


def _toolkit_slug(path: str) -> str:
    """The toolkit that is described at a path; empty where none is."""
    match path.split("/"):
        case ["toolkits", toolkit, "toolkit.yaml"]:
            return toolkit
    return ""


def _make_task(
    paths: BuildPaths,
    program_digest: str,
    batch: tuple[str, ...],
    toolkit_digests: Mapping[str, str],
    previous: BuildState,
) -> Task:
    its_heads = {
        toolkit: toolkit_digests.get(toolkit, "") for toolkit in batches.toolkits_of(batch)
    }
    known = previous.find_entry(batch, its_heads)
    return Task(
        root=paths.catalog,
        cache=paths.cache,
        program_digest=program_digest,
        with_vectors=paths.with_vectors,
        with_words=paths.with_words,
        folders=batch,
        toolkit_digests=its_heads,
        toolkits={},
        cache_entry=known,
    )
