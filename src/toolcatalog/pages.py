"""Snapshot contents to HTML: a tree of path and bytes. Pure; the only room that knows Jinja.

Every page links to the others by relative paths that name a file, so the site works from any sub-path of any host and from disk.
Whatever the catalog says is escaped; nothing of it becomes a script, and a page loads nothing but its own style sheet.

    index.html                      what this is, and the toolkits
    toolkits/<slug>/index.html      a toolkit and its tools
    tools/<SLUG>/index.html         the newest version of a tool
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import jinja2

from toolcatalog.progress import Track, quietly
from toolcatalog.snapshot import Contents, Tool, dump

STYLE = "style.css"


def render(contents: Contents, track: Track = quietly) -> dict[str, bytes]:
    """All pages of the site, by path."""
    newest = {tool.slug: tool for tool in contents.tools}
    by_toolkit: defaultdict[str, list[Tool]] = defaultdict(list)
    for tool in newest.values():
        by_toolkit[tool.toolkit].append(tool)
    toolkits = {toolkit.slug: toolkit for toolkit in contents.toolkits}
    tree = {STYLE: _asset(STYLE), "index.html": _page("index.html", "", about=contents.about, toolkits=contents.toolkits, tools=by_toolkit)}
    for toolkit in contents.toolkits:
        more = {"toolkit": toolkit, "tools": by_toolkit[toolkit.slug]}
        tree[f"toolkits/{toolkit.slug}/index.html"] = _page("toolkit.html", "../../", about=contents.about, **more)
    for tool in track("Making pages", [*newest.values()]):
        more = {"toolkit": toolkits[tool.toolkit], "tool": tool, "slugs": newest}
        tree[f"tools/{tool.slug}/index.html"] = _page("tool.html", "../../", about=contents.about, **more)
    return tree


def _page(template: str, root: str, *, about: Mapping[str, str], **values: Any) -> bytes:
    html: str = _environment().get_template(template).render(root=root, about=about, **values)
    return html.encode()


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FunctionLoader(lambda name: _asset(name).decode())
    found = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    found.filters["literal"] = lambda value: dump(value).decode()
    return found


def _asset(name: str) -> bytes:
    return (resources.files("toolcatalog") / "templates" / name).read_bytes()
