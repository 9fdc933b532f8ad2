"""The pages of the site: what they show, that nothing of a catalog becomes markup, and that their
links lead somewhere.
"""

import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog import openapi
from toolcatalog.build import site_pages
from toolcatalog.site import lists, pages, parameter_list, reference_page, search_data
from toolcatalog.site.pages import ListedTool, MetaToolSummary
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import Session, Tool, Toolkit

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
    """What a browser makes of a page: its elements with their attributes, its texts, and where its
    links lead.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.texts: list[str] = []
        self.links: list[str] = []
        self.feed(data.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "wbr":  # long names can break
            self.elements.append((tag, *(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}",))

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", data))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def told(text: str) -> dict[str, Any]:
    """A description that has the text in every place that can have one."""
    plain = {"type": text, "description": text, "title": text}
    values = {"default": {text: text}, "enum": [text, [text]], "examples": [text]}
    limits = dict.fromkeys(parameter_list.LIMIT_KEYS, text)
    inner = {
        "properties": {text: plain},
        "items": plain,
        "additionalProperties": plain,
        "anyOf": [plain],
        "oneOf": [plain],
    }
    return {**plain, **values, **limits, **inner, "required": True}


@dataclass
class Shown:
    """What pages are made of."""

    about: dict[str, str]
    toolkit: Toolkit
    tool: Tool

    def pages(self) -> dict[str, bytes]:
        """Each kind of page."""
        row = lists.make_row(snapshot_format.make_toolkit_index_row(self.tool, b""))
        listed = ListedTool(self.toolkit, row)
        change = site_pages.recent_changes([listed], {self.toolkit.slug: {}})
        return {
            "home": pages.render_home(self.about, [(self.toolkit, 1)], change),
            "list": pages.render_tool_list(self.about, 1, 1_001, [listed]),
            "toolkit": pages.render_toolkit(self.about, self.toolkit, [row], change),
            "older toolkit": pages.render_older_toolkit(
                self.about, self.toolkit, "x", [row], {"MAIL_SEND": "y"}
            ),
            "tool": pages.render_tool(self.about, self.toolkit, self.tool),
            "history": pages.render_history(
                self.about, self.toolkit, [self.tool, replace(self.tool, input_parameters={})]
            ),
            "labels": pages.render_labels(
                self.about, "tags", [(self.toolkit.name, {self.tool.tags[0]: 1})]
            ),
            "label": pages.render_label(self.about, "tags", self.tool.tags[0], 1, [listed]),
            "sessions": pages.render_sessions(
                self.about,
                [MetaToolSummary("M", self.tool.name, self.tool.description)],
                [
                    Session(
                        id="trs_s", project=self.tool.name, toolkits=("mail",), tools=(self.tool,)
                    )
                ],
            ),
            "changes": pages.render_changes(self.about, change),
            "lost": pages.render_not_found(self.about),
        }


def shown(text: str) -> Shown:
    """A site with the text in every place that a catalog can fill; slugs and versions are safe
    names, the schema sees to that.
    """
    toolkit = Toolkit(
        slug="mail",
        name=text,
        logo=text,
        description=text,
        categories=(text, text),
        no_auth=True,
        homepage=f"https://{text}",
        owners=(text,),
        versions=(text,),
    )
    tool = Tool(
        slug="MAIL_SEND",
        toolkit="mail",
        version=text,
        available_versions=(text, text),
        name=text,
        description=text,
        scopes=(text,),
        tags=(text, "important"),
        no_auth=False,
        deprecation={"reason": text, "since": text, "sunset": text, "replaced_by": text},
        input_parameters={text: told(text)},
        output_parameters={text: told(text)},
    )
    about = {"title": text, "description": text, "home": text, "repository": f"https://{text}"}
    return Shown(about, toolkit, tool)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_a_catalog_becomes_markup(text: str) -> None:
    """Whatever text stands in whatever place, a page has the elements and attributes that it has
    with a plain word, and says the text.
    """
    plain = shown("word").pages()
    for kind, data in shown(text).pages().items():
        assert Page(data).elements == Page(plain[kind]).elements, kind
        assert text in "".join(Page(data).texts), kind


def test_what_is_rendered_once_is_of_its_own_site() -> None:
    """Pages of two sites and two versions, made in turn: each has the title of its own, and a mark
    of the template is left on none.
    """
    one, other = shown("one"), shown("other")
    for _ in range(2):
        for about, site in (
            (one.about, "one"),
            (other.about, "other"),
            ({**one.about, "title": "\0"}, "\0"),
        ):
            for versions, old in (("one",), ""), (("one", "two"), " (one)"):
                html = pages.render_tool(
                    about, one.toolkit, replace(one.tool, available_versions=versions)
                ).decode()
                assert f"<title>one{old} · one · {site}</title>" in html
                assert html.count("This is an older version.") == (1 if old else 0)
                assert html.replace(site, "").count("\0") == 0


def test_each_label_has_a_file_of_its_own() -> None:
    """Whatever a tag or scope says: a safe name, short enough, and not another's, also where case
    does not count.
    """
    labels = [
        "issues",
        "Issues",
        "ISSUES",
        "a/b",
        "a:b",
        "../..",
        ".",
        "..",
        "",
        "Ünï",
        "ünï",
        "x" * 300,
        "y" * 300,
        "con",
        "a b",
        "a\\b",
        "%2e",
        "index.html",
    ]
    paths = [pages.label_path("tags", label) for label in labels]
    assert len({path.casefold() for path in paths}) == len(labels)
    for path in paths:
        kind, name, file = path.split("/")
        assert (kind, file) == ("tags", "index.html")
        assert name.strip(".") == name
        assert 0 < len(name) < 100
        assert "%" not in name


def test_no_label_takes_the_place_of_a_page_or_of_another_label() -> None:
    """A label that is called as the page that lists all labels, as a device of Windows, or as the
    folder of another label gets a folder of its own.
    """
    digested = pages.label_path("tags", "A").split("/")[1]
    assert re.fullmatch("a-[0-9a-f]{32}", digested)
    for label in ("index.html", "a.b", "con", "com1", digested, "x-" + "0" * 32):
        _, name, _ = pages.label_path("tags", label).split("/")
        assert name != label
        assert re.fullmatch("[a-z0-9][a-z0-9-]*-[0-9a-f]{32}", name)
    equal_in_64_bits = "A++<!=!;@:$.=&@/?", "A<!-@*%!=*<->@&<<"
    assert len({pages.label_path("tags", label) for label in equal_in_64_bits}) == 2
    assert pages.label_path("tags", "a-d3d99e8b") == "tags/a-d3d99e8b/index.html"


@given(st.lists(st.text(max_size=30) | st.from_regex("[a-z0-9._-]{1,90}"), unique=True))
def test_labels_never_share_a_folder(labels: list[str]) -> None:
    """Each label has its own folder, also on file systems that ignore case."""
    names = [pages.label_path("scopes", label).split("/")[1] for label in labels]
    assert len({*names}) == len(labels)
    assert all(re.fullmatch("[a-z0-9][a-z0-9_-]{0,79}", name) for name in names)


@pytest.mark.parametrize(
    ("home", "root"),
    [
        ("https://good.example", "/"),
        ("https://good.example/", "/"),
        ("https://good.example/tools/", "/tools/"),
        ("https://good.example//evil.example", "/evil.example/"),
    ],
)
def test_the_page_for_any_path_stays_on_its_host(home: str, root: str) -> None:
    """Its links begin at the path of the catalog's home, and never with two slashes."""
    about = {"title": "Title", "description": "", "home": home, "repository": ""}
    html = pages.render_not_found(about).decode()
    assert f'<a class="home" href="{root}index.html">' in html
    assert '"//' not in html


def test_the_data_of_the_search_is_what_the_script_reads() -> None:
    """Each file is one call of a function with JSON; a line break in a name does not shift those
    behind it.
    """
    row = lists.make_row(snapshot_format.make_toolkit_index_row(shown("x").tool, b""))
    row = row._replace(name="two\nlines", no_auth=True, tags=("b", "a"), scopes=())
    search = search_data.SearchDataBuilder({"tags": ["a", "b"], "scopes": []})
    search.add_tools([row])
    search.add_tools([row._replace(slug="MAIL_READ", name="three", no_auth=False)])
    said = (
        b'{"toolkits":[["mail","x",2]],"slugs":"MAIL_SEND\\nMAIL_READ",'
        b'"names":"two lines\\nthree","flags":"51","shard":500,"recent":["MAIL_READ"],'
        b'"synonyms":["create add insert:'
    )
    data = search.render_search_data([(shown("x").toolkit, 2)], ["MAIL_READ"])
    assert data.startswith(b"toolcatalogData(%b" % said)
    said = b'{"tags":["a","b"],"tool_tags":[[0,1],[0,1]],"scopes":[],"tool_scopes":[[],[]]}'
    assert search.render_facets() == b"toolcatalogFacets(%b);\n" % said
    assert search.render_words() == b'toolcatalogWords("x b\\nx b");\n'
    assert [*search.slugs()] == ["MAIL_SEND", "MAIL_READ"]
    assert search_data.render_shard(0, [row]) == b'toolcatalogShard(0,["x"]);\n'


def test_the_data_of_the_side_navigation() -> None:
    """The tools of a toolkit with the first tag that is about a subject, and what they do."""
    row = lists.make_row(snapshot_format.make_toolkit_index_row(shown("x").tool, b""))
    rows = [
        row._replace(slug="A", name="a", tags=("readOnlyHint", "mail"), deprecation=None),
        row._replace(slug="B", name="b\nc", tags=("destructiveHint", "important"), no_auth=True),
    ]
    data = search_data.render_toolkit_tools(shown("x").toolkit, rows)
    assert data == (
        b'toolcatalogToolkit("mail",{"slugs":"A\\nB","names":"a\\nb c","flags":"8n",'
        b'"groups":["mail",""],"group":[0,1]});\n'
    )


def test_tools_are_grouped_by_subject() -> None:
    """Large groups first, tools without a subject last, in their order within a group."""
    row = lists.make_row(snapshot_format.make_toolkit_index_row(shown("x").tool, b""))
    tags = {"A": ("mail",), "B": ("important",), "C": ("files", "mail"), "D": ("openHint", "files")}
    rows = [row._replace(slug=slug, tags=some) for slug, some in tags.items()]
    groups = lists.group_by_subject(rows)
    assert [(tag, [tool.slug for tool in tools]) for tag, tools in groups] == [
        ("files", ["C", "D"]),
        ("mail", ["A"]),
        ("", ["B"]),
    ]


def test_a_base_version_has_no_day() -> None:
    """Imported tools have a version that is no date."""
    assert lists.format_day("20251027_00") == "2025-10-27"
    assert lists.format_day("00000000_00") == "base version"


def test_long_identifiers_can_break() -> None:
    """Between their words, and never between signs or in short ones."""
    assert lists.render_identifier("repo_id") == "<code>repo_id</code>"
    assert lists.render_identifier("GITHUB_CREATE__ISSUE", 'class="slug"') == (
        '<code class="slug">GITHUB_<wbr>CREATE__<wbr>ISSUE</code>'
    )


def test_the_address_of_the_api_in_requests() -> None:
    """That of the catalog; without one, a variable that the script may replace."""
    site = shown("x")
    plain = pages.render_tool(site.about, site.toolkit, site.tool).decode()
    assert plain.count('<span class="api">') == 3
    assert "127.0.0.1" not in plain
    about = {**site.about, "api": "https://api.example.com/"}
    named = pages.render_tool(about, site.toolkit, site.tool).decode()
    assert '<span class="api">' not in named
    assert named.count("https://api.example.com") == 3


def test_footer_links_and_theme() -> None:
    """Texts and addresses of a catalog's own; only a line feed separates links."""
    about = {**shown("x").about, "links": "https://a.example Help & more\nhttps://b.example/\x1cc"}
    html = pages.render_contribute({**about, "headline": "Our tools"}).decode()
    assert '<a href="https://a.example">Help &amp; more</a>' in html
    assert '<a href="https://b.example/\x1cc">https://b.example/\x1cc</a>' in html
    home = pages.render_home({**about, "headline": "Our tools"}, [], []).decode()
    assert "<h1>Our tools</h1>" in home


def test_the_reference_has_every_operation_and_schema() -> None:
    """Of the OpenAPI document of the server, each error once, and every field has a text."""
    document = openapi.build_document()
    html = pages.render_reference(shown("x").about, document, {}).decode()
    for name, schema in document["components"]["schemas"].items():
        assert f'id="schema-{name}"' in html
        for field, described in schema.get("properties", {}).items():
            assert reference_page.describe_field(field, described), (name, field)
    for path, item in document["paths"].items():
        assert path.startswith("/api/v3.1") or f'id="{item["get"]["operationId"]}"' in html
    assert len(re.findall('id="error-404"', html)) == 1


def test_the_reference_has_examples_of_the_catalog() -> None:
    """A request for a tool of the catalog, with the response that it gets."""
    tool = {"slug": "MAIL_SEND", "name": "<b>"}
    calls = reference_page.example_calls(tool, {"trs_s": {"items": [tool]}})
    html = pages.render_reference(shown("x").about, openapi.build_document(), calls).decode()
    assert "/api/v3/tools/MAIL_SEND" in html
    assert "/api/v3/tools?tool_slugs=MAIL_SEND" in html
    assert "/api/v3/tool_router/session/trs_s/tools" in html
    assert html.count('"name": <i>"&lt;b&gt;"</i>') == 3
    assert '"total_items": <u>1</u>' in html
