"""The icon and the fonts of a catalog: files that the site publishes and uses."""

import re
import subprocess
from html import unescape
from pathlib import Path

import pytest

from support.catalogs import add_tool
from support.command import run_successfully

ICON = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle r="4"/></svg>\n'
FONT = b"wOF2 and the rest"


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A catalog with one tool."""
    folder = tmp_path / "catalog"
    (folder / "toolkits/mail").mkdir(parents=True)
    (folder / "catalog.yaml").write_text("title: Tools\n")
    (folder / "toolkits/mail/toolkit.yaml").write_text("name: Mail\n")
    add_tool(folder, "mail", "MAIL_SEND", 1)
    return folder


def build_site(catalog: Path) -> Path:
    """Build the catalog; the folder of its site."""
    site = catalog.parent / "site"
    run_successfully(
        "build", "--catalog", catalog, "--out", catalog.parent / "build", "--site", site
    )
    return site


def test_the_icon_of_the_catalog(catalog: Path) -> None:
    """`logo.svg` next to catalog.yaml replaces the icon, until it is removed."""
    icon = (build_site(catalog) / "icon.svg").read_text()
    (catalog / "logo.svg").write_text(ICON)
    assert (build_site(catalog) / "icon.svg").read_text() == ICON != icon
    (catalog / "logo.svg").unlink()
    assert (build_site(catalog) / "icon.svg").read_text() == icon


def test_the_fonts_of_the_catalog(catalog: Path) -> None:
    """The site has the fonts and its style sheet names them, until they are removed."""
    style = (build_site(catalog) / "style.css").read_text()
    assert "@font-face" not in style
    (catalog / "fonts").mkdir()
    (catalog / "fonts/text.woff2").write_bytes(FONT)
    site = build_site(catalog)
    assert (site / "fonts/text.woff2").read_bytes() == FONT
    with_font = (site / "style.css").read_text()
    assert "url(fonts/text.woff2)" in with_font
    assert "code.woff2" not in with_font
    (catalog / "fonts/text.woff2").unlink()
    site = build_site(catalog)
    assert (site / "style.css").read_text() == style
    assert not (site / "fonts/text.woff2").exists()


def test_snippets_quote_the_address_of_the_api(catalog: Path, tmp_path: Path) -> None:
    """Nobody who pastes a request runs what a catalog wrote into `api`."""
    mark = tmp_path / "mark"
    (catalog / "catalog.yaml").write_text(
        f'title: Tools\napi: "https://tools.example/$(touch${{IFS}}{mark})"\n'
    )
    site = build_site(catalog)
    for page in ("index.html", "reference/index.html", "tools/MAIL_SEND/index.html"):
        text = (site / page).read_text()
        snippets = re.findall(r"<code[^>]*>((?:<[^>]+>)*curl.*?)</code>", text, re.DOTALL)
        assert snippets, page
        for snippet in snippets:
            command = unescape(re.sub("<[^>]+>", "", snippet))
            subprocess.run(["sh", "-c", f"curl() {{ :; }}; {command}"], check=True)
    assert not mark.exists()
