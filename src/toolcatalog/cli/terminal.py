"""What people are told, on standard error: plain lines here, and what takes colours or a bar in `drawing`, loaded when it is needed."""

import importlib
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from toolcatalog.errors import Problem


def say(text: str) -> None:
    """A plain line for people."""
    print(text, file=sys.stderr, flush=True)


def error(text: str) -> None:
    """One sentence that says what is wrong and what to do."""
    _drawing().error(text)


def problems(found: Sequence[Problem], files: int) -> None:
    """Every problem as a compiler would show it, and a line that counts them."""
    _drawing().problems(found, files)


def track(label: str, items: Sequence[Any]) -> Iterable[Any]:
    """Hand the items on under a progress bar; where there is no terminal, print one line for each stage."""
    if sys.stderr.isatty():
        yield from _drawing().bar(label, items)
    else:
        say(f"{label}: {len(items):,}")
        yield from items


def _drawing() -> ModuleType:
    return importlib.import_module("toolcatalog.cli.drawing")
