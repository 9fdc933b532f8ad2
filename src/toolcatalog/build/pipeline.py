"""The build pipeline: detect changes, compile, check, write snapshot and site, switch `current`.

build/snapshots/<digest>/   complete or absent: written under another name, then renamed
build/current               a link to one of them, switched last and in one step
build/.cache/               compiled batches and build state; safe to delete
site/                       see `build.site_writer`
"""

import hashlib
import json
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

from toolcatalog.build import cache, changes, state
from toolcatalog.build import fingerprint as build_fingerprint
from toolcatalog.build.changes import BuildPaths, CatalogListing, ChangeSet
from toolcatalog.build.state import BuildState, CheckResult
from toolcatalog.progress import Progress, no_progress
from toolcatalog.snapshot import directory, locks
from toolcatalog.snapshot.directory import UNLIMITED_LOSS_PERCENT, BuildResult
from toolcatalog.system import files
from toolcatalog.system.processes import WorkerPool, Workers

_FEW_TOOLS = 4_000  # tools: checking the pages of fewer takes no longer than starting a process
# tools: checking fewer takes no longer than starting several processes, and a second copy of
# their state needs little memory
_MANY_TOOLS = 100_000
# provides workers that meet the requirements of a build with these paths
WorkerSource = Callable[[BuildPaths], Workers]
_LOCK_TIMEOUT = 60.0  # seconds that a check waits for a running build


def build(
    catalog: Path,
    out: Path,
    site: Path | None,
    progress: Progress = no_progress,
    jobs: int = 1,
    *,
    semantic: bool = False,
    worker_source: WorkerSource | None = None,
    max_loss_percent: int = UNLIMITED_LOSS_PERCENT,
) -> BuildResult:
    """Build a catalog into `out` and, unless it is None, `site`, with `jobs` processes.

    `semantic`: also build vectors for search by meaning. `worker_source` provides other workers for
    all work on batches, except change detection. `max_loss_percent` is how many percent of the
    tools of the current snapshot the new one may lack.

    Raises InvalidCatalog with all problems, ShrunkCatalog if more tools than that would be lost, or
    UsageError if a folder cannot be used. In each case `out/current` and the site stay as they
    were.
    """
    fingerprint = build_fingerprint.compute(
        _schema_names(catalog), *([_model_digest()] if semantic else [])
    )
    places = BuildPaths(catalog=catalog, out=out, site=site, with_vectors=semantic)
    places = places.to_absolute() if worker_source else places
    outline = changes.list_catalog(
        catalog
    )  # before anything is written, because there may be no catalog
    locks.check_folders(catalog, out, site)
    cache.require_private_secret(catalog)
    with (
        locks.lock_build(out, "the last good build is untouched. Build"),
        locks.lock_site(site),
    ):
        directory.remove_leftovers(out)
        with WorkerPool(jobs, partial(worker_source, places) if worker_source else None) as crew:
            crew.start_background(len(outline.tool_folders), _FEW_TOOLS if site else _MANY_TOOLS)
            looked, before = _detect_changes(places, outline, fingerprint, crew, progress)
            built = _reuse_last_build(places, looked, before)
            # large with a million tools, and `looked` has the same entries
            before = replace(before, batches={})
            return built or _rebuild(places, looked, before, crew, progress, max_loss_percent)


def check(
    catalog: Path,
    out: Path,
    severities: Collection[str],
    progress: Progress = no_progress,
    jobs: int = 1,
) -> CheckResult:
    """Check a catalog with `jobs` processes, and report findings of these severities.

    Unchanged batches come from the cache, and if nothing has changed, so does the whole result.
    Writes only the cache, below `out`. Raises UsageError.
    """
    fingerprint = build_fingerprint.compute(_schema_names(catalog))
    places = BuildPaths(catalog=catalog, out=out, site=None, with_words=False)
    outline = changes.list_catalog(catalog)
    locks.check_folders(catalog, out, None)
    cache.require_private_secret(catalog)
    with (
        locks.lock_build(out, "nothing is lost. Check", timeout=_LOCK_TIMEOUT),
        WorkerPool(jobs) as crew,
    ):
        looked, before = _detect_changes(places, outline, fingerprint, crew, progress)
        found = state.load_check_result(places.cache, _request_digest(places, looked, severities))
        return found or _check_changes(places, looked, before, severities, crew, progress)


def _detect_changes(
    paths: BuildPaths,
    outline: CatalogListing,
    fingerprint: str,
    pool: WorkerPool,
    progress: Progress,
) -> tuple[ChangeSet, BuildState]:
    """Return what has changed in the catalog, and the state that the previous build or check
    recorded.
    """
    site = changes.start_site_scan(
        paths, fingerprint, pool
    )  # start this first: it does not depend on the following steps
    for folder in (paths.cache, *(paths.cache / "parts").glob("*")):
        files.remove_temporary_files(folder)
    before = state.load_state(paths.cache, fingerprint)
    # a separate pool, so that the workers of later steps start with all modules loaded
    with WorkerPool(pool.jobs if len(outline.tool_folders) > _MANY_TOOLS else 1) as lookers:
        looked = changes.detect_changes(paths, outline, before, fingerprint, lookers, progress)
    if paths.site and not all(looked.cache_entries):
        # import the modules that compile, check and render during the site scan
        import_module("toolcatalog.build.rebuild")
    looked = replace(looked, site_state=site())
    if len(outline.tool_folders) <= _MANY_TOOLS and not all(looked.cache_entries):
        pool.stop_background()
    return looked, before


def _check_changes(
    paths: BuildPaths,
    changes: ChangeSet,
    previous: BuildState,
    severities: Collection[str],
    pool: WorkerPool,
    progress: Progress,
) -> CheckResult:
    from toolcatalog.build import check_catalog  # noqa: PLC0415 - slow to import

    gathered = check_catalog.compile_changes(paths, changes, pool, progress)
    checked = check_catalog.check_compiled(paths, changes, gathered, pool, progress, severities)
    now = state.batch_entries(gathered.tasks, previous)
    if now != previous.batches or changes.toolkit_digests != previous.heads:
        state.save_batches(paths.cache, changes.program_digest, changes.toolkit_digests, now)
        cache.prune_batches(paths.cache, {task.cache_entry.key for task in gathered.tasks})
    verdict = CheckResult(checked.problems, checked.file_count, checked.catalog.about.rules)
    # otherwise some batches are invalid, or there are none and no cache folder
    if 0 < len(gathered.tasks) == len(changes.tasks):
        changes = replace(changes, cache_entries=[task.cache_entry for task in gathered.tasks])
        state.save_check_result(paths.cache, _request_digest(paths, changes, severities), verdict)
    return verdict


def _request_digest(paths: BuildPaths, changes: ChangeSet, severities: Collection[str]) -> str:
    """Return a digest of everything that the result of a check depends on; empty if unknown.

    The name of the catalog's folder is included, because displayed paths begin with it.
    """
    named = json.dumps([changes.source_digest, paths.catalog.resolve().name, [*severities]])
    return hashlib.sha256(named.encode()).hexdigest() if changes.source_digest else ""


def _schema_names(catalog: Path) -> str:
    """Return the names of the schemas in the catalog's `.schemas` folder.

    Schema comments in files refer to them: the only input of a check besides the catalog's own
    files.
    """
    return " ".join(
        sorted(str(path.relative_to(catalog)) for path in (catalog / ".schemas").rglob("*.json"))
    )


def _model_digest() -> str:
    from toolcatalog.search import encoder  # noqa: PLC0415 - imports numpy

    return encoder.model_identity()


def _reuse_last_build(
    paths: BuildPaths, changes: ChangeSet, previous: BuildState
) -> BuildResult | None:
    """Return the result of the last build if its source is the same and its output is unchanged."""
    if (
        not changes.source_digest
        or changes.source_digest != previous.made_from
        or not directory.is_unchanged(paths.out, previous.digest, previous.stamp)
    ):
        return None
    if paths.site and changes.site_state.made_from != changes.source_digest:
        return None
    return directory.read_build_result(
        paths.out, previous.digest, changed=False, pages=changes.site_state.page_count
    )


def _rebuild(
    paths: BuildPaths,
    changes: ChangeSet,
    previous: BuildState,
    pool: WorkerPool,
    progress: Progress,
    max_loss_percent: int,
) -> BuildResult:
    from toolcatalog.build import rebuild  # noqa: PLC0415 - slow to import

    return rebuild.rebuild_catalog(paths, changes, previous, pool, progress, max_loss_percent)
