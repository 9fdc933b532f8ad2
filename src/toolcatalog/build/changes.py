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
from toolcatalog.catalog import folder, logo
from toolcatalog.errors import Problem
from toolcatalog.progress import Progress
from toolcatalog.system import file_state
from toolcatalog.system.processes import WorkerPool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPaths:
    """The folders of a build, and what to build.

    `site` is None to build no pages. `with_vectors`: encode tools for semantic search.
    `with_words`: count the words of every batch.
    """

    catalog: Path
    out: Path
    site: Path | None
    with_vectors: bool = False
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
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogListing:
    """The files that do not belong to a tool, the folders of tools, and what cannot be read."""

    other_paths: Sequence[str]
    tool_folders: Sequence[str]
    unreadable: Sequence[Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """A catalog as found on disk: the SHA-256 of each file outside tool folders, and the batches.

    `cache_entries` has for each task its cache entry, or None if it must be compiled. `site_state`
    has the page groups whose files are as the last build left them.
    """

    other_digests: Mapping[str, str]
    tasks: Sequence[Task]
    cache_entries: list[CacheEntry | None]
    site_state: SiteState
    unreadable: Sequence[Problem]
    program_digest: str

    @property
    def toolkit_digests(self) -> Mapping[str, str]:
        """A digest of what each toolkit gives to the documents of its tools."""
        return _toolkit_digests(self.other_digests)

    @property
    def source_digest(self) -> str:
        """The digest of everything that a snapshot is made from.

        Empty if something cannot be read or must be compiled first.
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
    """Return the digest of everything that a snapshot is made from."""
    return hashlib.sha256(
        json.dumps(
            [program_digest, sorted(other_digests.items()), [one.key for one in entries]]
        ).encode()
    ).hexdigest()


def list_catalog(catalog: Path) -> CatalogListing:
    """List the files and tool folders of a catalog. Raises UsageError if there is no such
    folder.
    """
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
    """Find what has changed in the catalog since the previous build.

    The result has an empty `site_state`.
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
    # the previous entries are no longer needed: `known` has the current ones
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
    """Start to check in the background which page groups of the site are unchanged.

    Returns a function that waits for the result.
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
    """Return the state of the unchanged groups.

    This process reads it too, because that is faster than sending it from another process.
    """
    assert paths.site
    noted = state.load_site_state(paths.cache, paths.site, program_digest)
    return noted.select(unchanged_groups())


def _find_unchanged_groups(paths: BuildPaths, program_digest: str) -> list[str]:
    """Return the digests of the groups whose files are as the last build left them."""
    assert paths.site
    noted = state.iter_site_groups(paths.cache, paths.site, program_digest)
    return [
        digest
        for digest, group in noted
        if file_state.are_unchanged(paths.site, state.decode_signatures(group))
    ]


def _toolkit_digests(other_digests: Mapping[str, str]) -> dict[str, str]:
    """Return the SHA-256 of each toolkit's file.

    For a toolkit with a logo file, the digest also covers the path of that file and catalog.yaml:
    its tools contain the public address of the logo.
    """
    digests = {
        path.split("/")[1]: digest
        for path, digest in other_digests.items()
        if _is_toolkit_file(path)
    }
    for path in other_digests:
        toolkit = logo_toolkit(path)
        if toolkit in digests:
            parts = [digests[toolkit], path, other_digests.get("catalog.yaml", "")]
            digests[toolkit] = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return digests


def _is_toolkit_file(path: str) -> bool:
    match path.split("/"):
        case ["toolkits", _, "toolkit.yaml"]:
            return True
    return False


def logo_toolkit(path: str) -> str:
    """Return the toolkit whose logo file has this path; empty if it is another file."""
    match path.split("/"):
        case ["toolkits", toolkit, name] if name in logo.NAMES:
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
