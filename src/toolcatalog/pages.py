"""Snapshot contents to HTML: a tree of path and bytes. Pure; the only room that knows Jinja.

Every page links to the others by relative paths that name a file, so the site works from any sub-path of any host and from disk.
Whatever the catalog says is escaped; nothing of it becomes a script, and a page loads nothing but its own style sheet.

    index.html                      what this is, and the toolkits
    toolkits/<slug>/index.html      a toolkit and its tools
    tools/<SLUG>/index.html         the newest version of a tool

The descriptions of parameters, most of a tool's page, are plain functions: as recursive macros they took most of a build's time.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from toolcatalog.snapshot import Tool, Toolkit, dump

if TYPE_CHECKING:
    import jinja2

STYLE = "style.css"
About = Mapping[str, str]
_LIMITS = (
    "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "nullable",
)  # fmt: skip


def tool_path(slug: str) -> str:
    """Where the page of a tool lies in the site."""
    return f"tools/{slug}/index.html"


def toolkit_path(slug: str) -> str:
    """Where the page of a toolkit lies in the site."""
    return f"toolkits/{slug}/index.html"


def style() -> bytes:
    """The one style sheet."""
    return _asset(STYLE)


def home_page(about: About, toolkits: Sequence[Toolkit], tools: Mapping[str, int]) -> bytes:
    """The first page; `tools` counts those of each toolkit."""
    return _page("index.html", "", about=about, toolkits=toolkits, tools=tools)


def toolkit_page(about: About, toolkit: Toolkit, tools: Sequence[Mapping[str, Any]]) -> bytes:
    """The page of a toolkit; `tools` are the rows of its newest index."""
    return _page("toolkit.html", "../../", about=about, toolkit=toolkit, tools=tools)


def tool_page(about: About, toolkit: Toolkit, tool: Tool) -> bytes:
    """The page of one version of a tool. What it is replaced by has a page too: the rules see to that."""
    more = {"inputs": _parameters(tool.input_parameters), "outputs": _parameters(tool.output_parameters)}
    return _page("tool.html", "../../", about=about, toolkit=toolkit, tool=tool, **more)


def prepare() -> None:
    """Load what makes pages, once for all the processes that are begun from this one."""
    for template in ("index.html", "toolkit.html", "tool.html"):
        _environment().get_template(template)


def _page(template: str, root: str, **values: Any) -> bytes:
    html: str = _environment().get_template(template).render(root=root, **values)
    return html.encode()


@cache
def _environment() -> "jinja2.Environment":
    import jinja2  # noqa: PLC0415 - it takes long to load, and a build that has no page to make does without

    loader = jinja2.FunctionLoader(lambda name: _asset(name).decode())
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)


def _asset(name: str) -> bytes:
    from importlib import resources  # noqa: PLC0415 - likewise

    return (resources.files("toolcatalog") / "templates" / name).read_bytes()


def _parameters(described: Mapping[str, Any]) -> Markup:
    """A map of parameters in their served form; empty where there are none. What is not markup of this file is escaped."""
    if not described:
        return Markup()
    terms = [f"{_term(name, it)}<dd>{_described(it)}</dd>\n" for name, it in described.items()]
    return Markup(f'<dl class="parameters">\n{"".join(terms)}</dl>\n')  # noqa: S704 - of escaped parts


def _term(name: str, it: Mapping[str, Any]) -> str:
    required = ' <span class="badge key">required</span>' if it.get("required") else ""
    return f'<dt><code>{escape(name)}</code> <span class="type">{escape(it["type"])}</span>{required}</dt>\n'


def _described(it: Mapping[str, Any]) -> str:
    parts = [f"<p>{escape(it['description'])}</p>" if it["description"] else "", _facts(it), _parameters(it.get("properties", {}))]
    inner = [("each item:", it["items"])] if "items" in it else []
    if isinstance(it.get("additionalProperties"), dict):
        inner.append(("each other value:", it["additionalProperties"]))
    inner += [("or", branch) for key in ("anyOf", "oneOf") for branch in it.get(key, ())]
    parts += [f'<p class="of">{what} <code>{escape(one["type"])}</code></p>{_described(one)}' for what, one in inner]
    return "".join(parts)


def _facts(it: Mapping[str, Any]) -> str:
    facts = [f"<li>{key} {_literal(it[key])}</li>\n" for key in _LIMITS if key in it]
    facts += [f"<li>default {_literal(it['default'])}</li>"] if "default" in it else []
    for what, key in (("one of", "enum"), ("for example", "examples")):
        if it.get(key):
            facts.append(f"<li>{what} {''.join(f'{_literal(one)} ' for one in it[key])}</li>")
    return f'<ul class="limits">{"".join(facts).strip()}</ul>' if facts else ""


def _literal(value: Any) -> str:
    return f"<code>{escape(dump(value).decode())}</code>"
