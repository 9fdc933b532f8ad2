"""Published files: logos, the icon and the fonts of a site, and what the API returns for a logo."""

import json
import re
import subprocess
from html import unescape
from pathlib import Path

import orjson
import pytest

from support.catalogs import add_tool
from support.command import run_successfully, run_toolcatalog

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle r="4"/></svg>\n'
HOME = "home: https://tools.example.com/catalog/\n"
ICON = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle r="4"/></svg>\n'
FONT = b"wOF2 and the rest"


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A catalog with a toolkit that has no logo, and one tool."""
    folder = tmp_path / "catalog"
    (folder / "toolkits/mail").mkdir(parents=True)
    (folder / "catalog.yaml").write_text("title: Tools\n")
    (folder / "toolkits/mail/toolkit.yaml").write_text("name: Mail\n")
    add_tool(folder, "mail", "MAIL_SEND", 1)
    return folder


def served_logo(catalog: Path) -> str:
    """The logo in the API's document of the tool after a build."""
    build = catalog.parent / "build"
    run_successfully("build", "--catalog", catalog, "--out", build, "--no-site")
    (document,) = orjson.loads((build / "current" / "tools.json").read_bytes())
    assert document["toolkit"]["logo"] == document["deprecated"]["toolkit"]["logo"]
    logo: str = document["toolkit"]["logo"]
    return logo


def toolkit_index(catalog: Path) -> dict[str, object]:
    """The toolkit in its index in the snapshot."""
    (file,) = (catalog.parent / "build/current/toolkits/mail").glob("*.json")
    toolkit: dict[str, object] = json.loads(file.read_bytes())["toolkit"]
    return toolkit


def test_toolkit_without_a_logo(catalog: Path) -> None:
    """The API returns an empty string."""
    assert served_logo(catalog) == ""
    assert toolkit_index(catalog)["logo"] == ""
    assert "logo_file" not in toolkit_index(catalog)


def test_logo_file_has_a_public_url(catalog: Path) -> None:
    """If the site has an address; each change is noticed."""
    assert served_logo(catalog) == ""
    (catalog / "toolkits/mail/logo.svg").write_text(SVG)
    assert served_logo(catalog) == ""
    assert toolkit_index(catalog)["logo_file"] == "toolkits/mail/logo.svg"
    (catalog / "catalog.yaml").write_text(f"title: Tools\n{HOME}")
    assert served_logo(catalog) == "https://tools.example.com/catalog/toolkits/mail/logo.svg"
    (catalog / "toolkits/mail/logo.svg").rename(catalog / "toolkits/mail/logo.png")
    (catalog / "toolkits/mail/logo.png").write_bytes(
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1"
    )
    assert served_logo(catalog) == "https://tools.example.com/catalog/toolkits/mail/logo.png"
    (catalog / "toolkits/mail/logo.png").unlink()
    assert served_logo(catalog) == ""


def test_api_prefers_the_url_to_the_file(catalog: Path) -> None:
    """The site shows the file."""
    (catalog / "catalog.yaml").write_text(f"title: Tools\n{HOME}")
    (catalog / "toolkits/mail/logo.svg").write_text(SVG)
    toolkit = catalog / "toolkits/mail/toolkit.yaml"
    toolkit.write_text("name: Mail\nlogo: https://mail.example/logo.png\n")
    assert served_logo(catalog) == "https://mail.example/logo.png"
    assert toolkit_index(catalog)["logo_file"] == "toolkits/mail/logo.svg"


def test_verify_against_a_catalog(catalog: Path) -> None:
    """A catalog gives the same documents as its build, logos included."""
    (catalog / "catalog.yaml").write_text(f"title: Tools\n{HOME}")
    (catalog / "toolkits/mail/logo.svg").write_text(SVG)
    served_logo(catalog)
    lock = catalog.parent / "tools.lock"
    build = catalog.parent / "build"
    run_successfully("lock", "MAIL_SEND", "--build", build, "--lock", lock)
    run_successfully("lock", "--check", "--lock", lock, "--catalog", catalog)


def test_logo_files_are_expected_files(catalog: Path) -> None:
    """Next to toolkit.yaml, and nowhere else."""
    (catalog / "toolkits/mail/logo.svg").write_text(SVG)
    assert run_toolcatalog("check", "--catalog", catalog).returncode == 0
    (catalog / "toolkits/mail/MAIL_SEND/logo.svg").write_text(SVG)
    checked = run_toolcatalog("check", "--catalog", catalog, "--format", "concise")
    assert "MAIL_SEND/logo.svg:1:1: file-unexpected" in checked.stdout


# draws a thousand rectangles; with eleven levels, a browser would not come to an end
NESTED_USES = '<rect id="a0"/>' + "".join(
    f'<g id="a{level}">' + f'<use href="#a{level - 1}"/>' * 10 + "</g>" for level in range(1, 5)
)


@pytest.mark.parametrize(
    "content",
    [
        "<script>alert(1)</script>",
        '<a href="https://other.example"/>',
        '<image href="https://other.example/x.png"/>',
        '<rect onclick="alert(1)"/>',
        '<set attributeName="href" to="https://other.example"/>',
        '<use href="https://other.example#x"/>',
        '<g xml:base="https://other.example/"/>',
        '<meta xmlns="http://www.w3.org/1999/xhtml" http-equiv="refresh" content="0;url=/"/>',
        '<form xmlns="http://www.w3.org/1999/xhtml" action="javascript:alert(1)"/>',
        "<style>@import 'https://other.example/x.css'</style>",
        "<style>rect { fill: red }<g/>a { background: url(https://other.example) }</style>",
        "<rect style=\"background: image-set('https://other.example/x.png' 1x)\"/>",
        '<rect fill="url(https://other.example/x.svg#y)"/>',
        '<rect style="fill: \\75rl(https://other.example)"/>',
        NESTED_USES,
        '<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>',
        '<rect id="a"/>' + '<use href="#a"/>' * 300,
    ],
)
def test_active_logo_is_refused(content: str, catalog: Path) -> None:
    """Scripts, links and external content in SVG."""
    text = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8">{content}</svg>'
    (catalog / "toolkits/mail/logo.svg").write_text(text)
    checked = run_toolcatalog("check", "--catalog", catalog, "--format", "concise")
    assert checked.returncode == 1
    assert "logo.svg:1:1: logo-invalid" in checked.stdout


def test_drawing_logo_is_accepted(catalog: Path) -> None:
    """Gradients, clips, transformations and plain styles, as drawing programs write them."""
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        ' viewBox="0 0 8 8"><style>.a { fill: rgb(1 2 3) }</style><defs>'
        '<linearGradient id="b"><stop offset="0" stop-color="#fff"/></linearGradient>'
        '<clipPath id="c"><path d="M0 0h8v8z"/></clipPath></defs>'
        '<g clip-path="url(#c)" transform="translate(1 2) rotate(3)" style="opacity:.5">'
        '<circle class="a" r="4" fill="url(\'#b\')"/><use xlink:href="#c"/></g></svg>'
    )
    (catalog / "toolkits/mail/logo.svg").write_text(text)
    run_successfully("check", "--catalog", catalog)


def build_site(catalog: Path) -> Path:
    """Build the catalog; the folder of its site."""
    site = catalog.parent / "site"
    run_successfully(
        "build", "--catalog", catalog, "--out", catalog.parent / "build", "--site", site
    )
    return site


def test_catalog_icon_is_replaced(catalog: Path) -> None:
    """By `logo.svg` next to catalog.yaml, until it is removed."""
    icon = (build_site(catalog) / "icon.svg").read_text()
    (catalog / "logo.svg").write_text(ICON)
    assert (build_site(catalog) / "icon.svg").read_text() == ICON != icon
    (catalog / "logo.svg").unlink()
    assert (build_site(catalog) / "icon.svg").read_text() == icon


def test_catalog_fonts_are_in_the_site(catalog: Path) -> None:
    """The style sheet names them, until they are removed."""
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


def test_snippets_quote_the_api_address(catalog: Path, tmp_path: Path) -> None:
    """A pasted request cannot run shell code from `api`."""
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
