"""Names: the grammar of slugs and ids, and suggestions for a misspelled name.

Every name in a path or a URL has been matched with one of these patterns, so other modules need not
check whether a name is safe.
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
# of an MCP server, in reverse-DNS form; each part is safe as the name of a folder
SERVER_NAME = "[A-Za-z0-9][A-Za-z0-9.-]*/[A-Za-z0-9_][A-Za-z0-9._-]*"
MAX_LENGTH = 200
# names to compare letter by letter: most and fewest, and the limit on letter pairs for long names
_MAX_CANDIDATES, _MIN_CANDIDATES, _MAX_LETTER_PAIRS = 20, 5, 5000

_PATTERNS = {
    pattern: re.compile(pattern)
    for pattern in (TOOLKIT_SLUG, TOOL_SLUG, SESSION_ID, AUTH_CONFIG_ID)
}


def is_valid(pattern: str, name: str) -> bool:
    """Return whether `name` has at most 200 characters and matches one of the patterns above."""
    return len(name) <= MAX_LENGTH and _PATTERNS[pattern].fullmatch(name) is not None


def find_nearest(name: str, candidates: Iterable[str], limit: int = 1) -> list[str]:
    """Return the candidates most similar to `name`, best first; empty if none is near.

    Case is ignored. Of many candidates, only those that share most letters and pairs of letters
    with `name` are compared letter by letter: at most 20, and fewer if the names are long. So a
    thousand candidates take about a millisecond.
    """
    folded: dict[str, str] = {}
    for candidate in sorted(candidates):
        folded.setdefault(candidate.casefold(), candidate)
    name = name.casefold()
    return [
        folded[match]
        for match in difflib.get_close_matches(
            name, _select_candidates(name, folded), n=limit, cutoff=0.6
        )
    ]


def suggest(name: str, candidates: Iterable[str]) -> str:
    """Return "did you mean `NAME`?" for the most similar candidate; empty if none is near."""
    nearest = find_nearest(name, candidates)
    return f"did you mean `{nearest[0]}`?" if nearest else ""


def _select_candidates(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that are worth a letter by letter comparison, in their order."""
    candidates = [*names]
    pairs = len(name) * max(map(len, candidates), default=0)
    limit = min(_MAX_CANDIDATES, max(_MIN_CANDIDATES, _MAX_LETTER_PAIRS // max(pairs, 1)))
    if len(candidates) > limit:
        name_letters = {*name, *pairwise(name)}

        def similarity(other: str) -> tuple[float, int]:
            letters = {*other, *pairwise(other)}
            share = len(name_letters & letters) / (len(name_letters) + len(letters))
            return share, -abs(len(name) - len(other))

        selected = {*nlargest(limit, candidates, key=similarity)}
        candidates = [other for other in candidates if other in selected]
    return candidates
