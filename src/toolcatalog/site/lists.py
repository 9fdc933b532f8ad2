"""Tool lists as HTML."""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from html import escape
from operator import itemgetter
from typing import Any, NamedTuple

from markupsafe import Markup

from toolcatalog import textutils
from toolcatalog.site import markdown

_HINT_BADGES = {  # tags that clients and readers act on
    "destructiveHint": '<span class="badge danger">destructive</span>',
    "readOnlyHint": '<span class="badge ok">read-only</span>',
}
_DEPRECATED_BADGE = '<span class="badge warn">deprecated</span>'
_NO_AUTH_BADGE = '<span class="badge">no auth</span>'
_HINT = "Hint"  # the ending of tags that are not about a subject
_BREAK_AFTER = re.compile(r"[_/.](?=[^_/.])")
_LONG_IDENTIFIER = 16  # characters: shorter ones fit on any line
BASE_VERSION = "00000000_00"


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
    """Return the day of a version in ISO format, such as 2025-10-27.

    The base version of an imported tool has no day.
    """
    if version == BASE_VERSION:
        return "base version"
    return f"{version[:4]}-{version[4:6]}-{version[6:8]}"


def escape_hidden_value(value: Any) -> Any:
    """Return a text with names in place of characters that hide or reorder others.

    Other values are returned unchanged.
    """
    return textutils.escape_hidden(value) if type(value) is str and not value.isascii() else value


@lru_cache(maxsize=1 << 14)
def render_identifier(name: str, attributes: str = "") -> str:
    """Render a name as code that breaks after `_`, `/` and `.` where a line is too short."""
    text = _escape(name)
    if len(name) > _LONG_IDENTIFIER:
        text = _BREAK_AFTER.sub(r"\g<0><wbr>", text)
    return f"<code {attributes}>{text}</code>" if attributes else f"<code>{text}</code>"


@lru_cache(maxsize=1 << 12)
def render_badges(deprecated: bool, tags: Iterable[str], no_auth: bool) -> Markup:
    """Render the badges of a tool: deprecated, what it does to data, and no authentication."""
    badges = [_DEPRECATED_BADGE] if deprecated else []
    badges += [html for tag, html in _HINT_BADGES.items() if tag in tags]
    badges += [_NO_AUTH_BADGE] if no_auth else []
    html = f'<span class="badges">{" ".join(badges)}</span>' if badges else ""
    return Markup(html)  # noqa: S704 - fixed texts only


def subject_tag(tool: ToolRow) -> str:
    """Return the tag under which a tool is listed: the first one that is about a subject."""
    tags = (tag for tag in tool.tags if not tag.endswith(_HINT) and tag != "important")
    return next(tags, "")


def group_by_subject(tools: Iterable[ToolRow]) -> list[tuple[str, list[ToolRow]]]:
    """Return the tools of a toolkit by `subject_tag`; groups with more tools come first.

    Tools without such a tag come last. Within a group, tools keep their order.
    """
    groups: defaultdict[str, list[ToolRow]] = defaultdict(list)
    for tool in tools:
        groups[subject_tag(tool)].append(tool)
    return sorted(groups.items(), key=lambda item: (not item[0], -len(item[1]), item[0]))


def render_items(tools: Iterable[ToolRow], root: str) -> Markup:
    """Render tools as list items."""
    items = "".join(_render_item(tool, root) for tool in tools)
    return Markup(items)  # noqa: S704 - all parts are escaped


def _render_item(tool: ToolRow, root: str) -> str:
    return f'<li><a href="{root}tools/{tool.slug}/index.html">{_render_body(tool)}</li>\n'


def render_dated_items(
    tools: Iterable[ToolRow], root: str, newest: Mapping[str, str] | None = None
) -> Markup:
    """Render tools as list items with the days of their versions.

    `newest` has the newest versions of the tools if the items are of an older toolkit version.
    """
    items = (_render_dated_item(tool, root, newest or {}) for tool in tools)
    return Markup("".join(items))  # noqa: S704 - all parts are escaped


def _render_dated_item(tool: ToolRow, root: str, newest: Mapping[str, str]) -> str:
    slug, version = tool.slug, tool.version
    file = "index" if newest.get(slug, version) == version else escape(version)
    day = f'<span class="day">{_escape(format_day(version))}</span>'
    link = f'<a href="{root}tools/{slug}/{file}.html">'
    return f"<li>{link}{_render_body(tool)}{day}</li>\n"


def _render_body(tool: ToolRow) -> str:
    deprecated = tool.deprecation is not None
    return _render_cached_body(
        tool.slug, tool.name, tool.description, deprecated, tool.tags, tool.no_auth
    )


@lru_cache(maxsize=1 << 15)
def _render_cached_body(
    slug: str, name: str, description: str, deprecated: bool, tags: tuple[str, ...], no_auth: bool
) -> str:
    """Render the part of a list item that is the same in every list.

    A tool is in the list of all tools and in those of its tags and scopes, so this is cached.
    """
    code = render_identifier(slug, 'class="slug"')
    badges = render_badges(deprecated, tags, no_auth)
    return f"{_escape(name)}</a> {code} {badges}<p>{_render_summary(description)}</p>"


@lru_cache(maxsize=1 << 15)
def _render_summary(description: str) -> str:
    return markdown.render_inline(textutils.first_sentence(description))


def _escape(text: str) -> str:
    return escape(escape_hidden_value(text))
