"""Terminal output: messages, and problems with source line and caret.

There may be ten thousand of them, so nothing here needs rich, which takes longer to load, and
longest for each line, than all the rest; but for the widths of characters beyond ASCII.
"""

import importlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from toolcatalog.errors import Problem
from toolcatalog.progress import Advance


def print_message(text: str) -> None:
    """A plain line for people."""
    print(text, file=sys.stderr, flush=True)


def print_lines(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Lines of pieces with styles, on standard output: what was asked for, in colours where a
    person reads it.
    """
    if sys.stdout.isatty():
        _load_rich_output().print_rich_lines(lines)
    else:
        for line in lines:
            print("".join(text for text, _ in line).rstrip())


def print_error(text: str) -> None:
    """One sentence that says what is wrong and what to do."""
    _load_rich_output().print_rich_error(text)


def print_problems(problems: Sequence[Problem], file_count: int, note: str = "") -> None:
    """Every problem as a compiler would show it, and a line that counts them, with the rest that
    there is to say behind it.
    """
    if not problems:
        print_message(f"All is well in {file_count:,} files. {note}".rstrip())
    elif sys.stderr.isatty() or os.environ.get("FORCE_COLOR"):
        _load_rich_output().print_rich_problems(problems, file_count, note)
    else:
        sys.stderr.write("".join(text for text, _ in format_problems(problems, file_count, note)))
        sys.stderr.flush()


@contextmanager
def show_progress(label: str, total: int) -> Iterator[Advance]:
    """Show how far a stage of work is, at which rate and how much time is left; where there is no
    terminal, one line for each stage.
    """
    if not total:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _load_rich_output().rich_progress_bar(label, total) as advance:
            yield advance
    else:
        print_message(f"{label}: {total:,}")
        yield lambda _: None


def _load_rich_output() -> ModuleType:
    return importlib.import_module("toolcatalog.cli.rich_output")


MAX_WIDTH = 110  # cells of a line with a part of a source file
_SEVERITY_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}

StyledText = tuple[str, str]  # a text and its style; none: plain


def format_problems(
    problems: Sequence[Problem], file_count: int, note: str, width: int = MAX_WIDTH
) -> Iterator[StyledText]:
    """Every problem with an empty line behind it, and a line that counts them, with the rest that
    there is to say.
    """
    for problem in problems:
        yield from format_problem(problem, width)
        yield "\n", ""
    severities = Counter(problem.severity for problem in problems)
    counts = ", ".join(
        _pluralize(severities[severity], severity)
        for severity in _SEVERITY_COLORS
        if severities[severity]
    )
    places = len({problem.path for problem in problems})
    yield (
        f"{counts} in {_pluralize(places, 'file')}, of {_pluralize(file_count, 'file')} read. {note}".rstrip()
        + "\n",
        "bold",
    )


def format_problem(problem: Problem, width: int = MAX_WIDTH) -> list[StyledText]:
    """One problem: place, rule, what was found, the source line with a caret, what was expected and
    what to do.

    Lines of the source are cut to `room` cells, so that the caret stays below its place; sentences
    are left to wrap.
    """
    colour = _SEVERITY_COLORS[problem.severity]
    gutter = " " * len(str(problem.line))
    pieces = [
        (f"{problem.path}:{problem.line}:{problem.column}", "bold"),
        (": ", ""),
        (problem.severity, f"bold {colour}"),
        (f"[{problem.rule}]", colour),
        (f" {problem.message}\n", ""),
    ]
    if problem.excerpt.strip():
        before, marked, after = _cut_source_line(problem, width - len(gutter) - 4)
        caret = " " * _cell_width(before) + "^" * max(1, _cell_width(marked))
        pieces += [(f" {gutter} |\n {problem.line} | ", "blue"), (f"{before}{marked}{after}\n", "")]
        pieces += [(f" {gutter} | ", "blue"), (f"{caret}\n", f"bold {colour}")]
    for label, said in (("expected", problem.expected), ("help", problem.help)):
        if said:
            pieces += [(f" {gutter} = ", "blue"), (f"{label}: ", "bold"), (f"{said}\n", "")]
    return pieces


def _cut_source_line(problem: Problem, width: int) -> tuple[str, str, str]:
    """The source line as far as there is room, one printable character for each of it: before the
    place, at it, after it.
    """
    line = (
        problem.excerpt
        if problem.excerpt.isprintable()
        else "".join(map(_printable_char, problem.excerpt))
    )
    start = problem.column - 1
    before, marked, after = (
        line[:start],
        line[start : start + problem.length],
        line[start + problem.length :],
    )
    if _cell_width(line) > width:
        before = _truncate(before[::-1], max(width // 3, width - _cell_width(marked + after)))[::-1]
        marked = _truncate(marked, width - _cell_width(before))
        after = _truncate(after, width - _cell_width(before + marked))
    return before, marked, after


def _printable_char(char: str) -> str:
    """A character, or something of its width in place of one that cannot be printed."""
    return char if char.isprintable() else ("\N{REPLACEMENT CHARACTER}" if char != "\t" else " ")


def _truncate(text: str, width: int) -> str:
    """The text, or as much of it as fits before an ellipsis."""
    if _cell_width(text) <= width:
        return text
    from rich.cells import set_cell_size  # noqa: PLC0415 - see above

    return f"{set_cell_size(text, width - 1)}\N{HORIZONTAL ELLIPSIS}" if width > 0 else ""


def _cell_width(text: str) -> int:
    """How many cells of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - see above

    return cell_len(text)


def _pluralize(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
