"""The lint registry: all lint rules, in order.

Each rule is a small function with an id, a severity that `catalog.yaml` can override, a page in
`rulebook/`, and cases in `tests/data/rejects/`.
"""

from toolcatalog.lint import hints, identity, portability, quality, secrets, security
from toolcatalog.lint.rule import CatalogRule, ToolRule

# rules that check texts only, so they apply to every kind of file
TEXT_RULES: tuple[ToolRule, ...] = (*security.TOOL_RULES, *secrets.TOOL_RULES)
# functions that return a text without what a rule refuses, by rule
TEXT_CLEANERS = {**security.TEXT_CLEANERS, **secrets.TEXT_CLEANERS}
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
    *quality.CATALOG_RULES,
    *security.CATALOG_RULES,
)
