"""Colors and progress bars, with rich.

Only `output` imports this module, and only when it is needed: importing rich takes longer than the
rest of a command. Without a terminal the text is the same, without colors.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment, Segments
from rich.text import Text

from toolcatalog.cli import output
from toolcatalog.errors import Problem
from toolcatalog.progress import Advance


def _create_console(*, stderr: bool = True) -> Console:
    return Console(stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)


def print_rich_lines(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Print lines of styled text to standard output."""
    console = _create_console(stderr=False)
    for line in lines:
        console.print(Text.assemble(*line))


def print_rich_error(text: str) -> None:
    """Print an error: one sentence that says what is wrong and what to do."""
    _create_console().print(Text.assemble(("error: ", "bold red"), text))


def print_rich_problems(
    problems: Sequence[Problem], file_count: int, note: str, *, to_stdout: bool
) -> None:
    """Print every problem as a compiler would, and a summary line.

    Source lines are as wide as the terminal.
    """
    console = _create_console(stderr=not to_stdout)
    pieces = output.format_problems(
        problems, file_count, note, min(console.width, output.MAX_WIDTH)
    )
    console.print(
        Segments(
            Segment(text, console.get_style(style) if style else None) for text, style in pieces
        ),
        end="",
    )


@contextmanager
def rich_progress_bar(label: str, total: int) -> Iterator[Advance]:
    """Show a progress bar for a stage of work, with its rate and the remaining time."""
    columns = (
        TextColumn("{task.description:24}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=_create_console(), transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done: progress.advance(task, done)


class _RateColumn(ProgressColumn):
    """The number of items per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")
