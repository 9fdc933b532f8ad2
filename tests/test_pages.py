"""The pages of the site: what they show, that nothing of a catalog becomes markup, and that their links lead somewhere."""

from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from toolcatalog import pages, snapshot
from toolcatalog.snapshot import Tool, Toolkit

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "' onmouseover=alert(1) x='",
    "</title></style></code></p><!--",
    "]]>--><b>&amp;&lt;b&gt;&#60;",
    "{{ 7 * 7 }}{% raw %}{# x",
    "\\u003cb\\u003e \\' \\\"",
]


class Page(HTMLParser):
    """What a browser makes of a page: its elements with their attributes, its texts, and where its links lead."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.texts: list[str] = []
        self.links: list[str] = []
        self.feed(data.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, *(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}",))

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", data))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def described(text: str) -> dict[str, Any]:
    """A description that has the text in every place that can have one."""
    plain = {"type": text, "description": text, "title": text}
    values = {"default": {text: text}, "enum": [text, [text]], "examples": [text]}
    limits = dict.fromkeys(pages._LIMITS, text)
    inner = {"properties": {text: plain}, "items": plain, "additionalProperties": plain, "anyOf": [plain], "oneOf": [plain]}
    return {**plain, **values, **limits, **inner, "required": True}


@dataclass
class Shown:
    """What pages are made of."""

    about: dict[str, str]
    toolkit: Toolkit
    tool: Tool

    def pages(self) -> dict[str, bytes]:
        """The three kinds of page."""
        row = snapshot.index_row(self.tool, b"")
        return {
            "home": pages.home_page(self.about, [self.toolkit], {self.toolkit.slug: 1}),
            "toolkit": pages.toolkit_page(self.about, self.toolkit, [row]),
            "tool": pages.tool_page(self.about, self.toolkit, self.tool),
        }


def shown(text: str) -> Shown:
    """A site with the text in every place that a catalog can fill; slugs and versions are safe names, the schema sees to that."""
    toolkit = Toolkit(
        slug="mail", name=text, logo=text, description=text, categories=(text, text), no_auth=True, homepage=f"https://{text}", owners=(text,), versions=(text,)
    )  # fmt: skip
    tool = Tool(
        slug="MAIL_SEND", toolkit="mail", version=text, available_versions=(text, text), name=text, description=text, scopes=(text,), tags=(text, "important"),
        no_auth=False, deprecation={"reason": text, "since": text, "sunset": text, "replaced_by": text},
        input_parameters={text: described(text)}, output_parameters={text: described(text)},
    )  # fmt: skip
    about = {"title": text, "description": text, "home": text, "repository": f"https://{text}"}
    return Shown(about, toolkit, tool)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_a_catalog_becomes_markup(text: str) -> None:
    """Whatever text stands in whatever place, a page has the elements and attributes that it has with a plain word, and says the text."""
    plain = shown("word").pages()
    for kind, data in shown(text).pages().items():
        assert Page(data).elements == Page(plain[kind]).elements, kind
        assert text in "\0".join(Page(data).texts), kind


def test_every_part_of_a_description_is_shown() -> None:
    """Facts in a fixed order, values as JSON, and what a parameter holds within it."""
    inner = {"type": "string", "description": ""}
    send: dict[str, Any] = {
        "type": "object",
        "description": "What to send.",
        "required": True,
        "nullable": False,
        "examples": [{"a": "<"}, None],
        "default": None,
        "minLength": 0,
        "enum": ["x", 1.5],
        "format": "date",
        "properties": {"a": {**inner, "required": False}},
        "items": {**inner, "properties": {}},
        "additionalProperties": {**inner, "examples": []},
        "anyOf": [inner],
        "oneOf": [{"type": "integer", "description": "Or this."}],
    }
    about, toolkit = {"title": "T", "description": "", "repository": ""}, shown("x").toolkit
    tool = shown("x").tool
    page = pages.tool_page(about, toolkit, replace(tool, output_parameters={"s": send}))
    assert page.decode().partition("<h2>Outputs</h2>\n")[2].partition("</main>")[0] == (
        '<dl class="parameters">\n'
        '<dt><code>s</code> <span class="type">object</span> <span class="badge key">required</span></dt>\n'
        '<dd><p>What to send.</p><ul class="limits"><li>format <code>&quot;date&quot;</code></li>\n'
        "<li>minLength <code>0</code></li>\n"
        "<li>nullable <code>false</code></li>\n"
        "<li>default <code>null</code></li>"
        "<li>one of <code>&quot;x&quot;</code> <code>1.5</code> </li>"
        "<li>for example <code>{&quot;a&quot;:&quot;&lt;&quot;}</code> <code>null</code> </li></ul>"
        '<dl class="parameters">\n'
        '<dt><code>a</code> <span class="type">string</span></dt>\n'
        "<dd></dd>\n"
        "</dl>\n"
        '<p class="of">each item: <code>string</code></p>'
        '<p class="of">each other value: <code>string</code></p>'
        '<p class="of">or <code>string</code></p>'
        '<p class="of">or <code>integer</code></p><p>Or this.</p></dd>\n'
        "</dl>\n"
    )


def test_every_link_of_the_site_leads_to_a_file(shipped_build: Path) -> None:
    """Pages link to one another by relative paths that name a file of the site, also to what replaces a deprecated tool."""
    site = shipped_build.parent / "site"
    for path in site.rglob("*.html"):
        for link in Page(path.read_bytes()).links:
            assert link.startswith("https://") or (path.parent / (link.partition("#")[0] or path.name)).is_file(), f"{path}: {link}"
