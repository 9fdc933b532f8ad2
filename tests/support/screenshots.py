"""Pictures of the site for docs/pictures: one page of each kind, in both themes; some on a small
screen too.

    .venv/bin/PYTHONPATH=tests python -m support.screenshots

It wants a Chromium on the path. Logos are not fetched: a picture is the same on every machine that
has the same letters.
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from support.command import run_successfully
from support.paths import ROOT, SHIPPED_CATALOG
from support.server import start_server
from support.site_pages import BROWSER_ARGUMENTS, CHROMIUM, EXTERNAL_URL, PAGE_KINDS

PICTURES = ROOT / "docs" / "pictures"
SCREENS = {"": (1280, 800), "-small": (360, 640)}
SMALL_SCREEN_KINDS = ("home", "tool")  # kinds of page


def main() -> None:
    """Build the shipped catalog's site and take the pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        ExitStack() as stack,
    ):
        site = Path(folder) / "site"
        run_successfully(
            "build", "--catalog", SHIPPED_CATALOG, "--out", Path(folder) / "build", "--site", site
        )
        server = stack.enter_context(
            start_server(Path(folder) / "build", Path(folder), "--site", str(site))
        )
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=BROWSER_ARGUMENTS)
        for name, (width, height) in SCREENS.items():
            for theme in ("light", "dark"):
                take_screenshots(browser, f"{server.url}/", name, theme, width, height)
        browser.close()


def take_screenshots(
    browser: Browser, base: str, name: str, theme: str, width: int, height: int
) -> None:
    """A picture of each kind of page, as far as it is seen without scrolling; and of the search
    with its hits.
    """
    context = browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    context.route(EXTERNAL_URL, lambda route: route.abort())
    page = context.new_page()
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    for kind, path in PAGE_KINDS.items():
        if not name or kind in SMALL_SCREEN_KINDS:
            page.goto(base + path)
            page.screenshot(path=PICTURES / f"{kind}-{theme}{name}.png")
    page.goto(base)
    page.locator("button.search-open").click()
    page.keyboard.type("create isue")
    page.locator("dialog .search-text:not(:empty)").first.wait_for()
    page.screenshot(path=PICTURES / f"search-{theme}{name}.png")
    context.close()


if __name__ == "__main__":
    main()
