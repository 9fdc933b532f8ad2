"""A batch of tool files to a part: read, checked, resolved and rendered as JSON. What worker
processes do, and all that takes long.
"""

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby
from operator import attrgetter

import orjson

from toolcatalog import batches, checking, inventory, model, parts, resolve, snapshot
from toolcatalog.batches import Known, Task
from toolcatalog.checking import Examined
from toolcatalog.errors import Finding, Problem, UsageError
from toolcatalog.parts import Facts, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What came of a batch: its part, which is in the cache now, or else the records (parameters
    left out) and all problems.
    """

    known: Known | None
    examined: Sequence[Examined] = ()
    unreadable: Sequence[Problem] = ()


def compiled(task: Task) -> Compiled:
    """The batch compiled from its files. Raises OSError where its part cannot be kept."""
    seen = inventory.listed(task.root, task.folders)
    examined = [*checking.examine_all(task.root, [path for path, _ in seen.files])]
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
        return Compiled(
            known=None, examined=[_light(one) for one in examined], unreadable=seen.problems
        )
    key = batches.key(task, [*digests.items()])
    tools = [one.record for one in examined if isinstance(one.record, model.ToolVersion)]
    made = part(tools, task.toolkits, words=task.words, vectors=task.vectors)
    parts.save(task.cache, key, _advised(made, checking.advised(examined)))
    return Compiled(known=batches.known(key, rows))


def part_of(task: Task, *sections: str) -> Part:
    """The part of a task that has its key, with these sections: from the cache, or, where that has
    been damaged, made again.

    Raises UsageError where it cannot be made again, because files have changed since.
    """
    found = parts.load(task.cache, task.known.key, sections)
    if found is None:
        compiled(task)
        found = parts.load(task.cache, task.known.key, sections)
    if found is None:
        raise UsageError(f"Files below {task.root} changed while they were read: build again.")
    return found


def _advised(part: Part, advice: Sequence[Finding]) -> Part:
    rules = sorted({finding.rule for finding in advice})
    return replace(
        part,
        facts=replace(part.facts, rules=rules),
        advice=snapshot.dump([_fields(finding) for finding in advice]),
    )


_fields = attrgetter(*Finding.__dataclass_fields__)


def said(advice: bytes) -> list[Finding]:
    """The advice that a part holds."""
    rows = (
        dict(zip(Finding.__dataclass_fields__, row, strict=True)) for row in orjson.loads(advice)
    )
    return [Finding(**{**row, "pointer": tuple(row["pointer"])}) for row in rows]


def _light(one: Examined) -> Examined:
    """The same without the parameters, which are most of it and which nobody needs any more."""
    if isinstance(one.record, model.ToolVersion):
        return replace(
            one,
            record=replace(one.record, description="", input_parameters={}, output_parameters={}),
        )
    return one


def part(
    tools: Sequence[model.ToolVersion],
    toolkits: Mapping[str, model.Toolkit],
    *,
    words: bool = True,
    vectors: bool = False,
) -> Part:
    """The part of tools without problems, with the counts of their words and their vectors where
    these are wanted. Pure.
    """
    ordered = sorted(tools, key=lambda tool: (tool.slug, tool.version))
    groups = [[*group] for _, group in groupby(ordered, key=lambda tool: tool.slug)]
    documents, rows = [], []
    for group in groups:
        versions = tuple(tool.version for tool in group)
        for tool in group:
            served = resolve.tool(tool, toolkits[tool.toolkit], versions)
            documents.append(
                snapshot.dump(
                    snapshot.document(
                        served, toolkits[tool.toolkit].name, toolkits[tool.toolkit].logo
                    )
                )
            )
            rows.append(snapshot.index_row(served, documents[-1]))
    newest = [tool is group[-1] for group in groups for tool in group]
    dumped = [snapshot.dump(row) for row in rows]
    return Part(
        facts=Facts(
            toolkits=[tool.toolkit for tool in ordered],
            slugs=[tool.slug for tool in ordered],
            versions=[tool.version for tool in ordered],
            names=[tool.name for tool in ordered],
            scopes=[tool.scopes for tool in ordered],
            tags=[tool.tags for tool in ordered],
            deprecations=[row["deprecation"] for row in rows],
            replaced=[tool.listed.replaced_by for tool in ordered],
            newest=newest,
            sizes=[*map(len, documents)],
            rows=[*map(len, dumped)],
            digests=[row["digest"] for row in rows],
            checks=[*map(zlib.crc32, documents)],
            sets=_sets(ordered, newest),
            entries=_entries(groups),
        ),
        newest=b",".join(compress(documents, newest)),
        older=b",".join(
            document for document, new in zip(documents, newest, strict=True) if not new
        ),
        rows=b"".join(dumped),
        words=_words(ordered, newest, toolkits) if words else None,
        vectors=_vectors(ordered, toolkits) if vectors else b"",
    )


def _words(
    tools: Sequence[model.ToolVersion],
    newest: Sequence[bool],
    toolkits: Mapping[str, model.Toolkit],
) -> bytes:
    from toolcatalog import counting  # noqa: PLC0415 - it loads numpy, which a check of what has changed does without

    def said(tool: model.ToolVersion, new: bool) -> counting.Said:
        toolkit = tool.toolkit, toolkits[tool.toolkit].name
        return counting.said(
            tool.slug, tool.name, tool.description, toolkit, tool.input_parameters, new
        )

    return counting.count(map(said, tools, newest))


def _vectors(tools: Sequence[model.ToolVersion], toolkits: Mapping[str, model.Toolkit]) -> bytes:
    from toolcatalog import meaning  # noqa: PLC0415 - as above

    described = (
        meaning.Described(
            toolkits[one.toolkit].name, one.name, one.description, [*one.input_parameters]
        )
        for one in tools
    )
    return meaning.encoder().tools([*described])


def _sets(tools: Sequence[model.ToolVersion], newest: Sequence[bool]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for place, (tool, new) in enumerate(zip(tools, newest, strict=True)):
        found[f"toolkit {tool.toolkit}"].append(place)
        if new:
            found[snapshot.NEWEST].append(place)
        if tool.deprecation is not None:
            found[snapshot.DEPRECATED].append(place)
        for kind, names in (("tag", tool.tags), ("scope", tool.scopes)):
            for name in names:
                found[f"{kind} {name}"].append(place)
    return found


def _entries(groups: Sequence[Sequence[model.ToolVersion]]) -> list[tuple[str, int, str]]:
    found, place = [], 0
    for group in groups:
        found.append(
            (
                group[0].slug,
                place,
                snapshot.dump([group[0].toolkit, [tool.version for tool in group]]).decode(),
            )
        )
        place += len(group)
    return found
