"""Problems that have one right answer, mended in the text of their file. All else of the file stays
as it was. Pure.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from toolcatalog.errors import Problem

_MARK = "\ufeff"
_ROUNDS = 8  # of mending and looking again, at most; two are enough for all that is known


class Fixed(NamedTuple):
    """The bytes of a file, how many problems have been mended in it, and how many of those were
    errors.
    """

    data: bytes
    mended: int
    errors: int


def settled(
    data: bytes, problems: Iterable[Problem], look: Callable[[bytes], Iterable[Problem]]
) -> Fixed:
    """Mend a file until nothing is left to mend: what hides behind a value of the wrong type is
    found once that is mended.

    `look` finds the problems of the file with other bytes in it.
    """
    whole = Fixed(data, 0, 0)
    for _ in range(_ROUNDS):
        one = fixed(whole.data, problems)
        if not one.mended:
            break
        whole = Fixed(one.data, whole.mended + one.mended, whole.errors + one.errors)
        problems = look(whole.data)
    return whole


def fixed(data: bytes, problems: Iterable[Problem]) -> Fixed:
    """Mend what can be mended of one file's problems. A line that is not the one in which a problem
    was found is left alone.
    """
    text = data.decode(errors="surrogateescape")
    lines = text.removeprefix(_MARK).split("\n")
    before, mended = [*lines], list[Problem]()
    # from the end on, so that what is before stays at its place
    for problem in sorted(problems, reverse=True):
        if problem.fix is not None and before[problem.line - 1].rstrip("\r") == problem.excerpt:
            lines[problem.line - 1 : problem.line] = _line(
                lines[problem.line - 1], problem, problem.fix
            )
            mended.append(problem)
    errors = sum(problem.severity == "error" for problem in mended)
    return Fixed(
        (_MARK * text.startswith(_MARK) + "\n".join(lines)).encode(errors="surrogateescape"),
        len(mended),
        errors,
    )


def _line(line: str, problem: Problem, fix: str) -> list[str]:
    """The line with what is written instead; none where nothing is left of it."""
    start, end = problem.column - 1, problem.column - 1 + problem.length
    text, ending = (line[:-1], "\r") if line.endswith("\r") else (line, "")
    found = text[:start] + fix.replace("{}", text[start:end]) + text[end:]
    return [found.rstrip() + ending if not fix else found + ending] if found.strip() else []
