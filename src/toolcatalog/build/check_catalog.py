"""Check the whole catalog from the cache: compile changes, report lint findings with locations."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path

import orjson

from toolcatalog.build import cache, compiler
from toolcatalog.build.batches import NO_ENTRY, Task
from toolcatalog.build.changes import BuildPaths, ChangeSet, logo_toolkit
from toolcatalog.build.compiler import CompileResult
from toolcatalog.catalog import folder, model, resolve
from toolcatalog.errors import Problem, UsageError
from toolcatalog.progress import Progress
from toolcatalog.system import files
from toolcatalog.system.processes import WorkerPool
from toolcatalog.validation import checker, severity, suppressions
from toolcatalog.validation.checker import CheckedCatalog, CheckedFile


def has_cached_findings(task: Task) -> bool:
    """Return whether the located findings of a batch are in the cache."""
    return _cache_path(task).exists()


def locate_batch_findings(rules: Collection[str], task: Task) -> list[Problem]:
    """Return the findings of these rules for a compiled batch in the cache, with their locations.

    Raises OSError if they cannot be cached.
    """
    kept = _load_cached(task, rules)
    if kept is not None:
        return kept
    said = compiler.parse_findings(compiler.load_or_compile(task, "advice").advice)
    found = [
        problem
        for path, some in suppressions.group_by_path(said).items()
        for problem in suppressions.apply(task.root, path, some)
    ]
    files.write_sealed(
        _cache_path(task),
        [
            orjson.dumps(
                {"of": folder.display_path(task.root, ""), "told": dict(_rows_by_rule(found))}
            )
        ],
    )
    return [problem for problem in found if problem.rule in rules]


def _cache_path(task: Task) -> Path:
    return cache.batch_path(task.cache, task.cache_entry.key).with_suffix(".told")


def _rows_by_rule(problems: Iterable[Problem]) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Yield each rule with its problems as rows."""
    for rule, some in groupby(sorted(problems, key=attrgetter("rule")), attrgetter("rule")):
        yield rule, [problem.row for problem in some]


def _load_cached(task: Task, rules: Collection[str]) -> list[Problem] | None:
    """Return the cached findings of this batch and these rules; None if there are none for this
    catalog.

    Paths are displayed with the name of the catalog's folder, so another folder needs other
    findings.
    """
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        said = orjson.loads(files.read_sealed(_cache_path(task)) or b"")
        if said["of"] == folder.display_path(task.root, ""):
            return [
                Problem.from_row(row)
                for rule, rows in said["told"].items()
                if rule in rules
                for row in rows
            ]
    return None


_FEW_BATCHES = 8  # batches that a check compiles without counting their words


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCatalog:
    """A compiled catalog: valid batches, results of invalid ones, and the files that are not tools.

    `tasks` are the batches without errors of their own, whose compiled form is in the cache.
    `tools` are their tools, and `rules_by_task` has the rules with findings in each of them.
    `invalid` has the results of all other batches.
    """

    tasks: Sequence[Task]
    tools: Sequence[model.ToolSummary]
    rules_by_task: Sequence[Sequence[str]]
    invalid: Sequence[CompileResult]
    other_files: Sequence[CheckedFile]


def compile_changes(
    paths: BuildPaths, changes: ChangeSet, pool: WorkerPool, progress: Progress
) -> CompiledCatalog:
    """Read the whole catalog and compile what changed.

    Raises UsageError if files change meanwhile, OSError or BrokenExecutor.
    """
    tasks = _plan_tasks(changes)
    missing = [task for task in tasks if not task.cache_entry.key]
    toolkits = {toolkit for task in missing for toolkit in task.toolkit_digests}
    needed = {_toolkit_path(toolkit) for toolkit in toolkits} | _logo_paths(changes, toolkits)
    examined = _check_other_files(paths, changes, changes.other_digests.keys() & needed)
    results = _start_compiling(_with_toolkits(missing, examined), pool)
    # this, like what follows, runs while the first batches are compiled
    examined |= _check_other_files(paths, changes, changes.other_digests.keys() - needed)
    tasks, briefed = _with_toolkits(tasks, examined), _RuleFactsReader(paths.cache)
    briefed.load(task for task in tasks if task.cache_entry.key)
    compiled = dict(
        zip(
            (task.folders for task in missing),
            _collect_results(missing, results, progress),
            strict=True,
        )
    )
    sound, broken = _separate_invalid(tasks, compiled)
    tools, rules = briefed.collect(sound)
    others = [examined[path] for path in changes.other_digests]
    return CompiledCatalog(
        tasks=sound, tools=tools, rules_by_task=rules, invalid=broken, other_files=others
    )


def check_compiled(
    paths: BuildPaths,
    changes: ChangeSet,
    compiled_catalog: CompiledCatalog,
    pool: WorkerPool,
    progress: Progress,
    severities: Collection[str],
) -> CheckedCatalog:
    """Check the catalog against its schemas, the rules, and the lint rules of these severities.

    Raises UsageError if files change meanwhile, OSError or BrokenExecutor.
    """
    examined = [
        *compiled_catalog.other_files,
        *(one for compiled in compiled_catalog.invalid for one in compiled.checked_files),
    ]
    unreadable = [
        *changes.unreadable,
        *(problem for compiled in compiled_catalog.invalid for problem in compiled.unreadable),
    ]
    checked = checker.check_catalog(
        paths.catalog, examined, compiled_catalog.tools, unreadable, severities
    )
    heeded = severity.rules_with_severity(checked.catalog.about, severities)
    advised = [
        task
        for task, some in zip(compiled_catalog.tasks, compiled_catalog.rules_by_task, strict=True)
        if not heeded.isdisjoint(some)
    ]
    told = _locate_all_findings(paths, checked, advised, heeded, pool, progress)
    problems = checker.apply_severities(checked.catalog.about.rules, [*checked.problems, *told])
    return replace(checked, problems=problems, findings=())


class _RuleFactsReader:
    """Reads the rule facts of batches: from the saved rule facts, or else from the compiled
    batches.
    """

    def __init__(self, cache_folder: Path) -> None:
        self._cache = cache_folder
        self._saved = cache.load_rule_facts(cache_folder)
        self._names = cache.JoinedNames()
        self._loaded: dict[str, tuple[bytes, list[model.ToolSummary], Sequence[str]]] = {}

    def load(self, tasks: Iterable[Task]) -> None:
        """Load the rule facts of batches in the cache, except those already loaded."""
        for task in tasks:
            key = task.cache_entry.key
            if key not in self._loaded:
                told = self._saved.get(key) or cache.dump_rule_facts(
                    compiler.load_or_compile(task, "facts").facts
                )
                brief = cache.parse_rule_facts(told)
                self._loaded[key] = told, [*brief.iter_tools(self._names)], brief.rules

    def collect(self, tasks: Sequence[Task]) -> tuple[list[model.ToolSummary], list[Sequence[str]]]:
        """Return all tools of the tasks, and for each task the rules with findings in it.

        Saves the rule facts of exactly these tasks if the saved ones differ.
        """
        self.load(tasks)
        keys = [task.cache_entry.key for task in tasks]
        if {*keys} != self._saved.keys():
            cache.save_rule_facts(self._cache, {key: self._loaded[key][0] for key in keys})
        return [*chain.from_iterable(self._loaded[key][1] for key in keys)], [
            self._loaded[key][2] for key in keys
        ]


def _locate_all_findings(
    paths: BuildPaths,
    result: CheckedCatalog,
    tasks: Sequence[Task],
    rules: Collection[str],
    pool: WorkerPool,
    progress: Progress,
) -> Iterator[Problem]:
    """Yield all findings of these rules with their locations.

    Findings of batches come from the cache or from the worker pool; those of all other files are
    located here.
    """
    find = partial(locate_batch_findings, frozenset(rules))
    before = {task.folders for task in tasks if has_cached_findings(task)}
    new = [task for task in tasks if task.folders not in before]
    with progress("Finding places", len(new)) as advance:
        for found in pool.map(find, new):
            yield from found
            advance(1)
    # faster than starting processes
    yield from chain.from_iterable(find(task) for task in tasks if task.folders in before)
    for path, some in suppressions.group_by_path(result.findings).items():
        yield from suppressions.apply(paths.catalog, path, some)


def _plan_tasks(changes: ChangeSet) -> list[Task]:
    """Return the batches with their cache entries.

    If many batches are not cached, a check also counts their words, so that the next build finds
    most of its work done; a build counts the words of a few batches by itself.
    """
    many = changes.cache_entries.count(None) > _FEW_BATCHES
    known = zip(changes.tasks, changes.cache_entries, strict=True)
    return [
        replace(
            task, cache_entry=one or NO_ENTRY, with_words=task.with_words or (many and one is None)
        )
        for task, one in known
    ]


def _check_other_files(
    build_paths: BuildPaths, changes: ChangeSet, paths: Iterable[str]
) -> dict[str, CheckedFile]:
    """Check files that are not tools, and return the results by path.

    Raises UsageError if they changed since change detection read them.
    """
    found = {path: checker.check_file(build_paths.catalog, path) for path in paths}
    if any(
        one.digest != changes.other_digests[path] for path, one in found.items() if not one.problems
    ):
        raise UsageError(
            f"Files below {build_paths.catalog} changed while they were read: build again."
        )
    return found


def _with_toolkits(tasks: Iterable[Task], checked_files: Mapping[str, CheckedFile]) -> list[Task]:
    """Return the batches with their toolkits, as far as these were checked and are valid."""
    records = {path: one.record for path, one in checked_files.items() if not one.problems}
    about = records.get("catalog.yaml")
    home = about.home if isinstance(about, model.About) else ""
    logos = checker.find_logo_files(records.values())
    toolkits = {
        record.slug: resolve.with_public_logo(checker.with_logo_file(record, logos), home)
        for path, record in records.items()
        if _is_toolkit_file(path) and isinstance(record, model.Toolkit)
    }
    return [
        replace(
            task,
            toolkits={slug: toolkits[slug] for slug in task.toolkit_digests if slug in toolkits},
        )
        for task in tasks
    ]


def _start_compiling(missing: Sequence[Task], pool: WorkerPool) -> Iterable[CompileResult]:
    """Start compiling the batches that are not in the cache; yield results in order.

    A single batch is compiled in the background while this process does other work.
    """
    if len(missing) == 1:
        alone = pool.submit(partial(compiler.compile_batch, missing[0]))
        return (one() for one in [alone])
    return pool.map(compiler.compile_batch, missing)


def _collect_results(
    missing: Sequence[Task], results: Iterable[CompileResult], progress: Progress
) -> Iterator[CompileResult]:
    with progress("Reading tools", sum(len(task.folders) for task in missing)) as advance:
        for task, result in zip(missing, results, strict=True):
            yield result
            advance(len(task.folders))


def _separate_invalid(
    tasks: Sequence[Task], results: Mapping[tuple[str, ...], CompileResult]
) -> tuple[list[Task], list[CompileResult]]:
    """Return the tasks whose compiled batches are in the cache now, and the results of all
    others.
    """
    sound, broken = [], []
    for task in tasks:
        result = results.get(task.folders) or CompileResult(cache_entry=task.cache_entry)
        if result.cache_entry:
            sound.append(replace(task, cache_entry=result.cache_entry))
        else:
            broken.append(result)
    return sound, broken


def _logo_paths(changes: ChangeSet, toolkits: Collection[str]) -> set[str]:
    """Return the logo files of these toolkits, and catalog.yaml if there are any.

    The public address of a logo begins with the address of the site, which catalog.yaml contains.
    """
    paths = {path for path in changes.other_digests if logo_toolkit(path) in toolkits}
    return paths | ({"catalog.yaml"} & changes.other_digests.keys()) if paths else paths


def _toolkit_path(toolkit: str) -> str:
    return f"toolkits/{toolkit}/toolkit.yaml"


def _is_toolkit_file(path: str) -> bool:
    return path.startswith("toolkits/")
