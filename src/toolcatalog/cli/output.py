"""Terminal output: messages, and problems with source line and caret.

There can be ten thousand problems. Loading rich, and formatting a line with it, takes longer than
everything else, so this module uses it only for colors, progress bars and the widths of characters
beyond ASCII.
"""

import importlib
import logging
import os
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from toolcatalog.errors import Problem
from toolcatalog.progress import Advance
from toolcatalog.textutils import escape_hidden, escape_unprintable, pluralize

_log = logging.getLogger("toolcatalog.cli")
_LINE_BREAKS = str.maketrans({"\n": "\\n", "\r": "\\r"})
_BEFORE_COMMAND = re.compile(r"\n(?=\s*::)")  # GitHub Actions runs a line such as ::add-mask::x
_state = {"quiet": False}


def set_quiet(*, quiet: bool) -> None:
    """Switch messages and progress off or on. Results and errors are always printed."""
    _state["quiet"] = quiet


def print_message(text: str) -> None:
    """Print a plain line to standard error, unless messages are switched off.

    Parts of it may come from files and servers, so it is made printable.
    """
    if not _state["quiet"]:
        print(escape_unprintable(text), file=sys.stderr, flush=True)


def print_lines(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Print lines of styled text to standard output, with colors on a terminal.

    Line breaks and hidden characters within a text are escaped.
    """
    visible = ([(_escape_text(text), style) for text, style in line] for line in lines)
    if sys.stdout.isatty():
        _load_rich_output().print_rich_lines(visible)
    else:
        for line in visible:
            print("".join(text for text, _ in line).rstrip())
        sys.stdout.flush()  # a full disk is reported before any message that follows


def _escape_text(text: str) -> str:
    """Return a text as part of a line; unlike in messages, joiners of scripts and emoji stay."""
    return escape_hidden(text).translate(_LINE_BREAKS)


def print_error(text: str) -> None:
    """Print an error: one sentence that says what is wrong and what to do.

    Parts of it may come from files and servers, so it is made printable.
    """
    _load_rich_output().print_rich_error(_escape_lines(text))


def print_problems(
    problems: Sequence[Problem], file_count: int, note: str = "", *, to_stdout: bool = False
) -> None:
    """Print every problem as a compiler would, and a summary line that ends with `note`.

    They are printed to standard error, or to standard output where they are the result.
    """
    stream = sys.stdout if to_stdout else sys.stderr
    if not problems:
        print_message(f"No problems in {pluralize(file_count, 'file')}. {note}".rstrip())
    elif stream.isatty() or os.environ.get("FORCE_COLOR"):
        _load_rich_output().print_rich_problems(problems, file_count, note, to_stdout=to_stdout)
    else:
        stream.write("".join(text for text, _ in format_problems(problems, file_count, note)))
        stream.flush()


def print_warning(text: str) -> None:
    """Print a warning: one sentence about something that may be a mistake."""
    print(f"warning: {escape_unprintable(text)}", file=sys.stderr, flush=True)


def print_traceback(error: BaseException) -> None:
    """Print the traceback of a bug, whose message may come from files and servers."""
    text = "".join(traceback.format_exception(error)).rstrip("\n")
    print(_escape_lines(text), file=sys.stderr, flush=True)


def _escape_lines(text: str) -> str:
    """Return printable lines, none of which is a command of GitHub Actions."""
    lines = _BEFORE_COMMAND.sub(r"\\n", text).split("\n")
    return "\n".join(map(escape_unprintable, lines))


@contextmanager
def show_progress(label: str, total: int) -> Iterator[Advance]:
    """Show the progress, rate and remaining time of a stage of work.

    Without a terminal, print one line for the stage.
    """
    start = time.perf_counter()
    if not total or _state["quiet"]:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _load_rich_output().rich_progress_bar(label, total) as advance:
            yield advance
    else:
        print_message(f"{label}: {total:,}")
        yield lambda _: None
    _log.debug("%s: %d in %.3f s", label, total, time.perf_counter() - start)


def _load_rich_output() -> ModuleType:
    return importlib.import_module("toolcatalog.cli.rich_output")


MAX_WIDTH = 110  # cells of a line with a part of a source file
_SEVERITY_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}

StyledText = tuple[str, str]  # a text and its style; none: plain


def format_problems(
    problems: Sequence[Problem], file_count: int, note: str, width: int = MAX_WIDTH
) -> Iterator[StyledText]:
    """Yield every problem with an empty line after it, and a summary line that ends with `note`."""
    for problem in problems:
        yield from format_problem(problem, width)
        yield "\n", ""
    severities = Counter(problem.severity for problem in problems)
    counts = ", ".join(
        pluralize(severities[severity], severity)
        for severity in _SEVERITY_COLORS
        if severities[severity]
    )
    path_count = len({problem.path for problem in problems})
    yield (
        f"{counts} in {pluralize(path_count, 'file')}, of {pluralize(file_count, 'file')} read."
        f" {note}".rstrip()
        + "\n",
        "bold",
    )


def format_problem(problem: Problem, width: int = MAX_WIDTH) -> list[StyledText]:
    """Return one problem: location, rule, message, source line with caret, expectation and help.

    Source lines are cut to `width` cells, so that the caret stays below its position. Sentences may
    wrap.
    """
    color = _SEVERITY_COLORS[problem.severity]
    gutter = " " * len(str(problem.line))
    pieces = [
        (f"{problem.path}:{problem.line}:{problem.column}", "bold"),
        (": ", ""),
        (problem.severity, f"bold {color}"),
        (f"[{problem.rule}]", color),
        (f" {problem.message}\n", ""),
    ]
    if problem.excerpt.strip():
        before, marked, after = _cut_source_line(problem, width - len(gutter) - 4)
        caret = " " * _cell_width(before) + "^" * max(1, _cell_width(marked))
        pieces += [(f" {gutter} |\n {problem.line} | ", "blue"), (f"{before}{marked}{after}\n", "")]
        pieces += [(f" {gutter} | ", "blue"), (f"{caret}\n", f"bold {color}")]
    for label, text in (("expected", problem.expected), ("help", problem.help)):
        if text:
            pieces += [(f" {gutter} = ", "blue"), (f"{label}: ", "bold"), (f"{text}\n", "")]
    return pieces


def _cut_source_line(problem: Problem, width: int) -> tuple[str, str, str]:
    """Return the source line within `width` cells: before the position, at it, and after it.

    Unprintable characters are replaced one by one.
    """
    line = (
        problem.excerpt
        if problem.excerpt.isprintable()
        else "".join(map(_printable_char, problem.excerpt))
    )
    start = problem.column - 1 - problem.excerpt_start
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
    """Return a character, or one of the same width if it is unprintable."""
    return char if char.isprintable() else ("\N{REPLACEMENT CHARACTER}" if char != "\t" else " ")


def _truncate(text: str, width: int) -> str:
    """Return the text, cut to a width in cells with an ellipsis at the end."""
    if _cell_width(text) <= width:
        return text
    if width <= 0:
        return ""
    return f"{_load_rich_cells().set_cell_size(text, width - 1)}\N{HORIZONTAL ELLIPSIS}"


def _cell_width(text: str) -> int:
    """Return the number of terminal cells of a printable text."""
    if text.isascii():
        return len(text)
    width: int = _load_rich_cells().cell_len(text)
    return width


def _load_rich_cells() -> ModuleType:
    return importlib.import_module("rich.cells")
