"""Errors, findings and problems: the exception tree with its exit codes, and problems as values.

A wrong catalog is not an exception but a list of problems: a room that checks something returns
`Finding`s (what is wrong, and at which value of which file), and `source` turns them into
`Problem`s (at which line and column). Exceptions are for what stops a command; each carries one
sentence that says what to do.

    ToolcatalogError
    +-- UsageError        a folder, file, port or flag that cannot be used    (exit 2)
    +-- InvalidCatalog    the catalog has problems                            (exit 1)
    +-- ShrunkCatalog     a build would be without many of the tools there are (exit 1)
    +-- SnapshotError     the build output is missing, damaged or foreign     (exit 2)
    +-- KeyFileError      the key file is missing, damaged or not readable    (exit 2)
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

_MAX_SHOWN_FAULTS = 10  # faults told at once


def raise_all(faults: list[str]) -> None:
    """Raise UsageError with the first few sentences, if there are any."""
    if faults:
        more = (
            [f"... and {len(faults) - _MAX_SHOWN_FAULTS:,} more like these."]
            if len(faults) > _MAX_SHOWN_FAULTS
            else []
        )
        raise UsageError("\n".join([*faults[:_MAX_SHOWN_FAULTS], *more]))


_REMEDIES = dict.fromkeys(
    (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP), "move what is in its way"
) | {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room in its owner's quota",
    errno.EFBIG: "allow larger files (`ulimit -f`)",
    errno.EROFS: "have its disk mounted for writing",
    errno.EIO: "look whether its disk is sound",
    errno.EMFILE: "allow more open files (`ulimit -n`)",
    errno.ENFILE: "close some of the many files that are open on this machine",
}

Pointer = tuple[str | int, ...]
# what to do about a snapshot that cannot be used
REBUILD_HINT = "run `toolcatalog build`, or name another build with --build."
# problems told of one file: past it nobody reads them, and finding a hundred thousand takes minutes
MAX_FINDINGS_PER_FILE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong at one value of one file.

    `path` is relative to the catalog folder; `pointer` leads from the file's root to the value by
    keys and indexes; with `at_key` the key of that value is meant and not the value itself. What is
    wrong with a comment, which is no value, names its `line` instead. `expected` and `help` may be
    empty. `fix` is what to write at that place instead, with `{}` for what stands there, where no
    other answer is right.
    """

    path: str
    pointer: Pointer = ()
    at_key: bool = False
    rule: str
    message: str
    expected: str = ""
    help: str = ""
    fix: str | None = None
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """A finding with its place: `line` and `column` count from 1, `column` in characters. Sorts by
    place, then rule.
    """

    path: str
    line: int
    column: int
    rule: str
    message: str
    expected: str = ""
    help: str = ""
    severity: str = "error"
    excerpt: str = field(default="", compare=False)
    length: int = field(default=1, compare=False)
    fix: str | None = field(default=None, compare=False)

    @property
    def row(self) -> tuple[Any, ...]:
        """All of it in a row, to be kept as JSON."""
        row: tuple[Any, ...] = _to_row(self)
        return row

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Problem":
        """The problem that gave this row."""
        return cls(**dict(zip(cls.__dataclass_fields__, row, strict=True)))


_to_row = attrgetter(*Problem.__dataclass_fields__)


def remedy(error: OSError) -> str:
    """What to do about a file that cannot be read or written, as the beginning of a clause that may
    name a way around it.
    """
    return _REMEDIES.get(error.errno or 0, "mend its permissions")


class ToolcatalogError(Exception):
    """The base of all: its text is one sentence for the person at the terminal."""


class UsageError(ToolcatalogError):
    """Something that the caller named cannot be used as it is."""


class InvalidCatalog(ToolcatalogError):
    """The catalog has problems; `problems` holds all of them, sorted; `files` is how many files
    were read.
    """

    def __init__(self, problems: Sequence[Problem], file_count: int) -> None:
        super().__init__(f"{len(problems)} problem(s) in the catalog")
        self.problems = tuple(problems)
        self.file_count = file_count


class ShrunkCatalog(ToolcatalogError):
    """The catalog is sound, and has so few of the tools that are served now that somebody should
    look before they are gone.
    """


class SnapshotError(ToolcatalogError):
    """The snapshot cannot be served."""


class KeyFileError(ToolcatalogError):
    """The key file cannot be used."""
