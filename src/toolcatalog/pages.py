"""Snapshot contents to HTML: a tree of path and bytes. Pure; the only room that knows Jinja.

Every page links to the others by relative paths that name a file, so the site works from any sub-path of any host and from disk.
Whatever the catalog says is escaped; nothing of it becomes a script, and a page loads nothing but its own style sheet.

    index.html                      what this is, and the toolkits
    toolkits/<slug>/index.html      a toolkit and its tools
    tools/<SLUG>/index.html         the newest version of a tool
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import jinja2

from toolcatalog.snapshot import Tool, Toolkit, dump

STYLE = "style.css"


def tool_path(slug: str) -> str:
    """Where the page of a tool lies in the site."""
    return f"tools/{slug}/index.html"


def toolkit_path(slug: str) -> str:
    """Where the page of a toolkit lies in the site."""
    return f"toolkits/{slug}/index.html"


def style() -> bytes:
    """The style sheet."""
    return _asset(STYLE)


def home_page(about: Mapping[str, str], toolkits: Sequence[Toolkit], tools: Mapping[str, int]) -> bytes:
    """The first page; `tools`: how many tools each toolkit has."""
    return _page("index.html", "", about=about, toolkits=toolkits, tools=tools)


def toolkit_page(about: Mapping[str, str], toolkit: Toolkit, tools: Sequence[Mapping[str, Any]]) -> bytes:
    """The page of a toolkit; `tools` are the rows of its newest index."""
    return _page("toolkit.html", "../../", about=about, toolkit=toolkit, tools=tools)


def tool_page(about: Mapping[str, str], toolkit: Toolkit, tool: Tool) -> bytes:
    """The page of a tool."""
    return _page("tool.html", "../../", about=about, toolkit=toolkit, tool=tool)


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
