"""Synthetic catalogs of the benchmarks: valid, reproducible, and with the promised shares."""

import hashlib
from pathlib import Path

import pytest

from benchmarks import synthetic
from benchmarks.builds import tool_files
from support.command import run_successfully, run_toolcatalog

TOOLS = 600


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog of some hundred tools."""
    folder = tmp_path_factory.mktemp("synthetic") / "catalog"
    synthetic.write_catalog(folder, TOOLS)
    return folder


def tree(folder: Path) -> dict[str, str]:
    """Every file of a folder, by what it holds."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_synthetic_catalog_has_no_problems(catalog: Path) -> None:
    """`toolcatalog check` passes and counts all files."""
    result = run_toolcatalog("check", "--catalog", catalog)
    assert (
        result.returncode,
        f"{len(tree(catalog)):,} files" in result.stdout + result.stderr,
    ) == (
        0,
        True,
    ), result.stderr


def test_seed_determines_the_bytes(catalog: Path, tmp_path: Path) -> None:
    """Another seed gives another catalog."""
    synthetic.write_catalog(tmp_path / "again", TOOLS)
    synthetic.write_catalog(tmp_path / "other", TOOLS, seed=2)
    assert tree(tmp_path / "again") == tree(catalog)
    assert not {*tree(tmp_path / "other").values()} & {*tree(catalog).values()} - common(catalog)


def common(catalog: Path) -> set[str]:
    """What every synthetic catalog has: its title, and its meta tools."""
    return {
        digest
        for path, digest in tree(catalog).items()
        if path == "catalog.yaml" or path.startswith("meta_tools/")
    }


def test_versions_and_deprecations_have_their_shares(catalog: Path) -> None:
    """A quarter of the tools has two versions, one in twelve is deprecated, and a file has about 3
    KB.
    """
    files = [*tool_files(catalog)]
    tools = {file.parent for file in files}
    assert len(tools) == TOOLS
    assert 1.2 <= len(files) / TOOLS <= 1.4
    assert 0.06 <= sum("deprecation:" in file.read_text() for file in files) / TOOLS <= 0.1
    assert 2_500 <= sum(file.stat().st_size for file in files) / len(files) <= 3_500
    assert all(folder.name.startswith(f"{folder.parent.name.upper()}_") for folder in tools)


def test_files_only_gives_one_file_per_tool(tmp_path: Path) -> None:
    """`--files-only` gives one version of each tool, and the catalog builds."""
    folder = tmp_path / "catalog"
    assert synthetic.write_catalog(folder, 205, files_only=True) == 205
    files = [*tool_files(folder)]
    assert (len(files), len({file.parent for file in files}), {file.stem for file in files}) == (
        205,
        205,
        {synthetic.VERSIONS[0]},
    )
    run_successfully("build", "--catalog", folder, "--out", tmp_path / "build", "--no-site")


@pytest.mark.parametrize("tools", [1, 2, 7])
def test_small_catalogs_are_valid(tools: int, tmp_path: Path) -> None:
    """With one or two tools."""
    synthetic.write_catalog(tmp_path / "catalog", tools)
    run_successfully("check", "--catalog", tmp_path / "catalog")
