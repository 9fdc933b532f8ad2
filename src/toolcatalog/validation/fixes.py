"""Automatic fixes: repair problems that have one right answer in the text of their file.

The rest of the file stays as it is. The functions work on bytes and do no I/O.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from toolcatalog.errors import Problem

_BOM = "\ufeff"
_MAX_ROUNDS = 8  # rounds of fixing and checking; two are enough for all known problems


class FixResult(NamedTuple):
    """The bytes of a file, the number of problems fixed in it, and how many of them were errors."""

    data: bytes
    fix_count: int
    error_count: int


def fix_until_stable(
    data: bytes, problems: Iterable[Problem], find_problems: Callable[[bytes], Iterable[Problem]]
) -> FixResult:
    """Fix a file repeatedly until nothing is left to fix.

    A fixed value of the wrong type may reveal further problems. `find_problems` returns the
    problems of the file for given bytes.
    """
    whole = FixResult(data, 0, 0)
    for _ in range(_MAX_ROUNDS):
        one = fix_once(whole.data, problems)
        if not one.fix_count:
            break
        whole = FixResult(
            one.data, whole.fix_count + one.fix_count, whole.error_count + one.error_count
        )
        problems = find_problems(whole.data)
    return whole


def fix_once(data: bytes, problems: Iterable[Problem]) -> FixResult:
    """Fix all fixable problems of one file, once.

    A problem is skipped if its line in `data` is not the line in which it was found.
    """
    text = data.decode(errors="surrogateescape")
    lines = text.removeprefix(_BOM).split("\n")
    before, mended = [*lines], list[Problem]()
    # from the end to the start, so that earlier positions stay valid
    for problem in sorted(problems, reverse=True):
        if problem.fix is not None and before[problem.line - 1].rstrip("\r") == problem.excerpt:
            lines[problem.line - 1 : problem.line] = _fix_line(
                lines[problem.line - 1], problem, problem.fix
            )
            mended.append(problem)
    errors = sum(problem.severity == "error" for problem in mended)
    return FixResult(
        (_BOM * text.startswith(_BOM) + "\n".join(lines)).encode(errors="surrogateescape"),
        len(mended),
        errors,
    )


def _fix_line(line: str, problem: Problem, fix: str) -> list[str]:
    """Return the line with the fix applied, or no line if nothing is left of it."""
    start, end = problem.column - 1, problem.column - 1 + problem.length
    text, ending = (line[:-1], "\r") if line.endswith("\r") else (line, "")
    found = text[:start] + fix.replace("{}", text[start:end]) + text[end:]
    return [found.rstrip() + ending if not fix else found + ending] if found.strip() else []
