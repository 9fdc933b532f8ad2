"""Versions: eight digits, an underscore, two digits; their order and the next version.

A version is stored as text. All versions have the same length and only digits, so the order of the
texts is the order of the versions, and no class is needed. A calendar date is not required:
`00000000_00` is valid.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

LATEST = "latest"
PATTERN = "[0-9]{8}_[0-9]{2}"
_VERSION = re.compile(PATTERN)


def is_version(text: str) -> bool:
    """Return whether `text` is a version: eight digits, an underscore, two digits."""
    return _VERSION.fullmatch(text) is not None


def newest_at(versions: Sequence[str], version: str) -> str | None:
    """Return the newest of the sorted `versions` that is not newer than `version`; None if none is.

    A toolkit at a version has, for each of its tools, the newest version not newer than that.
    """
    index = bisect_right(versions, version)
    return versions[index - 1] if index else None


def next_version(newest: str | None, day: str) -> str | None:
    """Return the next version for a day (`20251027`).

    It is the first version of that day, or the one after `newest` if that is not older. None if no
    version can be newer.
    """
    first = f"{day}_00"
    if newest is None or newest < first:
        return first
    number = int(newest.replace("_", "")) + 1
    return f"{number // 100:08}_{number % 100:02}" if number < 10**10 else None
