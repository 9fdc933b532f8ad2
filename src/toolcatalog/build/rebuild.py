"""Rebuild: compile what changed, check the whole catalog, write snapshot and site."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from toolcatalog.build.batches import CachedBatch
from toolcatalog.build.changes import BuildContext, ChangeSet
from toolcatalog.build.check_catalog import CompiledCatalog
from toolcatalog.build.site_pages import CheckedFile, PageGroup, ToolkitIndex
from toolcatalog.build.snapshot_writer import SnapshotWriter
from toolcatalog.build.state import BuildState
from toolcatalog.build.text_index import TextIndexBuild
from toolcatalog.catalog import model, published_files, resolve
from toolcatalog.errors import InvalidCatalog
from toolcatalog.site import pages
from toolcatalog.site.pages import MetaToolSummary
from toolcatalog.snapshot import compression, directory
from toolcatalog.snapshot.directory import BuildResult
from toolcatalog.snapshot.format import SnapshotContents
from toolcatalog.system.processes import MIN_TASKS, release_free_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidCatalog:
    """A catalog without problems: its contents, its compiled batches, and counts of its tools."""

    contents: SnapshotContents
    batches: Sequence[CachedBatch]
    source_digest: str
    meta_tools: tuple[MetaToolSummary, ...]
    tool_counts: Mapping[str, int]  # number of tools of each toolkit
    version_counts: Mapping[str, int]  # number of tool versions of each toolkit
    # by toolkit: the tools with several versions, and those versions
    multi_version_tools: Mapping[str, Mapping[str, Sequence[str]]]
    # the tags and the scopes of the newest tool versions, sorted
    labels: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteBuild:
    """The number of HTML pages of the site, and of the files that were kept for another user."""

    page_count: int = 0
    kept_count: int = 0


def rebuild_catalog(
    context: BuildContext, changes: ChangeSet, previous: BuildState, max_loss_percent: int
) -> BuildResult:
    """Build the snapshot and the site.

    Raises InvalidCatalog with all problems, ShrunkCatalog, UsageError, OSError or BrokenExecutor.
    """
    out = context.paths.out
    _prepare(context, changes)
    catalog, index = _compile_and_check(context, changes, previous)
    # if this build is killed, the next one need not compile again
    _save_batches(context, catalog)
    # before the site: its pages are public as soon as they are written
    directory.check_shrinkage(out, sum(catalog.tool_counts.values()), max_loss_percent)
    if _is_large(catalog):
        catalog = _without_file_states(catalog)
        changes.cache_entries.clear()  # the same, which the caller keeps alive
        release_free_memory()
    if index:
        with directory.staging_folder(out) as folder:
            writer = _write_documents(context, catalog, index, folder)
            # while the text index is written
            staged_site = _stage_site(context, catalog, changes, folder)
            writer.write_compressed_documents(out / "current")
            writer.adopt_files(index.folder, _wait_for_index(context, catalog, index))
            digest = _finish_snapshot(writer, catalog)
    else:
        digest = previous.digest
        staged_site = _stage_site(context, catalog, changes, out / "snapshots" / digest)
    compression.ensure_compressed_documents(out, digest)
    # from here on nothing can fail because of the catalog's contents
    site = _install_site(context, catalog, staged_site)
    changed = directory.set_current(out, digest)
    _save_source(context, catalog, digest)
    return directory.read_build_result(
        out, digest, changed=changed, pages=site.page_count, kept=site.kept_count
    )


def _prepare(context: BuildContext, changes: ChangeSet) -> None:
    """Load what rendering processes need, and start the background process."""
    if context.paths.site and not changes.site_state.groups:
        # fail before the long work if the folder has a foreign site
        site_writer.load_generated(context.paths.site)
        pages.preload()  # for all rendering processes; a few pages would not need most of it
    if len(changes.tasks) > MIN_TASKS:
        context.pool.background.start()


def _compile_and_check(
    context: BuildContext, changes: ChangeSet, previous: BuildState
) -> tuple[ValidCatalog, TextIndexBuild | None]:
    """Compile and check the catalog, and start to build the text index of the new snapshot.

    The text index is None if there already is a snapshot of the same source.
    """
    compiled, index = check_catalog.compile_changes(context, changes), None
    source_digest = build_changes.compute_source_digest(
        changes.program_digest, changes.other_digests, [entry for _, entry in compiled.batches]
    )
    is_built = previous.source_digest == source_digest and directory.is_unchanged(
        context.paths.out, previous.digest, previous.stamp
    )
    if not (is_built or compiled.invalid):
        index = TextIndexBuild(context, compiled.batches)
    return _check(context, changes, compiled, source_digest), index


def _check(
    context: BuildContext, changes: ChangeSet, compiled: CompiledCatalog, source_digest: str
) -> ValidCatalog:
    """Check the whole catalog against the rules. Raises InvalidCatalog with all problems."""
    checked = check_catalog.check_compiled(context, changes, compiled, ("error",))
    if checked.problems:
        raise InvalidCatalog(checked.problems, checked.file_count)
    catalog = checked.catalog
    by_tool = groupby(catalog.tools, attrgetter("toolkit", "slug"))
    return ValidCatalog(
        contents=resolve.resolve_catalog(catalog),
        batches=compiled.batches,
        source_digest=source_digest,
        tool_counts=Counter(toolkit for (toolkit, _), _ in by_tool),
        version_counts=Counter(tool.toolkit for tool in catalog.tools),
        meta_tools=_newest_meta_tools(catalog),
        multi_version_tools=_find_multi_version_tools(catalog),
        labels=_collect_labels(catalog),
    )


def _find_multi_version_tools(catalog: model.Catalog) -> dict[str, dict[str, Sequence[str]]]:
    tools: dict[str, dict[str, Sequence[str]]] = {toolkit: {} for toolkit in catalog.toolkits}
    for (toolkit, slug), group in groupby(catalog.tools, attrgetter("toolkit", "slug")):
        versions = [tool.version for tool in group]
        if len(versions) > 1:
            tools[toolkit][slug] = versions
    return tools


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
        MetaToolSummary(slug, str(template["name"]), str(template["description"]))
        for slug, template in newest.items()
    )


def _save_batches(context: BuildContext, catalog: ValidCatalog) -> None:
    entries = state.batch_entries(catalog.batches)
    state.save_batches(context.paths.cache, context.program_digest, entries)


def _without_file_states(catalog: ValidCatalog) -> ValidCatalog:
    """Return the catalog without the file states of its batches, to save memory.

    Pages need only the file names, and the file states are already saved.
    """
    batches = [CachedBatch(task, entry.with_names_only) for task, entry in catalog.batches]
    return replace(catalog, batches=batches)


def _is_large(catalog: ValidCatalog) -> bool:
    return len(catalog.batches) > text_index.MANY_BATCHES


def _write_documents(
    context: BuildContext, catalog: ValidCatalog, index: TextIndexBuild, folder: Path
) -> SnapshotWriter:
    """Start a new snapshot in a folder, and write everything but the text index."""
    index.start()
    writer = SnapshotWriter(folder, catalog.contents)
    with context.progress("Writing the snapshot", len(catalog.batches)) as advance:
        compiled = (
            compiler.load_or_compile(batch, "facts", "newest", "older", "rows")
            for batch in catalog.batches
        )
        writer.write_tools(compiled, catalog.version_counts, advance)
    writer.write_other_files()
    if _is_large(catalog):
        release_free_memory()
    return writer


def _wait_for_index(
    context: BuildContext, catalog: ValidCatalog, index: TextIndexBuild
) -> text_index.WrittenFiles:
    """Return the files of the text index and of the vectors; report that this takes long."""
    if not _is_large(catalog):
        return index.result(catalog.batches)
    with context.progress("Writing the search index", 1) as advance:
        files = index.result(catalog.batches)
        advance(1)
    return files


def _finish_snapshot(writer: SnapshotWriter, catalog: ValidCatalog) -> str:
    """Seal the snapshot, move it to its final place; return its digest."""
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
    context: BuildContext, catalog: ValidCatalog, changes: ChangeSet, snapshot: Path
) -> site_writer.StagedSite | None:
    """Render the pages that change from a snapshot folder; None if no site is wanted."""
    if context.paths.site is None:
        return None
    groups = [*_page_groups(context, catalog, changes, snapshot)]
    plan = site_writer.plan_site(context.paths.site, groups, changes.site_state)
    return site_writer.stage_site(plan, context.pool, context.progress)


def _install_site(
    context: BuildContext, catalog: ValidCatalog, staged: site_writer.StagedSite | None
) -> SiteBuild:
    """Move the staged pages to their final places, and record the state of the site."""
    if staged is None:
        return SiteBuild()
    cache_folder, site = context.paths.cache, staged.plan.site
    state.delete_site_state(cache_folder, site)
    with state.write_site_state(
        cache_folder, site, context.program_digest, catalog.source_digest
    ) as site_state:
        site_writer.install_site(staged, context.pool, site_state.add)
    return SiteBuild(page_count=site_state.page_count, kept_count=staged.plan.kept_count)


def _page_groups(
    context: BuildContext, catalog: ValidCatalog, changes: ChangeSet, snapshot: Path
) -> Iterator[PageGroup]:
    about, program_digest = catalog.contents.about, context.program_digest
    toolkits = {toolkit.slug: toolkit for toolkit in catalog.contents.toolkits}
    indexes = {slug: ToolkitIndex(toolkit, snapshot) for slug, toolkit in toolkits.items()}
    yield site_overview.CatalogPages(
        program_digest=program_digest,
        source_digest=catalog.source_digest,
        about=about,
        indexes=[*indexes.values()],
        meta_tools=catalog.meta_tools,
        sessions=catalog.contents.sessions,
        multi_version_tools=catalog.multi_version_tools,
        tool_counts=catalog.tool_counts,
        labels=catalog.labels,
        logo=_find_checked_file(context, changes, published_files.CATALOG_LOGO),
        fonts={
            path: file
            for path in published_files.FONTS
            if (file := _find_checked_file(context, changes, path))
        },
    )
    for slug, index in indexes.items():
        yield site_pages.ToolkitPages(
            program_digest=program_digest,
            about=about,
            index=index,
            batches=[batch for batch in catalog.batches if slug in batch.task.toolkit_digests],
            multi_version_tools={slug: catalog.multi_version_tools[slug]},
            logo=_find_checked_file(context, changes, index.toolkit.logo_file),
        )
    for batch in catalog.batches:
        batch_toolkits = {slug: toolkits[slug] for slug in batch.task.toolkit_digests}
        yield site_pages.BatchPages(batch=batch, about=about, toolkits=batch_toolkits)


def _find_checked_file(context: BuildContext, changes: ChangeSet, path: str) -> CheckedFile | None:
    digest = changes.other_digests.get(path)
    return CheckedFile(context.paths.catalog / path, digest) if digest else None


def _save_source(context: BuildContext, catalog: ValidCatalog, digest: str) -> None:
    """Record what the snapshot was made from, and remove batches that are no longer needed."""
    cache_folder = context.paths.cache
    stamp = directory.compute_stamp(context.paths.out / "snapshots" / digest)
    state.save_snapshot_source(
        cache_folder, context.program_digest, catalog.source_digest, digest, stamp
    )
    cache.remove_batches_except(cache_folder, {entry.key for _, entry in catalog.batches})
