"""A problem as a compiler would show it: place, rule, source line and caret, as pieces of text with
the style of each. Pure.

There may be ten thousand of them, so nothing here needs rich, which takes longer to load, and
longest for each line, than all the rest; but for the widths of characters beyond ASCII.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from toolcatalog.errors import Problem

WIDEST = 110  # cells of a line with a part of a source file
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}

Piece = tuple[str, str]  # a text and its style; none: plain


def told(found: Sequence[Problem], files: int, rest: str, room: int = WIDEST) -> Iterator[Piece]:
    """Every problem with an empty line behind it, and a line that counts them, with the rest that
    there is to say.
    """
    for problem in found:
        yield from explained(problem, room)
        yield "\n", ""
    severities = Counter(problem.severity for problem in found)
    counts = ", ".join(
        _count(severities[severity], severity) for severity in _COLOURS if severities[severity]
    )
    places = len({problem.path for problem in found})
    yield (
        f"{counts} in {_count(places, 'file')}, of {_count(files, 'file')} read. {rest}".rstrip()
        + "\n",
        "bold",
    )


def explained(problem: Problem, room: int = WIDEST) -> list[Piece]:
    """One problem: place, rule, what was found, the source line with a caret, what was expected and
    what to do.

    Lines of the source are cut to `room` cells, so that the caret stays below its place; sentences
    are left to wrap.
    """
    colour = _COLOURS[problem.severity]
    gutter = " " * len(str(problem.line))
    pieces = [
        (f"{problem.path}:{problem.line}:{problem.column}", "bold"),
        (": ", ""),
        (problem.severity, f"bold {colour}"),
        (f"[{problem.rule}]", colour),
        (f" {problem.message}\n", ""),
    ]
    if problem.excerpt.strip():
        before, marked, after = _window(problem, room - len(gutter) - 4)
        caret = " " * _cells(before) + "^" * max(1, _cells(marked))
        pieces += [(f" {gutter} |\n {problem.line} | ", "blue"), (f"{before}{marked}{after}\n", "")]
        pieces += [(f" {gutter} | ", "blue"), (f"{caret}\n", f"bold {colour}")]
    for label, said in (("expected", problem.expected), ("help", problem.help)):
        if said:
            pieces += [(f" {gutter} = ", "blue"), (f"{label}: ", "bold"), (f"{said}\n", "")]
    return pieces


def _window(problem: Problem, room: int) -> tuple[str, str, str]:
    """The source line as far as there is room, one printable character for each of it: before the
    place, at it, after it.
    """
    line = (
        problem.excerpt if problem.excerpt.isprintable() else "".join(map(_shown, problem.excerpt))
    )
    start = problem.column - 1
    before, marked, after = (
        line[:start],
        line[start : start + problem.length],
        line[start + problem.length :],
    )
    if _cells(line) > room:
        before = _cut(before[::-1], max(room // 3, room - _cells(marked + after)))[::-1]
        marked = _cut(marked, room - _cells(before))
        after = _cut(after, room - _cells(before + marked))
    return before, marked, after


def _shown(char: str) -> str:
    """A character, or something of its width in place of one that cannot be printed."""
    return char if char.isprintable() else ("\N{REPLACEMENT CHARACTER}" if char != "\t" else " ")


def _cut(text: str, room: int) -> str:
    """The text, or as much of it as fits before an ellipsis."""
    if _cells(text) <= room:
        return text
    from rich.cells import set_cell_size  # noqa: PLC0415 - see above

    return f"{set_cell_size(text, room - 1)}\N{HORIZONTAL ELLIPSIS}" if room > 0 else ""


def _cells(text: str) -> int:
    """How many cells of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - see above

    return cell_len(text)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
