"""A problem as a compiler would show it: place, rule, source line and caret, as pieces of text with
the style of each. Pure.

There may be ten thousand of them, so nothing here needs rich, which takes longer to load, and
longest for each line, than all the rest; but for the widths of characters beyond ASCII.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from toolcatalog.errors import Problem

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
