"""References that lead somewhere, and not on: that a replacement exists is an error of `rules`,
that it is alive is advice. Pure.
"""

from collections.abc import Iterator, Mapping

from toolcatalog.errors import Finding
from toolcatalog.lints.kinds import Survey
from toolcatalog.lints.places import newest
from toolcatalog.model import Catalog


def replacements_are_alive(catalog: Catalog) -> Iterator[Finding]:
    """What replaces a deprecated tool is not deprecated itself, in its newest version."""
    dead = {tool.slug: tool.replaced_by for tool in newest(catalog) if tool.replaced_by is not None}
    for tool in catalog.tools:
        named = tool.replaced_by
        if named and named != tool.slug and named in dead:
            message, last = f"the replacement `{named}` is deprecated itself", _last(named, dead)
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


def _last(slug: str, dead: Mapping[str, str]) -> str:
    """Where a chain of replacements ends; empty where it ends with a deprecated tool, or goes in a
    circle.
    """
    for _ in range(len(dead) + 1):
        if slug not in dead:
            return slug
        slug = dead[slug]
    return ""


SURVEYS: tuple[Survey, ...] = (Survey("replacement-deprecated", "warning", replacements_are_alive),)
