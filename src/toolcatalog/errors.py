"""Errors, findings and problems: the exception tree with its exit codes, and problems as values.

An invalid catalog is no exception but a list of problems. A module that checks something returns
`Finding`s (what is wrong, and at which value of which file), and the package `catalog` turns them
into `Problem`s (at which line and column). Exceptions are for errors that stop a command; each has
one sentence that says what to do.

    ToolcatalogError
    +-- UsageError        a folder, file, port or flag that cannot be used    (exit 2)
    +-- InvalidCatalog    the catalog has problems                            (exit 1)
    +-- ShrunkCatalog     a build would lose many of the current tools        (exit 1)
    +-- SnapshotError     the build output is missing, damaged or foreign     (exit 2)
    +-- KeyFileError      the key file is missing, damaged or not readable    (exit 2)
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

_MAX_SHOWN_FAULTS = 10  # faults shown at once


def raise_all(faults: list[str]) -> None:
    """Raise UsageError with the first ten messages, if there are any."""
    if faults:
        more = (
            [f"... and {len(faults) - _MAX_SHOWN_FAULTS:,} more like these."]
            if len(faults) > _MAX_SHOWN_FAULTS
            else []
        )
        raise UsageError("\n".join([*faults[:_MAX_SHOWN_FAULTS], *more]))


_REMEDIES = dict.fromkeys(
    (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.EINVAL),
    "move what is in its way",
) | {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free space in the quota of its owner",
    errno.EFBIG: "allow larger files (`ulimit -f`)",
    errno.EROFS: "mount its disk for writing",
    errno.EIO: "check its disk for errors",
    errno.EMFILE: "allow more open files (`ulimit -n`)",
    errno.ENFILE: "close some of the many files that are open on this machine",
}

Pointer = tuple[str | int, ...]
# the hint for a snapshot that cannot be used
REBUILD_HINT = "run `toolcatalog build`, or name another build with --build."
# more are of no use, and a hundred thousand in one file take minutes
MAX_FINDINGS_PER_FILE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong at one value of one file.

    `path` is relative to the catalog folder; `pointer` leads from the file's root to the value by
    keys and indexes. With `at_key`, the key of that value is meant and not the value. A finding in
    a comment, which is no value, has a `line` instead. `expected` and `help` may be empty. `fix` is
    the replacement for the value, with `{}` for its current text; it is only set if no other fix is
    right. `unsafe_fix` is a replacement that is probably right.
    """

    path: str
    pointer: Pointer = ()
    at_key: bool = False
    rule: str
    message: str
    expected: str = ""
    help: str = ""
    fix: str | None = None
    unsafe_fix: str | None = None
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """A finding with its location; sorts by location, then rule.

    `line` and `column` count from 1, `column` in characters. `excerpt` is the source line, or a
    piece of a long one that begins after `excerpt_start` characters.
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
    excerpt_start: int = field(default=0, compare=False)
    length: int = field(default=1, compare=False)
    fix: str | None = field(default=None, compare=False)
    unsafe_fix: str | None = field(default=None, compare=False)

    @property
    def row(self) -> tuple[Any, ...]:
        """All fields as a row, for storage as JSON."""
        row: tuple[Any, ...] = _to_row(self)
        return row

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Problem":
        """Return the problem with this row."""
        return cls(**dict(zip(cls.__dataclass_fields__, row, strict=True)))


_to_row = attrgetter(*Problem.__dataclass_fields__)


def remedy(error: OSError) -> str:
    """Return how to fix an error of reading or writing a file, as the beginning of a clause.

    The caller may add an alternative.
    """
    return _REMEDIES.get(error.errno or 0, "fix its permissions")


class ToolcatalogError(Exception):
    """The base class of all errors; the text is one sentence for the user."""


class UsageError(ToolcatalogError):
    """Something that the caller named cannot be used."""


class InvalidCatalog(ToolcatalogError):
    """The catalog has problems.

    `problems` has all of them, sorted; `file_count` is the number of files that were read.
    """

    def __init__(self, problems: Sequence[Problem], file_count: int) -> None:
        super().__init__(f"{len(problems)} problem(s) in the catalog")
        self.problems = tuple(problems)
        self.file_count = file_count


class ShrunkCatalog(ToolcatalogError):
    """The catalog is valid, but a build would lose so many current tools that it needs a review."""


class SnapshotError(ToolcatalogError):
    """The snapshot cannot be used."""


class KeyFileError(ToolcatalogError):
    """The key file cannot be used."""


def write_error(path: object, error: OSError, alternative: str = "") -> UsageError:
    """Return the UsageError for a path that cannot be written; `alternative` follows the remedy."""
    return UsageError(f"Cannot write {path} ({error.strerror}): {remedy(error)}{alternative}.")
