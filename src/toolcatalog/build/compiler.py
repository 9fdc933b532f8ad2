"""Compile a batch of tool files: read, check, resolve and render as JSON.

This is the slow part of a build, and it runs in worker processes.
"""

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby
from operator import attrgetter

import orjson

from toolcatalog import encoding
from toolcatalog.build import batches, cache
from toolcatalog.build.batches import CacheEntry, Task
from toolcatalog.build.cache import CompiledBatch, ToolColumns
from toolcatalog.catalog import model, resolve
from toolcatalog.errors import Finding, Problem, UsageError
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.validation import checker
from toolcatalog.validation.checker import CheckedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileResult:
    """The result of compiling a batch.

    A valid batch has a `cache_entry`, and the compiled batch is in the cache. For any other,
    `checked_files` has the records (without parameters) and all problems.
    """

    cache_entry: CacheEntry | None
    checked_files: Sequence[CheckedFile] = ()
    unreadable: Sequence[Problem] = ()


def compile_batch(task: Task) -> CompileResult:
    """Compile a batch from its files. Raises OSError if the result cannot be cached."""
    seen = batches.list_batch_files(task.root, task.folders)
    paths = [path for path, _ in seen.files]
    examined = checker.add_version_findings(checker.check_files(task.root, paths))
    digests = {one.path: one.digest for one in examined}
    rows = [
        (folder, mark, [(path, mark, digests[path]) for path, mark, _ in files])
        for folder, mark, files in seen.rows
    ]
    sound = (
        not seen.problems
        and not any(one.problems for one in examined)
        and batches.toolkits_of([*digests]) <= {*task.toolkits}
    )
    if not sound:
        return CompileResult(
            cache_entry=None,
            checked_files=[_without_parameters(one) for one in examined],
            unreadable=seen.problems,
        )
    key = batches.compute_key(task, [*digests.items()])
    tools = [one.record for one in examined if isinstance(one.record, model.ToolVersion)]
    made = compile_tools(
        tools, task.toolkits, with_words=task.with_words, with_vectors=task.with_vectors
    )
    cache.save_batch(task.cache, key, _with_findings(made, checker.select_findings(examined)))
    return CompileResult(cache_entry=batches.make_entry(key, rows))


def load_or_compile(task: Task, *sections: str) -> CompiledBatch:
    """Return these sections of a compiled batch: from the cache or, if damaged, compiled again.

    Raises UsageError if the files have changed since, so that the same batch cannot be compiled.
    """
    found = cache.load_batch(task.cache, task.cache_entry.key, sections)
    if found is None:
        compile_batch(task)
        found = cache.load_batch(task.cache, task.cache_entry.key, sections)
    if found is None:
        raise UsageError(f"Files below {task.root} changed while they were read: build again.")
    return found


def _with_findings(batch: CompiledBatch, findings: Sequence[Finding]) -> CompiledBatch:
    rules = sorted({finding.rule for finding in findings})
    return replace(
        batch,
        facts=replace(batch.facts, rules=rules),
        advice=encoding.dump_json([_finding_values(finding) for finding in findings]),
    )


_finding_values = attrgetter(*Finding.__dataclass_fields__)


def parse_findings(data: bytes) -> list[Finding]:
    """Parse the lint findings of a compiled batch."""
    rows = (dict(zip(Finding.__dataclass_fields__, row, strict=True)) for row in orjson.loads(data))
    return [Finding(**{**row, "pointer": tuple(row["pointer"])}) for row in rows]


def _without_parameters(checked: CheckedFile) -> CheckedFile:
    """Return the same without parameters, which are the largest part and no longer needed."""
    if isinstance(checked.record, model.ToolVersion):
        return replace(
            checked,
            record=replace(
                checked.record, description="", input_parameters={}, output_parameters={}
            ),
        )
    return checked


def compile_tools(
    tools: Sequence[model.ToolVersion],
    toolkits: Mapping[str, model.Toolkit],
    *,
    with_words: bool = True,
    with_vectors: bool = False,
) -> CompiledBatch:
    """Return the compiled batch of valid tools, with word counts and vectors if wanted. Pure."""
    ordered = sorted(tools, key=lambda tool: (tool.slug, tool.version))
    groups = [[*group] for _, group in groupby(ordered, key=lambda tool: tool.slug)]
    documents, rows = [], []
    for group in groups:
        versions = tuple(tool.version for tool in group)
        for tool in group:
            served = resolve.resolve_tool(tool, toolkits[tool.toolkit], versions)
            documents.append(
                encoding.dump_json(
                    snapshot_format.tool_to_document(
                        served, toolkits[tool.toolkit].name, toolkits[tool.toolkit].logo
                    )
                )
            )
            rows.append(snapshot_format.make_toolkit_index_row(served, documents[-1]))
    newest = [tool is group[-1] for group in groups for tool in group]
    dumped = [encoding.dump_json(row) for row in rows]
    return CompiledBatch(
        facts=ToolColumns(
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
            rows=[*map(len, dumped)],
            digests=[row["digest"] for row in rows],
            checks=[*map(zlib.crc32, documents)],
            sets=_collect_sets(ordered, newest),
            entries=_slug_entries(groups),
        ),
        newest=b",".join(compress(documents, newest)),
        older=b",".join(
            document for document, new in zip(documents, newest, strict=True) if not new
        ),
        rows=b"".join(dumped),
        words=_count_words(ordered, newest, toolkits) if with_words else None,
        vectors=_encode_vectors(ordered, toolkits) if with_vectors else b"",
    )


def _count_words(
    tools: Sequence[model.ToolVersion],
    newest: Sequence[bool],
    toolkits: Mapping[str, model.Toolkit],
) -> bytes:
    from toolcatalog.search import term_counts  # noqa: PLC0415 - imports numpy

    def said(tool: model.ToolVersion, new: bool) -> term_counts.ToolFields:
        toolkit = tool.toolkit, toolkits[tool.toolkit].name
        return term_counts.extract_fields(
            tool.slug, tool.name, tool.description, toolkit, tool.input_parameters, new
        )

    return term_counts.count_terms(map(said, tools, newest))


def _encode_vectors(
    tools: Sequence[model.ToolVersion], toolkits: Mapping[str, model.Toolkit]
) -> bytes:
    from toolcatalog.search import encoder  # noqa: PLC0415 - imports numpy

    described = (
        encoder.ToolText(
            toolkits[one.toolkit].name, one.name, one.description, [*one.input_parameters]
        )
        for one in tools
    )
    return encoder.load_encoder().encode_tools([*described])


def _collect_sets(
    tools: Sequence[model.ToolVersion], newest: Sequence[bool]
) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for place, (tool, new) in enumerate(zip(tools, newest, strict=True)):
        found[f"toolkit {tool.toolkit}"].append(place)
        if new:
            found[snapshot_format.NEWEST].append(place)
        if tool.deprecation is not None:
            found[snapshot_format.DEPRECATED].append(place)
        for kind, names in (("tag", tool.tags), ("scope", tool.scopes)):
            for name in names:
                found[f"{kind} {name}"].append(place)
    return found


def _slug_entries(groups: Sequence[Sequence[model.ToolVersion]]) -> list[tuple[str, int, str]]:
    found, place = [], 0
    for group in groups:
        found.append(
            (
                group[0].slug,
                place,
                encoding.dump_json([group[0].toolkit, [tool.version for tool in group]]).decode(),
            )
        )
        place += len(group)
    return found
