"""Automatic fixes: repair problems that have one right answer in the text of their file.

All else of the file stays
as it was. Pure.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from toolcatalog.errors import Problem

_BOM = "\ufeff"
_MAX_ROUNDS = 8  # of mending and looking again, at most; two are enough for all that is known


class FixResult(NamedTuple):
    """The bytes of a file, how many problems have been mended in it, and how many of those were
    errors.
    """

    data: bytes
    fix_count: int
    error_count: int


def fix_until_stable(
    data: bytes, problems: Iterable[Problem], find_problems: Callable[[bytes], Iterable[Problem]]
) -> FixResult:
    """Mend a file until nothing is left to mend: what hides behind a value of the wrong type is
    found once that is mended.

    `look` finds the problems of the file with other bytes in it.
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
    """Mend what can be mended of one file's problems. A line that is not the one in which a problem
    was found is left alone.
    """
    text = data.decode(errors="surrogateescape")
    lines = text.removeprefix(_BOM).split("\n")
    before, mended = [*lines], list[Problem]()
    # from the end on, so that what is before stays at its place
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
    """The line with what is written instead; none where nothing is left of it."""
    start, end = problem.column - 1, problem.column - 1 + problem.length
    text, ending = (line[:-1], "\r") if line.endswith("\r") else (line, "")
    found = text[:start] + fix.replace("{}", text[start:end]) + text[end:]
    return [found.rstrip() + ending if not fix else found + ending] if found.strip() else []
