"""`toolcatalog init`: a new folder becomes a catalog that can be checked, built and served."""

import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from support.command import error_sentence, run_successfully, run_toolcatalog
from support.paths import ROOT
from support.server import start_server

ZIZMOR = ROOT / ".venv" / "bin" / "zizmor"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that `init` has filled."""
    run_successfully("init", tmp_path / "my-tools")
    return tmp_path / "my-tools"


def test_init_prints_files_and_the_next_step(tmp_path: Path) -> None:
    """All files except schemas on standard output."""
    result = run_toolcatalog("init", tmp_path / "my-tools")
    assert result.returncode == 0
    printed = [Path(line).relative_to(tmp_path / "my-tools") for line in result.stdout.splitlines()]
    assert {str(path) for path in printed} >= {
        "README.md",
        ".gitignore",
        ".github/workflows/catalog.yaml",
        "catalog/catalog.yaml",
        "catalog/toolkits/example/toolkit.yaml",
    }
    assert all((tmp_path / "my-tools" / path).is_file() for path in printed)
    assert "toolcatalog check" in result.stderr
    assert (tmp_path / "my-tools/README.md").read_text().startswith("# My Tools\n")


def test_new_catalog_has_no_findings(folder: Path) -> None:
    """Not even notes."""
    result = run_toolcatalog("check", "--catalog", folder / "catalog", "--min-severity", "note")
    assert (result.returncode, result.stdout) == (0, "")


def test_new_catalog_is_served(folder: Path, tmp_path: Path) -> None:
    """A search finds the example tool."""
    build, site = folder / "build", folder / "site"
    run_successfully("build", "--catalog", folder / "catalog", "--out", build, "--site", site)
    with start_server(build, tmp_path) as server:
        answer = httpx.get(
            f"{server.url}/api/v3/tools?query=convert+a+time", headers={"x-api-key": server.key}
        )
    assert [item["slug"] for item in answer.json()["items"]] == ["EXAMPLE_CONVERT_TIME"]


def test_readme_commands_work(folder: Path) -> None:
    catalog = ("--catalog", folder / "catalog")
    run_successfully(
        "new", "toolkit", "weather", "--name", "Weather", "--description", "Forecasts.", *catalog
    )
    run_successfully(
        "new", "tool", "WEATHER_GET", "--name", "Get", "--description", "Get it.", *catalog
    )
    run_successfully("check", *catalog)


def test_gitignore_excludes_builds_and_keys(folder: Path) -> None:
    """Catalog and schemas are committed."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    for name in ("build/x", "site/x", "key.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    listed = subprocess.run(
        ["git", "-C", folder, "ls-files", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert "catalog/.schemas/v1/tool.json" in listed
    assert not {"build/x", "site/x", "key.txt"} & {*listed}


@pytest.mark.skipif(not ZIZMOR.exists(), reason="zizmor is not installed")
def test_workflow_passes_its_auditor(folder: Path) -> None:
    result = subprocess.run(
        [ZIZMOR, "--offline", "--format", "json", folder / ".github/workflows/catalog.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(result.stdout) == [], result.stdout


def test_folder_with_only_git_is_accepted(tmp_path: Path) -> None:
    """After `git init`; the title can be set."""
    (tmp_path / ".git").mkdir()
    result = run_toolcatalog("init", "--title", "Our tools", cwd=tmp_path)
    assert result.returncode == 0
    assert "title: Our tools" in (tmp_path / "catalog/catalog.yaml").read_text()
    assert "cd " not in result.stderr


@pytest.mark.parametrize(
    ("name", "sentence"), [("full", "is not empty, it has x"), ("file", "is not a folder")]
)
def test_existing_files_are_not_changed(name: str, sentence: str, tmp_path: Path) -> None:
    """A folder with files, or a file, is refused with a hint."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("mine")
    (tmp_path / "file").write_text("mine")
    result = run_toolcatalog("init", tmp_path / name)
    assert result.returncode == 2
    assert sentence in error_sentence(result)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "x"]


def test_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "here").mkdir()
    run_successfully("init", tmp_path / "here")
    shutil.rmtree(tmp_path / "here")
    (tmp_path / "here").symlink_to(tmp_path / "outside" / "gone")
    result = run_toolcatalog("init", tmp_path / "here")
    assert result.returncode == 2
    assert [*(tmp_path / "outside").iterdir()] == []
