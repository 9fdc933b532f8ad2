"""What there is to say of the tools of a batch, at its places: kept in the cache, because a place is found by reading a file once more."""

import contextlib
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

import orjson

from toolcatalog import compiling, files, hearing, parts
from toolcatalog.batches import Task
from toolcatalog.errors import Problem


def told(task: Task) -> list[Problem]:
    """All advice for a batch whose part is in the cache. Raises OSError where it cannot be kept."""
    place = parts.path_of(task.cache, task.known.key).with_suffix(".told")
    kept = _kept(place)
    if kept is None:
        said = compiling.said(compiling.part_of(task, "advice").advice)
        kept = [problem for path, some in hearing.by_path(said).items() for problem in hearing.heard(task.root, path, some)]
        files.seal(place, [orjson.dumps([astuple(problem) for problem in kept])])
    return kept


def _kept(place: Path) -> list[Problem] | None:
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError):
        data = files.unsealed(place)
        return None if data is None else [_problem(row) for row in orjson.loads(data)]
    return None


def _problem(row: Sequence[object]) -> Problem:
    return Problem(**dict(zip(Problem.__dataclass_fields__, row, strict=True)))  # type: ignore[arg-type]
