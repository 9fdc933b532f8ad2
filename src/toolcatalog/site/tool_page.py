"""The page of a tool: everything that its template leaves open.

Nearly all pages of a site are tool pages. What they have in common is in `tool.html`, which is
rendered once per site. The rest is rendered here by plain functions, because a template takes
several times as long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from markupsafe import escape

from toolcatalog import textutils
from toolcatalog.exports import definitions
from toolcatalog.exports.definitions import Definition
from toolcatalog.site import highlight, lists, logos, markdown
from toolcatalog.site.highlight import FramePiece
from toolcatalog.site.parameter_list import render_parameters
from toolcatalog.snapshot.format import Tool, Toolkit

SITE_ROOT = "../../"  # relative to a tool page
_SLUG, _VERSION = "-slug-", "-version-"  # in the requests for any tool
_ANY_TOOL = Tool(
    slug=_SLUG,
    toolkit="",
    version=_VERSION,
    available_versions=(),
    name="",
    description="",
    scopes=(),
    tags=(),
    no_auth=False,
    deprecation=None,
    input_parameters={},
    output_parameters={},
)

_TEXT_PARTS = ("name", "title", "description")  # keys of definitions
_SCHEMA_PARTS = ("properties", "required")

_EFFECTS = {  # by tag
    "destructiveHint": '<span class="badge danger">destructive</span>',
    "readOnlyHint": '<span class="badge ok">read-only</span>',
}


def render_tool_fields(tool: Tool, toolkit: Toolkit, api: str) -> dict[str, str]:
    """Return the HTML of each placeholder of `tool.html`, for the page of one version of a tool.

    `api` is the address of the API, or empty. The placeholders of labels are not included (see
    `site.pages`).
    """
    newest = tool.available_versions[-1]
    forms = definitions.list_definitions(tool)
    tokens = definitions.estimate_definition_tokens(forms[0].value)
    return {
        **render_name_fields(tool, toolkit),
        "summary": _escape_markup(textutils.first_sentence(tool.description)),
        "version": _escape_markup(tool.version),
        "newest": _escape_markup(newest),
        "deprecation": "" if tool.deprecation is None else _render_deprecation(tool.deprecation),
        "description": markdown.render_block(tool.description),
        "versions": _render_versions(tool, newest),
        "effect": render_effect(tool.tags),
        "authentication": "not needed" if tool.no_auth else "required",
        "tokens": f"{tokens:,}",
        "inputs": render_parameters(tool.input_parameters, "input-") or "<p>None.</p>",
        "outputs": render_parameters(tool.output_parameters, "output-") or "<p>Not described.</p>",
        "requests": _render_requests(tool, api),
        "definitions": _render_definitions(forms),
    }


def render_name_fields(tool: Tool, toolkit: Toolkit) -> dict[str, str]:
    """Return the HTML of the placeholders that the pages of a tool and its history share."""
    return {
        "slug": _escape_markup(tool.slug),
        "slug_code": lists.render_identifier(tool.slug, 'class="slug" id="slug"'),
        "name": _escape_markup(tool.name),
        **_render_toolkit_fields(toolkit),
    }


@lru_cache(maxsize=1 << 10)
def _render_toolkit_fields(toolkit: Toolkit) -> Mapping[str, str]:
    return {
        "toolkit": _escape_markup(toolkit.slug),
        "toolkit_name": _escape_markup(toolkit.name),
        "logo": logos.render_logo(toolkit, SITE_ROOT),
    }


def render_effect(tags: Sequence[str]) -> str:
    """Render what a tool does to the data that it reaches, as far as its tags say so."""
    return next((badge for tag, badge in _EFFECTS.items() if tag in tags), "read and write")


def _render_deprecation(deprecation: Mapping[str, str]) -> str:
    since = f" since {_escape_markup(deprecation['since'])}" if deprecation["since"] else ""
    until = f", until {_escape_markup(deprecation['sunset'])}" if deprecation["sunset"] else ""
    other = _escape_markup(deprecation["replaced_by"])
    link = f'<a href="{SITE_ROOT}tools/{other}/index.html"><code>{other}</code></a>'
    instead = f"Use {link} instead.\n" if other else ""
    reason = markdown.render_inline(deprecation["reason"])
    lines = f"<strong>Deprecated{since}{until}.</strong>\n{reason}\n{instead}"
    return f'<div class="notice deprecated">\n{lines}</div>\n'


def _render_versions(tool: Tool, newest: str) -> str:
    """Render the version; if there are several, a folded list of all, newest first."""
    count = len(tool.available_versions)
    day = _escape_markup(lists.format_day(tool.version))
    if count == 1:
        return f"{day} <small><code>{_escape_markup(tool.version)}</code></small>"
    summary = f"{day} <small>{count} versions</small>"
    links = "".join(
        _render_version_link(version, tool.version, newest)
        for version in reversed(tool.available_versions)
    )
    compare = '<p><a href="history.html">Compare versions</a></p>'
    return (
        f'<details class="versions"><summary>{summary}</summary>\n'
        f"<ul>{links}</ul>\n{compare}</details>"
    )


def _render_version_link(version: str, current: str, newest: str) -> str:
    file = "index" if version == newest else _escape_markup(version)
    mark = ' aria-current="page"' if version == current else ""
    latest = " (latest)" if version == newest else ""
    return (
        f'<li><a href="{file}.html"{mark}><code>{_escape_markup(version)}</code></a>{latest}</li>'
    )


def _render_requests(tool: Tool, api: str) -> str:
    """Render the requests that get this version; slugs and versions have no special characters."""
    slug, version = quote(tool.slug, safe=""), quote(tool.version, safe="")
    return _render_request_template(api).replace(_SLUG, slug).replace(_VERSION, version)


@lru_cache(maxsize=8)
def _render_request_template(api: str) -> str:
    panels = []
    for snippet in definitions.request_snippets(_ANY_TOOL, api):
        html = highlight.highlight_code(snippet.text)
        panels.append(
            _render_panel(
                snippet.name, snippet.title, html if api else highlight.mark_address(html)
            )
        )
    return "".join(panels)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the definitions of a tool look like around its texts and schemas.

    `parts` has the names of these. Tools with equal parts and annotations differ in nothing else,
    so the definitions themselves are not compared.
    """

    parts: tuple[str, ...]
    annotations: tuple[tuple[str, bool], ...]
    forms: Sequence[Definition] = field(compare=False)


def _render_definitions(forms: Sequence[Definition]) -> str:
    parts, mcp = _shared_parts(forms), _mcp_form(forms)
    html = dict(zip(parts, highlight.highlight_values(parts.values()), strict=True))
    shape = _Shape(tuple(parts), tuple(mcp.get("annotations", {}).items()), forms)
    return highlight.fill_frame(_make_frame(shape), html)


@lru_cache(maxsize=256)
def _make_frame(shape: _Shape) -> list[FramePiece]:
    """Return the HTML of all definitions around their parts."""
    pieces: list[FramePiece] = []
    for form in shape.forms:
        head, tail = _render_panel(form.name, form.title, "\0").split("\0")
        names: list[str] = []
        value = _replace_parts(form.value, "inputSchema", names)
        first, *others = highlight.make_frame(value, names)
        pieces += [first._replace(text=head + first.text), *others, FramePiece(tail, "", "")]
    return pieces


def _replace_parts(value: Mapping[str, Any], schema: str, names: list[str]) -> dict[str, Any]:
    """Return a definition with 0 in the place of each part, and append their names to `names`."""
    frame: dict[str, Any] = {}
    for key, inner in value.items():
        if key in _TEXT_PARTS or key in _SCHEMA_PARTS:
            names.append(key if key in _TEXT_PARTS else f"{schema}.{key}")
            frame[key] = 0
        elif isinstance(inner, Mapping):
            inner_schema = key if key == "outputSchema" else schema
            frame[key] = _replace_parts(inner, inner_schema, names)
        else:
            frame[key] = inner
    return frame


def _mcp_form(forms: Sequence[Definition]) -> Mapping[str, Any]:
    return next(form.value for form in forms if form.name == "mcp")


def _shared_parts(forms: Sequence[Definition]) -> dict[str, Any]:
    """Return the texts and parts of schemas that several definitions contain, by name."""
    mcp = _mcp_form(forms)
    parts = {name: mcp[name] for name in _TEXT_PARTS}
    for schema in ("inputSchema", "outputSchema"):
        for key in _SCHEMA_PARTS:
            if key in mcp.get(schema, ()):
                parts[f"{schema}.{key}"] = mcp[schema][key]
    return parts


def _render_panel(name: str, title: str, html: str) -> str:
    copy = f'<button type="button" class="copy" data-copy="code-{name}">Copy</button>'
    return (
        f'<section id="snippet-{name}">\n<h3>{title}</h3>{copy}\n'
        f'<pre tabindex="0" aria-label="{title}"><code id="code-{name}">{html}</code></pre>\n'
        "</section>\n"
    )


def _escape_markup(text: str) -> str:
    """Escape a text for use between tags or in an attribute, exactly as templates do."""
    return str(escape(lists.escape_hidden_value(text)))
