"""A batch of tool files to a part: read, checked, resolved and rendered as JSON. What worker processes do, and all that takes long."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby

from toolcatalog import batches, checking, inventory, model, parts, resolve, search, snapshot
from toolcatalog.batches import Known, Task
from toolcatalog.checking import Examined
from toolcatalog.errors import Problem, UsageError
from toolcatalog.parts import Fact, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What came of a batch: its part, which is in the cache now, or else the records (parameters left out) and all problems."""

    known: Known | None
    examined: Sequence[Examined] = ()
    unreadable: Sequence[Problem] = ()


def compiled(task: Task) -> Compiled:
    """The batch compiled from its files. Raises OSError where its part cannot be kept."""
    seen = inventory.listed(task.root, task.folders)
    examined = [checking.examine(task.root, path) for path, _ in seen.files]
    digests = {one.path: one.digest for one in examined}
    rows = [(folder, mark, [(path, mark, digests[path]) for path, mark, _ in files]) for folder, mark, files in seen.rows]
    sound = not seen.problems and not any(one.problems for one in examined) and batches.toolkits_of([*digests]) <= {*task.toolkits}
    if not sound:
        return Compiled(known=None, examined=[_light(one) for one in examined], unreadable=seen.problems)
    key = batches.key(task, [*digests.items()])
    parts.save(task.cache, key, part([one.record for one in examined if isinstance(one.record, model.ToolVersion)], task.toolkits))
    return Compiled(known=Known(key, rows))


def part_of(task: Task, *sections: str) -> Part:
    """The part of a task that has its key, with these sections: from the cache, or, where that has been damaged, made again."""
    found = parts.load(task.cache, task.known.key, sections)
    if found is None:
        compiled(task)
        found = parts.load(task.cache, task.known.key, sections)
    if found is None:
        raise UsageError(f"Files below {task.root} changed while they were read: build again.")
    return found


def _light(one: Examined) -> Examined:
    """The same without the parameters, which are most of it and which nobody needs any more."""
    if isinstance(one.record, model.ToolVersion):
        return replace(one, record=replace(one.record, description="", input_parameters={}, output_parameters={}))
    return one


def part(tools: Sequence[model.ToolVersion], toolkits: Mapping[str, model.Toolkit]) -> Part:
    """The part of tools without problems. Pure."""
    ordered = sorted(tools, key=lambda tool: (tool.slug, tool.version))
    facts, documents, rows = [], [], []
    for _, group in groupby(ordered, key=lambda tool: tool.slug):
        same = [*group]
        versions = tuple(tool.version for tool in same)
        for tool in same:
            served = resolve.tool(tool, toolkits[tool.toolkit], versions)
            document = snapshot.dump(snapshot.document(served, toolkits[tool.toolkit].name, toolkits[tool.toolkit].logo))
            row = snapshot.index_row(served, document)
            documents.append(document)
            rows.append(snapshot.dump(row))
            facts.append(_fact(tool, document, rows[-1], str(row["digest"]), newest=tool is same[-1]))
    return Part(
        facts=tuple(facts),
        newest=b",".join(document for fact, document in zip(facts, documents, strict=True) if fact.newest),
        older=b",".join(document for fact, document in zip(facts, documents, strict=True) if not fact.newest),
        rows=b"".join(rows),
        words=search.count((tool.slug, tool.name, tool.description) for tool in ordered),
    )


def _fact(tool: model.ToolVersion, document: bytes, row: bytes, digest: str, *, newest: bool) -> Fact:
    return Fact(
        path=tool.path,
        slug=tool.slug,
        toolkit=tool.toolkit,
        version=tool.version,
        name=tool.name,
        scopes=tool.scopes,
        tags=tool.tags,
        deprecation=asdict(tool.deprecation) if tool.deprecation else None,
        newest=newest,
        size=len(document),
        row=len(row),
        digest=digest,
        check=zlib.crc32(document),
    )


def record(fact: Fact) -> model.ToolVersion:
    """The tool version of a fact, as far as the rules go."""
    return model.ToolVersion(
        path=fact.path,
        slug=fact.slug,
        toolkit=fact.toolkit,
        version=fact.version,
        name=fact.name,
        description="",
        scopes=tuple(fact.scopes),
        tags=tuple(fact.tags),
        deprecation=model.Deprecation(**fact.deprecation) if fact.deprecation is not None else None,
        input_parameters={},
        output_parameters={},
    )
