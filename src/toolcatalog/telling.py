"""What there is to say of the tools of a batch, at its places: kept in the cache, because a place
is found by reading a file once more.
"""

import contextlib
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import orjson

from toolcatalog import compiling, hearing, parts
from toolcatalog.batches import Task
from toolcatalog.catalog import folder
from toolcatalog.errors import Problem
from toolcatalog.system import files


def has_cached_findings(task: Task) -> bool:
    """Whether the places of a batch's advice have been found before."""
    return _cache_path(task).exists()


def locate_batch_findings(rules: Collection[str], task: Task) -> list[Problem]:
    """The advice by these rules for a batch whose part is in the cache. Raises OSError where it
    cannot be kept.
    """
    kept = _load_cached(task, rules)
    if kept is not None:
        return kept
    said = compiling.parse_findings(compiling.load_or_compile(task, "advice").advice)
    found = [
        problem
        for path, some in hearing.group_by_path(said).items()
        for problem in hearing.apply(task.root, path, some)
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
    return parts.batch_path(task.cache, task.cache_entry.key).with_suffix(".told")


def _rows_by_rule(problems: Iterable[Problem]) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """The problems of each rule, as rows."""
    for rule, some in groupby(sorted(problems, key=attrgetter("rule")), attrgetter("rule")):
        yield rule, [problem.row for problem in some]


def _load_cached(task: Task, rules: Collection[str]) -> list[Problem] | None:
    """What was told before of this batch in this catalog: its paths are shown with the catalog's
    name.
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
