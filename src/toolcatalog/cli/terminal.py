"""What people are told, on standard error: plain lines here, and what takes colours or a bar in `drawing`, loaded when it is needed."""

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from toolcatalog.errors import Problem
from toolcatalog.progress import Advance


def say(text: str) -> None:
    """A plain line for people."""
    print(text, file=sys.stderr, flush=True)


def error(text: str) -> None:
    """One sentence that says what is wrong and what to do."""
    _drawing().error(text)


def problems(found: Sequence[Problem], files: int) -> None:
    """Every problem as a compiler would show it, and a line that counts them."""
    _drawing().problems(found, files)


@contextmanager
def track(label: str, total: int) -> Iterator[Advance]:
    """Show how far a stage of work is, at which rate and how much time is left; where there is no terminal, one line for each stage."""
    if sys.stderr.isatty():
        with _drawing().bar(label, total) as advance:
            yield advance
    else:
        say(f"{label}: {total:,}")
        yield lambda _: None


def _drawing() -> ModuleType:
    return importlib.import_module("toolcatalog.cli.drawing")
