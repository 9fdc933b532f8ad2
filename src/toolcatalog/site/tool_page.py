"""The page of a tool: parameter tables, and everything that its template leaves open.

Nearly all pages of a site are tool pages. What they have in common is in `tool.html`, which is
rendered once per site. The rest is rendered here by plain functions, because a template takes
several times as long: parameter descriptions are most of a page, and as recursive template macros
they took most of the time of a build.

Each parameter has an anchor, such as `input-filter.state`; nested parameters are folded into its
row.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from markupsafe import escape as markupsafe_escape

from toolcatalog import textutils
from toolcatalog.encoding import dump_json
from toolcatalog.exports import definitions
from toolcatalog.exports.definitions import Snippet
from toolcatalog.parameters import children
from toolcatalog.site import lists, markdown
from toolcatalog.snapshot.format import Tool, Toolkit

_LIMIT_LABELS = {
    "format": "format",
    "pattern": "pattern",
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "minLength": "shortest length",
    "maxLength": "longest length",
    "minItems": "fewest items",
    "maxItems": "most items",
    "uniqueItems": "no item twice",
    "nullable": "may be null",
}
ServedParameter = Mapping[str, Any]


def render_parameters(
    parameters: Mapping[str, ServedParameter], anchor: str, caption: str
) -> Markup:
    """Render parameters in their served form as a table, required ones first.

    Catalog texts are escaped. No parameters give an empty result.
    """
    return Markup(_render_table(parameters, anchor, caption))  # noqa: S704 - all parts are escaped


def _render_table(parameters: Mapping[str, ServedParameter], anchor: str, caption: str) -> str:
    if not parameters:
        return ""
    rows = sorted(parameters.items(), key=lambda item: not item[1].get("required"))
    body = "".join(_render_row(name, it, f"{anchor}{_encode_anchor(name)}") for name, it in rows)
    head = '<thead><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Description</th></tr></thead>'
    return f'<table class="parameters"><caption>{escape(caption)}</caption>{head}<tbody>\n{body}</tbody></table>'


@lru_cache(maxsize=1 << 14)
def _encode_anchor(name: str) -> str:
    """Return a name as part of an anchor, unique among all names and paths of names."""
    return quote(name, safe="").replace(".", "%2E")


def _render_row(name: str, parameter: ServedParameter, anchor: str) -> str:
    required = ' <span class="badge key">required</span>' if parameter.get("required") else ""
    target = anchor.replace("%", "%25")
    link = f'<a class="anchor" href="#{target}"><code>{_escape_text(name)}</code></a>'
    return f'<tr id="{anchor}"><th scope="row">{link}{required}</th><td>{escape(_format_type(parameter))}</td><td>{_render_description(parameter, anchor)}</td></tr>\n'


def _format_type(parameter: ServedParameter) -> str:
    items = parameter.get("items")
    return (
        f"{parameter['type']} of {items['type']}"
        if parameter["type"] == "array" and isinstance(items, Mapping)
        else str(parameter["type"])
    )


def _render_description(parameter: ServedParameter, anchor: str) -> str:
    return "".join(
        (
            markdown.render_block(parameter["description"]),
            _render_limits(parameter),
            *_render_nested(parameter, anchor),
        )
    )


def _render_nested(parameter: ServedParameter, anchor: str) -> Iterator[str]:
    """Yield the folded HTML of each nested description of a parameter."""
    if properties := parameter.get("properties"):
        yield _render_details(
            _format_field_count(properties), _render_table(properties, f"{anchor}.", "Fields")
        )
    branch = 0
    for steps, _, description in children(parameter):
        match steps[0]:
            case "properties":
                continue
            case "items":
                label, part = "Each item", "items"
            case "additionalProperties":
                label, part = "Each other value", "others"
            case _:
                label = f"{'or' if branch else 'Either'}: {description['type']}"
                part, branch = f"{branch}", branch + 1
        if html := _render_description(description, f"{anchor}.{part}"):
            yield _render_details(label, html)


def _format_field_count(properties: Mapping[str, Any]) -> str:
    return f"{len(properties)} field{'' if len(properties) == 1 else 's'}"


def _render_details(summary: str, html: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{html}</details>"


def _render_limits(parameter: ServedParameter) -> str:
    facts = [
        f"<li>{words}{_render_limit(parameter[key])}</li>"
        for key, words in _LIMIT_LABELS.items()
        if key in parameter and parameter[key] is not False
    ]
    facts += (
        [f"<li>default {_render_literal(parameter['default'])}</li>"]
        if "default" in parameter
        else []
    )
    for what, key in (("one of", "enum"), ("for example", "examples")):
        if parameter.get(key):
            facts.append(f"<li>{what} {' '.join(map(_render_literal, parameter[key]))}</li>")
    return f'<ul class="limits">{"".join(facts)}</ul>' if facts else ""


def _escape_text(text: str) -> str:
    # quotes stay, because this is never used in an attribute
    return escape(text if text.isascii() else textutils.escape_hidden(text), quote=False)


def _render_limit(limit: Any) -> str:
    return "" if limit is True else f" {_render_literal(limit)}"


def _render_literal(value: Any) -> str:
    return f"<code>{_escape_text(dump_json(value).decode())}</code>"


SITE_ROOT = "../../"  # relative to a tool page


def render_tool_fields(tool: Tool, toolkit: Toolkit) -> dict[str, str]:
    """Return the HTML of each placeholder of `tool.html`, for the page of one version of a tool.

    The placeholders of labels are not included (see `site.pages`).
    """
    newest = tool.available_versions[-1]
    uses = definitions.build_usage(tool)
    return {
        "slug": _escape_markup(tool.slug),
        "name": _escape_markup(tool.name),
        "summary": _escape_markup(textutils.first_sentence(tool.description)),
        "toolkit": _escape_markup(toolkit.slug),
        "toolkit_name": _escape_markup(toolkit.name),
        "version": _escape_markup(tool.version),
        "newest": _escape_markup(newest),
        "badges": lists.render_badges(tool.deprecation is not None, tool.tags, tool.no_auth),
        "deprecation": "" if tool.deprecation is None else _render_deprecation(tool.deprecation),
        "description": markdown.render_block(tool.description),
        "versions": _render_versions(tool, newest),
        "authentication": "none needed" if tool.no_auth else "needed",
        "tokens": f"{uses.tokens:,}",
        "inputs": render_parameters(tool.input_parameters, "input-", "What it takes")
        or "<p>None.</p>",
        "outputs": render_parameters(tool.output_parameters, "output-", "What it returns")
        or "<p>Not described.</p>",
        "snippets": "".join(map(_render_snippet, uses.snippets)),
    }


def _render_deprecation(deprecation: Mapping[str, str]) -> str:
    since = f" since {_escape_markup(deprecation['since'])}" if deprecation["since"] else ""
    until = f", until {_escape_markup(deprecation['sunset'])}" if deprecation["sunset"] else ""
    other = _escape_markup(deprecation["replaced_by"])
    instead = (
        f'Use <a href="{SITE_ROOT}tools/{other}/index.html"><code>{other}</code></a> instead.\n'
        if other
        else ""
    )
    lines = f"<strong>Deprecated{since}{until}.</strong>\n{markdown.render_inline(deprecation['reason'])}\n{instead}"
    return f'<div class="notice deprecated">\n{lines}</div>\n'


def _render_versions(tool: Tool, newest: str) -> str:
    """Render the version; if there are several, a folded list of all, newest first."""
    shown = f"<code>{_escape_markup(tool.version)}</code>"
    if len(tool.available_versions) == 1:
        return shown
    summary = f"<summary>{shown}{_latest_label(tool.version, newest)}, {len(tool.available_versions)} in all</summary>"
    links = "".join(
        _render_version_link(version, tool.version, newest)
        for version in reversed(tool.available_versions)
    )
    compare = '<p><a href="history.html">Compare versions</a></p>'
    return f'<details class="versions">{summary}\n<ul>{links}</ul>\n{compare}</details>'


def _render_version_link(version: str, here: str, newest: str) -> str:
    file = "index" if version == newest else _escape_markup(version)
    current = ' aria-current="page"' if version == here else ""
    return f'<li><a href="{file}.html"{current}><code>{_escape_markup(version)}</code></a>{_latest_label(version, newest)}</li>'


def _latest_label(version: str, newest: str) -> str:
    return " (latest)" if version == newest else ""


def _render_snippet(snippet: Snippet) -> str:
    copy = f'<p><button type="button" class="copy" data-copy="code-{snippet.name}" hidden>Copy</button></p>'
    code = f'<pre tabindex="0" aria-label="{snippet.title}"><code id="code-{snippet.name}">{lists.escape_code(snippet.text)}</code></pre>'
    return f'<section id="snippet-{snippet.name}">\n<h3>{snippet.title}</h3>\n{copy}\n{code}\n</section>\n'


def _escape_markup(text: str) -> str:
    """Escape a text for use between tags or in an attribute, exactly as templates do."""
    return str(markupsafe_escape(lists.escape_hidden_value(text)))
