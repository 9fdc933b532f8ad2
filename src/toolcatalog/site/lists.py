"""Tool lists as HTML."""

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from html import escape
from operator import itemgetter
from typing import Any, NamedTuple

from markupsafe import Markup

from toolcatalog import textutils
from toolcatalog.site import markdown

_HINT_BADGES = {  # tags shown as badges
    "important": '<span class="badge key">important</span>',
    "readOnlyHint": '<span class="badge">read-only</span>',
    "destructiveHint": '<span class="badge warn">destructive</span>',
}


class ToolRow(NamedTuple):
    """A tool in the index of its toolkit (see `snapshot.format.make_toolkit_index_row`).

    Rows are small, because the lists of a site keep all of them in memory.
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


_FIELD_VALUES = itemgetter(*ToolRow._fields)


def make_row(fields: Mapping[str, Any]) -> ToolRow:
    """Return the row of a tool from its index entry; equal values share one object to save
    memory.
    """
    slug, version, name, description, tags, scopes, no_auth, deprecation, digest = _FIELD_VALUES(
        fields
    )
    return ToolRow(
        slug,
        sys.intern(version),
        name,
        description,
        _intern_labels(tuple(tags)),
        _intern_labels(tuple(scopes)),
        no_auth,
        deprecation,
        digest,
    )


@lru_cache(maxsize=1 << 16)
def _intern_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(sys.intern, labels))


def format_day(version: str) -> str:
    """Return the day of a version in ISO format, such as 2025-10-27."""
    return f"{version[:4]}-{version[4:6]}-{version[6:8]}"


def escape_hidden_value(value: Any) -> Any:
    """Return a text with names in place of characters that hide or reorder others.

    Other values are returned unchanged.
    """
    return textutils.escape_hidden(value) if type(value) is str and not value.isascii() else value


def escape_code(text: str) -> Markup:
    """Escape a text between tags.

    Quotes stay as they are: snippets contain many, and escaping would double their size.
    """
    return Markup(escape(escape_hidden_value(text), quote=False))  # noqa: S704 - escaped


def render_badges(deprecated: bool, tags: Iterable[str], no_auth: bool) -> Markup:
    """Render the badges of a tool: deprecated, hints, and no authentication."""
    found = ['<span class="badge warn">deprecated</span>'] if deprecated else []
    found += [_HINT_BADGES[tag] for tag in _HINT_BADGES if tag in tags]
    found += ['<span class="badge">no auth</span>'] if no_auth else []
    return Markup(" ".join(found))  # noqa: S704 - fixed texts only


def render_items(tools: Iterable[ToolRow], root: str) -> Markup:
    """Render tools as list items."""
    return Markup("".join(_render_item(tool, root) for tool in tools))  # noqa: S704 - all parts are escaped


def _render_item(tool: ToolRow, root: str) -> str:
    shown = _render_item_body(
        tool.slug,
        tool.name,
        tool.description,
        tool.deprecation is not None,
        tool.tags,
        tool.no_auth,
    )
    return f'<li><a href="{root}{shown}</li>\n'


@lru_cache(maxsize=1 << 15)
def _render_item_body(
    slug: str, name: str, description: str, deprecated: bool, tags: tuple[str, ...], no_auth: bool
) -> str:
    """Render the part of a list item that is the same in every list.

    A tool is in the list of all tools and in those of its tags and scopes, so this is cached.
    """
    link = f'tools/{slug}/index.html">{_escape(name)}</a> <code class="slug">{slug}</code>'
    return f"{link} {render_badges(deprecated, tags, no_auth)}<p>{_render_summary(description)}</p>"


def render_rows(tools: Iterable[ToolRow], root: str, newest: Mapping[str, str]) -> Markup:
    """Render tools as table rows.

    `newest` has the newest versions of the tools if the rows are of an older toolkit version.
    """
    return Markup("".join(_render_row(tool, root, newest) for tool in tools))  # noqa: S704 - all parts are escaped


def _render_row(tool: ToolRow, root: str, newest: Mapping[str, str]) -> str:
    slug, version = tool.slug, tool.version
    file = "index" if newest.get(slug, version) == version else version
    link = f'<a href="{root}tools/{slug}/{escape(file)}.html">{_escape(tool.name)}</a><br><code class="slug">{slug}</code>'
    said = f"{_render_summary(tool.description)} {_render_row_badges(tool)}"
    return f'<tr><td>{link}</td><td>{said}</td><td class="version">{_escape(format_day(version))}</td></tr>\n'


def _render_row_badges(tool: ToolRow) -> str:
    return render_badges(tool.deprecation is not None, tool.tags, tool.no_auth)


@lru_cache(maxsize=1 << 15)
def _render_summary(description: str) -> str:
    return str(markdown.render_inline(textutils.first_sentence(description)))


def _escape(text: str) -> str:
    return escape(escape_hidden_value(text))
