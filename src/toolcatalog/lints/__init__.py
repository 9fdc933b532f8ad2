"""Advice on what is well formed and could still be better: hard to find, hard to use, or not to be
trusted. Pure.

Each rule is a small function with an id, a severity that `catalog.yaml` can change, a page in
`rulebook/`, and cases in `tests/rejects/`.
"""

from toolcatalog.lints import hints, identity, leaks, portability, quality, references, security
from toolcatalog.lints.kinds import CatalogRule, ToolRule

# they look at texts only, whatever these belong to
TEXT_RULES: tuple[ToolRule, ...] = (*security.TOOL_RULES, *leaks.TOOL_RULES)
TOOL_RULES: tuple[ToolRule, ...] = (
    *quality.TOOL_RULES,
    *hints.TOOL_RULES,
    *identity.TOOL_RULES,
    *portability.TOOL_RULES,
    *TEXT_RULES,
)
CATALOG_RULES: tuple[CatalogRule, ...] = (
    *hints.CATALOG_RULES,
    *identity.CATALOG_RULES,
    *references.CATALOG_RULES,
    *security.CATALOG_RULES,
)
