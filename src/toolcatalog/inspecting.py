"""The whole catalog, held against everything there is to say of it: what has changed is compiled
first, the rest is in the cache.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from toolcatalog import advice, briefs, checking, compiling, hearing, model, telling
from toolcatalog.batches import NOTHING, Task
from toolcatalog.checking import Checked, Examined
from toolcatalog.compiling import Compiled
from toolcatalog.crew import Crew
from toolcatalog.errors import Problem, UsageError
from toolcatalog.looking import Looked, Places
from toolcatalog.progress import Track

_FEW = 8  # batches that a check compiles without counting their words


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The batches without errors of their own, whose parts are in the cache; what came of the
    others; and the files that are not tools'.

    `tools` are those of the sound batches, and `rules`, of each of these batches, those that have
    advice for it.
    """

    tasks: Sequence[Task]
    tools: Sequence[model.Listed]
    rules: Sequence[Sequence[str]]
    broken: Sequence[Compiled]
    others: Sequence[Examined]


def gather(places: Places, looked: Looked, crew: Crew, track: Track) -> Gathered:
    """Read the whole catalog: compile what has changed. Raises UsageError where files change
    meanwhile, OSError or BrokenExecutor.
    """
    tasks = _tasks(looked)
    missing = [task for task in tasks if not task.known.key]
    needed = {_description(toolkit) for task in missing for toolkit in task.heads}
    examined = _examined(places, looked, looked.others.keys() & needed)
    results = _begun(_described(missing, examined), crew)
    # while the first are compiled, as what follows
    examined |= _examined(places, looked, looked.others.keys() - needed)
    tasks, briefed = _described(tasks, examined), _Briefed(places.cache)
    briefed.hear(task for task in tasks if task.known.key)
    compiled = dict(
        zip((task.folders for task in missing), _finished(missing, results, track), strict=True)
    )
    sound, broken = _apart(tasks, compiled)
    tools, rules = briefed.every(sound)
    others = [examined[path] for path in looked.others]
    return Gathered(tasks=sound, tools=tools, rules=rules, broken=broken, others=others)


def inspect(
    places: Places,
    looked: Looked,
    gathered: Gathered,
    crew: Crew,
    track: Track,
    severities: Collection[str],
) -> Checked:
    """Hold the catalog against its schemas, the rules, and the advice that weighs as much as one of
    these.

    Raises UsageError where files change meanwhile, OSError or BrokenExecutor.
    """
    examined = [
        *gathered.others,
        *(one for compiled in gathered.broken for one in compiled.examined),
    ]
    unreadable = [
        *looked.unreadable,
        *(problem for compiled in gathered.broken for problem in compiled.unreadable),
    ]
    checked = checking.conclude(places.catalog, examined, gathered.tools, unreadable, severities)
    heeded = advice.heeded(checked.catalog.about, severities)
    advised = [
        task
        for task, some in zip(gathered.tasks, gathered.rules, strict=True)
        if not heeded.isdisjoint(some)
    ]
    told = _told(places, checked, advised, heeded, crew, track)
    problems = checking.weighed(checked.catalog.about.rules, [*checked.problems, *told])
    return replace(checked, problems=problems, advice=())


class _Briefed:
    """What the rules go by of batches, as it is heard: from their briefs, or else from their parts."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._kept = briefs.load(cache)
        self._joined = briefs.Joined()
        self._heard: dict[str, tuple[bytes, list[model.Listed], Sequence[str]]] = {}

    def hear(self, tasks: Iterable[Task]) -> None:
        """Hear of batches that are in the cache, but those that have been heard of."""
        for task in tasks:
            key = task.known.key
            if key not in self._heard:
                told = self._kept.get(key) or briefs.told(compiling.part_of(task, "facts").facts)
                brief = briefs.heard(told)
                self._heard[key] = told, [*brief.listed(self._joined)], brief.rules

    def every(self, tasks: Sequence[Task]) -> tuple[list[model.Listed], list[Sequence[str]]]:
        """All tools of the tasks, and of each task the rules that have advice for it; the briefs of
        these are kept.
        """
        self.hear(tasks)
        keys = [task.known.key for task in tasks]
        if {*keys} != self._kept.keys():
            briefs.save(self._cache, {key: self._heard[key][0] for key in keys})
        return [*chain.from_iterable(self._heard[key][1] for key in keys)], [
            self._heard[key][2] for key in keys
        ]


def _told(
    places: Places,
    checked: Checked,
    advised: Sequence[Task],
    heeded: Collection[str],
    crew: Crew,
    track: Track,
) -> Iterator[Problem]:
    """All advice at its places: that of batches from the cache or beside, that of all other files
    here.
    """
    find = partial(telling.told, frozenset(heeded))
    before = {task.folders for task in advised if telling.is_told(task)}
    new = [task for task in advised if task.folders not in before]
    with track("Finding places", len(new)) as advance:
        for found in crew.each(find, new):
            yield from found
            advance(1)
    # quicker than to begin processes
    yield from chain.from_iterable(find(task) for task in advised if task.folders in before)
    for path, some in hearing.by_path(checked.advice).items():
        yield from hearing.heard(places.catalog, path, some)


def _tasks(looked: Looked) -> list[Task]:
    """The batches with what is known of them. A build is to find most of its work done, and counts
    the words of a few by itself.
    """
    many = looked.known.count(None) > _FEW
    known = zip(looked.tasks, looked.known, strict=True)
    return [
        replace(task, known=one or NOTHING, words=task.words or (many and one is None))
        for task, one in known
    ]


def _examined(places: Places, looked: Looked, paths: Iterable[str]) -> dict[str, Examined]:
    """Files that are not tools', by path. Raises UsageError where they have changed since they were
    looked at.
    """
    found = {path: checking.examine(places.catalog, path) for path in paths}
    if any(one.digest != looked.others[path] for path, one in found.items() if not one.problems):
        raise UsageError(f"Files below {places.catalog} changed while they were read: build again.")
    return found


def _described(tasks: Iterable[Task], examined: Mapping[str, Examined]) -> list[Task]:
    """The batches with their toolkits, as far as those are known and sound."""
    records = {path: one.record for path, one in examined.items() if not one.problems}
    toolkits = {
        record.slug: record
        for path, record in records.items()
        if _is_toolkit(path) and isinstance(record, model.Toolkit)
    }
    return [
        replace(task, toolkits={slug: toolkits[slug] for slug in task.heads if slug in toolkits})
        for task in tasks
    ]


def _begun(missing: Sequence[Task], crew: Crew) -> Iterable[Compiled]:
    """What comes of batches that are not in the cache, as it comes. A single one is compiled beside
    what this process does meanwhile.
    """
    if len(missing) == 1:
        alone = crew.beside(partial(compiling.compiled, missing[0]))
        return (one() for one in [alone])
    return crew.each(compiling.compiled, missing)


def _finished(
    missing: Sequence[Task], results: Iterable[Compiled], track: Track
) -> Iterator[Compiled]:
    with track("Reading tools", sum(len(task.folders) for task in missing)) as advance:
        for task, result in zip(missing, results, strict=True):
            yield result
            advance(len(task.folders))


def _apart(
    tasks: Sequence[Task], compiled: Mapping[tuple[str, ...], Compiled]
) -> tuple[list[Task], list[Compiled]]:
    """The tasks whose parts are in the cache now, and what came of the others: problems."""
    sound, broken = [], []
    for task in tasks:
        result = compiled.get(task.folders) or Compiled(known=task.known)
        if result.known:
            sound.append(replace(task, known=result.known))
        else:
            broken.append(result)
    return sound, broken


def _description(toolkit: str) -> str:
    return f"toolkits/{toolkit}/toolkit.yaml"


def _is_toolkit(path: str) -> bool:
    return path.startswith("toolkits/")
