"""Names: the grammar of slugs and ids, and suggestions for a misspelled name.

Every name in a path or a URL has been matched with one of these patterns, so other modules need not
check whether a name is safe.
"""

import re
from collections.abc import Iterable

TOOLKIT_SLUG = "[a-z0-9_][a-z0-9_-]*"
TOOL_SLUG = "[A-Z0-9_][A-Z0-9_-]*"
SESSION_ID = "trs_[A-Za-z0-9_-]+"
AUTH_CONFIG_ID = "ac_[A-Za-z0-9_-]+"
# of an MCP server, in reverse-DNS form; each part is safe as the name of a folder
SERVER_NAME = "[A-Za-z0-9][A-Za-z0-9.-]*/[A-Za-z0-9_][A-Za-z0-9._-]*"
MAX_LENGTH = 200
RESERVED_TOOLKIT = "categories"  # GET /toolkits/categories is a list
_MIN_SIMILARITY = 60  # percent

_PATTERNS = {
    pattern: re.compile(pattern)
    for pattern in (TOOLKIT_SLUG, TOOL_SLUG, SESSION_ID, AUTH_CONFIG_ID)
}


def is_valid(pattern: str, name: str) -> bool:
    """Return whether `name` has at most 200 characters and matches one of the patterns above.

    The name of a route is not a toolkit slug.
    """
    return (
        len(name) <= MAX_LENGTH
        and _PATTERNS[pattern].fullmatch(name) is not None
        and not (pattern == TOOLKIT_SLUG and name == RESERVED_TOOLKIT)
    )


def find_nearest(name: str, candidates: Iterable[str], limit: int = 1) -> list[str]:
    """Return the candidates most similar to `name`, best first; empty if none is near.

    Case is ignored. The similarity is that of Indel: the share of letters that stay if one name is
    edited into the other by insertions and deletions. At 20,000 candidates it takes 8 milliseconds.
    """
    # only mistakes need it, and the import would slow down the start of each command
    from rapidfuzz import fuzz, process  # noqa: PLC0415

    folded: dict[str, str] = {}
    for candidate in sorted(candidates):
        folded.setdefault(candidate.casefold(), candidate)
    matches = process.extract(
        name.casefold(),
        [*folded],
        scorer=fuzz.ratio,
        limit=limit,
        score_cutoff=_MIN_SIMILARITY,
    )
    return [folded[match] for match, _, _ in matches]


def suggest(name: str, candidates: Iterable[str]) -> str:
    """Return "did you mean `NAME`?" for the most similar candidate; empty if none is near."""
    nearest = find_nearest(name, candidates)
    return f"did you mean `{nearest[0]}`?" if nearest else ""
