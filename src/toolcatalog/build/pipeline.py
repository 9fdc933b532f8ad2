"""The build pipeline: detect changes, compile, check, write the snapshot and the site, switch
`current`.

build/snapshots/<digest>/   complete, or not there: written under another name beside and renamed
build/current               a link to one of them, moved last and in one step
build/.cache/               parts of earlier builds, and what those have seen; safe to delete
site/                       see `site`
"""

import hashlib
import json
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

from toolcatalog.build import changes, state
from toolcatalog.build import fingerprint as build_fingerprint
from toolcatalog.build.changes import BuildPaths, CatalogListing, ChangeSet
from toolcatalog.build.state import BuildState, CheckResult
from toolcatalog.progress import Progress, no_progress
from toolcatalog.snapshot import directory, locks
from toolcatalog.snapshot.directory import UNLIMITED_LOSS_PERCENT, BuildResult
from toolcatalog.system import files
from toolcatalog.system.processes import WorkerPool, Workers

_FEW_TOOLS = (
    4_000  # tools: the pages of fewer are looked at in the time that a process takes to begin
)
# tools: to look at fewer takes as long as to begin several, and what is known of fewer is held
# twice at little cost
_MANY_TOOLS = 100_000
# brings workers from elsewhere that are fit for a build of these places
WorkerSource = Callable[[BuildPaths], Workers]
_LOCK_TIMEOUT = 60.0  # seconds that a check waits for a build


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
    """Build a catalog into `out` and, unless it is None, `site`, with so many processes;
    `semantic`: to be searched by meaning too.

    `hire` brings workers of another kind for all that is done batch by batch, but for looking what
    has changed.

    `may_lose`: how many of a hundred tools of the snapshot in force the new one may be without.

    Raises InvalidCatalog with all problems, ShrunkCatalog where more tools than that would be gone,
    or UsageError where a folder cannot be used; in each case `out/current` and the site stay as
    they were.
    """
    fingerprint = build_fingerprint.compute(
        _schema_names(catalog), *([_model_digest()] if semantic else [])
    )
    places = BuildPaths(catalog=catalog, out=out, site=site, with_vectors=semantic)
    places = places.to_absolute() if worker_source else places
    outline = changes.list_catalog(catalog)  # before anything is written: there may be no catalog
    locks.check_places(catalog, out, site)
    with (
        locks.lock_build(out, "the last good build is untouched. Build"),
        locks.lock_site(site),
    ):
        directory.remove_leftovers(out)
        with WorkerPool(jobs, partial(worker_source, places) if worker_source else None) as crew:
            crew.start_background(len(outline.tool_folders), _FEW_TOOLS if site else _MANY_TOOLS)
            looked, before = _detect_changes(places, outline, fingerprint, crew, progress)
            built = _reuse_last_build(places, looked, before)
            # of a million tools that is much, and `looked` has it
            before = replace(before, batches={})
            return built or _rebuild(places, looked, before, crew, progress, max_loss_percent)


def check(
    catalog: Path,
    out: Path,
    severities: Collection[str],
    progress: Progress = no_progress,
    jobs: int = 1,
) -> CheckResult:
    """Check a catalog, with so many processes, and give the advice that weighs as much as one of
    these.

    What has not changed since the last time is taken from the cache; where nothing has, all that
    was found then.

    Writes nothing but that, below `out`. Raises UsageError.
    """
    fingerprint = build_fingerprint.compute(_schema_names(catalog))
    places = BuildPaths(catalog=catalog, out=out, site=None, with_words=False)
    outline = changes.list_catalog(catalog)
    locks.check_places(catalog, out, None)
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
    """A catalog as it is found, and what is known of it from the build or the check before."""
    site = changes.start_site_scan(
        paths, fingerprint, pool
    )  # begun first: it needs nothing of what follows
    for folder in (paths.cache, *(paths.cache / "parts").glob("*")):
        files.remove_temporary_files(folder)
    before = state.load_state(paths.cache, fingerprint)
    # others: those for what follows begin with all that loaded
    with WorkerPool(pool.jobs if len(outline.tool_folders) > _MANY_TOOLS else 1) as lookers:
        looked = changes.detect_changes(paths, outline, before, fingerprint, lookers, progress)
    if paths.site and not all(looked.cache_entries):
        # all that compiles, checks and renders, while the site is looked at
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
    from toolcatalog.build import cache, check_catalog  # noqa: PLC0415 - it takes a while to load

    gathered = check_catalog.compile_changes(paths, changes, pool, progress)
    checked = check_catalog.check_compiled(paths, changes, gathered, pool, progress, severities)
    now = state.batch_entries(gathered.tasks, previous)
    if now != previous.batches or changes.toolkit_digests != previous.heads:
        state.save_batches(paths.cache, changes.program_digest, changes.toolkit_digests, now)
        cache.prune_batches(paths.cache, {task.cache_entry.key for task in gathered.tasks})
    verdict = CheckResult(checked.problems, checked.file_count, checked.catalog.about.rules)
    # else something is wrong, or there is no cache yet
    if 0 < len(gathered.tasks) == len(changes.tasks):
        changes = replace(changes, cache_entries=[task.cache_entry for task in gathered.tasks])
        state.save_check_result(paths.cache, _request_digest(paths, changes, severities), verdict)
    return verdict


def _request_digest(paths: BuildPaths, changes: ChangeSet, severities: Collection[str]) -> str:
    """A digest of all that the answer of a check goes by, the name by which paths are shown among
    it; empty where that is not known.
    """
    named = json.dumps([changes.source_digest, paths.catalog.resolve().name, [*severities]])
    return hashlib.sha256(named.encode()).hexdigest() if changes.source_digest else ""


def _schema_names(catalog: Path) -> str:
    """The names of the schemas beside a catalog: whether a comment leads to one is all that depends
    on anything but the catalog's files.
    """
    return " ".join(
        sorted(str(path.relative_to(catalog)) for path in (catalog / ".schemas").rglob("*.json"))
    )


def _model_digest() -> str:
    from toolcatalog.search import encoder  # noqa: PLC0415 - it loads numpy, which a build of what has not changed does without

    return encoder.model_identity()


def _reuse_last_build(
    paths: BuildPaths, changes: ChangeSet, previous: BuildState
) -> BuildResult | None:
    """What was built before, where it was made from the same and nothing of it has been touched
    since.
    """
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
    from toolcatalog.build import rebuild  # noqa: PLC0415 - all that compiles, checks and renders takes a while to load

    return rebuild.rebuild_catalog(paths, changes, previous, pool, progress, max_loss_percent)
