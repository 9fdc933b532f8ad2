"""Pictures of the site: one page of each kind, in both themes.

    PYTHONPATH=tests .venv/bin/python -m support.screenshots

It writes the pictures of README and docs to docs/pictures, and there a sheet for each kind of page:
four widths, both themes. It needs a Chromium on the path. Pictures are the same on machines with
the same fonts.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

from support.command import run_successfully
from support.paths import ROOT, SHIPPED_CATALOG
from support.server import start_server
from support.site_pages import BROWSER_ARGUMENTS, CHROMIUM, EXTERNAL_URL, PAGE_KINDS

PICTURES = ROOT / "docs" / "pictures"
SCREENS = {"tiny": (320, 640), "small": (390, 844), "medium": (1280, 800), "wide": (1920, 1080)}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
KINDS = (*PAGE_KINDS, "search")
SINGLE = {"home": "home-light-medium", "tool": "tool-light-medium"}  # of README and docs
SHEET_HEIGHT = 420  # pixels of a picture on a sheet


def main() -> None:
    """Build the site of the shipped catalog and take the pictures."""
    with (
        tempfile.TemporaryDirectory() as name,
        sync_playwright() as playwright,
        ExitStack() as stack,
    ):
        folder = Path(name)
        run_successfully(
            "build",
            "--catalog",
            SHIPPED_CATALOG,
            "--out",
            folder / "build",
            "--site",
            folder / "site",
        )
        server = stack.enter_context(
            start_server(folder / "build", folder, "--site", str(folder / "site"))
        )
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=BROWSER_ARGUMENTS)
        for screen, theme in product(SCREENS, THEMES):
            with open_page(browser, SCREENS[screen], theme) as page:
                take_screenshots(page, f"{server.url}/", folder, f"{theme}-{screen}")
        for kind, picture in SINGLE.items():
            shutil.copy(folder / f"{picture}.png", PICTURES / f"{kind}-light.png")
        with open_page(browser, (2000, 900), "light") as page:
            for kind in KINDS:
                render_sheet(page, kind, folder)
        browser.close()


def render_sheet(page: Page, kind: str, folder: Path) -> None:
    """Write the sheet of a kind of page: a row for each theme."""
    rows = "".join(
        "<p>" + "".join(f'<img src="{kind}-{theme}-{screen}.png">' for screen in SCREENS)
        for theme in THEMES
    )
    style = f"p {{ display: flex; gap: 8px; margin: 8px }} img {{ height: {SHEET_HEIGHT}px }}"
    file = folder / "sheet.html"
    file.write_text(f"<style>{style} body {{ width: max-content; margin: 0 }}</style>{rows}")
    page.goto(file.as_uri())
    page.evaluate("Promise.all([...document.images].map((image) => image.decode()))")
    page.locator("body").screenshot(path=PICTURES / f"{kind}.jpg", type="jpeg", quality=70)


@contextmanager
def open_page(
    browser: Browser, size: tuple[int, int], theme: Literal["light", "dark"]
) -> Iterator[Page]:
    """A page of this size that stays on the site."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce"
    )
    context.route(EXTERNAL_URL, lambda route: route.abort())
    page = context.new_page()
    page.emulate_media(color_scheme=theme)
    yield page
    context.close()


def take_screenshots(page: Page, base: str, folder: Path, suffix: str) -> None:
    """A picture of each kind of page, without scrolling; and of the search with its results."""
    for kind in KINDS:
        if kind == "search":
            page.goto(base)
            page.locator("button.search-open").click()
            page.keyboard.type("create isue")
            page.locator("dialog .search-text:not(:empty)").first.wait_for()
        else:
            page.goto(base + PAGE_KINDS[kind], wait_until="networkidle")  # logos are loaded late
        page.screenshot(path=folder / f"{kind}-{suffix}.png")


if __name__ == "__main__":
    main()
