"""Names: the grammar of slugs and ids, and suggestions for a misspelled name.

Every name that reaches a path or a URL passes one of these patterns, so no later room asks whether
a name is safe.
"""

import difflib
import re
from collections.abc import Iterable
from heapq import nlargest
from itertools import pairwise

TOOLKIT_SLUG = "[a-z0-9_][a-z0-9_-]*"
TOOL_SLUG = "[A-Z0-9_][A-Z0-9_-]*"
SESSION_ID = "trs_[A-Za-z0-9_-]+"
AUTH_CONFIG_ID = "ac_[A-Za-z0-9_-]+"
MAX_LENGTH = 200
# names that are compared letter by letter, and how many pairs of their letters where they are long
_CLOSELY, _LEAST_CLOSELY, _MOST_PAIRS = 20, 5, 10_000

_PATTERNS = {
    pattern: re.compile(pattern)
    for pattern in (TOOLKIT_SLUG, TOOL_SLUG, SESSION_ID, AUTH_CONFIG_ID)
}


def is_valid(pattern: str, name: str) -> bool:
    """Tell whether `name` is at most 200 characters long and of one of the four patterns above."""
    return len(name) <= MAX_LENGTH and _PATTERNS[pattern].fullmatch(name) is not None


def find_nearest(name: str, candidates: Iterable[str], limit: int = 1) -> list[str]:
    """The known names most like `name`, best first, whatever the case; empty where none is near.

    Of many known names only those are compared letter by letter that share most letters and pairs
    of letters with `name`: at most 20, and fewer where the names are long. So a thousand known
    names cost about a millisecond.
    """
    folded: dict[str, str] = {}
    for candidate in sorted(candidates):
        folded.setdefault(candidate.casefold(), candidate)
    name = name.casefold()
    return [
        folded[match]
        for match in difflib.get_close_matches(name, _likely(name, folded), n=limit, cutoff=0.6)
    ]


def _likely(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are worth a close comparison, in their order."""
    every = [*known]
    pairs = len(name) * max(map(len, every), default=0)
    closely = min(_CLOSELY, max(_LEAST_CLOSELY, _MOST_PAIRS // max(pairs, 1)))
    if len(every) > closely:
        wanted = {*name, *pairwise(name)}

        def likeness(other: str) -> tuple[float, int]:
            letters = {*other, *pairwise(other)}
            share = len(wanted & letters) / (len(wanted) + len(letters))
            return share, -abs(len(name) - len(other))

        likely = {*nlargest(closely, every, key=likeness)}
        every = [other for other in every if other in likely]
    return every
