"""Rebuild: compile what changed, check the whole catalog, write snapshot and site."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path

from toolcatalog.build import (
    cache,
    check_catalog,
    compiler,
    site_overview,
    site_pages,
    site_writer,
    state,
    text_index,
)
from toolcatalog.build import changes as build_changes
from toolcatalog.build.batches import Task
from toolcatalog.build.changes import BuildPaths, ChangeSet
from toolcatalog.build.check_catalog import CompiledCatalog
from toolcatalog.build.site_pages import LogoFile, PageGroup, ToolkitIndex
from toolcatalog.build.site_writer import StagedSite
from toolcatalog.build.snapshot_writer import SnapshotWriter
from toolcatalog.build.state import BuildState
from toolcatalog.catalog import model, resolve
from toolcatalog.errors import InvalidCatalog
from toolcatalog.progress import Progress
from toolcatalog.site import pages
from toolcatalog.site.pages import MetaToolSummary
from toolcatalog.snapshot import compression, directory
from toolcatalog.snapshot.directory import BuildResult
from toolcatalog.snapshot.format import SnapshotContents, Toolkit
from toolcatalog.system.processes import WorkerPool, release_free_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidCatalog:
    """A catalog without problems: its contents, its tools as compiled tasks, and their counts."""

    contents: SnapshotContents
    tasks: Sequence[Task]
    source_digest: str
    meta_tools: tuple[MetaToolSummary, ...]
    tool_counts: Mapping[str, int]  # number of tools of each toolkit
    version_counts: Mapping[str, int]  # number of tool versions of each toolkit
    # by toolkit: the tools with several versions, and those versions
    multi_version_tools: Mapping[str, Mapping[str, Sequence[str]]]
    # the tags and the scopes of the newest tool versions, sorted
    labels: Mapping[str, Sequence[str]]


def rebuild_catalog(
    paths: BuildPaths,
    changes: ChangeSet,
    previous: BuildState,
    pool: WorkerPool,
    progress: Progress,
    max_loss_percent: int,
) -> BuildResult:
    """Build the snapshot and the site.

    Raises InvalidCatalog with all problems, ShrunkCatalog, UsageError, OSError or BrokenExecutor.
    """
    if paths.site and not changes.site_state.groups:
        site_writer.load_generated(
            paths.site
        )  # fail before the long work if the folder has a foreign site
        pages.preload()  # for all rendering processes; a few pages would not need most of it
    pool.start_background(len(changes.tasks))
    sound, words = _compile_and_check(paths, changes, previous, pool, progress)
    # If this build is killed, the next one need not compile again.
    state.save_batches(
        paths.cache,
        changes.program_digest,
        changes.toolkit_digests,
        state.batch_entries(sound.tasks, previous),
    )
    # before the site: its pages are public as soon as they are written
    directory.check_shrinkage(paths.out, sum(sound.tool_counts.values()), max_loss_percent)
    if len(sound.tasks) > text_index.MANY_BATCHES:
        sound = _without_file_states(sound)
        changes.cache_entries.clear()  # a longer copy of the same, which the caller keeps alive
        release_free_memory()
    if words:
        words.start()
        assembly = SnapshotWriter(directory.make_staging_folder(paths.out), sound.contents)
        _write_documents(assembly, sound, progress)
        # while the text index is written
        staged = _stage_site(paths, sound, assembly.folder, changes, pool, progress)
        assembly.write_compressed_documents(paths.out / "current")
        assembly.adopt_files(words.folder, words.result(sound.tasks))
        digest = _finish_snapshot(assembly, sound)
        compression.ensure_compressed_documents(paths.out, digest)
    else:
        digest = previous.digest
        staged = _stage_site(
            paths, sound, paths.out / "snapshots" / digest, changes, pool, progress
        )
    # from here on nothing can fail because of the catalog's contents
    count = _install_site(paths, sound, changes, staged, pool) if staged else 0
    changed = directory.set_current(paths.out, digest)
    stamp = directory.compute_stamp(paths.out / "snapshots" / digest)
    state.save_snapshot_source(
        paths.cache, changes.program_digest, sound.source_digest, digest, stamp
    )
    cache.remove_batches_except(paths.cache, {task.cache_entry.key for task in sound.tasks})
    kept = staged.kept_count if staged else 0
    return directory.read_build_result(paths.out, digest, changed=changed, pages=count, kept=kept)


def _compile_and_check(
    paths: BuildPaths,
    changes: ChangeSet,
    previous: BuildState,
    pool: WorkerPool,
    progress: Progress,
) -> tuple[ValidCatalog, text_index.TextIndexBuild | None]:
    """Compile and check the catalog, and start to build the text index of the new snapshot.

    The text index is None if there already is a snapshot of the same source.
    """
    gathered, words = check_catalog.compile_changes(paths, changes, pool, progress), None
    made_from = build_changes.compute_source_digest(
        changes.program_digest, changes.other_digests, [task.cache_entry for task in gathered.tasks]
    )
    is_made = previous.made_from == made_from and directory.is_unchanged(
        paths.out, previous.digest, previous.stamp
    )
    if not (is_made or gathered.invalid):
        words = text_index.TextIndexBuild(paths, changes.program_digest, gathered.tasks, pool)
    return _check(paths, changes, gathered, made_from, pool, progress), words


def _without_file_states(catalog: ValidCatalog) -> ValidCatalog:
    """Return the catalog without the file states of its batches, to save memory.

    Pages need only the file names, and the file states are already saved.
    """
    return replace(
        catalog,
        tasks=[
            replace(task, cache_entry=task.cache_entry.with_names_only) for task in catalog.tasks
        ],
    )


def _check(
    paths: BuildPaths,
    changes: ChangeSet,
    compiled_catalog: CompiledCatalog,
    source_digest: str,
    pool: WorkerPool,
    progress: Progress,
) -> ValidCatalog:
    """Check the whole catalog against the rules. Raises InvalidCatalog with all problems."""
    checked = check_catalog.check_compiled(
        paths, changes, compiled_catalog, pool, progress, ("error",)
    )
    if checked.problems:
        raise InvalidCatalog(checked.problems, checked.file_count)
    return ValidCatalog(
        contents=resolve.resolve_catalog(checked.catalog),
        tasks=compiled_catalog.tasks,
        source_digest=source_digest,
        tool_counts=Counter(
            toolkit
            for (toolkit, _), _ in groupby(checked.catalog.tools, attrgetter("toolkit", "slug"))
        ),
        version_counts=Counter(tool.toolkit for tool in checked.catalog.tools),
        meta_tools=_newest_meta_tools(checked.catalog),
        multi_version_tools=_find_multi_version_tools(checked.catalog),
        labels=_collect_labels(checked.catalog),
    )


def _write_documents(writer: SnapshotWriter, catalog: ValidCatalog, progress: Progress) -> None:
    """Write all files of the snapshot except the text index and vectors."""
    with progress("Writing the snapshot", len(catalog.tasks)) as advance:
        parts_of = (
            compiler.load_or_compile(task, "facts", "newest", "older", "rows")
            for task in catalog.tasks
        )
        writer.write_tools(parts_of, catalog.version_counts, advance)
    writer.write_other_files()
    if len(catalog.tasks) > text_index.MANY_BATCHES:
        release_free_memory()


def _finish_snapshot(writer: SnapshotWriter, catalog: ValidCatalog) -> str:
    """Seal the snapshot, move it to its final place, and return its digest."""
    counts = {
        "toolkits": len(catalog.contents.toolkits),
        "tools": sum(catalog.tool_counts.values()),
        "tool_versions": sum(catalog.version_counts.values()),
        "sessions": len(catalog.contents.sessions),
    }
    digest = writer.finish(counts)
    directory.install_snapshot(writer.folder, digest, writer.written)
    return digest


def _stage_site(
    paths: BuildPaths,
    catalog: ValidCatalog,
    folder: Path,
    changes: ChangeSet,
    pool: WorkerPool,
    progress: Progress,
) -> StagedSite | None:
    """Render the pages that change, from the snapshot in `folder`; None if no site is wanted."""
    if paths.site is None:
        return None
    return site_writer.stage_site(
        paths.site,
        _page_groups(catalog, folder, changes, paths.catalog),
        changes.site_state,
        pool,
        progress,
    )


def _install_site(
    paths: BuildPaths,
    catalog: ValidCatalog,
    changes: ChangeSet,
    staged: StagedSite,
    pool: WorkerPool,
) -> int:
    """Move the staged pages to their final places, and return the number of pages of the site."""
    state.delete_site_state(paths.cache, staged.site)
    now = site_writer.install(staged, pool)
    return state.save_site_state(
        paths.cache, staged.site, changes.program_digest, catalog.source_digest, now
    )


def _page_groups(
    catalog: ValidCatalog, folder: Path, changes: ChangeSet, source: Path
) -> list[PageGroup]:
    program = changes.program_digest
    about, toolkits = catalog.contents.about, catalog.contents.toolkits
    indexes = [ToolkitIndex(toolkit, folder) for toolkit in toolkits]
    found: list[PageGroup] = [
        site_overview.CatalogPages(
            program_digest=program,
            source_digest=catalog.source_digest,
            about=about,
            indexes=indexes,
            meta_tools=catalog.meta_tools,
            sessions=catalog.contents.sessions,
            multi_version_tools=catalog.multi_version_tools,
            tool_counts=catalog.tool_counts,
            labels=catalog.labels,
        ),
    ]
    for index in indexes:
        slug = index.toolkit.slug
        tasks = [task for task in catalog.tasks if slug in task.toolkit_digests]
        found.append(
            site_pages.ToolkitPages(
                program_digest=program,
                about=about,
                index=index,
                tasks=tasks,
                multi_version_tools={slug: catalog.multi_version_tools[slug]},
                logo=_find_logo(index.toolkit, source, changes),
            )
        )
    by_slug = {toolkit.slug: toolkit for toolkit in toolkits}
    found += [
        site_pages.BatchPages(
            task=task, about=about, toolkits={slug: by_slug[slug] for slug in task.toolkit_digests}
        )
        for task in catalog.tasks
    ]
    return found


def _find_logo(toolkit: Toolkit, source: Path, changes: ChangeSet) -> LogoFile | None:
    digest = changes.other_digests.get(toolkit.logo_file)
    return LogoFile(source / toolkit.logo_file, digest) if digest else None


def _find_multi_version_tools(catalog: model.Catalog) -> dict[str, dict[str, Sequence[str]]]:
    found: dict[str, dict[str, Sequence[str]]] = {toolkit: {} for toolkit in catalog.toolkits}
    for (toolkit, slug), some in groupby(catalog.tools, attrgetter("toolkit", "slug")):
        versions = [tool.version for tool in some]
        if len(versions) > 1:
            found[toolkit][slug] = versions
    return found


def _collect_labels(catalog: model.Catalog) -> dict[str, list[str]]:
    # tools are sorted by slug and version, so the newest version wins
    newest = {tool.slug: tool for tool in catalog.tools}.values()
    return {
        kind: sorted({*chain.from_iterable(map(attrgetter(kind), newest))})
        for kind in ("tags", "scopes")
    }


def _newest_meta_tools(catalog: model.Catalog) -> tuple[MetaToolSummary, ...]:
    """Return the newest versions of the meta tools, as their files describe them."""
    newest = {tool.slug: tool.template for tool in catalog.meta_tools}
    return tuple(
        MetaToolSummary(slug, str(said["name"]), str(said["description"]))
        for slug, said in newest.items()
    )
