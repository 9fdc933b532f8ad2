"""HTML pages of a snapshot, rendered with Jinja templates.

Pages link to each other by relative paths that name a file, so the site works from any sub-path of
any host and from disk. All pages can be read without JavaScript; the one script only makes things
faster. Catalog texts are escaped or rendered as Markdown without raw HTML (see `site.markdown`). A
page loads nothing from other hosts.

`root` is the relative path from a page to the root of the site.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import jinja2
from markupsafe import Markup

from toolcatalog.exports import definitions
from toolcatalog.site import (
    assets,
    highlight,
    history_page,
    lists,
    logos,
    markdown,
    reference_page,
    tool_page,
)
from toolcatalog.site.feeds import ToolChange
from toolcatalog.site.lists import ToolRow
from toolcatalog.site.reference_page import ExampleCall
from toolcatalog.snapshot.format import Session, Tool, Toolkit
from toolcatalog.textutils import first_sentence

SiteInfo = Mapping[str, str]
TOOLS_PER_PAGE = 1000  # at most
_SAFE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
_DIGESTED = re.compile(r".*-[0-9a-f]{32}")  # the form of `label_path` for labels that are not plain
# device names, which Windows reserves
_RESERVED = re.compile(r"con|prn|aux|nul|(?:com|lpt)[0-9]")
_MCP_CONFIGURATION = """{
  "mcpServers": {
    "catalog": {
      "command": "toolcatalog",
      "args": ["mcp", "--build", "build"]
    }
  }
}"""
_TEMPLATES = (
    "home",
    "tools",
    "toolkit",
    "tool",
    "history",
    "comparisons",
    "labels",
    "label",
    "sessions",
    "reference",
    "contribute",
    "changes",
    "404",
)


class ToolkitTools(NamedTuple):
    """A toolkit with the rows of its tools in their newest versions."""

    toolkit: Toolkit
    tools: Sequence[ToolRow]


class ListedTool(NamedTuple):
    """A tool and its toolkit, for lists with tools of several toolkits."""

    toolkit: Toolkit
    tool: ToolRow


@dataclass(frozen=True, slots=True)
class MetaToolSummary:
    """A meta tool as its file describes it, before a session fills in its template."""

    slug: str
    name: str
    description: str


def tool_path(slug: str, file: str = "index.html") -> str:
    """Return the path of a file about a tool in the site."""
    return f"tools/{slug}/{file}"


def toolkit_path(slug: str, file: str = "index.html") -> str:
    """Return the path of a file about a toolkit in the site."""
    return f"toolkits/{slug}/{file}"


def label_path(kind: str, label: str) -> str:
    """Return the path of the page of a tag or a scope; `kind` is "tags" or "scopes".

    Any text becomes a safe and unique folder name, also on file systems that ignore case. A plain
    label is used as it is; any other gets 128 bits of its SHA-256 appended, and no plain label has
    that form.
    """
    if _SAFE_NAME.fullmatch(label) and not (
        _DIGESTED.fullmatch(label) or _RESERVED.fullmatch(label)
    ):
        return f"{kind}/{label}/index.html"
    plain = re.sub(r"[^a-z0-9]+", "-", label.casefold())[:47].strip("-") or "label"
    digest = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{kind}/{plain}-{digest}/index.html"


def list_path(number: int) -> str:
    """Return the path of a page of the list of all tools; numbers start at 1."""
    return "tools/index.html" if number == 1 else f"tools/page-{number}.html"


def render_home(
    about: SiteInfo, toolkits: Sequence[tuple[Toolkit, int]], changes: Sequence[ToolChange]
) -> bytes:
    """Render the home page.

    `toolkits` have their number of tools; `changes` are the last ones, newest first.
    """
    example = next((change.slug for change in changes if change.what != "deprecated"), "")
    return _render(
        "home",
        "",
        about=about,
        toolkits=toolkits,
        changes=changes,
        example=example,
        ways=_render_ways(about, example),
    )


def _render_ways(about: SiteInfo, example: str) -> dict[str, Markup]:
    """Render the code of each way to use the catalog; `example` is the slug of a tool."""
    url = definitions.shell_url(about.get("api", ""), "/api/v3/tools")
    request = (
        f"curl -G {url} \\\n"
        f'  -H "x-api-key: ${definitions.KEY_VARIABLE}" \\\n'
        '  -d query="create an issue"'
    )
    html = {
        "api": highlight.mark_address(highlight.highlight_code(request)),
        "mcp": highlight.highlight_code(_MCP_CONFIGURATION),
        "export": highlight.highlight_code(
            "\n".join(f"toolcatalog export {form} \\\n  {example}" for form in ("openai", "mcp"))
        ),
    }
    return {name: Markup(code) for name, code in html.items()}  # noqa: S704 - highlighting escapes


def render_changes(about: SiteInfo, changes: Sequence[ToolChange]) -> bytes:
    """Render the changes of all tools by day; `changes` are newest first."""
    days = [
        (day, [*group]) for day, group in groupby(changes, lambda it: lists.format_day(it.version))
    ]
    return _render("changes", "../", about=about, days=days)


def render_tool_list(
    about: SiteInfo, number: int, total: int, tools: Sequence[ListedTool]
) -> bytes:
    """Render a page of the list of all tools.

    `number` starts at 1, `total` is the number of all tools, and `tools` are those on the page.
    """
    paths = [list_path(page).rpartition("/")[2] for page in range(1, count_list_pages(total) + 1)]
    return _render(
        "tools",
        "../",
        about=about,
        number=number,
        paths=paths,
        total=total,
        tools=_group_by_toolkit(tools),
    )


def render_toolkit(
    about: SiteInfo, toolkit: Toolkit, tools: Sequence[ToolRow], changes: Sequence[Any]
) -> bytes:
    """Render the page of a toolkit, with the last `changes` to its tools (see `site.feeds`)."""
    return _render_toolkit(
        about, toolkit, toolkit.versions[-1] if toolkit.versions else "", tools, changes, {}
    )


def render_older_toolkit(
    about: SiteInfo,
    toolkit: Toolkit,
    version: str,
    tools: Sequence[ToolRow],
    newest: Mapping[str, str],
) -> bytes:
    """Render the page of a toolkit at an older version.

    `newest` has the newest version of each of its tools.
    """
    return _render_toolkit(about, toolkit, version, tools, [], newest)


def _render_toolkit(
    about: SiteInfo,
    toolkit: Toolkit,
    version: str,
    tools: Sequence[ToolRow],
    changes: Sequence[Any],
    newest: Mapping[str, str],
) -> bytes:
    current = [tool for tool in tools if tool.deprecation is None]
    shown = {
        "tools": current,
        "groups": lists.group_by_subject(current),
        "deprecated": [tool for tool in tools if tool.deprecation is not None],
        "scopes": sorted({scope for tool in tools for scope in tool.scopes}),
        "old": version not in ("", toolkit.versions[-1] if toolkit.versions else ""),
    }
    return _render(
        "toolkit",
        "../../",
        about=about,
        toolkit=toolkit,
        version=version,
        changes=changes,
        newest=newest,
        **shown,
    )


def render_tool(about: SiteInfo, toolkit: Toolkit, tool: Tool) -> bytes:
    """Render the page of one version of a tool.

    The tool that replaces it always has a page too: the rules of the catalog require that.
    """
    root, old = tool_page.SITE_ROOT, tool.version != tool.available_versions[-1]
    fields = {
        **tool_page.render_tool_fields(tool, toolkit, about.get("api", "")),
        "scopes": _label_links(root, "scopes", tool.scopes, old),
        "tags": _label_links(root, "tags", tool.tags, old),
    }
    return _fill_template("tool", about, old, fields)


def _fill_template(template: str, about: SiteInfo, old: bool, fields: Mapping[str, str]) -> bytes:
    """Return a page of a tool, from the HTML of each placeholder of its template."""
    encoded = {"": b""} | {name: html.encode() for name, html in fields.items()}
    fixed, names = _split_template(template, tuple(about.items()), old, tuple(fields))
    return b"".join(chain.from_iterable(zip(fixed, map(encoded.__getitem__, names), strict=True)))


@lru_cache(maxsize=8)
def _split_template(
    template: str, about: tuple[tuple[str, str], ...], old: bool, placeholders: tuple[str, ...]
) -> tuple[Sequence[bytes], Sequence[str]]:
    """Return a rendered template in pieces, and the placeholders after each of them.

    The pieces are the same on all such pages of a site. The last placeholder is empty.
    """
    marks = {name: f"\0{name}\0" for name in placeholders}
    html = (
        _load_environment()
        .get_template(f"{template}.html")
        .render(root=tool_page.SITE_ROOT, about=dict(about), old=old, **marks)
    )
    pieces = [*re.split(f"\0({'|'.join(placeholders)})\0", html), ""]
    return [piece.encode() for piece in pieces[::2]], pieces[1::2]


def render_history(about: SiteInfo, toolkit: Toolkit, versions: Sequence[Tool]) -> bytes:
    """Render the changes between the versions of a tool, given oldest first."""
    comparisons = _load_environment().get_template("comparisons.html")
    fields = {
        **tool_page.render_name_fields(versions[-1], toolkit),
        "comparisons": comparisons.render(
            versions=[tool.version for tool in versions],
            pairs=history_page.compare_versions(versions),
        ),
    }
    return _fill_template("history", about, False, fields)


def render_labels(
    about: SiteInfo, kind: str, groups: Sequence[tuple[str, Mapping[str, int]]]
) -> bytes:
    """Render the list of all tags, or scopes, with the number of tools of each.

    Labels come in groups, each with a title, which may be empty.
    """
    return _render("labels", "../", about=about, kind=kind, groups=groups)


def render_label(
    about: SiteInfo, kind: str, label: str, total: int, tools: Sequence[ListedTool]
) -> bytes:
    """Render the page of a tag or scope; `tools` are the first of its `total` tools."""
    return _render(
        "label",
        "../../",
        about=about,
        kind=kind,
        label=label,
        shown=len(tools),
        tools=_group_by_toolkit(tools),
        total=total,
    )


def _group_by_toolkit(tools: Iterable[ListedTool]) -> list[ToolkitTools]:
    return [
        ToolkitTools(toolkit, [one.tool for one in some])
        for toolkit, some in groupby(tools, key=attrgetter("toolkit"))
    ]


def render_sessions(
    about: SiteInfo, tools: Sequence[MetaToolSummary], sessions: Collection[Session]
) -> bytes:
    """Render the page that explains sessions, and lists them and the meta tools."""
    return _render("sessions", "../", about=about, tools=tools, sessions=sessions)


def render_reference(
    about: SiteInfo, document: Mapping[str, Any], calls: Mapping[str, ExampleCall]
) -> bytes:
    """Render the API reference from its OpenAPI document, with example calls by operation."""
    return _render(
        "reference",
        "../",
        about=about,
        document=document,
        operations=reference_page.list_operations(document, calls, about.get("api", "")),
        errors=[*reference_page.list_errors(document)],
    )


def render_contribute(about: SiteInfo) -> bytes:
    """Render the page that explains how to add a tool."""
    return _render("contribute", "../", about=about)


def render_not_found(about: SiteInfo) -> bytes:
    """Render the page for "404 Not Found".

    A server sends it for any path, so its links start at the catalog's `home` path, or else at `/`.
    """
    path = urlsplit(about["home"]).path.strip("/")
    return _render("404", f"/{path}/" if path else "/", about=about)


def preload() -> None:
    """Load all templates, once for all processes that are forked from this one."""
    for template in _TEMPLATES:
        _load_environment().get_template(f"{template}.html")
    markdown.preload()


def _render(template: str, root: str, **values: Any) -> bytes:
    html: str = _load_environment().get_template(f"{template}.html").render(root=root, **values)
    return html.encode()


@cache
def _load_environment() -> "jinja2.Environment":
    import jinja2  # noqa: PLC0415 - slow to import

    loader = jinja2.FunctionLoader(assets.read_template)
    strict = jinja2.StrictUndefined
    made = jinja2.Environment(
        loader=loader,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=strict,
        finalize=lists.escape_hidden_value,
    )
    made.filters |= {
        "day": lists.format_day,
        "summary": first_sentence,
        "inline": _inline_markup,
        "block": _block_markup,
        "host": _host,
        "links": _parse_links,
    }
    made.globals |= {
        "label_path": label_path,
        "labels": _label_links,
        "logo": _render_logo,
        "identifier": _render_identifier,
        "items": lists.render_items,
        "dated_items": lists.render_dated_items,
        "describe_field": reference_page.describe_field,
    }
    return made


def _label_links(root: str, kind: str, labels: Iterable[str], old: bool) -> Markup:
    """Return the tags or scopes of a page, each with a link.

    Labels of older versions have no link, because a label of older versions only has no page.
    """
    links = " ".join(_label_link(root, kind, label, old) for label in labels)
    html = f"<div><dt>{kind.capitalize()}</dt><dd>{links}</dd></div>" if links else ""
    return Markup(html)  # noqa: S704 - all parts are escaped


@lru_cache(maxsize=1 << 12)
def _label_link(root: str, kind: str, label: str, old: bool) -> str:
    code = lists.render_identifier(label)
    return code if old else f'<a href="{root}{label_path(kind, label)}">{code}</a>'


def _render_logo(toolkit: Toolkit, root: str) -> Markup:
    return Markup(logos.render_logo(toolkit, root))  # noqa: S704 - all parts are escaped


def _render_identifier(name: str, attributes: str = "") -> Markup:
    return Markup(lists.render_identifier(name, attributes))  # noqa: S704 - the name is escaped


def _inline_markup(text: str) -> Markup:
    return Markup(markdown.render_inline(text))  # noqa: S704 - escaped or sanitized


def _block_markup(text: str) -> Markup:
    return Markup(markdown.render_block(text))  # noqa: S704 - escaped or sanitized


def _host(url: str) -> str:
    """Return the host of an address, for a short link text."""
    return url.partition("://")[2].partition("/")[0] or url


def _parse_links(text: str) -> list[tuple[str, str]]:
    """Return text and address of each footer link, from lines of `address text`."""
    pairs = (line.partition(" ") for line in text.split("\n"))
    return [(label or address, address) for address, _, label in pairs if address]


def count_list_pages(tool_count: int) -> int:
    """Return the number of pages of the list of all tools."""
    return max(1, -(-tool_count // TOOLS_PER_PAGE))
