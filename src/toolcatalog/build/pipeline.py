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

from toolcatalog.build import cache, state
from toolcatalog.build import changes as build_changes
from toolcatalog.build.changes import BuildContext, BuildPaths, CatalogListing, ChangeSet
from toolcatalog.build.state import BuildState, CheckResult
from toolcatalog.progress import Progress, no_progress
from toolcatalog.search.embeddings import model_files
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
    semantic: bool | Path = False,
    worker_source: WorkerSource | None = None,
    max_loss_percent: int = UNLIMITED_LOSS_PERCENT,
) -> BuildResult:
    """Build a catalog into `out` and, unless it is None, `site`, with `jobs` processes.

    `semantic`: also build vectors for search by meaning; a path is the folder of another model.
    `worker_source` provides other workers for all work on batches, except change detection.
    `max_loss_percent` is how many percent of the tools of the current snapshot the new one may
    lack.

    Raises InvalidCatalog with all problems, ShrunkCatalog if more tools than that would be lost, or
    UsageError if a folder cannot be used. In each case `out/current` and the site stay as they
    were.
    """
    model = semantic if isinstance(semantic, Path) else None
    has_vectors = semantic is not False
    paths = BuildPaths(catalog=catalog, out=out, site=site, with_vectors=has_vectors, model=model)
    paths = paths.to_absolute() if worker_source else paths
    model_identity = _identify_model(paths.model) if has_vectors else ""
    program_digest = _compute_program_digest(catalog, model_identity)
    # before anything is written, because there may be no catalog
    listing = build_changes.list_catalog(catalog)
    locks.check_folders(catalog, out, site)
    cache.require_private_secret(catalog)
    with (
        locks.lock_build(out, "the last good build is untouched. Build"),
        locks.lock_site(site),
    ):
        directory.remove_leftovers(out)
        with WorkerPool(jobs, partial(worker_source, paths) if worker_source else None) as pool:
            context = BuildContext(
                paths=paths, program_digest=program_digest, pool=pool, progress=progress
            )
            if len(listing.tool_folders) > (_FEW_TOOLS if site else _MANY_TOOLS):
                pool.background.start()
            changes, previous = _detect_changes(context, listing)
            result = _reuse_last_build(context, changes, previous)
            # large with a million tools, and `changes` has the same entries
            previous = replace(previous, batches={})
            return result or _rebuild(context, changes, previous, max_loss_percent)


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
    paths = BuildPaths(catalog=catalog, out=out, site=None, with_words=False)
    program_digest = _compute_program_digest(catalog)
    listing = build_changes.list_catalog(catalog)
    locks.check_folders(catalog, out, None)
    cache.require_private_secret(catalog)
    with (
        locks.lock_build(out, "nothing is lost. Check", timeout=_LOCK_TIMEOUT),
        WorkerPool(jobs) as pool,
    ):
        context = BuildContext(
            paths=paths, program_digest=program_digest, pool=pool, progress=progress
        )
        changes, previous = _detect_changes(context, listing)
        request_digest = _compute_request_digest(context, changes, severities)
        result = state.load_check_result(paths.cache, request_digest)
        return result or _check_changes(context, changes, previous, severities)


def _identify_model(folder: Path | None) -> str:
    """Return the identity of a sentence model. Raises UsageError if it cannot be used."""
    identity = model_files.model_identity(folder)
    if folder:
        model_files.load_model(folder)
    return identity


def _compute_program_digest(catalog: Path, model_identity: str = "") -> str:
    model = [model_identity] if model_identity else []
    return cache.compute_program_digest(_schema_names(catalog), *model)


def _schema_names(catalog: Path) -> str:
    """Return the names of the schemas in the catalog's `.schemas` folder.

    Schema comments in files refer to them: the only input of a check besides the catalog's own
    files.
    """
    paths = (catalog / ".schemas").rglob("*.json")
    return " ".join(sorted(str(path.relative_to(catalog)) for path in paths))


def _detect_changes(context: BuildContext, listing: CatalogListing) -> tuple[ChangeSet, BuildState]:
    """Return what has changed, and the state that the previous build or check recorded."""
    # start this first: it does not depend on the following steps
    wait_for_site = build_changes.start_site_scan(context)
    cache_folder = context.paths.cache
    for folder in (cache_folder, *(cache_folder / "parts").glob("*")):
        files.remove_temporary_files(folder)
    previous = state.load_state(cache_folder, context.program_digest)
    is_large = len(listing.tool_folders) > _MANY_TOOLS
    # a separate pool, so that the workers of later steps start with all modules loaded
    with WorkerPool(context.pool.jobs if is_large else 1) as pool:
        changes = build_changes.detect_changes(context, listing, previous, pool)
    is_cached = all(changes.cache_entries)
    if context.paths.site and not is_cached:
        # import the modules that compile, check and render during the site scan
        import_module("toolcatalog.build.rebuild")
    changes = replace(changes, site_state=wait_for_site())
    if not (is_large or is_cached):
        context.pool.background.stop_if_forked()
    return changes, previous


def _reuse_last_build(
    context: BuildContext, changes: ChangeSet, previous: BuildState
) -> BuildResult | None:
    """Return the result of the last build if its source is the same and its output is unchanged."""
    out, source_digest = context.paths.out, changes.source_digest
    if not source_digest or source_digest != previous.source_digest:
        return None
    if context.paths.site and changes.site_state.source_digest != source_digest:
        return None
    if not directory.is_unchanged(out, previous.digest, previous.stamp):
        return None
    page_count = changes.site_state.page_count
    return directory.read_build_result(out, previous.digest, changed=False, pages=page_count)


def _rebuild(
    context: BuildContext, changes: ChangeSet, previous: BuildState, max_loss_percent: int
) -> BuildResult:
    from toolcatalog.build import rebuild  # noqa: PLC0415 - slow to import

    return rebuild.rebuild_catalog(context, changes, previous, max_loss_percent)


def _check_changes(
    context: BuildContext, changes: ChangeSet, previous: BuildState, severities: Collection[str]
) -> CheckResult:
    from toolcatalog.build import check_catalog  # noqa: PLC0415 - slow to import

    folder = context.paths.cache
    compiled = check_catalog.compile_changes(context, changes)
    checked = check_catalog.check_compiled(context, changes, compiled, severities)
    entries = state.batch_entries(compiled.batches)
    if entries != previous.batches:
        state.save_batches(folder, context.program_digest, entries)
        cache.prune_batches(folder, {entry.key for _, entry in compiled.batches})
    result = CheckResult(checked.problems, checked.file_count, checked.catalog.about.rules)
    # otherwise some batches are invalid, or there are none and no cache folder
    if 0 < len(compiled.batches) == len(changes.tasks):
        changes = replace(changes, cache_entries=[entry for _, entry in compiled.batches])
        digest = _compute_request_digest(context, changes, severities)
        state.save_check_result(folder, digest, result)
    return result


def _compute_request_digest(
    context: BuildContext, changes: ChangeSet, severities: Collection[str]
) -> str:
    """Return a digest of everything that the result of a check depends on; empty if unknown.

    The name of the catalog's folder is included, because displayed paths begin with it.
    """
    if not changes.source_digest:
        return ""
    catalog_name = context.paths.catalog.resolve().name
    data = json.dumps([changes.source_digest, catalog_name, [*severities]])
    return hashlib.sha256(data.encode()).hexdigest()
