"""Lint rule types, and the tools of a catalog that rules look at.

A `ToolRule` looks at one version of a tool, as written; what it finds is kept in the build's cache with
the tool, so it must not depend on anything else. A `CatalogRule` looks at the whole catalog, in which
tools are no more than listed, each time.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, zip_longest
from typing import NamedTuple

from toolcatalog.catalog.model import Catalog, ToolSummary
from toolcatalog.errors import Finding
from toolcatalog.lint.texts import ToolView


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


def iter_newest(catalog: Catalog) -> Iterator[ToolSummary]:
    """Each tool in its newest version."""
    for tool, following in zip_longest(catalog.tools, islice(catalog.tools, 1, None)):
        if following is None or following.slug != tool.slug:
            yield tool


def iter_active(catalog: Catalog) -> Iterator[ToolSummary]:
    """Each tool in its newest version, but those that are deprecated in it."""
    return (tool for tool in iter_newest(catalog) if tool.replaced_by is None)
