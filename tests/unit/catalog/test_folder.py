"""Tests of `catalog.folder`: paths of tools, and the nearest names."""

from pathlib import Path

import pytest

from support.paths import SHIPPED_CATALOG
from toolcatalog.catalog import folder as catalog_folder
from toolcatalog.errors import UsageError


def test_shipped_tools_are_listed() -> None:
    """Also meta tools, with their versions in order."""
    folders = catalog_folder.list_tools(SHIPPED_CATALOG)
    assert len(folders) > 100
    assert any(folder.startswith("meta_tools/") for folder in folders)
    for folder in folders:
        result = catalog_folder.get_tool(SHIPPED_CATALOG, folder.rpartition("/")[2])
        assert result.folder == folder
        assert result.is_meta_tool == folder.startswith("meta_tools/")
        assert result.versions == sorted(file.stem for file in (SHIPPED_CATALOG / folder).iterdir())
        assert (SHIPPED_CATALOG / result.version_path(result.versions[-1])).is_file()


def test_other_folders_are_not_tools(tmp_path: Path) -> None:
    """Without a version, behind a symlink, or with a path as name."""
    (tmp_path / "toolkits" / "a" / "A_EMPTY").mkdir(parents=True)
    (tmp_path / "toolkits" / "a" / "A_ODD").mkdir()
    (tmp_path / "toolkits" / "a" / "A_ODD" / "notes.yaml").write_text("")
    (tmp_path / "toolkits" / "a" / "A_LINK").symlink_to(
        SHIPPED_CATALOG / "toolkits" / "github" / "GITHUB_CREATE_ISSUE"
    )
    for slug in ("A_EMPTY", "A_ODD", "A_LINK", "../a", "", "a_b"):
        assert catalog_folder.find_tool(tmp_path, slug) is None
        with pytest.raises(UsageError, match="There is no tool"):
            catalog_folder.get_tool(tmp_path, slug)


def test_toolkit_needs_a_toolkit_file(tmp_path: Path) -> None:
    """A missing catalog has no toolkits."""
    for slug in ("b", "a"):
        (tmp_path / "toolkits" / slug).mkdir(parents=True)
    assert catalog_folder.list_toolkits(tmp_path) == []
    (tmp_path / "toolkits" / "a" / "toolkit.yaml").write_text("")
    assert catalog_folder.list_toolkits(tmp_path) == ["a"]
    assert catalog_folder.list_toolkits(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("slug", "toolkit"),
    [
        ("GITHUB_X", "github"),
        ("GITHUB_APPS_X", "github-apps"),
        ("GITHUB-APPS-X", "github-apps"),
        ("GITHUBX", ""),
        ("GIT_X", ""),
    ],
)
def test_toolkit_of_a_slug(slug: str, toolkit: str) -> None:
    """The longest whose words are the first words of the slug."""
    assert catalog_folder.guess_toolkit(slug, ["github", "github-apps", "hub"]) == toolkit


def test_nearest_name_among_many() -> None:
    """A typo finds its tool among a hundred thousand others."""
    existing = [f"KIT{number}_CREATE_THING_{number}" for number in range(100_000)]
    assert (
        catalog_folder.nearest_slug("GITHB_CREATE_ISSUE", [*existing, "GITHUB_CREATE_ISSUE"])
        == "GITHUB_CREATE_ISSUE"
    )
    assert catalog_folder.nearest_slug("ZZZ", existing) == ""
