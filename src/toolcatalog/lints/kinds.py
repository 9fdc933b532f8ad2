"""What a rule of advice is: its id, how bad it is unless `catalog.yaml` says otherwise, and the
function that looks.

A `ToolRule` looks at one version of a tool, as written; what it finds is kept in the build's cache with
the tool, so it must not depend on anything else. A `CatalogRule` looks at the whole catalog, in which
tools are no more than listed, each time.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from toolcatalog.catalog.model import Catalog
from toolcatalog.errors import Finding
from toolcatalog.lints.texts import ToolView


class ToolRule(NamedTuple):
    """A rule for one version of a tool. `severity`: error, warning or note."""

    rule: str
    severity: str
    check: Callable[[ToolView], Iterator[Finding]]


class CatalogRule(NamedTuple):
    """A rule for the whole catalog. `severity`: error, warning or note."""

    rule: str
    severity: str
    check: Callable[[Catalog], Iterator[Finding]]


HISTORY_SEVERITIES: Mapping[str, str] = {
    "history-version-changed": "error",
    "history-version-back": "error",
    "history-version-removed": "error",
    "history-tool-removed": "error",
    "history-toolkit-removed": "error",
    "history-breaking": "warning",
    "history-not-compared": "warning",
    # the severities of the rules in `history`, which takes long to load, and without a revision to
    # compare with nobody needs it
}
