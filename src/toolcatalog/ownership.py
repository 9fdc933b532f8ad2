"""Who is asked to review what: the owners of toolkits as GitHub's CODEOWNERS. Pure.

Owners are words. Only those that look like an account (`@name`), a team (`@organization/team`) or
an e-mail address are owners for GitHub; a line with anything else would be an error there, and
nobody would be asked.
"""

import re
from collections.abc import Iterable

from toolcatalog.catalog.model import ROUTER, Toolkit

_ACCOUNT = "[A-Za-z0-9][A-Za-z0-9_-]*"
_OWNER = re.compile(
    rf"@{_ACCOUNT}(?:/[A-Za-z0-9_.-]+)?|[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
)
_HEADER = "# Who is asked to review a toolkit: its `owners`. Made by `toolcatalog codeowners`; lines of your own may stand above or below."


def render_codeowners(toolkits: Iterable[Toolkit], folder: str) -> str:
    """The lines of a CODEOWNERS file, sorted by toolkit; `folder` is the catalog's, relative to the
    repository's root.

    GitHub takes the last line that fits. A toolkit that it can ask nobody for has no line, so that
    a new one does not make a file stale.
    """
    found = sorted((_owned_path(toolkit), _valid_owners(toolkit)) for toolkit in toolkits)
    lines = [f"/{folder}/{place}/ {' '.join(owners)}" for place, owners in found if owners]
    return "".join(f"{line}\n" for line in (_HEADER, *lines))


def find_unowned(toolkits: Iterable[Toolkit]) -> list[str]:
    """The slugs of the toolkits that GitHub can ask nobody for."""
    return sorted(toolkit.slug for toolkit in toolkits if not _valid_owners(toolkit))


def contains_lines(file: str, lines: str) -> bool:
    """Whether a CODEOWNERS file has these lines, together and in this order."""
    return f"\n{lines}" in f"\n{file.rstrip()}\n"


def _valid_owners(toolkit: Toolkit) -> list[str]:
    return [owner for owner in dict.fromkeys(toolkit.owners) if _OWNER.fullmatch(owner)]


def _owned_path(toolkit: Toolkit) -> str:
    return "meta_tools" if toolkit.slug == ROUTER else f"toolkits/{toolkit.slug}"
