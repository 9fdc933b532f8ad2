"""What is particular to the page of a tool, as HTML: all that its template leaves open. Pure.

Of the pages of a site nearly all are those of tools. What is the same on each of them stays in
`tool.html`, which is rendered once for a site; what is not is made here, by plain functions,
because a template takes several times as long for it.
"""

from collections.abc import Mapping

from markupsafe import escape

from toolcatalog import described, entries, exports, markdown
from toolcatalog.exports import Snippet
from toolcatalog.snapshot import Tool, Toolkit

ROOT = "../../"  # from such a page


def of_tool(tool: Tool, toolkit: Toolkit) -> dict[str, str]:
    """What the places that `tool.html` names stand for, but its labels (see `pages`), on the page
    of one version of a tool.
    """
    newest = tool.available_versions[-1]
    uses = exports.uses(tool)
    return {
        "slug": _text(tool.slug),
        "name": _text(tool.name),
        "summary": _text(entries.summary(tool.description)),
        "toolkit": _text(toolkit.slug),
        "toolkit_name": _text(toolkit.name),
        "version": _text(tool.version),
        "newest": _text(newest),
        "badges": entries.badges(tool.deprecation is not None, tool.tags, tool.no_auth),
        "deprecation": "" if tool.deprecation is None else _deprecation(tool.deprecation),
        "description": markdown.block(tool.description),
        "versions": _versions(tool, newest),
        "authentication": "none needed" if tool.no_auth else "needed",
        "tokens": f"{uses.tokens:,}",
        "inputs": described.table(tool.input_parameters, "input-", "What it takes")
        or "<p>None.</p>",
        "outputs": described.table(tool.output_parameters, "output-", "What it returns")
        or "<p>Not described.</p>",
        "snippets": "".join(map(_snippet, uses.snippets)),
    }


def _deprecation(said: Mapping[str, str]) -> str:
    since = f" since {_text(said['since'])}" if said["since"] else ""
    until = f", until {_text(said['sunset'])}" if said["sunset"] else ""
    other = _text(said["replaced_by"])
    instead = (
        f'Use <a href="{ROOT}tools/{other}/index.html"><code>{other}</code></a> instead.\n'
        if other
        else ""
    )
    lines = (
        f"<strong>Deprecated{since}{until}.</strong>\n{markdown.inline(said['reason'])}\n{instead}"
    )
    return f'<div class="notice deprecated">\n{lines}</div>\n'


def _versions(tool: Tool, newest: str) -> str:
    """The version; of several all of them, folded, the newest first."""
    shown = f"<code>{_text(tool.version)}</code>"
    if len(tool.available_versions) == 1:
        return shown
    summary = f"<summary>{shown}{_latest(tool.version, newest)}, {len(tool.available_versions)} in all</summary>"
    links = "".join(
        _version(version, tool.version, newest) for version in reversed(tool.available_versions)
    )
    compare = '<p><a href="history.html">Compare versions</a></p>'
    return f'<details class="versions">{summary}\n<ul>{links}</ul>\n{compare}</details>'


def _version(version: str, here: str, newest: str) -> str:
    file = "index" if version == newest else _text(version)
    current = ' aria-current="page"' if version == here else ""
    return f'<li><a href="{file}.html"{current}><code>{_text(version)}</code></a>{_latest(version, newest)}</li>'


def _latest(version: str, newest: str) -> str:
    return " (latest)" if version == newest else ""


def _snippet(one: Snippet) -> str:
    copy = f'<p><button type="button" class="copy" data-copy="code-{one.name}" hidden>Copy</button></p>'
    code = f'<pre tabindex="0" aria-label="{one.title}"><code id="code-{one.name}">{entries.code(one.text)}</code></pre>'
    return f'<section id="snippet-{one.name}">\n<h3>{one.title}</h3>\n{copy}\n{code}\n</section>\n'


def _text(text: str) -> str:
    """A text as it may stand anywhere on a page: between tags, or in an attribute. As templates
    write it.
    """
    return str(escape(entries.visible(text)))
