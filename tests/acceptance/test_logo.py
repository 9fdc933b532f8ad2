"""Logos: a URL, a file in the catalog, or none, and what the API returns for each."""

import json
from pathlib import Path

import orjson
import pytest

from support.catalogs import add_tool
from support.command import run_successfully, run_toolcatalog

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle r="4"/></svg>\n'
HOME = "home: https://tools.example.com/catalog/\n"


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


def test_no_logo(catalog: Path) -> None:
    """A toolkit needs no logo; the API returns an empty string."""
    assert served_logo(catalog) == ""
    assert toolkit_index(catalog)["logo"] == ""
    assert "logo_file" not in toolkit_index(catalog)


def test_a_logo_file(catalog: Path) -> None:
    """A file has a public address as soon as the site has one; each change is noticed."""
    assert served_logo(catalog) == ""
    (catalog / "toolkits/mail/logo.svg").write_text(SVG)
    assert served_logo(catalog) == ""
    assert toolkit_index(catalog)["logo_file"] == "toolkits/mail/logo.svg"
    (catalog / "catalog.yaml").write_text(f"title: Tools\n{HOME}")
    assert served_logo(catalog) == "https://tools.example.com/catalog/toolkits/mail/logo.svg"
    (catalog / "toolkits/mail/logo.svg").rename(catalog / "toolkits/mail/logo.png")
    (catalog / "toolkits/mail/logo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert served_logo(catalog) == "https://tools.example.com/catalog/toolkits/mail/logo.png"
    (catalog / "toolkits/mail/logo.png").unlink()
    assert served_logo(catalog) == ""


def test_a_url_goes_before_a_file_in_the_api(catalog: Path) -> None:
    """The site shows the file, the API returns the URL of the toolkit's file."""
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


def test_a_logo_is_no_unknown_file(catalog: Path) -> None:
    """Both names are expected next to toolkit.yaml, and nowhere else."""
    (catalog / "toolkits/mail/logo.svg").write_text(SVG)
    assert run_toolcatalog("check", "--catalog", catalog).returncode == 0
    (catalog / "toolkits/mail/MAIL_SEND/logo.svg").write_text(SVG)
    checked = run_toolcatalog("check", "--catalog", catalog, "--format", "concise")
    assert "MAIL_SEND/logo.svg:1:1: file-unexpected" in checked.stdout
