"""Versions: eight digits, an underscore, two digits.

A version is kept as the text that it is. All have the same length and only digits, so the order of
the texts is the order of the versions, and no value class is needed. A calendar date is not
enforced: `00000000_00` is legal.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

LATEST = "latest"
PATTERN = "[0-9]{8}_[0-9]{2}"
_VERSION = re.compile(PATTERN)


def is_version(text: str) -> bool:
    """Tell whether `text` is a version, as in "eight digits, an underscore, two digits"."""
    return _VERSION.fullmatch(text) is not None


def newest_at(versions: Sequence[str], version: str) -> str | None:
    """The newest of `versions` (sorted, oldest first) that is not newer than `at`; None where there
    was none yet.

    Serves: "A toolkit *at* version V is, for each of its tools, the newest version not newer than
    V".
    """
    after = bisect_right(versions, version)
    return versions[after - 1] if after else None


def next_version(newest: str | None, day: str) -> str | None:
    """The version of what is made on a day (`20251027`): its first one, or the one behind `newest`,
    where that is not older.

    None where no version could be newer.
    """
    first = f"{day}_00"
    if newest is None or newest < first:
        return first
    number = int(newest.replace("_", "")) + 1
    return f"{number // 100:08}_{number % 100:02}" if number < 10**10 else None
