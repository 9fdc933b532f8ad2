"""What holds for every kind of page in a real browser: no barrier that axe finds, sound HTML, room
on a small screen, print, no script.
"""

import json
import subprocess
import time
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from support.server import Server
from support.site_pages import (
    HARDNESS,
    IMPORTED_PAGE_KINDS,
    NODE_MODULES,
    PAGE_KINDS,
    Open,
    check_barriers,
    expand_details,
    find_imported_pages,
    read_axe_source,
    require,
)

pytest_plugins = ["support.browser"]
# A worker for each catalog, which then builds it once; the imported one with its other tests.
WITH_SHIPPED, WITH_IMPORTED = (
    pytest.mark.xdist_group("browser-kinds"),
    pytest.mark.xdist_group("imported"),
)

ISSUE = "tools/GITHUB_CREATE_ISSUE"
CATALOGS = [
    pytest.param("shipped", marks=WITH_SHIPPED),
    pytest.param("imported", marks=WITH_IMPORTED),
]
EVERY_KIND = [
    *(pytest.param(("shipped", kind), id=kind, marks=WITH_SHIPPED) for kind in PAGE_KINDS),
    *(
        pytest.param(
            ("imported", kind), id=f"imported-{kind}", marks=[WITH_IMPORTED, pytest.mark.deep]
        )
        for kind in (*IMPORTED_PAGE_KINDS, *HARDNESS)
    ),
]


OBSERVE_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const shift of list.getEntries())
    if (shift.value > 0.01)
      window.shifts.push([shift.value, ...shift.sources.map((one) => String(one.node.outerHTML
        || one.node.textContent).slice(0, 100))]);
}).observe({ type: "layout-shift", buffered: true });
"""


def size(width: int) -> dict[str, int]:
    """The size of a window."""
    return {"width": width, "height": 900}


def pages(catalog: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """The page of each kind in that catalog."""
    return (
        PAGE_KINDS
        if catalog == "shipped"
        else find_imported_pages(request.getfixturevalue("definitions"))
    )


@pytest.fixture(params=EVERY_KIND)
def at(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Where a server has a site, and a page of it: one of each kind, of the shipped catalog and of
    the imported one.
    """
    catalog, kind = request.param
    server: Server = request.getfixturevalue(catalog)
    return f"{server.url}/", pages(catalog, request)[kind]


@pytest.fixture(params=CATALOGS)
def files(request: pytest.FixtureRequest) -> list[Path]:
    """The same pages of each catalog on disk."""
    build: Path = request.getfixturevalue(f"{request.param}_build")
    return [build.parent / "site" / path for path in pages(request.param, request).values()]


@pytest.fixture(params=CATALOGS)
def base(request: pytest.FixtureRequest) -> str:
    """Where a server has the site of each catalog."""
    server: Server = request.getfixturevalue(request.param)
    return f"{server.url}/"


def test_no_barriers(at: tuple[str, str], open_page: Open) -> None:
    """axe reports no violation of WCAG 2.2 AA or its best practices, also in closed details."""
    page = open_page(*at, read_axe_source())
    expand_details(page)
    check_barriers(page)


@WITH_SHIPPED
def test_no_barriers_in_a_list_that_was_narrowed(shipped: Server, open_page: Open) -> None:
    """Nor in what the script makes of all tools."""
    page = open_page(f"{shipped.url}/", "tools/index.html?toolkit=github", read_axe_source())
    expect(page.locator("ol.tools:visible > li").first).to_be_visible()
    check_barriers(page)


def test_no_barriers_in_the_search(base: str, open_page: Open) -> None:
    """Nor in the search with its hits."""
    page = open_page(base, previous=read_axe_source())
    page.locator("button.search-open").click()
    page.keyboard.type("issue")
    expect(page.locator("dialog").get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    check_barriers(page)


@WITH_SHIPPED
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", PAGE_KINDS)
def test_the_layout_is_stable(kind: str, width: int, shipped: Server, open_page: Open) -> None:
    """Nothing moves when the scripts arrive after the first paint."""

    def delay(route: Route) -> None:
        time.sleep(0.2)
        route.continue_()

    page = open_page(f"{shipped.url}/", "404.html", OBSERVE_SHIFTS, viewport=size(width))
    page.route("**/site.js", delay)
    page.goto(f"{shipped.url}/{PAGE_KINDS[kind]}")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.shifts") == []


def test_sound_html(files: list[Path], tmp_path: Path) -> None:
    """html-validate has nothing to say; tests/browser/html-validate.mjs tells what it is asked."""
    program, told = (
        NODE_MODULES / "html-validate" / "bin" / "html-validate.mjs",
        tmp_path / "told.json",
    )
    require(
        program.is_file(), "there is no html-validate: install node and npm, and run scripts/test"
    )
    command = [
        "node",
        str(program),
        "--config",
        str(NODE_MODULES.parent / "html-validate.mjs"),
        "--formatter",
        f"json={told}",
        *map(str, files),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert told.is_file(), done.stderr
    found = [
        (of["filePath"], *(wrong[key] for key in ("line", "ruleId", "message")))
        for of in json.loads(told.read_bytes())
        for wrong in of["messages"]
    ]
    assert not found, "\n".join(map(str, found))
    assert done.returncode == 0, done.stderr


def test_room_on_a_small_screen_and_on_paper(at: tuple[str, str], open_page: Open) -> None:
    """320 pixels are enough: nothing has to be scrolled sideways, nor on a tablet. Printed, a page
    is its text, without what one clicks.
    """
    page = open_page(*at)
    expand_details(page)
    wide = (
        "[...document.querySelectorAll('main *')].filter(at => "
        "at.getBoundingClientRect().right > innerWidth).map(at => at.outerHTML.slice(0, 99))"
    )
    for width in (641, 320):
        page.set_viewport_size({"width": width, "height": 640})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.evaluate(wide)[
            :3
        ]
    page.emulate_media(media="print")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for interface in ("header nav", "button", "input", "select"):
        expect(page.locator(interface).filter(visible=True)).to_have_count(0)


def test_the_search_has_room_on_a_small_screen(base: str, open_page: Open) -> None:
    """So has the search."""
    page = open_page(base, viewport={"width": 320, "height": 640})
    page.locator("button.search-open").click()
    page.keyboard.type("google")
    expect(page.get_by_role("option").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.locator("dialog").evaluate("at => at.scrollWidth <= at.clientWidth")


# What may be hidden where no script runs: that which does nothing without one.
INTERFACE = "button, form.compare, form.facets, form.try, input.filter, output, [role=status]"


def test_all_is_there_without_a_script(at: tuple[str, str], open_page: Open) -> None:
    """Nothing is hidden but what needs a script, and nothing is offered that needs one."""
    page = open_page(*at, java_script_enabled=False)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert (
        page.evaluate(
            f"[...document.querySelectorAll('[hidden]')].filter(at => "
            f"!at.matches('{INTERFACE}')).map(at => at.outerHTML.slice(0, 99))"
        )
        == []
    )
    for interface in (
        "button:not(form.search-first button)",
        "select",
        "dialog",
        "input:not(form.search-first input)",
    ):
        expect(page.locator(interface).filter(visible=True)).to_have_count(0)


@WITH_SHIPPED
def test_a_tool_is_read_without_a_script(file_site: str, open_page: Open) -> None:
    """Every input, every snippet, and the history between any two versions."""
    page = open_page(file_site, f"{ISSUE}/index.html", java_script_enabled=False)
    for name in ("owner", "repo", "title", "assignees", "type"):
        expect(page.locator("main code", has_text=name).first).to_be_visible()
    snippets = page.locator(".tabs > section")
    assert snippets.count() > 1
    expect(snippets.filter(visible=True)).to_have_count(snippets.count())
    expect(snippets.locator("h3").filter(visible=True)).to_have_count(snippets.count())
    page.goto(f"{file_site}{ISSUE}/history.html")
    expect(page.locator("section.pair").filter(visible=True)).to_have_count(3)
