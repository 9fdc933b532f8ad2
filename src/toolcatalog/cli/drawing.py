"""What only a terminal shows, or only a failure needs: problems with excerpt and caret, errors, a progress bar. The only room with rich.

Only `terminal` loads this, and only when there is something to draw: rich takes longer to load than the rest of a command. In a pipe
the words are the same, without colours.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from toolcatalog.errors import Problem
from toolcatalog.progress import Advance

_WIDEST = 110  # cells of a line with a part of a source file
_AT_ONCE = 100  # problems that are drawn together: much quicker than one by one
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def _console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def shown(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Lines of pieces with styles, on standard output."""
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    for line in lines:
        console.print(Text.assemble(*line))


def error(text: str) -> None:
    """One sentence that says what is wrong and what to do."""
    _console().print(Text.assemble(("error: ", "bold red"), text))


def problems(found: Sequence[Problem], files: int, rest: str) -> None:
    """Every problem as a compiler would show it, and a line that counts them."""
    console = _console()
    room = min(console.width, _WIDEST) if console.is_terminal else _WIDEST
    for start in range(0, len(found), _AT_ONCE):
        console.print(Text("\n").join(explained(problem, room) for problem in found[start : start + _AT_ONCE]))
    severities = Counter(problem.severity for problem in found)
    counts = ", ".join(_count(severities[severity], severity) for severity in _COLOURS if severities[severity])
    places = len({problem.path for problem in found})
    console.print(Text(f"{counts} in {_count(places, 'file')}, of {_count(files, 'file')} read. {rest}".rstrip(), "bold"))


def explained(problem: Problem, room: int = _WIDEST) -> Text:
    """One problem: place, rule, what was found, the source line with a caret, what was expected and what to do.

    Lines of the source are cut to `room` cells, so that the caret stays below its place; sentences are left to wrap.
    """
    place, colour = f"{problem.path}:{problem.line}:{problem.column}", _COLOURS[problem.severity]
    text = Text.assemble(
        (place, "bold"), ": ", (problem.severity, f"bold {colour}"), (f"[{problem.rule}]", colour), f" {problem.message}\n"
    )
    gutter = " " * len(str(problem.line))
    if problem.excerpt.strip():
        before, marked, after = _window(problem, room - len(gutter) - 4)
        text.append(f" {gutter} |\n", "blue").append(f" {problem.line} | ", "blue").append(f"{before}{marked}{after}\n")
        caret = " " * cell_len(before) + "^" * max(1, cell_len(marked))
        text.append(f" {gutter} | ", "blue").append(f"{caret}\n", f"bold {colour}")
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
