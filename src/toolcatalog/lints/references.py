"""References that lead somewhere, and not on: that a replacement exists is an error of `rules`,
that it is alive is advice. Pure.
"""

from collections.abc import Iterator, Mapping

from toolcatalog.catalog.model import Catalog
from toolcatalog.errors import Finding
from toolcatalog.lints.kinds import CatalogRule
from toolcatalog.lints.places import iter_newest


def check_replacement_not_deprecated(catalog: Catalog) -> Iterator[Finding]:
    """What replaces a deprecated tool is not deprecated itself, in its newest version."""
    dead = {
        tool.slug: tool.replaced_by for tool in iter_newest(catalog) if tool.replaced_by is not None
    }
    for tool in catalog.tools:
        named = tool.replaced_by
        if named and named != tool.slug and named in dead:
            message, last = (
                f"the replacement `{named}` is deprecated itself",
                _final_replacement(named, dead),
            )
            help = (
                f"name `{last}`, which replaces it"
                if last and last != tool.slug
                else "name a tool that is in use, or none"
            )
            pointer = ("deprecation", "replaced_by")
            yield Finding(
                path=tool.path,
                pointer=pointer,
                rule="replacement-deprecated",
                message=message,
                help=help,
            )


def _final_replacement(slug: str, deprecated: Mapping[str, str]) -> str:
    """Where a chain of replacements ends; empty where it ends with a deprecated tool, or goes in a
    circle.
    """
    for _ in range(len(deprecated) + 1):
        if slug not in deprecated:
            return slug
        slug = deprecated[slug]
    return ""


CATALOG_RULES: tuple[CatalogRule, ...] = (
    CatalogRule("replacement-deprecated", "warning", check_replacement_not_deprecated),
)
