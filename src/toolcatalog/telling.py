"""What there is to say of the tools of a batch, at its places: kept in the cache, because a place
is found by reading a file once more.
"""

import contextlib
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import orjson

from toolcatalog import compiling, files, hearing, parts, tree
from toolcatalog.batches import Task
from toolcatalog.errors import Problem


def is_told(task: Task) -> bool:
    """Whether the places of a batch's advice have been found before."""
    return _place(task).exists()


def told(rules: Collection[str], task: Task) -> list[Problem]:
    """The advice by these rules for a batch whose part is in the cache. Raises OSError where it
    cannot be kept.
    """
    kept = _kept(task, rules)
    if kept is not None:
        return kept
    said = compiling.said(compiling.part_of(task, "advice").advice)
    found = [
        problem
        for path, some in hearing.by_path(said).items()
        for problem in hearing.heard(task.root, path, some)
    ]
    files.seal(
        _place(task),
        [orjson.dumps({"of": tree.shown(task.root, ""), "told": dict(_grouped(found))})],
    )
    return [problem for problem in found if problem.rule in rules]


def _place(task: Task) -> Path:
    return parts.path_of(task.cache, task.known.key).with_suffix(".told")


def _grouped(problems: Iterable[Problem]) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """The problems of each rule, as rows."""
    for rule, some in groupby(sorted(problems, key=attrgetter("rule")), attrgetter("rule")):
        yield rule, [problem.row for problem in some]


def _kept(task: Task, rules: Collection[str]) -> list[Problem] | None:
    """What was told before of this batch in this catalog: its paths are shown with the catalog's
    name.
    """
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        said = orjson.loads(files.unsealed(_place(task)) or b"")
        if said["of"] == tree.shown(task.root, ""):
            return [
                Problem.of(row)
                for rule, rows in said["told"].items()
                if rule in rules
                for row in rows
            ]
    return None
