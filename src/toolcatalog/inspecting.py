"""The whole catalog, held against everything there is to say of it: what has changed is compiled first, the rest is in the cache.

Serves: "One file of 20,000 changed: under a second" of issue 6.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from toolcatalog import advice, briefs, checking, compiling, hearing, model, telling
from toolcatalog.batches import Task
from toolcatalog.checking import Checked, Examined
from toolcatalog.compiling import Compiled
from toolcatalog.crew import Crew
from toolcatalog.errors import Problem, UsageError
from toolcatalog.looking import Looked, Places
from toolcatalog.progress import Track

_FEW = 8  # batches that a check compiles without counting their words


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The batches without errors of their own, whose parts are in the cache; what came of the others; and the files that are not tools'."""

    tasks: Sequence[Task]
    broken: Sequence[Compiled]
    others: Sequence[Examined]


def gather(places: Places, looked: Looked, crew: Crew, track: Track) -> Gathered:
    """Read the whole catalog: compile what has changed. Raises UsageError where files change meanwhile, OSError or BrokenExecutor."""
    others = [checking.examine(places.catalog, path) for path in looked.others]
    if any(one.digest != looked.others[one.path] for one in others if not one.problems):
        raise UsageError(f"Files below {places.catalog} changed while they were read: build again.")
    tasks, broken = _compile(looked, others, crew, track)
    return Gathered(tasks=tasks, broken=broken, others=others)


def inspect(places: Places, looked: Looked, gathered: Gathered, crew: Crew, track: Track, severities: Collection[str]) -> Checked:
    """Hold the catalog against its schemas, the rules, and the advice that weighs as much as one of these.

    Raises UsageError where files change meanwhile, OSError or BrokenExecutor.
    """
    tools, rules = _known(places.cache, gathered.tasks)
    examined = [*gathered.others, *(one for compiled in gathered.broken for one in compiled.examined)]
    unreadable = [*looked.unreadable, *(problem for compiled in gathered.broken for problem in compiled.unreadable)]
    checked = checking.conclude(places.catalog, examined, tools, unreadable, severities)
    heeded = advice.heeded(checked.catalog.about, severities)
    advised = [task for task, some in zip(gathered.tasks, rules, strict=True) if not heeded.isdisjoint(some)]
    told = _told(places, checked, advised, heeded, crew, track)
    problems = checking.weighed(checked.catalog.about.rules, [*checked.problems, *told])
    return replace(checked, problems=problems, advice=())


def _known(cache: Path, tasks: Sequence[Task]) -> tuple[list[model.Listed], list[Sequence[str]]]:
    """All tools of the tasks, and of each task the rules that have advice for it."""
    kept, asked = briefs.load(cache), dict[str, bytes]()
    tools, rules, joined = list[model.Listed](), list[Sequence[str]](), briefs.Joined()
    for task in tasks:
        key = task.known.key
        asked[key] = kept.get(key) or briefs.told(compiling.part_of(task, "facts").facts)
        brief = briefs.heard(asked[key])
        tools += brief.listed(joined)
        rules.append(brief.rules)
    if asked.keys() != kept.keys():
        briefs.save(cache, asked)
    return tools, rules


def _told(
    places: Places, checked: Checked, advised: Sequence[Task], heeded: Collection[str], crew: Crew, track: Track
) -> Iterator[Problem]:
    """All advice at its places: that of batches from the cache or beside, that of all other files here."""
    find = partial(telling.told, frozenset(heeded))
    before = {task.folders for task in advised if telling.is_told(task)}
    new = [task for task in advised if task.folders not in before]
    with track("Finding places", len(new)) as advance:
        for found in crew.each(find, new):
            yield from found
            advance(1)
    yield from chain.from_iterable(find(task) for task in advised if task.folders in before)  # quicker than to begin processes
    for path, some in hearing.by_path(checked.advice).items():
        yield from hearing.heard(places.catalog, path, some)


def _compile(looked: Looked, others: Iterable[Examined], crew: Crew, track: Track) -> tuple[list[Task], list[Compiled]]:
    """The tasks whose parts are in the cache now, and what came of the others: problems."""
    described = {one.path: one.record for one in others if not one.problems}
    toolkits = {record.slug: record for path, record in described.items() if _is_toolkit(path) and isinstance(record, model.Toolkit)}
    tasks = [replace(task, toolkits={slug: toolkits[slug] for slug in task.heads if slug in toolkits}) for task in looked.tasks]
    missing = [task for task, known in zip(tasks, looked.known, strict=True) if known is None]
    if len(missing) > _FEW:  # a build is to find most of its work done; of a few the words are counted when there is one
        missing = [replace(task, words=True) for task in missing]
    results = crew.each(compiling.compiled, missing)
    done: dict[Sequence[str], tuple[Task, Compiled]] = {}
    with track("Reading tools", sum(len(task.folders) for task in missing)) as advance:
        for task, result in zip(missing, results, strict=True):
            done[task.folders] = task, result
            advance(len(task.folders))
    sound, broken = [], []
    for task, known in zip(tasks, looked.known, strict=True):
        made, result = done[task.folders] if known is None else (task, Compiled(known=known))
        if result.known:
            sound.append(replace(made, known=result.known))
        else:
            broken.append(result)
    return sound, broken


def _is_toolkit(path: str) -> bool:
    return path.startswith("toolkits/")
