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


def say(text: str) -> None:
    """A plain line for people."""
    print(text, file=sys.stderr, flush=True)


def show(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Lines of pieces with styles, on standard output: what was asked for, in colours where a
    person reads it.
    """
    if sys.stdout.isatty():
        _drawing().shown(lines)
    else:
        for line in lines:
            print("".join(text for text, _ in line).rstrip())


def error(text: str) -> None:
    """One sentence that says what is wrong and what to do."""
    _drawing().error(text)


def problems(found: Sequence[Problem], files: int, rest: str = "") -> None:
    """Every problem as a compiler would show it, and a line that counts them, with the rest that
    there is to say behind it.
    """
    if not found:
        say(f"All is well in {files:,} files. {rest}".rstrip())
    elif sys.stderr.isatty() or os.environ.get("FORCE_COLOR"):
        _drawing().problems(found, files, rest)
    else:
        sys.stderr.write("".join(text for text, _ in excerpts.told(found, files, rest)))
        sys.stderr.flush()


@contextmanager
def track(label: str, total: int) -> Iterator[Advance]:
    """Show how far a stage of work is, at which rate and how much time is left; where there is no
    terminal, one line for each stage.
    """
    if not total:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _drawing().bar(label, total) as advance:
            yield advance
    else:
        say(f"{label}: {total:,}")
        yield lambda _: None


def _drawing() -> ModuleType:
    return importlib.import_module("toolcatalog.cli.drawing")
