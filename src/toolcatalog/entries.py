"""Tools in lists, as HTML: of the whole site these are most, and so they are made by plain
functions. Pure.
"""

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from html import escape
from operator import itemgetter
from typing import Any, NamedTuple

from markupsafe import Markup

from toolcatalog import analysis, markdown, unseen

_LONGEST = 200  # characters of a summary
_HINTS = {  # tags that are shown as badges
    "important": '<span class="badge key">important</span>',
    "readOnlyHint": '<span class="badge">read-only</span>',
    "destructiveHint": '<span class="badge warn">destructive</span>',
}


class Row(NamedTuple):
    """A tool in the index of its toolkit (see `snapshot.index_row`). A site's lists hold all of
    them at once, so they are small.
    """

    slug: str
    version: str
    name: str
    description: str
    tags: tuple[str, ...]
    scopes: tuple[str, ...]
    no_auth: bool
    deprecation: Mapping[str, str] | None
    digest: str


_COLUMNS = itemgetter(*Row._fields)


def row(said: Mapping[str, Any]) -> Row:
    """A tool as the index says it; what is equal in many of them is one object."""
    slug, version, name, description, tags, scopes, no_auth, deprecation, digest = _COLUMNS(said)
    return Row(
        slug,
        sys.intern(version),
        name,
        description,
        _same(tuple(tags)),
        _same(tuple(scopes)),
        no_auth,
        deprecation,
        digest,
    )


@lru_cache(maxsize=1 << 16)
def _same(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(sys.intern, labels))


@lru_cache(maxsize=1 << 15)
def summary(text: str) -> str:
    """What a description says first, for a list."""
    first = next(filter(None, map(str.strip, analysis.sentences(text))), "").rstrip(";")
    return first if len(first) <= _LONGEST else f"{first[:_LONGEST].rsplit(None, 1)[0]} …"


def day(version: str) -> str:
    """The day that a version names, as people write it: 2025-10-27."""
    return f"{version[:4]}-{version[4:6]}-{version[6:8]}"


def visible(value: Any) -> Any:
    """A text without characters that hide or reorder others; they are named instead."""
    return unseen.visible(value) if type(value) is str and not value.isascii() else value


def code(text: str) -> Markup:
    """A text between tags. Quotes stay as they are: a snippet is full of them, and half as large
    so.
    """
    return Markup(escape(visible(text), quote=False))  # noqa: S704 - escaped


def badges(deprecated: bool, tags: Iterable[str], no_auth: bool) -> Markup:
    """What one should know of a tool at once."""
    found = ['<span class="badge warn">deprecated</span>'] if deprecated else []
    found += [_HINTS[tag] for tag in _HINTS if tag in tags]
    found += ['<span class="badge">no auth</span>'] if no_auth else []
    return Markup(" ".join(found))  # noqa: S704 - of fixed texts


def items(tools: Iterable[Row], root: str) -> Markup:
    """A list of tools."""
    return Markup("".join(_item(tool, root) for tool in tools))  # noqa: S704 - of escaped parts


def _item(tool: Row, root: str) -> str:
    shown = _shown(
        tool.slug,
        tool.name,
        tool.description,
        tool.deprecation is not None,
        tool.tags,
        tool.no_auth,
    )
    return f'<li><a href="{root}{shown}</li>\n'


@lru_cache(maxsize=1 << 15)
def _shown(
    slug: str, name: str, description: str, deprecated: bool, tags: tuple[str, ...], no_auth: bool
) -> str:
    """A tool in a list, which is the same in each: it is in that of all tools and in those of its
    tags and scopes.
    """
    link = f'tools/{slug}/index.html">{_text(name)}</a> <code class="slug">{slug}</code>'
    return f"{link} {badges(deprecated, tags, no_auth)}<p>{_said(description)}</p>"


def rows(tools: Iterable[Row], root: str, newest: Mapping[str, str]) -> Markup:
    """Rows of a table of tools; `newest`: their newest versions, where they are those of an older
    version of their toolkit.
    """
    return Markup("".join(_row(tool, root, newest) for tool in tools))  # noqa: S704 - of escaped parts


def _row(tool: Row, root: str, newest: Mapping[str, str]) -> str:
    slug, version = tool.slug, tool.version
    file = "index" if newest.get(slug, version) == version else version
    link = f'<a href="{root}tools/{slug}/{escape(file)}.html">{_text(tool.name)}</a><br><code class="slug">{slug}</code>'
    said = f"{_said(tool.description)} {_badges(tool)}"
    return (
        f'<tr><td>{link}</td><td>{said}</td><td class="version">{_text(day(version))}</td></tr>\n'
    )


def _badges(tool: Row) -> str:
    return badges(tool.deprecation is not None, tool.tags, tool.no_auth)


@lru_cache(maxsize=1 << 15)
def _said(description: str) -> str:
    return str(markdown.inline(summary(description)))


def _text(text: str) -> str:
    return escape(visible(text))
