"""What people are told, on standard error: plain lines here, and what takes colours or a bar in
`drawing`, loaded when it is needed.
"""

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from toolcatalog.cli import excerpts
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
        sys.stderr.write(
            "".join(text for text, _ in excerpts.format_problems(problems, file_count, note))
        )
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
    return importlib.import_module("toolcatalog.cli.drawing")
