"""Names: what a slug or an id may look like, and which known name is nearest to an unknown one.

Every name that reaches a path or a URL passes one of these patterns, so no later room asks whether
a name is safe.
"""

import difflib
import re
from collections.abc import Iterable

TOOLKIT_SLUG = "[a-z0-9_][a-z0-9_-]*"
TOOL_SLUG = "[A-Z0-9_][A-Z0-9_-]*"
SESSION_ID = "trs_[A-Za-z0-9_-]+"
AUTH_CONFIG_ID = "ac_[A-Za-z0-9_-]+"
LONGEST = 200

_PATTERNS = {
    pattern: re.compile(pattern)
    for pattern in (TOOLKIT_SLUG, TOOL_SLUG, SESSION_ID, AUTH_CONFIG_ID)
}


def fits(pattern: str, name: str) -> bool:
    """Tell whether `name` is at most 200 characters long and of one of the four patterns above."""
    return len(name) <= LONGEST and _PATTERNS[pattern].fullmatch(name) is not None


def nearest(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known names most like `name`, best first, whatever the case; empty where none is near.

    Costs a comparison with each known name: hand over hundreds, not a whole catalog.
    """
    folded: dict[str, str] = {}
    for candidate in sorted(known):
        folded.setdefault(candidate.casefold(), candidate)
    return [
        folded[match]
        for match in difflib.get_close_matches(name.casefold(), folded, n=most, cutoff=0.6)
    ]
