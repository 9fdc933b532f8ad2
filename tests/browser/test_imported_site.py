"""The site of 930 tools whose texts nobody wrote for it, at work in a real browser, on disk: a tool
is found by keyboard, and lists are narrowed.
"""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from support.site_pages import Open, file_url

pytest_plugins = ["support.browser"]
pytestmark = pytest.mark.xdist_group("imported")

UPLOAD = "GOOGLEDRIVE_UPLOAD_FILE"


@pytest.fixture
def base(imported_build: Path) -> str:
    """The address of the site on disk."""
    return file_url(imported_build.parent / "site")


@pytest.mark.parametrize("words", ["upload file drive", "uplod fil", UPLOAD.lower()])
def test_search_finds_a_tool_by_keyboard(words: str, base: str, open_page: Open) -> None:
    """A few words, a slip in them, or the slug: arrows to the hit, Enter, and the tool's page is
    there, with what one types next.
    """
    page = open_page(base)
    page.keyboard.press("Control+k")
    page.keyboard.type(words)
    hit = page.get_by_role("option").filter(has=page.locator("code", has_text=UPLOAD))
    expect(hit).to_be_visible()
    for _ in range(page.get_by_role("option").count()):
        if hit.get_attribute("aria-selected") == "true":
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{base}tools/{UPLOAD}/index.html")
    expect(page.locator("#input-file_to_upload")).to_be_visible()


def test_a_long_list_is_narrowed(base: str, open_page: Open) -> None:
    """A toolkit of more than 800 tools by words, all tools by toolkit and words."""
    page = open_page(base, "toolkits/github/index.html")
    rows = page.locator("#tool-list li")
    assert rows.count() > 800
    page.locator("input.filter").fill("autolink reference")
    expect(rows.filter(visible=True)).to_have_count(3)
    page.goto(f"{base}tools/index.html?toolkit=googledrive&q=upload")
    found = page.locator("ol.tools:visible > li")
    expect(found.filter(has_text=UPLOAD)).to_have_count(1)
    expect(found.filter(has_text="GITHUB_")).to_have_count(0)
