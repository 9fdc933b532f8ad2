"""Automatic fixes: repair problems that have one right answer in the text of their file.

The rest of the file stays as it is. The functions work on bytes and do no I/O.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from toolcatalog.catalog import folder, loader
from toolcatalog.catalog.loader import Location
from toolcatalog.errors import Problem

_BOM = "\ufeff"
_MAX_ROUNDS = 8  # rounds of fixing and checking; two are enough for all known problems


class FixResult(NamedTuple):
    """The bytes of a file, the number of problems fixed in it, and how many of them were errors."""

    data: bytes
    fix_count: int
    error_count: int


def fix_until_stable(
    data: bytes,
    problems: Iterable[Problem],
    find_problems: Callable[[bytes], Iterable[Problem]],
    *,
    unsafe: bool = False,
) -> FixResult:
    """Fix a file repeatedly until nothing is left to fix.

    A fixed value of the wrong type may reveal further problems. `find_problems` returns the
    problems of the file for given bytes. With `unsafe`, fixes that are probably right are applied
    too.
    """
    total = FixResult(data, 0, 0)
    for _ in range(_MAX_ROUNDS):
        result = fix_once(total.data, problems, unsafe=unsafe)
        if not result.fix_count:
            break
        total = FixResult(
            result.data,
            total.fix_count + result.fix_count,
            total.error_count + result.error_count,
        )
        problems = find_problems(total.data)
    return total


def select_fix(problem: Problem, *, unsafe: bool = False) -> str | None:
    """Return the replacement for the value of a problem, or None if there is none."""
    return problem.unsafe_fix if unsafe and problem.fix is None else problem.fix


def fix_once(data: bytes, problems: Iterable[Problem], *, unsafe: bool = False) -> FixResult:
    """Fix all fixable problems of one file, once.

    A problem is skipped if `data` has another text at its position than when it was found. In a
    very long line, a very long value is skipped too.
    """
    text = data.decode(errors="surrogateescape")
    lines = text.removeprefix(_BOM).split("\n")
    before, fixed = [*lines], list[Problem]()
    # from the end to the start, so that earlier positions stay valid
    for problem in sorted(problems, reverse=True):
        index = problem.line - 1
        fix = select_fix(problem, unsafe=unsafe)
        if fix is not None and _is_unchanged(before[index].rstrip("\r"), problem):
            lines[index : index + 1] = _fix_line(lines[index], problem, fix)
            fixed.append(problem)
    error_count = sum(problem.severity == "error" for problem in fixed)
    fixed_text = _BOM * text.startswith(_BOM) + "\n".join(lines)
    return FixResult(fixed_text.encode(errors="surrogateescape"), len(fixed), error_count)


def _is_unchanged(line: str, problem: Problem) -> bool:
    """Return whether the line has the excerpt of a problem, with all of what is to be replaced."""
    if len(problem.excerpt) < folder.MAX_EXCERPT_LENGTH:  # it goes on to the end of the line
        return line[problem.excerpt_start :] == problem.excerpt
    end = problem.excerpt_start + len(problem.excerpt)
    contains_value = problem.column - 1 + problem.length < end
    return contains_value and line[problem.excerpt_start : end] == problem.excerpt


def suggest_path(path: str) -> str | None:
    """Return the path that a file of a catalog should have, or None if it is right or unclear.

    The ending `.yml` becomes `.yaml`, and folders of toolkits and tools get the case of slugs.
    """
    steps = path.split("/")
    if steps[0] == "toolkits" and len(steps) > 2:
        steps[1] = steps[1].lower()
    tool_folder = {"toolkits": 2, "meta_tools": 1}.get(steps[0], len(steps))
    if tool_folder < len(steps) - 1:
        steps[tool_folder] = steps[tool_folder].upper()
    if steps[-1].endswith(".yml"):
        steps[-1] = f"{steps[-1].removesuffix('.yml')}.yaml"
    suggested = "/".join(steps)
    is_valid = isinstance(loader.classify_path(suggested), Location)
    return suggested if suggested != path and is_valid else None


def _fix_line(line: str, problem: Problem, fix: str) -> list[str]:
    """Return the line with the fix applied, or no line if nothing is left of it."""
    start, end = problem.column - 1, problem.column - 1 + problem.length
    text, ending = (line[:-1], "\r") if line.endswith("\r") else (line, "")
    fixed = text[:start] + fix.replace("{}", text[start:end]) + text[end:]
    if not fixed.strip():
        return []
    return [(fixed if fix else fixed.rstrip()) + ending]
