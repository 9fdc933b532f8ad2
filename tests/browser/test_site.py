"""The site at work in a real browser: search, filters, versions, copying and remembering; by
keyboard, served and on disk.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from support.command import run_successfully
from support.paths import SHIPPED_CATALOG
from support.server import Server
from support.site_pages import (
    Open,
    check_barriers,
    expand_details,
    file_url,
    page_path,
    read_axe_source,
)
from toolcatalog.catalog.yaml_writer import to_yaml

pytest_plugins = ["support.browser"]
pytestmark = pytest.mark.xdist_group("browser")

ISSUE = "tools/GITHUB_CREATE_ISSUE/index.html"
MESSAGE = "tools/SLACK_SEND_MESSAGE/index.html"
NO_STORAGE = (
    "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', "
    "'SecurityError') }})"
)
NO_CLIPBOARD = "Object.defineProperty(Navigator.prototype, 'clipboard', {get: () => undefined})"
THEME_AT_BODY = """
new MutationObserver((_, observer) => {
    if (!document.body) return;
    window.themeAtBody = document.documentElement.dataset.theme ?? "none";
    observer.disconnect();
}).observe(document, {childList: true, subtree: true});
"""


def search(page: Page, words: str, key: str = "Control+k") -> None:
    """Open the search by this key and type."""
    page.keyboard.press(key)
    expect(page.get_by_role("combobox", name=re.compile("search", re.IGNORECASE))).to_be_focused()
    page.keyboard.type(words)


def active(page: Page) -> str:
    """The slug of the hit that Enter would open; empty where there is none."""
    script = (
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))"
        "?.querySelector('code').textContent ?? ''"
    )
    return str(page.evaluate(script))


def hits(page: Page) -> list[str]:
    """The slugs of the hits of the search, in their order."""
    return page.get_by_role("option").locator("code").all_text_contents()


# Search


def test_search_finds_a_tool_in_spite_of_a_slip(site: str, open_page: Open) -> None:
    """Ctrl-K, a few letters of which one is missing, arrows, Enter: the tool's page."""
    page = open_page(site, MESSAGE)
    search(page, "github create isue")
    expect(page.get_by_role("option").first).to_be_visible()
    assert "GITHUB_CREATE_ISSUE" in hits(page)
    expect(page.locator("dialog [role=group][aria-label=GitHub]")).to_be_visible()
    expect(page.locator("dialog").get_by_role("status")).to_have_text(re.compile("[1-9]"))
    for _ in hits(page):
        if active(page) == "GITHUB_CREATE_ISSUE":
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(site + ISSUE)


def test_search_has_the_exact_slug_first(file_site: str, open_page: Open) -> None:
    """A slug that is typed whole comes before those that it begins; the arrows, Home and End go
    through the hits.
    """
    page = open_page(file_site)
    search(page, "github_create_issue", "/")
    expect(page.get_by_role("option").first).to_be_visible()
    slugs = hits(page)
    assert slugs[0] == "GITHUB_CREATE_ISSUE"
    assert len(slugs) > 1
    page.keyboard.press("End")
    assert active(page) == slugs[-1]
    page.keyboard.press("Home")
    assert active(page) == slugs[0]
    expect(page.get_by_role("option", selected=True)).to_have_count(1)


def test_search_ends_with_escape(file_site: str, open_page: Open) -> None:
    """Escape closes it and focus is where it was; where nothing is found the list of all tools is
    offered.
    """
    page = open_page(file_site, "toolkits/github/index.html")
    opener = page.locator("button.search-open")
    opener.click()
    page.keyboard.type("zzqxzzqx")
    offered = page.locator("dialog").get_by_role(
        "link", name=re.compile("all tools", re.IGNORECASE)
    )
    expect(offered).to_be_visible()
    expect(page.get_by_role("option")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("dialog#search")).to_be_hidden()
    expect(opener).to_be_focused()


def test_slash_is_a_letter_where_one_types_and_can_be_switched_off(
    file_site: str, open_page: Open
) -> None:
    """`/` opens the search only outside of fields, and no more once its box is not ticked, also on
    the next page.
    """
    page = open_page(file_site, "toolkits/github/index.html")
    page.locator("input.filter").focus()
    page.keyboard.press("/")
    expect(page.locator("input.filter")).to_have_value("/")
    page.locator("button.search-open").click()
    page.locator("dialog").get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    page.goto(file_site + ISSUE)
    page.keyboard.press("/")
    expect(page.locator("dialog[open]")).to_have_count(0)
    search(page, "slack")
    expect(page.get_by_role("option").first).to_be_visible()


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        ("bug report", "GITHUB_CREATE_ISSUE"),
        ("money back", "STRIPE_CREATE_REFUND"),
        ("give money back to customer", "STRIPE_CREATE_REFUND"),
        ("book a meeting", "GOOGLECALENDAR_CREATE_EVENT"),
        ("invite people", "GOOGLECALENDAR_CREATE_EVENT"),
        ("open a bug report", "GITHUB_CREATE_ISSUE"),
        ("post to slack", "SLACK_SEND_MESSAGE"),
        ("chat:write", "SLACK_SEND_MESSAGE"),
        ("remove a file", "GOOGLEDRIVE_DELETE_FILE"),
    ],
)
def test_search_understands_sentences(
    words: str, slug: str, file_site: str, open_page: Open
) -> None:
    """Words of descriptions and scopes count, and words for the same thing."""
    page = open_page(file_site)
    search(page, words)
    expect(page.get_by_role("option").first.locator("code")).to_have_text(slug)


def test_search_offers_something_before_a_word_is_typed(file_site: str, open_page: Open) -> None:
    """Tools that changed last, and the largest toolkits."""
    page = open_page(file_site, MESSAGE)
    search(page, "")
    groups = page.locator("dialog").get_by_role("group")
    expect(groups).to_have_count(2)
    expect(groups.first).to_have_attribute("aria-label", "Recently changed")
    groups.last.get_by_role("option", name="GitHub").click()
    page.wait_for_url(file_site + "toolkits/github/index.html")


# Lists


def test_a_list_is_filtered(file_site: str, open_page: Open) -> None:
    """Only tools with all the words stay, in groups that are not empty; their number is shown."""
    page = open_page(file_site, "toolkits/github/index.html")
    words = page.locator("input.filter")
    rows = page.locator(f"#{words.get_attribute('data-filter')} li")
    words.fill("Comment iSSue")
    texts = [text.lower() for text in rows.filter(visible=True).all_inner_texts()]
    assert 0 < len(texts) < rows.count()
    assert all("comment" in text and "issue" in text for text in texts)
    expect(page.locator("output.filter-count")).to_contain_text(str(len(texts)))
    titles = page.locator("#tool-list h3").filter(visible=True)
    assert 0 < titles.count() < page.locator("#tool-list h3").count()
    words.fill("")
    expect(rows.filter(visible=True)).to_have_count(rows.count())


def test_facets_are_in_the_address(site: str, open_page: Open) -> None:
    """A choice narrows the list and is in the address: it is there again after a hit was opened,
    and for whom it was sent to.
    """
    page = open_page(site, "tools/index.html")
    github = len([*(SHIPPED_CATALOG / "toolkits" / "github").glob("*/")])
    found, everything = page.locator("ol.tools:visible > li"), page.locator("#list")
    page.locator("select[name=toolkit]").select_option("github")
    expect(found).to_have_count(github)
    expect(page.locator(".found")).to_contain_text(str(github))
    expect(everything).to_be_hidden()
    page.locator("select[name=tag]").select_option("issues")
    expect(found.filter(has_text="GITHUB_CREATE_ISSUE")).not_to_have_count(0)
    narrow = found.count()
    assert narrow < github
    assert "toolkit=github" in page.url
    assert "tag=issues" in page.url
    shared = page_path(page, site)
    found.first.get_by_role("link").first.click()
    page.wait_for_url(re.compile("tools/GITHUB_"))
    page.go_back()
    expect(found).to_have_count(narrow)
    page.go_back()
    expect(page.locator("select[name=tag]")).to_have_value("")
    expect(found).to_have_count(github)
    page.go_back()
    expect(everything).to_be_visible()
    page.goto(site + shared)
    expect(found).to_have_count(narrow)


def test_facets_are_folded_on_a_phone(file_site: str, open_page: Open) -> None:
    """The search is there at once, and the other fields after a press on a button."""
    page = open_page(file_site, "tools/index.html", viewport={"width": 390, "height": 844})
    form = page.locator("form.facets")
    expect(form.get_by_role("searchbox")).to_be_visible()
    expect(form.get_by_label("Toolkit")).to_be_hidden()
    button = form.get_by_role("button", name="Filters")
    expect(button).to_have_attribute("aria-expanded", "false")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    form.get_by_label("Toolkit").select_option("github")
    expect(page.get_by_role("button", name="Remove filter Toolkit: GitHub")).to_be_visible()


def test_the_bar_has_room_for_all_links(file_site: str, open_page: Open) -> None:
    """On a tablet neither the title nor a link is cut off."""
    page = open_page(file_site, viewport={"width": 768, "height": 1024})
    for link in (page.locator(".top .home"), page.locator(".top nav")):
        assert link.evaluate("at => at.scrollWidth <= at.clientWidth")


def test_facets_of_words_deprecation_and_auth(file_site: str, open_page: Open) -> None:
    """Words, deprecated ones and whether auth is needed narrow the list too."""
    page = open_page(file_site, "tools/index.html?q=charge&toolkit=stripe")
    found = page.locator("ol.tools:visible > li")
    expect(found.filter(has_text="STRIPE_CREATE_CHARGE")).to_have_count(1)
    page.locator("input[name=deprecated]").uncheck()
    expect(found.filter(has_text="STRIPE_CREATE_CHARGE")).to_have_count(0)
    page.goto(f"{file_site}tools/index.html?auth=no")
    expect(found.filter(has_text="HACKERNEWS_SEARCH")).not_to_have_count(0)
    expect(found.filter(has_text="GITHUB_")).to_have_count(0)


def test_filtered_tools_keep_what_they_show(file_site: str, open_page: Open) -> None:
    """Descriptions and badges; facets have counts, and each filter has a chip that removes it."""
    page = open_page(file_site, "tools/index.html?toolkit=slack&access=destructive")
    found = page.locator("ol.tools:visible > li")
    expect(found.filter(has_text="SLACK_DELETE_MESSAGE")).to_contain_text("Remove a message")
    expect(found.filter(has_text="SLACK_DELETE_MESSAGE")).to_contain_text("destructive")
    narrow = found.count()
    expect(page.locator("select[name=toolkit] option:checked")).to_have_text(f"Slack ({narrow})")
    chips = page.get_by_role("list", name="Active filters").get_by_role("button")
    expect(chips).to_have_count(3)
    page.get_by_role("button", name="Remove filter Access: destructive").click()
    expect(chips).to_have_count(1)
    expect(found).not_to_have_count(narrow)
    page.locator("select[name=sort]").select_option("slug")
    slugs = found.locator("code").all_text_contents()
    assert slugs == sorted(slugs)
    assert "sort=slug" in page.url


# A tool and its versions


def test_an_older_version_says_so(file_site: str, open_page: Open) -> None:
    """From the newest version to an older one, whose banner leads back."""
    page = open_page(file_site, ISSUE)
    page.locator("details.versions summary").click()
    page.locator('details.versions a[href="20250301_00.html"]').click()
    page.wait_for_url(re.compile("20250301_00.html"))
    banner = page.locator(".notice.older")
    expect(banner).to_contain_text("older version")
    banner.locator('a[href="index.html"]').click()
    page.wait_for_url(file_site + ISSUE)


def test_two_versions_are_compared(file_site: str, open_page: Open) -> None:
    """Only the chosen pair shows, and the address leads to it."""
    page = open_page(file_site, "tools/GITHUB_CREATE_ISSUE/history.html")
    pairs = page.locator("section.pair")
    expect(pairs.filter(visible=True)).to_have_count(1)
    page.locator("select[name=from]").select_option("20250301_00")
    page.locator("select[name=to]").select_option("20250715_00")
    expect(pairs.filter(visible=True)).to_have_attribute("id", "20250301_00...20250715_00")
    expect(pairs.filter(visible=True)).to_contain_text("assignees")
    assert page.url.endswith("#20250301_00...20250715_00")
    page.goto("about:blank")
    page.goto(f"{file_site}tools/GITHUB_CREATE_ISSUE/history.html#20250715_00...20251027_00")
    expect(pairs.filter(visible=True)).to_have_attribute("id", "20250715_00...20251027_00")
    expect(page.locator("select[name=from]")).to_have_value("20250715_00")


@pytest.mark.parametrize("before", ["", NO_CLIPBOARD], ids=["clipboard", "no-clipboard"])
def test_a_snippet_is_copied(before: str, site: str, open_page: Open) -> None:
    """The clipboard contains the exact snippet, with and without the clipboard API."""
    page = open_page(site, ISSUE, before)
    button = page.locator(".tabs button.copy:visible").first
    wanted = page.evaluate(
        "id => document.getElementById(id).textContent", button.get_attribute("data-copy")
    )
    assert "GITHUB_CREATE_ISSUE" in wanted
    button.click()
    expect(button).to_have_text("Copied")
    page.evaluate("document.body.append(document.createElement('textarea'))")
    field = page.locator("body > textarea")
    field.focus()
    page.keyboard.press("Control+v")
    expect(field).to_have_value(wanted)
    expect(button).to_have_text("Copy")


def test_tabs_are_remembered(site: str, open_page: Open) -> None:
    """The arrows go from tab to tab, one panel shows, and the next tool's page starts with the one
    that was chosen.
    """
    page = open_page(site, ISSUE)
    tabs, panels = (
        page.locator(".tabs[data-remember=definitions] [role=tab]"),
        page.locator(".tabs[data-remember=definitions] [role=tabpanel]"),
    )
    expect(panels.filter(visible=True)).to_have_count(1)
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    expect(tabs.nth(1)).to_be_focused()
    expect(tabs.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("End")
    expect(tabs.last).to_be_focused()
    chosen = tabs.last.inner_text()
    page.goto(site + MESSAGE)
    expect(tabs.and_(page.locator("[aria-selected=true]"))).to_have_text(chosen)
    expect(panels.filter(visible=True)).to_have_count(1)
    expect(page.get_by_role("tabpanel", name=chosen)).to_be_visible()


def test_shipped_toolkits_have_icons(site: str, open_page: Open) -> None:
    """The icons are files of the site, and the browser can draw them."""
    page = open_page(site)
    tiles = page.locator(".tiles li")
    expect(page.locator(".tiles img.logo")).to_have_count(tiles.count())
    widths = page.locator(".tiles img.logo").evaluate_all(
        "icons => Promise.all(icons.map((icon) => {"
        "icon.loading = 'eager'; return icon.decode().then(() => icon.naturalWidth)}))"
    )
    assert widths
    assert all(widths)


def test_an_operation_is_tried(shipped: Server, file_site: str, open_page: Open) -> None:
    """With a key, if the page comes from a server with the API; on disk nothing is offered."""
    page = open_page(f"{shipped.url}/", "reference/index.html")
    page.get_by_role("button", name="Try it").first.click()
    form = page.locator("form.try").first
    form.get_by_label("API key").fill(shipped.key)
    form.get_by_role("button", name="Send").click()
    expect(form.locator("output")).to_contain_text("Response 200")
    expect(form.locator("output")).to_contain_text('"input_parameters"')
    page.get_by_role("button", name="Try it").nth(1).click()
    expect(page.locator("form.try").nth(1).get_by_label("API key")).to_have_value(shipped.key)
    page = open_page(file_site, "reference/index.html")
    expect(page.locator("button.copy").first).to_be_visible()
    expect(page.locator("button.try-open").first).to_be_hidden()


def test_the_history_shows_the_words_that_changed(file_site: str, open_page: Open) -> None:
    """Added and removed words, and counts by kind on top."""
    page = open_page(file_site, "tools/GITHUB_CREATE_ISSUE/history.html")
    pair = page.locator("section.pair").filter(visible=True)
    expect(pair.locator(".tally")).to_contain_text("3 additive")
    change = pair.locator("li", has_text="input assignees")
    expect(change.locator("del")).to_contain_text("ignored silently")
    expect(pair.locator("ins").first).to_be_visible()


def test_a_tool_is_printed_on_four_pages_at_most(file_site: str, open_page: Open) -> None:
    """Text and one request, without navigation."""
    page = open_page(file_site, ISSUE)
    pdf = page.pdf(format="A4")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 4


# The look


def test_the_theme_is_remembered_and_there_before_the_page(site: str, open_page: Open) -> None:
    """System, light, dark: the choice applies to the next page before it has a body."""
    page = open_page(site, "index.html", THEME_AT_BODY)
    root, button = page.locator("html"), page.locator("button.theme")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    expect(button).to_have_accessible_name(re.compile("system", re.IGNORECASE))
    button.click()
    expect(root).to_have_attribute("data-theme", "light")
    button.click()
    expect(button).to_have_accessible_name(re.compile("dark", re.IGNORECASE))
    page.goto(site + ISSUE)
    assert page.evaluate("window.themeAtBody") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    button.click()
    expect(root).not_to_have_attribute("data-theme", re.compile(".*"))


def test_nothing_is_remembered_where_nothing_can_be(file_site: str, open_page: Open) -> None:
    """A browser that forbids storage: all works but the memory."""
    page = open_page(file_site, ISSUE, NO_STORAGE)
    page.locator("button.theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.locator("[role=tab]").last.click()
    expect(page.locator("[role=tab]").last).to_have_attribute("aria-selected", "true")
    search(page, "slack")
    expect(page.get_by_role("option").first).to_be_visible()


def test_the_side_navigation(site: str, open_page: Open) -> None:
    """It has the tools of the toolkit, marks the current one, and can be filtered."""
    page = open_page(site, ISSUE)
    side = page.get_by_role("navigation", name="Tools of the toolkit")
    links = side.get_by_role("listitem").get_by_role("link")
    expect(links).to_have_count(len([*(SHIPPED_CATALOG / "toolkits" / "github").glob("*/")]))
    expect(side.locator("[aria-current=page]")).to_have_text("Create an issue")
    expect(side.locator(".side-title").last).to_have_text("deprecated")
    expect(links.last).to_have_class("gone")
    side.get_by_role("searchbox").fill("comment")
    expect(links.filter(visible=True)).to_have_count(1)
    links.filter(visible=True).click()
    page.wait_for_url(site + "tools/GITHUB_CREATE_ISSUE_COMMENT/index.html")
    expect(side.locator("[aria-current=page]")).to_have_text("Comment on an issue or pull request")


def test_the_side_navigation_is_folded_on_a_phone(file_site: str, open_page: Open) -> None:
    """It does not push the page down."""
    page = open_page(file_site, ISSUE, viewport={"width": 390, "height": 844})
    side = page.get_by_role("navigation", name="Tools of the toolkit")
    expect(side.get_by_role("listitem").first).to_be_hidden()
    side.locator("summary").click()
    expect(side.get_by_role("listitem").first).to_be_visible()


def test_slugs_in_texts_are_links(file_site: str, open_page: Open) -> None:
    """Those of the toolkit and of others, to tools that exist; similar tools follow."""
    page = open_page(file_site, ISSUE)
    link = page.locator(".lead a", has_text="GITHUB_CREATE_PULL_REQUEST")
    expect(link).to_have_attribute("href", "../../tools/GITHUB_CREATE_PULL_REQUEST/index.html")
    similar = page.locator("ul.similar a")
    expect(similar.filter(has_text="issue")).not_to_have_count(0)
    expect(page.get_by_role("heading", name="Similar tools")).to_be_visible()


def test_nested_parameters_are_expanded_together(file_site: str, open_page: Open) -> None:
    """And a link to a nested parameter opens what it is in."""
    page = open_page(file_site, ISSUE)
    nested = page.locator(".tool-body details")
    assert nested.count() > 2
    page.get_by_role("button", name="Expand all").last.click()
    expect(page.get_by_role("button", name="Collapse all")).to_have_count(1)
    expect(page.locator(".tool-body > .params").last.locator("details:not([open])")).to_have_count(
        0
    )
    page.goto(f"{file_site}{ISSUE}#output-labels.items.name")
    page.reload()
    expect(page.locator("[id='output-labels.items.name']")).to_be_visible()


def test_requests_have_the_address_of_the_server(
    shipped: Server, file_site: str, open_page: Open
) -> None:
    """If the page comes from a server with the API; otherwise a variable."""
    code = open_page(f"{shipped.url}/", ISSUE).locator("#code-curl")
    expect(code).to_contain_text(f'"{shipped.url}/api/v3/tools/GITHUB_CREATE_ISSUE?version=')
    code = open_page(file_site, ISSUE).locator("#code-curl")
    expect(code).to_contain_text('"$TOOLCATALOG_URL/api/v3/tools/')


def test_a_page_that_is_not_there(shipped: Server, open_page: Open) -> None:
    """404.html, which static hosts show at any path: it is whole there, and leads home."""
    page = open_page(f"{shipped.url}/", "404.html")
    search(page, "slack")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("header a.home").click()
    expect(page.locator(".hero form.search-first")).to_be_visible()


@pytest.mark.parametrize(
    "path", ["tools/GITHUB_CREATE_ISUE/", "tools/GITHUB_CREATE_ISUE/index.html"]
)
def test_a_missing_page_searches_for_its_name(path: str, shipped: Server, open_page: Open) -> None:
    """The field has the words of the address, and finds the tool in spite of a slip."""
    rename = f"if (location.pathname === '/404.html') history.replaceState(null, '', '/{path}')"
    page = open_page(f"{shipped.url}/", "404.html", rename)
    field = page.locator("form.search-first input")
    expect(field).to_have_value("github create isue")
    field.press("Enter")
    first = page.locator("ol.tools:visible > li").first
    expect(first).to_contain_text("GITHUB_CREATE_ISSUE")


# Texts that want to be more than text

SCRIPT = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
MARKDOWN = (
    "![x](https://evil.example/x.png) [y](javascript:alert(3)) <javascript:alert(4)> "
    "javascript:alert(5) [z](data:text/html,<script>alert(6)</script>)"
)
BIDI = "\u202eesrever\u2066 \u200f\u2028\u2029 {{ 7 * 7 }} ${alert(7)} `"
HOSTILE = f"{SCRIPT} {MARKDOWN} {BIDI}"


def hostile_tool(version: int) -> dict[str, Any]:
    """A tool whose every text is hostile, a bit different in each version."""
    names = ["__proto__", "constructor", "toString", "hasOwnProperty", f"changing{version}", SCRIPT]
    parameter = {
        "type": "string",
        "description": f"{HOSTILE} {version}",
        "default": HOSTILE,
        "examples": [HOSTILE, f"{BIDI}{version}"],
    }
    inner = {"type": "object", "description": MARKDOWN, "properties": {"__proto__": parameter}}
    return {
        "name": f"{SCRIPT} {BIDI} {version}",
        "description": f"{HOSTILE} " + "A long word after another. " * 4000,
        "scopes": [SCRIPT, "../../x", "__proto__"],
        "tags": [SCRIPT, "constructor", "a/../b", "important"],
        "deprecation": {"reason": HOSTILE},
        "input_parameters": {
            **{name: {**parameter, "required": True} for name in names},
            "within": inner,
        },
        "output_parameters": dict.fromkeys(names, parameter),
    }


LONG_WORD = "W" * 8000
LONG_NAME = "N" * 200  # as long as names may be


def large_tool() -> dict[str, Any]:
    """A tool with the longest names, very long words, 500 parameters and 12 levels of them."""
    parameter = {
        "type": "string",
        "description": f"{LONG_WORD} `{LONG_WORD}`",
        "default": LONG_WORD,
        "enum": [LONG_WORD, f"{LONG_WORD}W"],
    }
    nested: dict[str, Any] = parameter
    for level in range(11):
        nested = {"type": "object", "properties": {f"level_{level}_{'x' * 40}": nested}}
    return {
        "name": LONG_NAME,
        "description": f"{LONG_WORD} `{LONG_WORD}` https://a.example/{LONG_WORD}",
        "scopes": [LONG_NAME, f"https://a.example/{'s' * 180}"],
        "tags": [LONG_NAME.lower(), "issues"],
        "input_parameters": {
            LONG_NAME: parameter,
            "nested": nested,
            **{f"parameter_{number}": {"type": "integer"} for number in range(498)},
        },
        "output_parameters": {LONG_NAME: parameter},
    }


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a catalog that says what it can to become more than text."""
    folder = tmp_path_factory.mktemp("hostile")
    toolkit = {
        "name": SCRIPT,
        "logo": "https://evil.example/x.svg",
        "description": HOSTILE,
        "categories": [SCRIPT],
        "owners": [SCRIPT],
    }
    files = {
        "catalog.yaml": {
            "title": f"{MARKDOWN} {BIDI}",
            "description": HOSTILE,
            "rules": dict.fromkeys(("hidden-character", "link-script"), "off"),
        },
        "toolkits/constructor/toolkit.yaml": toolkit,
        "toolkits/__proto__/toolkit.yaml": {
            **toolkit,
            "homepage": "https://evil.example/#javascript:alert(8)",
        },
    }
    for slug in ("CONSTRUCTOR", "__PROTO__"):
        for version in (1, 2):
            files[f"toolkits/{slug.lower()}/{slug}/2025010{version}_00.yaml"] = hostile_tool(
                version
            )
    files[f"toolkits/constructor/CONSTRUCTOR_{'L' * 188}/20250101_00.yaml"] = large_tool()
    for path, value in files.items():
        (folder / "catalog" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "catalog" / path).write_bytes(to_yaml(value))
    run_successfully(
        "build",
        "--catalog",
        folder / "catalog",
        "--out",
        folder / "build",
        "--site",
        folder / "site",
    )
    return folder / "site"


# Elements that the templates do not write.
FOREIGN = """
() => [...document.querySelectorAll(
    "script, iframe, object, embed, form, img, a, [onerror], [onload], [style]"
)].filter((at) => !(
    at.matches("script[src$='.js'], form.compare, form.facets, form.try, form.search-first")
    || at.matches(".home > img, a[href^='https://']")
    || at.localName === "a" && at.href.startsWith("file:")
)).map((at) => at.outerHTML.slice(0, 99))
"""


def test_a_hostile_catalog_keeps_its_layout(hostile: Path, open_page: Open) -> None:
    """No page is wider than the window, and axe reports no violation, also in open details."""
    page = open_page(file_url(hostile), previous=read_axe_source())
    for path in sorted({*hostile.rglob("*.html")} - {hostile / "404.html"}):
        page.goto(path.as_uri())
        expand_details(page)
        for width in (320, 390, 1920, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
        check_barriers(page)


def test_hostile_texts_stay_texts(hostile: Path, open_page: Open) -> None:
    """No page of such a catalog runs, shows or fetches anything of its texts (what is fetched, and
    any error, `open_page` sees).
    """
    page = open_page(file_url(hostile))
    for path in sorted({*hostile.rglob("*.html")} - {hostile / "404.html"}):
        page.goto(path.as_uri())
        assert page.evaluate(FOREIGN) == [], path
    page.goto(f"{file_url(hostile)}tools/__PROTO__/index.html")
    expect(page.locator("main")).to_contain_text("alert(1)")
    for name in ("__proto__", "constructor", "hasOwnProperty"):
        expect(
            page.locator("main .params").first.locator(".param code", has_text=name).first
        ).to_be_visible()
    search(page, "proto")
    hit = page.get_by_role("option").filter(has=page.locator("code", has_text="__PROTO__"))
    expect(hit).to_contain_text("<script>")
    page.goto(f"{file_url(hostile)}tools/index.html?tag=constructor")
    expect(page.locator("ol.tools:visible > li")).to_have_count(2)
