"""What is particular to the page of a tool, as HTML: all that its template leaves open. Pure.

Of the pages of a site nearly all are those of tools. What is the same on each of them stays in
`tool.html`, which is rendered once for a site; what is not is made here, by plain functions,
because a template takes several times as long for it.
"""

from collections.abc import Mapping

from markupsafe import escape

from toolcatalog import described, entries, markdown, textutils
from toolcatalog.exports import definitions
from toolcatalog.exports.definitions import Snippet
from toolcatalog.snapshot.format import Tool, Toolkit

SITE_ROOT = "../../"  # from such a page


def render_tool_fields(tool: Tool, toolkit: Toolkit) -> dict[str, str]:
    """What the places that `tool.html` names stand for, but its labels (see `pages`), on the page
    of one version of a tool.
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
        "badges": entries.render_badges(tool.deprecation is not None, tool.tags, tool.no_auth),
        "deprecation": "" if tool.deprecation is None else _render_deprecation(tool.deprecation),
        "description": markdown.render_block(tool.description),
        "versions": _render_versions(tool, newest),
        "authentication": "none needed" if tool.no_auth else "needed",
        "tokens": f"{uses.tokens:,}",
        "inputs": described.render_parameters(tool.input_parameters, "input-", "What it takes")
        or "<p>None.</p>",
        "outputs": described.render_parameters(tool.output_parameters, "output-", "What it returns")
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
    """The version; of several all of them, folded, the newest first."""
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
    code = f'<pre tabindex="0" aria-label="{snippet.title}"><code id="code-{snippet.name}">{entries.escape_code(snippet.text)}</code></pre>'
    return f'<section id="snippet-{snippet.name}">\n<h3>{snippet.title}</h3>\n{copy}\n{code}\n</section>\n'


def _escape_markup(text: str) -> str:
    """A text as it may stand anywhere on a page: between tags, or in an attribute. As templates
    write it.
    """
    return str(escape(entries.escape_hidden_value(text)))
