"""Colors and progress bars, with rich; loaded only when needed.

The room with rich.

Only `terminal` loads this, and only when there is something to draw: rich takes longer to load than
the rest of a command. In a pipe the words are the same, without colours.
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


def _create_console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def print_rich_lines(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Lines of pieces with styles, on standard output."""
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    for line in lines:
        console.print(Text.assemble(*line))


def print_rich_error(text: str) -> None:
    """One sentence that says what is wrong and what to do."""
    _create_console().print(Text.assemble(("error: ", "bold red"), text))


def print_rich_problems(problems: Sequence[Problem], file_count: int, note: str) -> None:
    """Every problem as a compiler would show it, and a line that counts them; lines of the source
    as wide as the terminal.
    """
    console = _create_console()
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
    """A progress bar for a stage of work, with its rate and the time that is left."""
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
    """How many items a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")
