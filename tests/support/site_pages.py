"""Helpers of the browser tests: browsers, a page of each kind, and forbidden requests."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import pytest
from playwright.sync_api import ConsoleMessage, Dialog, Page, Request, Response, expect

from support.paths import DATA

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
NODE_MODULES = DATA / "browser" / "node_modules"
# Nothing of Chromium's own talks to anybody, and CI's machine has neither a sandbox for it nor a
# graphics card.
BROWSER_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
EXTERNAL_URL = re.compile(r"^(?!file:|data:|blob:|http://127\.0\.0\.1:)")
TIMEOUT = 5000

# What axe checks in each theme. In the dark one only what depends on colors: nothing else differs.
RULES: dict[Literal["light", "dark"], list[str]] = {
    "light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "dark": ["color-contrast", "link-in-text-block"],
}

# One page of each kind, of the shipped catalog.
PAGE_KINDS = {
    "home": "index.html",
    "all-tools": "tools/index.html",
    "tool": "tools/GITHUB_CREATE_ISSUE/index.html",
    "older-version": "tools/GITHUB_CREATE_ISSUE/20250301_00.html",
    "history": "tools/GITHUB_CREATE_ISSUE/history.html",
    "deprecated-tool": "tools/STRIPE_CREATE_CHARGE/index.html",
    "toolkit": "toolkits/github/index.html",
    "older-toolkit": "toolkits/github/20250715_00.html",
    "tags": "tags/index.html",
    "tag": "tags/issues/index.html",
    "scopes": "scopes/index.html",
    "scope": "scopes/repo/index.html",
    "changes": "changes/index.html",
    "sessions": "sessions/index.html",
    "reference": "reference/index.html",
    "contribute": "contribute/index.html",
    "not-found": "404.html",
}

# Lists of the imported catalog, some of them long or empty, and a tool whose texts have coordinates
# and ids of 60 letters without a blank.
IMPORTED_PAGE_KINDS = {
    "home": "index.html",
    "all-tools": "tools/index.html",
    "toolkit": "toolkits/github/index.html",
    "tags": "tags/index.html",
    "tag": "tags/issues/index.html",
    "scopes": "scopes/index.html",
    "sessions": "sessions/index.html",
    "long-words": "tools/GOOGLE_MAPS_DISTANCE_MATRIX_API/index.html",
}


def nesting_depth(group: Any) -> int:
    """How many objects and lists are within one another."""
    within = group.values() if isinstance(group, dict) else group if isinstance(group, list) else ()
    return 1 + max(map(nesting_depth, within), default=0)


def max_enum_length(group: Any) -> int:
    """How many values the longest `enum` in it has."""
    within = group.values() if isinstance(group, dict) else group if isinstance(group, list) else ()
    own = group.get("enum") if isinstance(group, dict) else ()
    return max([len(own) if isinstance(own, list) else 0, *map(max_enum_length, within)])


# What makes the page of a tool hard, measured on its definition. Of the imported tools the page of
# the hardest is tried.
HARDNESS: dict[str, Callable[[Any], int]] = {
    "most-parameters": lambda tool: len(tool["input_parameters"]["properties"]),
    "deepest": nesting_depth,
    "longest-name": lambda tool: len(tool["slug"]),
    "longest-description": lambda tool: len(tool["description"]),
    "most-values": max_enum_length,
    "least-ascii": lambda tool: len(
        re.findall(r"[^\x00-\x7f]", json.dumps(tool, ensure_ascii=False))
    ),
}


def find_imported_pages(definitions: dict[str, Any]) -> dict[str, str]:
    """The page of each kind in the imported catalog: those above, and the tools that are the
    hardest in one way or another.
    """
    hardest = {
        way: max(definitions.values(), key=measure)["slug"] for way, measure in HARDNESS.items()
    }
    return {
        **IMPORTED_PAGE_KINDS,
        **{way: f"tools/{slug}/index.html" for way, slug in hardest.items()},
    }


Open = Callable[..., Page]
expect.set_options(timeout=TIMEOUT)


def require(is_available: bool, message: str) -> None:
    """Skip the test if a program is missing; fail in CI, where it must be installed."""
    if not is_available:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)


def read_axe_source() -> str:
    """The accessibility checker axe, as a script for a page."""
    file = NODE_MODULES / "axe-core" / "axe.min.js"
    require(file.is_file(), "there is no axe-core: install node and npm, and run scripts/test")
    return file.read_text()


def check_barriers(page: Page) -> None:
    """Fail if axe reports a violation on the page as it is now, in the light or the dark theme."""
    found = []
    for theme, rules in RULES.items():
        page.emulate_media(color_scheme=theme)
        # on file:// no script may read a style sheet
        result: Any = page.evaluate(
            "rules => axe.run({runOnly: rules, resultTypes: ['violations'],"
            " preload: location.protocol !== 'file:'})",
            rules,
        )
        found += [
            f"{theme}: {at['id']}: {at['help']}: {at['nodes'][0]['html'][:200]}"
            for at in result["violations"]
        ]
    assert not found, "\n".join(found)


class PageMonitor:
    """Records errors, dialogs, failed responses and requests to other sites."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.problems: list[str] = []

    def attach(self, page: Page) -> None:
        """Begin to watch this page, whose context is its own, and let nothing out of the
        machine.
        """
        context = page.context
        context.route(EXTERNAL_URL, lambda route: route.abort())
        context.on("console", self._console)
        context.on("weberror", lambda error: self.problems.append(f"error: {error.error}"))
        context.on("dialog", self._dialog)
        context.on("request", self._request)
        context.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.problems.append(f"console: {message.text} ({message.location['url']})")

    def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:")):
            self.problems.append(f"left the site: {request.resource_type} {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.problems.append(f"{response.status}: {response.url}")


def expand_details(page: Page) -> None:
    """Show what is folded away."""
    page.evaluate("document.querySelectorAll('details').forEach(at => at.open = true)")


def file_url(folder: Path) -> str:
    """The address of a site that is read from disk."""
    return f"{folder.as_uri()}/"


def page_path(page: Page, base: str) -> str:
    """Which page of the site this is, with its query and its hash."""
    return unquote(page.url).removeprefix(unquote(base))
