"""Check the whole catalog from the cache: compile changes, report lint findings with locations."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, compress
from operator import not_

from toolcatalog.build import cache, changes, compiler, state
from toolcatalog.build.batches import CachedBatch, Task
from toolcatalog.build.changes import BuildContext, ChangeSet
from toolcatalog.build.compiler import CompileResult
from toolcatalog.catalog import folder, model, resolve
from toolcatalog.errors import Problem, UsageError
from toolcatalog.progress import Progress
from toolcatalog.system.processes import WorkerPool
from toolcatalog.validation import checker, severity, suppressions
from toolcatalog.validation.checker import CheckedCatalog, CheckedFile

_FEW_BATCHES = 8  # batches that a check compiles without counting their words


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCatalog:
    """A compiled catalog: valid batches, results of invalid ones, and the files that are not tools.

    `batches` have no errors of their own, and their compiled form is in the cache. `tools` are
    their tools, and `rules_by_batch` has the rules with findings in each of them. `invalid` has the
    results of all other batches.
    """

    batches: Sequence[CachedBatch]
    tools: Sequence[model.ToolSummary]
    rules_by_batch: Sequence[Sequence[str]]
    invalid: Sequence[CompileResult]
    other_files: Sequence[CheckedFile]


def compile_changes(context: BuildContext, change_set: ChangeSet) -> CompiledCatalog:
    """Read the whole catalog and compile what changed.

    Raises UsageError if files change meanwhile, OSError or BrokenExecutor.
    """
    tasks = _plan_tasks(change_set)
    entries = change_set.cache_entries
    uncached = [task for task, entry in zip(tasks, entries, strict=True) if not entry]
    needed = {path for task in uncached for path in _toolkit_files(task, change_set)}
    other_files = _check_other_files(context, change_set, change_set.other_digests.keys() & needed)
    results = _start_compiling(_with_toolkits(uncached, other_files), context.pool)
    # this, like what follows, runs while the first batches are compiled
    other_files |= _check_other_files(context, change_set, change_set.other_digests.keys() - needed)
    rule_facts = _RuleFactsReader(context)
    tasks = _with_toolkits(tasks, other_files)
    rule_facts.load(_cached_batches(tasks, change_set))
    compiled = _collect_results(uncached, results, context.progress)
    valid, invalid = _separate_invalid(tasks, change_set, compiled)
    tools, rules = rule_facts.collect(valid)
    return CompiledCatalog(
        batches=valid,
        tools=tools,
        rules_by_batch=rules,
        invalid=invalid,
        other_files=[other_files[path] for path in change_set.other_digests],
    )


def check_compiled(
    context: BuildContext,
    change_set: ChangeSet,
    compiled: CompiledCatalog,
    severities: Collection[str],
) -> CheckedCatalog:
    """Check the catalog against its schemas, the rules, and the lint rules of these severities.

    Raises UsageError if files change meanwhile, OSError or BrokenExecutor.
    """
    invalid_files = (file for result in compiled.invalid for file in result.checked_files)
    unreadable = (problem for result in compiled.invalid for problem in result.unreadable)
    checked = checker.check_catalog(
        context.paths.catalog,
        [*compiled.other_files, *invalid_files],
        compiled.tools,
        [*change_set.unreadable, *unreadable],
        severities,
    )
    about = checked.catalog.about
    rules = severity.rules_with_severities(about.rules, severities)
    located = [
        *_locate_batch_findings(context, compiled, rules),
        *suppressions.locate_unsuppressed_findings(context.paths.catalog, checked.lint_findings),
    ]
    problems = checker.apply_severities(about.rules, [*checked.problems, *located])
    return replace(checked, problems=problems, lint_findings=suppressions.NO_FINDINGS)


def _plan_tasks(change_set: ChangeSet) -> list[Task]:
    """Return the tasks of all batches.

    If many batches are not cached, a check also counts their words, so that the next build finds
    most of its work done; a build counts the words of a few batches by itself.
    """
    if change_set.cache_entries.count(None) <= _FEW_BATCHES:
        return [*change_set.tasks]
    return [
        replace(task, with_words=task.with_words or entry is None)
        for task, entry in zip(change_set.tasks, change_set.cache_entries, strict=True)
    ]


def _check_other_files(
    context: BuildContext, change_set: ChangeSet, paths: Iterable[str]
) -> dict[str, CheckedFile]:
    """Check files that are not tools, and return the results by path.

    Raises UsageError if they changed since change detection read them.
    """
    catalog = context.paths.catalog
    checked_files = {path: checker.check_file(catalog, path) for path in paths}
    for path, file in checked_files.items():
        if not file.problems and file.digest != change_set.other_digests[path]:
            raise UsageError(f"Files below {catalog} changed while they were read: build again.")
    return checked_files


def _toolkit_files(task: Task, change_set: ChangeSet) -> list[str]:
    """Return the files that the toolkits of a task are made from.

    The public address of a logo file begins with the address of the site, from catalog.yaml.
    """
    toolkits = [changes.toolkit_path(toolkit) for toolkit in task.toolkit_digests]
    logo_files = [
        path
        for toolkit in task.toolkit_digests
        for path in changes.logo_paths(toolkit)
        if path in change_set.other_digests
    ]
    return [*toolkits, *logo_files, *(["catalog.yaml"] if logo_files else [])]


def _with_toolkits(tasks: Iterable[Task], checked_files: Mapping[str, CheckedFile]) -> list[Task]:
    """Return the tasks with their toolkits, as far as these were checked and are valid."""
    records = {path: file.record for path, file in checked_files.items() if not file.problems}
    about = records.get("catalog.yaml")
    home = about.home if isinstance(about, model.About) else ""
    logo_files = checker.find_logo_files(records.values())
    toolkits = {
        record.slug: resolve.with_public_logo(checker.with_logo_file(record, logo_files), home)
        for path, record in records.items()
        if path.startswith("toolkits/") and isinstance(record, model.Toolkit)
    }
    return [
        replace(
            task,
            toolkits={slug: toolkits[slug] for slug in task.toolkit_digests if slug in toolkits},
        )
        for task in tasks
    ]


def _start_compiling(uncached: Sequence[Task], pool: WorkerPool) -> Iterable[CompileResult]:
    """Start compiling the batches that are not in the cache; yield results in order.

    A single batch is compiled in the background while this process does other work.
    """
    if len(uncached) == 1:
        wait_for_result = pool.background.submit(partial(compiler.compile_batch, uncached[0]))
        return (wait() for wait in [wait_for_result])
    return pool.map(compiler.compile_batch, uncached)


def _collect_results(
    uncached: Sequence[Task], results: Iterable[CompileResult], progress: Progress
) -> dict[tuple[str, ...], CompileResult]:
    """Return the results by the folders of their batches."""
    collected = {}
    with progress("Reading tools", sum(len(task.folders) for task in uncached)) as advance:
        for task, result in zip(uncached, results, strict=True):
            collected[task.folders] = result
            advance(len(task.folders))
    return collected


def _cached_batches(tasks: Sequence[Task], change_set: ChangeSet) -> Iterator[CachedBatch]:
    """Yield the batches that were in the cache before this build."""
    for task, entry in zip(tasks, change_set.cache_entries, strict=True):
        if entry:
            yield CachedBatch(task, entry)


def _separate_invalid(
    tasks: Sequence[Task],
    change_set: ChangeSet,
    compiled: Mapping[tuple[str, ...], CompileResult],
) -> tuple[list[CachedBatch], list[CompileResult]]:
    """Return the batches that are in the cache now, and the results of all others."""
    valid, invalid = [], []
    for task, cached_entry in zip(tasks, change_set.cache_entries, strict=True):
        entry = cached_entry or compiled[task.folders].entry
        if entry:
            valid.append(CachedBatch(task, entry))
        else:
            invalid.append(compiled[task.folders])
    return valid, invalid


class _RuleFactsReader:
    """Reads the rule facts of batches: from the build state, or else from the compiled batches."""

    def __init__(self, context: BuildContext) -> None:
        self._cache, self._program_digest = context.paths.cache, context.program_digest
        self._saved = state.load_rule_facts(self._cache, self._program_digest)
        self._names = cache.JoinedNames()
        self._loaded: dict[str, tuple[bytes, list[model.ToolSummary], Sequence[str]]] = {}

    def load(self, batches: Iterable[CachedBatch]) -> None:
        """Load the rule facts of batches in the cache, except those already loaded."""
        for batch in batches:
            if batch.entry.key not in self._loaded:
                data = self._saved.get(batch.entry.key) or _read_rule_facts(batch)
                facts = cache.parse_rule_facts(data)
                tools = [*facts.iter_tools(self._names)]
                self._loaded[batch.entry.key] = data, tools, facts.rules

    def collect(
        self, batches: Sequence[CachedBatch]
    ) -> tuple[list[model.ToolSummary], list[Sequence[str]]]:
        """Return all tools of the batches, and for each batch the rules with findings in it.

        Saves the rule facts of exactly these batches if the saved ones differ.
        """
        self.load(batches)
        loaded = {entry.key: self._loaded[entry.key] for _, entry in batches}
        if loaded.keys() != self._saved.keys():
            rule_facts = {key: data for key, (data, _, _) in loaded.items()}
            state.save_rule_facts(self._cache, self._program_digest, rule_facts)
        rows = [loaded[entry.key] for _, entry in batches]
        return [*chain.from_iterable(tools for _, tools, _ in rows)], [rules for *_, rules in rows]


def _read_rule_facts(batch: CachedBatch) -> bytes:
    return cache.dump_rule_facts(compiler.load_or_compile(batch, "facts").facts)


def _locate_batch_findings(
    context: BuildContext, compiled: CompiledCatalog, rules: set[str]
) -> Iterator[Problem]:
    """Yield the findings of these rules for all valid batches, with their locations.

    They come from the build state or from the worker pool.
    """
    batches = [
        batch
        for batch, batch_rules in zip(compiled.batches, compiled.rules_by_batch, strict=True)
        if not rules.isdisjoint(batch_rules)
    ]
    keys = [batch.entry.key for batch in batches]
    is_located = [state.has_findings(context.paths.cache, key) for key in keys]
    uncached = [*compress(batches, map(not_, is_located))]
    locate = partial(locate_batch_findings, frozenset(rules))
    with context.progress("Locating findings", len(uncached)) as advance:
        for problems in context.pool.map(locate, uncached):
            yield from problems
            advance(1)
    # faster than starting processes
    yield from chain.from_iterable(map(locate, compress(batches, is_located)))


def locate_batch_findings(rules: Collection[str], batch: CachedBatch) -> list[Problem]:
    """Return the findings of these rules for a compiled batch, with their locations.

    Raises OSError if they cannot be saved for the next build.
    """
    task, key = batch.task, batch.entry.key
    # displayed paths begin with the name of the catalog's folder
    catalog_name = folder.display_path(task.root, "")
    saved = state.load_findings(task.cache, key, catalog_name, rules)
    if saved is not None:
        return saved
    findings = compiler.parse_findings(compiler.load_or_compile(batch, "advice").advice)
    problems = [*suppressions.locate_unsuppressed_findings(task.root, findings)]
    state.save_findings(task.cache, key, catalog_name, problems)
    return [problem for problem in problems if problem.rule in rules]
