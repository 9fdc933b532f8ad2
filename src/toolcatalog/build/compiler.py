"""Compile a batch of tool files: read, check, resolve and render as JSON.

This is the slow part of a build, and it runs in worker processes.
"""

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, compress, groupby
from operator import attrgetter, not_
from pathlib import Path

import orjson

from toolcatalog import encoding
from toolcatalog.build import batches, cache
from toolcatalog.build.batches import CachedBatch, CacheEntry, Task
from toolcatalog.build.cache import CompiledBatch, ToolColumns
from toolcatalog.catalog import model, resolve
from toolcatalog.errors import Finding, Problem, UsageError
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.validation import checker, limits, severity
from toolcatalog.validation.checker import CheckedFile
from toolcatalog.validation.suppressions import LintFindings

_finding_values = attrgetter(*Finding.__dataclass_fields__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileResult:
    """The result of compiling a batch.

    A valid batch has an `entry`, and the compiled batch is in the cache. For any other,
    `checked_files` has the records (without parameters) and all problems.
    """

    entry: CacheEntry | None
    checked_files: Sequence[CheckedFile] = ()
    unreadable: Sequence[Problem] = ()


def compile_batch(task: Task) -> CompileResult:
    """Compile a batch from its files. Raises OSError if the result cannot be cached."""
    scan = batches.list_batch_files(task.root, task.folders)
    paths = [path for path, _ in scan.files]
    checked_files = checker.add_version_findings(checker.check_files(task.root, paths))
    digests = {file.path: file.digest for file in checked_files}
    if (
        scan.problems
        or any(file.problems for file in checked_files)
        or not batches.toolkits_of([*digests]) <= {*task.toolkits}
    ):
        return CompileResult(
            entry=None,
            checked_files=[*map(_without_parameters, checked_files)],
            unreadable=scan.problems,
        )
    key = batches.compute_key(task, [*digests.items()])
    cache.save_batch(task.cache, key, _compile_files(task, checked_files))
    rows = [
        (folder, signature, [(path, mark, digests[path]) for path, mark, _ in files])
        for folder, signature, files in scan.rows
    ]
    entry = batches.make_entry(task, key, rows, with_words=task.with_words)
    return CompileResult(entry=entry)


def _compile_files(task: Task, checked_files: Sequence[CheckedFile]) -> CompiledBatch:
    """Return the compiled batch of valid files, with their lint findings."""
    tools = [file.record for file in checked_files if isinstance(file.record, model.ToolVersion)]
    batch = compile_tools(
        tools,
        task.toolkits,
        with_words=task.with_words,
        with_vectors=task.with_vectors,
        model_folder=task.model,
    )
    lint_findings = checker.select_findings(checked_files)
    rules = {finding.rule for finding in lint_findings.findings}
    if lint_findings.commented_paths:
        rules.add(severity.UNUSED_SUPPRESSION)
    return replace(
        batch,
        facts=replace(batch.facts, rules=sorted(rules)),
        advice=_dump_findings(lint_findings),
    )


def load_or_compile(batch: CachedBatch, *sections: str) -> CompiledBatch:
    """Return these sections of a compiled batch: from the cache or, if damaged, compiled again.

    Raises UsageError if the files have changed since, so that the same batch cannot be compiled.
    """
    task, key = batch.task, batch.entry.key
    compiled = cache.load_batch(task.cache, key, sections)
    if compiled is None:
        compile_batch(task)
        compiled = cache.load_batch(task.cache, key, sections)
    if compiled is None:
        raise UsageError(f"Files below {task.root} changed while they were read: build again.")
    return compiled


def _dump_findings(lint_findings: LintFindings) -> bytes:
    rows = [_finding_values(finding) for finding in lint_findings.findings]
    return encoding.dump_json([rows, lint_findings.commented_paths])


def parse_findings(data: bytes) -> LintFindings:
    """Parse the lint findings of a compiled batch."""
    rows, commented_paths = orjson.loads(data)
    fields = (dict(zip(Finding.__dataclass_fields__, row, strict=True)) for row in rows)
    return LintFindings(
        [Finding(**{**values, "pointer": tuple(values["pointer"])}) for values in fields],
        commented_paths,
    )


def _without_parameters(checked: CheckedFile) -> CheckedFile:
    """Return the same without parameters, which are the largest part and no longer needed."""
    if not isinstance(checked.record, model.ToolVersion):
        return checked
    record = replace(checked.record, description="", input_parameters={}, output_parameters={})
    return replace(checked, record=record)


def compile_tools(
    tools: Sequence[model.ToolVersion],
    toolkits: Mapping[str, model.Toolkit],
    *,
    with_words: bool = True,
    with_vectors: bool = False,
    model_folder: Path | None = None,
) -> CompiledBatch:
    """Return the compiled batch of valid tools, with word counts and vectors if wanted. Pure."""
    ordered = sorted(tools, key=attrgetter("slug", "version"))
    groups = [[*group] for _, group in groupby(ordered, key=attrgetter("slug"))]
    newest = [tool is group[-1] for group in groups for tool in group]
    served = [tool for group in groups for tool in _resolve_versions(group, toolkits)]
    documents = [_render_document(tool, toolkits[tool.toolkit]) for tool in served]
    rows = [*map(snapshot_format.make_toolkit_index_row, served, documents)]
    encoded_rows = [encoding.dump_json(row) for row in rows]
    facts = ToolColumns(
        toolkits=[tool.toolkit for tool in ordered],
        slugs=[tool.slug for tool in ordered],
        versions=[tool.version for tool in ordered],
        names=[tool.name for tool in ordered],
        scopes=[tool.scopes for tool in ordered],
        tags=[tool.tags for tool in ordered],
        deprecations=[row["deprecation"] for row in rows],
        sources=[tool.source for tool in ordered],
        replaced=[tool.summary.replaced_by for tool in ordered],
        newest=newest,
        sizes=[*map(len, documents)],
        rows=[*map(len, encoded_rows)],
        digests=[row["digest"] for row in rows],
        checks=[*map(zlib.crc32, documents)],
        sets=_collect_sets(ordered, newest),
        entries=_slug_entries(groups),
    )
    words, vectors = None, b""
    if with_words or with_vectors:
        from toolcatalog.build import search_fields  # noqa: PLC0415 - imports numpy

        words = search_fields.count_words(ordered, newest, toolkits) if with_words else None
        if with_vectors:
            vectors = search_fields.encode_vectors(ordered, toolkits, model_folder)
    return CompiledBatch(
        facts=facts,
        newest=b",".join(compress(documents, newest)),
        older=b",".join(compress(documents, map(not_, newest))),
        rows=b"".join(encoded_rows),
        words=words,
        vectors=vectors,
    )


def _resolve_versions(
    group: Sequence[model.ToolVersion], toolkits: Mapping[str, model.Toolkit]
) -> Iterator[snapshot_format.Tool]:
    """Yield the versions of one tool as they are served.

    If there are too many, each lists only the newest ones: `check_version_counts` refuses the tool.
    """
    versions = tuple(tool.version for tool in group[-limits.MAX_VERSIONS :])
    return (resolve.resolve_tool(tool, toolkits[tool.toolkit], versions) for tool in group)


def _render_document(tool: snapshot_format.Tool, toolkit: model.Toolkit) -> bytes:
    document = snapshot_format.tool_to_document(tool, toolkit.name, toolkit.logo)
    return encoding.dump_json(document)


def _collect_sets(
    tools: Sequence[model.ToolVersion], newest: Sequence[bool]
) -> dict[str, list[int]]:
    """Return the positions of the members of each set that does not depend on other files."""
    sets: defaultdict[str, list[int]] = defaultdict(list)
    for position, (tool, is_newest) in enumerate(zip(tools, newest, strict=True)):
        sets[f"toolkit {tool.toolkit}"].append(position)
        if is_newest:
            sets[snapshot_format.NEWEST].append(position)
        if tool.deprecation is not None:
            sets[snapshot_format.DEPRECATED].append(position)
        for tag in tool.tags:
            sets[f"tag {tag}"].append(position)
        for scope in tool.scopes:
            sets[f"scope {scope}"].append(position)
    return sets


def _slug_entries(groups: Sequence[Sequence[model.ToolVersion]]) -> list[tuple[str, int, str]]:
    """Return each slug with the position of its oldest version and its entry in the slug table."""
    positions = accumulate(map(len, groups), initial=0)
    return [
        (
            group[0].slug,
            position,
            encoding.dump_json([group[0].toolkit, [tool.version for tool in group]]).decode(),
        )
        for position, group in zip(positions, groups, strict=False)
    ]
