"""Symbolic links in a catalog: no command writes through them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from acceptance.test_reimport import definition
from support.catalogs import add_tool, add_toolkit
from toolcatalog.cli.main import main
from toolcatalog.errors import UsageError
from toolcatalog.system import files

A_DO = "toolkits/a/A_DO/20250101_00.yaml"
OPENAPI = {
    "openapi": "3.0.3",
    "info": {"title": "A", "version": "1"},
    "paths": {"/x": {"get": {"operationId": "do", "responses": {}}}},
}
MCP = {"tools": [{"name": "do", "description": "Do it.", "inputSchema": {"type": "object"}}]}
KIT = ("--name", "A", "--logo", "https://a.example/a.png")
TEXTS = ("--name", "Do", "--description", "Do it.")


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A catalog with a toolkit and a tool, next to a folder outside of it and files to import."""
    root = tmp_path / "catalog"
    root.mkdir()
    (root / "catalog.yaml").write_text("title: Small\n")
    add_toolkit(root, "a")
    add_tool(root, "a", "A_DO")
    (tmp_path / "outside").mkdir()
    (tmp_path / "wire.json").write_text(json.dumps([definition("B_DO")]))
    (tmp_path / "openapi.json").write_text(json.dumps(OPENAPI))
    (tmp_path / "mcp.json").write_text(json.dumps(MCP))
    return root


@pytest.mark.parametrize(
    ("link", "arguments"),
    [
        (
            "toolkits/b",
            ["import", "openapi", "openapi.json", "--catalog", "catalog", "--toolkit", "b"],
        ),
        ("toolkits/b", ["import", "mcp", "mcp.json", "--catalog", "catalog", "--toolkit", "b"]),
        ("toolkits/b", ["import", "wire", "wire.json", "--catalog", "catalog", "--toolkit", "b"]),
        ("toolkits/a/A_NEW", ["new", "tool", "A_NEW", *TEXTS]),
        ("toolkits/b", ["new", "toolkit", "b", *KIT]),
        (".schemas", ["new", "schemas"]),
        (".schemas/v1", ["new", "schemas"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_symlinked_folder_is_not_written_through(
    catalog: Path,
    link: str,
    arguments: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One sentence names the link."""
    monkeypatch.chdir(catalog.parent)
    (catalog / link).parent.mkdir(exist_ok=True)
    (catalog / link).symlink_to(catalog.parent / "outside")
    previous = sorted(catalog.rglob("*"))
    code = main([*arguments])
    text = capsys.readouterr().err
    assert [*(catalog.parent / "outside").iterdir()] == []
    assert sorted(catalog.rglob("*")) == previous
    assert code == 2, text
    assert f"{Path('catalog', link)} is a symbolic link, and nothing is written" in text


@pytest.mark.parametrize(
    "arguments",
    [["deprecate", "A_DO"], ["check", "--fix"]],
    ids=lambda value: value[0],
)
def test_symlinked_file_is_not_replaced(
    catalog: Path,
    arguments: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And its target does not change."""
    monkeypatch.chdir(catalog.parent)
    file = catalog / A_DO
    target = file.rename(catalog / "toolkits/a/A_DO/20240101_00.yaml")
    target.write_text(target.read_text().replace("name: Do 0", "name: 5"))
    text = target.read_text()
    file.symlink_to(target.name)
    main([*arguments])
    assert "is a symbolic link" in capsys.readouterr().err
    assert file.is_symlink()
    assert target.read_text() == text
    assert [*(catalog.parent / "outside").iterdir()] == []


def test_catalog_path_may_be_a_symlink(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(catalog.parent)
    Path("link").symlink_to("catalog")
    assert main(["deprecate", "A_DO", "--catalog", "link"]) == 0
    assert main(["import", "mcp", "mcp.json", "--catalog", "link", "--toolkit", "b"]) == 0
    assert (catalog / "toolkits" / "b").is_dir()


def test_symlinks_below_the_catalog_are_refused(tmp_path: Path) -> None:
    """Broken or not."""
    (tmp_path / "top").symlink_to(tmp_path)
    top = tmp_path / "top"
    (top / "plain").mkdir()
    files.require_no_links(top / "plain" / "none" / "file", top)
    for target in ("plain", "nowhere", "/"):
        (top / "link").symlink_to(target)
        for path in (top / "link", top / "link" / "file", top / "link" / "none" / "file"):
            with pytest.raises(UsageError, match="link is a symbolic link"):
                files.require_no_links(path, top)
        (top / "link").unlink()


def test_link_to_a_long_name_is_reported(
    catalog: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file system has names of 300 letters."""
    monkeypatch.chdir(catalog.parent)
    file = catalog / A_DO
    file.unlink()
    file.symlink_to("a" * 300 + ".yaml")
    assert main(["check"]) == 1
    assert "error[file-link] a link to a folder, or to nothing" in capsys.readouterr().out
