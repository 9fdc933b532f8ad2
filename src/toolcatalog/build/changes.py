"""Change detection: what has to be built, and what the cache still has.

A build depends on this program, the files of the catalog and the pages of the site. The program is
identified by a digest of its files, of the running Python and of the versions of its libraries.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from toolcatalog.build import batches, state
from toolcatalog.build.batches import CacheEntry, Task
from toolcatalog.build.state import BuildState, SiteState
from toolcatalog.catalog import folder, published_files
from toolcatalog.errors import Problem
from toolcatalog.progress import Progress
from toolcatalog.system import file_state
from toolcatalog.system.processes import WorkerPool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPaths:
    """The folders of a build, and what to build.

    `site` is None to build no pages. `with_vectors`: encode tools for semantic search, with the
    model in the folder `model` (None: the default model).
    `with_words`: count the words of every batch.
    """

    catalog: Path
    out: Path
    site: Path | None
    with_vectors: bool = False
    model: Path | None = None
    with_words: bool = True

    @property
    def cache(self) -> Path:
        """The folder of compiled batches and build state."""
        return self.out / ".cache"

    def to_absolute(self) -> "BuildPaths":
        """Return the same with absolute paths, for processes with another working directory."""
        return replace(
            self,
            catalog=self.catalog.absolute(),
            out=self.out.absolute(),
            site=self.site and self.site.absolute(),
            model=self.model and self.model.absolute(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """What every step of a build or check needs."""

    paths: BuildPaths
    program_digest: str
    pool: WorkerPool
    progress: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogListing:
    """The files that do not belong to a tool, the folders of tools, and what cannot be read."""

    other_paths: Sequence[str]
    tool_folders: Sequence[str]
    unreadable: Sequence[Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """A catalog as it is on disk: the SHA-256 of each file outside tool folders, and the batches.

    `cache_entries` has for each task its cache entry, or None if it must be compiled. `site_state`
    has the page groups whose files are as the last build left them.
    """

    other_digests: Mapping[str, str]
    tasks: Sequence[Task]
    cache_entries: list[CacheEntry | None]
    unreadable: Sequence[Problem]
    program_digest: str
    site_state: SiteState

    @property
    def source_digest(self) -> str:
        """The digest of everything that a snapshot is made from.

        Empty if something cannot be read or must be compiled first.
        """
        entries = [entry for entry in self.cache_entries if entry]
        is_readable = not self.unreadable and all(self.other_digests.values())
        if not is_readable or len(entries) < len(self.tasks):
            return ""
        return compute_source_digest(self.program_digest, self.other_digests, entries)


def compute_source_digest(
    program_digest: str, other_digests: Mapping[str, str], entries: Sequence[CacheEntry]
) -> str:
    """Return the digest of everything that a snapshot is made from."""
    keys = [entry.key for entry in entries]
    data = json.dumps([program_digest, sorted(other_digests.items()), keys])
    return hashlib.sha256(data.encode()).hexdigest()


def list_catalog(catalog: Path) -> CatalogListing:
    """List the files and tool folders of a catalog. Raises UsageError if there is no catalog."""
    paths, folders, unreadable = folder.list_layout(catalog)
    return CatalogListing(other_paths=paths, tool_folders=folders, unreadable=unreadable)


def detect_changes(
    context: BuildContext, listing: CatalogListing, previous: BuildState, pool: WorkerPool
) -> ChangeSet:
    """Find what has changed in the catalog since the previous build, with workers of `pool`.

    The result has an empty `site_state`.
    """
    catalog = context.paths.catalog
    other_digests = {path: folder.file_digest(catalog, path) for path in listing.other_paths}
    groups = batches.split_into_batches(listing.tool_folders)
    tasks = [_make_task(context, group, other_digests) for group in groups]
    return ChangeSet(
        other_digests=other_digests,
        tasks=tasks,
        cache_entries=_find_cache_entries(context, tasks, previous, pool),
        unreadable=listing.unreadable,
        program_digest=context.program_digest,
        site_state=SiteState(),
    )


def _make_task(
    context: BuildContext, folders: tuple[str, ...], other_digests: Mapping[str, str]
) -> Task:
    toolkits = sorted(batches.toolkits_of(folders))
    return Task(
        root=context.paths.catalog,
        cache=context.paths.cache,
        program_digest=context.program_digest,
        with_vectors=context.paths.with_vectors,
        model=context.paths.model,
        with_words=context.paths.with_words,
        folders=folders,
        toolkit_digests={slug: _toolkit_digest(slug, other_digests) for slug in toolkits},
        toolkits={},
    )


def _toolkit_digest(toolkit: str, other_digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of a toolkit's file.

    If it has a logo file, the digest also covers the path of that file and catalog.yaml: the tools
    contain the public address of the logo.
    """
    digest = other_digests.get(toolkit_path(toolkit), "")
    logo_files = [path for path in logo_paths(toolkit) if path in other_digests]
    if not (digest and logo_files):
        return digest
    parts = [digest, logo_files, other_digests.get("catalog.yaml", "")]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def logo_paths(toolkit: str) -> list[str]:
    """Return the paths that a toolkit's logo file may have in the catalog."""
    return [f"toolkits/{toolkit}/{name}" for name in published_files.LOGO_NAMES]


def toolkit_path(toolkit: str) -> str:
    """Return the path of a toolkit's file in the catalog."""
    return f"toolkits/{toolkit}/toolkit.yaml"


def _find_cache_entries(
    context: BuildContext, tasks: Sequence[Task], previous: BuildState, pool: WorkerPool
) -> list[CacheEntry | None]:
    """Return for each task its current cache entry, or None if it must be compiled."""
    if not (context.paths.cache / "parts").exists():
        return [None] * len(tasks)
    recorded = [(task, previous.find_entry(task.folders)) for task in tasks]
    entries: list[CacheEntry | None] = []
    with context.progress("Detecting changes", len(tasks)) as advance:
        for entry in pool.map(batches.find_cached, recorded):
            entries.append(entry)
            advance(1)
    return entries


def start_site_scan(context: BuildContext) -> Callable[[], SiteState]:
    """Start to check in the background which page groups of the site are unchanged.

    Returns a function that waits for the result.
    """
    site = context.paths.site
    if site is None:
        return SiteState
    arguments = context.paths.cache, site, context.program_digest
    scan = context.pool.background.submit(partial(_find_unchanged_groups, *arguments))
    return partial(_load_unchanged_groups, scan, *arguments)


def _load_unchanged_groups(
    wait_for_groups: Callable[[], Sequence[str]], cache: Path, site: Path, program_digest: str
) -> SiteState:
    """Return the state of the unchanged groups.

    This process reads it too, because that is faster than sending it from another process.
    """
    return state.load_site_state(cache, site, program_digest).select(wait_for_groups())


def _find_unchanged_groups(cache: Path, site: Path, program_digest: str) -> list[str]:
    """Return the digests of the groups whose files are as the last build left them."""
    return [
        digest
        for digest, group in state.iter_site_groups(cache, site, program_digest)
        if file_state.are_unchanged(site, state.decode_signatures(group))
    ]
