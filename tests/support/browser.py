"""Chromium for tests: a plugin with a browser and pages that record errors.

Playwright's synchronous calls leave an event loop in their thread for as long as they are at work.
So the browser lives as long as a module and not as the session, and the tests of a module keep
together (xdist_group): others call `asyncio.run`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from support.server import Server
from support.site_pages import (
    BROWSER_ARGUMENTS,
    CHROMIUM,
    TIMEOUT,
    Open,
    PageMonitor,
    file_url,
    require,
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    require(CHROMIUM is not None, "there is no Chromium on the path: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=BROWSER_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """A function that opens `path` of the site at `base` in a new profile; options are those of a
    Playwright context.

    `previous` is a script that runs in each page ahead of the page's own. At the end of the test no
    page may have made trouble.
    """
    watches: list[PageMonitor] = []

    def open_page(base: str, path: str = "index.html", previous: str = "", **options: Any) -> Page:
        context = browser.new_context(
            **{"reduced_motion": "reduce", "service_workers": "block", **options}
        )
        context.set_default_timeout(TIMEOUT)
        page = context.new_page()
        watches.append(PageMonitor(base))
        watches[-1].attach(page)
        if previous:
            context.add_init_script(previous)
        page.goto(base + path)
        return page

    yield open_page
    for context in browser.contexts:
        context.close()
    trouble = [problem for watch in watches for problem in watch.problems]
    assert not trouble, "\n".join(trouble)


@pytest.fixture
def file_site(shipped_build: Path) -> str:
    """The address of the shipped catalog's site, on disk."""
    return file_url(shipped_build.parent / "site")


@pytest.fixture(params=["http", "file"])
def site(request: pytest.FixtureRequest) -> str:
    """The address of the shipped catalog's site: served, and on disk."""
    if request.param == "file":
        return str(request.getfixturevalue("file_site"))
    server: Server = request.getfixturevalue("shipped")
    return f"{server.url}/"
