"""What only a terminal shows, or only a failure needs: problems with excerpt and caret, errors, a progress bar. The only room with rich.

Only `terminal` loads this, and only when there is something to draw: rich takes longer to load than the rest of a command. In a pipe
the words are the same, without colours.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from toolcatalog.errors import Problem
from toolcatalog.progress import Advance

_WIDEST = 110  # cells of a line with a part of a source file


def _console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def error(text: str) -> None:
    """One sentence that says what is wrong and what to do."""
    _console().print(Text.assemble(("error: ", "bold red"), text))


def problems(found: Sequence[Problem], files: int) -> None:
    """Every problem as a compiler would show it, and a line that counts them."""
    console = _console()
    room = min(console.width, _WIDEST) if console.is_terminal else _WIDEST
    for problem in found:
        console.print(explained(problem, room))
    places = len({problem.path for problem in found})
    counts = f"{_count(len(found), 'problem')} in {_count(places, 'file')}, of {_count(files, 'file')} read."
    console.print(Text(f"{counts} Nothing was built.", "bold"))


def explained(problem: Problem, room: int = _WIDEST) -> Text:
    """One problem: place, rule, what was found, the source line with a caret, what was expected and what to do.

    Lines of the source are cut to `room` cells, so that the caret stays below its place; sentences are left to wrap.
    """
    place = f"{problem.path}:{problem.line}:{problem.column}"
    text = Text.assemble((place, "bold"), ": ", ("error", "bold red"), (f"[{problem.rule}]", "red"), f" {problem.message}\n")
    gutter = " " * len(str(problem.line))
    if problem.excerpt.strip():
        before, marked, after = _window(problem, room - len(gutter) - 4)
        text.append(f" {gutter} |\n", "blue").append(f" {problem.line} | ", "blue").append(f"{before}{marked}{after}\n")
        text.append(f" {gutter} | ", "blue").append(" " * cell_len(before) + "^" * max(1, cell_len(marked)) + "\n", "bold red")
    for label, said in (("expected", problem.expected), ("help", problem.help)):
        if said:
            text.append(f" {gutter} = ", "blue").append(f"{label}: ", "bold").append(f"{said}\n")
    return text


def _window(problem: Problem, room: int) -> tuple[str, str, str]:
    """The source line as far as there is room, one printable character for each of it: before the place, at it, after it."""
    line = "".join(char if char.isprintable() else ("\N{REPLACEMENT CHARACTER}" if char != "\t" else " ") for char in problem.excerpt)
    start = problem.column - 1
    before, marked, after = line[:start], line[start : start + problem.length], line[start + problem.length :]
    if cell_len(line) > room:
        before = _cut(before[::-1], max(room // 3, room - cell_len(marked + after)))[::-1]
        marked = _cut(marked, room - cell_len(before))
        after = _cut(after, room - cell_len(before + marked))
    return before, marked, after


def _cut(text: str, room: int) -> str:
    """The text, or as much of it as fits before an ellipsis."""
    if cell_len(text) <= room:
        return text
    return f"{set_cell_size(text, room - 1)}\N{HORIZONTAL ELLIPSIS}" if room > 0 else ""


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


@contextmanager
def bar(label: str, total: int) -> Iterator[Advance]:
    """A progress bar for a stage of work, with its rate and the time that is left."""
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=_console(), transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done: progress.advance(task, done)


class _Rate(ProgressColumn):
    """How many items a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")
