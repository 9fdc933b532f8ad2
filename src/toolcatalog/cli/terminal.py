"""How things look on a terminal: problems with excerpt and caret, one-line errors, progress. In a pipe the same, without colours."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from toolcatalog.errors import Problem

_WIDEST = 100  # characters of a source line that are shown


def _console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def say(text: str) -> None:
    """A plain line for people, on standard error."""
    _console().print(Text(text))


def error(text: str) -> None:
    """One sentence that says what is wrong and what to do."""
    _console().print(Text.assemble(("error: ", "bold red"), text))


def problems(found: Sequence[Problem], files: int) -> None:
    """Every problem as a compiler would show it, and a line that counts them."""
    console = _console()
    for problem in found:
        console.print(explained(problem))
    places = len({problem.path for problem in found})
    counts = f"{_count(len(found), 'problem')} in {_count(places, 'file')}, of {_count(files, 'file')} read."
    console.print(Text(f"{counts} Nothing was written.", "bold"))


def explained(problem: Problem) -> Text:
    """One problem: place, rule, what was found, the source line with a caret, what was expected and what to do."""
    place = f"{problem.path}:{problem.line}:{problem.column}"
    text = Text.assemble((place, "bold"), ": ", ("error", "bold red"), (f"[{problem.rule}]", "red"), f" {problem.message}\n")
    gutter = " " * len(str(problem.line))
    if problem.excerpt.strip():
        excerpt, column = _window(problem.excerpt, problem.column)
        length = max(1, min(problem.length, len(excerpt) - column + 1))
        text.append(f" {gutter} |\n", "blue").append(f" {problem.line} | ", "blue").append(f"{excerpt}\n")
        text.append(f" {gutter} | ", "blue").append(" " * (column - 1) + "^" * length + "\n", "bold red")
    for label, said in (("expected", problem.expected), ("help", problem.help)):
        if said:
            text.append(f" {gutter} = ", "blue").append(f"{label}: ", "bold").append(f"{said}\n")
    return text


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a source line around a column, printable, with the column in that part."""
    start = max(0, column - _WIDEST // 2) if len(line) > _WIDEST else 0
    part = line[start : start + _WIDEST]
    return "".join(char if char.isprintable() else ("\N{REPLACEMENT CHARACTER}" if char != "\t" else " ") for char in part), column - start


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def track(label: str, items: Sequence[Any]) -> Iterable[Any]:
    """Hand the items on under a progress bar; where there is no terminal, print one line for each stage."""
    console = _console()
    if not console.is_terminal:
        print(f"{label}: {len(items):,}", file=sys.stderr, flush=True)
        yield from items
        return
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield from progress.track(items, description=label)
