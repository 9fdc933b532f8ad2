"""Lint rule types, and iterators over the tools of a catalog.

A `ToolRule` checks one version of a tool as written. Its findings are cached with the tool, so it
must not depend on anything else. A `CatalogRule` checks the whole catalog on every run and sees
only summaries of the tools.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, zip_longest
from typing import NamedTuple

from toolcatalog.catalog.model import Catalog, ToolSummary
from toolcatalog.errors import Finding
from toolcatalog.lint.views import ToolView


class ToolRule(NamedTuple):
    """A rule for one version of a tool. `severity` is error, warning or note."""

    rule: str
    severity: str
    check: Callable[[ToolView], Iterator[Finding]]


class CatalogRule(NamedTuple):
    """A rule for the whole catalog. `severity` is error, warning or note."""

    rule: str
    severity: str
    check: Callable[[Catalog], Iterator[Finding]]


HISTORY_SEVERITIES: Mapping[str, str] = {
    "history-version-changed": "error",
    "history-version-back": "error",
    "history-version-removed": "error",
    "history-tool-removed": "error",
    "history-toolkit-removed": "error",
    "history-sunset-past": "error",
    "history-no-auth": "warning",
    "history-breaking": "warning",
    "history-not-compared": "warning",
    # the severities of the rules in `history` are here because that package loads slowly and is
    # needed only to compare with an earlier revision
}


def iter_urls(catalog: Catalog) -> Iterator[tuple[str, str, str]]:
    """Yield path, key and value of each URL that becomes a link or the address of pages."""
    about = catalog.about
    for key, url in (("home", about.home), ("repository", about.repository), ("api", about.api)):
        yield "catalog.yaml", key, url
    for url in about.links.values():
        yield "catalog.yaml", "links", url
    kits = [(f"toolkits/{kit.slug}/toolkit.yaml", kit) for kit in catalog.toolkits.values()]
    if catalog.router:
        kits.append(("meta_tools/toolkit.yaml", catalog.router))
    for path, kit in kits:
        server = (kit.mcp_server or {}).get("url", "")
        for key, url in (("logo", kit.logo), ("homepage", kit.homepage), ("mcp_server", server)):
            yield path, key, url


def iter_newest(catalog: Catalog) -> Iterator[ToolSummary]:
    """Yield the newest version of each tool."""
    for tool, following in zip_longest(catalog.tools, islice(catalog.tools, 1, None)):
        if following is None or following.slug != tool.slug:
            yield tool


def iter_active(catalog: Catalog) -> Iterator[ToolSummary]:
    """Yield the newest version of each tool, without deprecated tools."""
    return (tool for tool in iter_newest(catalog) if tool.replaced_by is None)
