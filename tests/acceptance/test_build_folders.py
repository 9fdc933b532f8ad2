"""Folders of a build: symlinks and nested folders are refused, and the site is written last."""

import json
import os
import shutil
from pathlib import Path

import pytest

from support.catalogs import add_tool, generate_catalog
from support.command import error_sentence, run_successfully, run_toolcatalog
from support.files_on_disk import find_leftovers, read_tree, snapshot_state
from toolcatalog.build.pipeline import build
from toolcatalog.errors import UsageError


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A small catalog."""
    return generate_catalog(tmp_path / "catalog", 6, 2)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of somebody else, with what a build would remove, replace or empty there."""
    folder = tmp_path / "outside"
    for path in (
        "index.html",
        "KIT0_DO_0/index.html",
        "ab/notes.txt",
        "new.part/notes.txt",
        ".notes.0123abcd.part",
        "lexicon",
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("precious")
    return folder


def link(path: Path, to: Path) -> None:
    """Put a link in the place of a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize(
    "place",
    [
        "build",
        "build/snapshots",
        "build/snapshots/new.part",
        "build/.cache",
        "build/.cache/parts",
        "build/.cache/parts/ab",
        "build/.cache/words",
        "site",
        "site/tools",
        "site/tools/KIT0_DO_0",
        "site/toolkits/kit0",
    ],
)
def test_symlinked_build_folder_is_refused(
    place: str, built: bool, catalog: Path, outside: Path, tmp_path: Path
) -> None:
    """One sentence names it, and nothing outside changes."""
    arguments = ("--catalog", catalog, "--out", tmp_path / "build")
    if built:
        run_successfully("build", *arguments, "--site", tmp_path / "site")
    link(tmp_path / place, outside)
    previous = snapshot_state(outside)
    result = run_toolcatalog("build", *arguments, "--site", tmp_path / "site")
    option = "--site" if place.startswith("site") else "--out"
    assert f"{tmp_path / place} is a symbolic link" in error_sentence(result)
    assert option in error_sentence(result)
    assert snapshot_state(outside) == previous
    if option == "--out":
        result = run_toolcatalog("check", "--catalog", catalog, "--cache-dir", tmp_path / "build")
        assert f"{tmp_path / place} is a symbolic link" in error_sentence(result)
        assert snapshot_state(outside) == previous


@pytest.mark.parametrize("place", ["build/.lock", "site/.lock"])
def test_symlinked_lock_is_not_followed(place: str, catalog: Path, tmp_path: Path) -> None:
    link(tmp_path / place, tmp_path / "made")
    result = run_toolcatalog(
        "build", "--catalog", catalog, "--out", tmp_path / "build", "--site", tmp_path / "site"
    )
    assert f"Cannot write {tmp_path / place}" in error_sentence(result)
    assert not (tmp_path / "made").exists()


def test_symlinked_page_is_replaced(catalog: Path, outside: Path, tmp_path: Path) -> None:
    """The target of the link stays, even if it has the same bytes."""
    build(catalog, tmp_path / "build", tmp_path / "site")
    document = read_tree(tmp_path / "site")
    page, toolkit = tmp_path / "site/index.html", tmp_path / "site/toolkits/kit0/index.html"
    (outside / "same.html").write_bytes(toolkit.read_bytes())
    for file, to in ((page, outside / "index.html"), (toolkit, outside / "same.html")):
        file.unlink()
        file.symlink_to(to)
    previous = snapshot_state(outside)
    build(catalog, tmp_path / "build", tmp_path / "site")
    assert snapshot_state(outside) == previous
    assert not page.is_symlink()
    assert not toolkit.is_symlink()
    assert read_tree(tmp_path / "site") == document


@pytest.mark.parametrize(
    ("out", "site"),
    [
        ("build", "build"),
        ("build", "build/site"),
        ("site/build", "site"),
        ("catalog", "site"),
        ("catalog/build", "site"),
        ("build", "catalog"),
        ("build", "catalog/site"),
        (".", "site"),
        ("build", "."),
        ("elsewhere/../build", "build/snapshots"),
    ],
)
def test_nested_folders_are_refused(out: str, site: str, catalog: Path, tmp_path: Path) -> None:
    """Catalog, build and site must be separate; nothing is written otherwise."""
    previous = snapshot_state(tmp_path)
    result = run_toolcatalog(
        "build", "--catalog", "catalog", "--out", out, "--site", site, cwd=tmp_path
    )
    assert "Name folders next to each other" in error_sentence(result)
    assert snapshot_state(tmp_path) == previous
    assert catalog.is_dir()


def test_checkout_as_site_loses_no_file(tmp_path: Path) -> None:
    """A link `site` to the top of a checkout whose page list names its files."""
    folder = tmp_path / "checkout"
    generate_catalog(folder / "catalog", 3)
    listing = [".git/HEAD", "src/work.py", "src/page.html", "index.html"]
    for path in listing:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("precious")
    (folder / ".generated").write_text(json.dumps(listing))
    (folder / "site").symlink_to(".")
    previous = snapshot_state(folder)
    result = run_toolcatalog("build", cwd=folder)
    assert "site is a symbolic link" in error_sentence(result)
    now = snapshot_state(folder)
    assert {path: now[path] for path in previous if path != folder} == {
        path: text for path, text in previous.items() if path != folder
    }


def test_unsealed_page_list_removes_nothing(catalog: Path, tmp_path: Path) -> None:
    """Files inside and outside the site stay; possible pages are counted."""
    site = tmp_path / "site"
    listing = ["../notes.html", ".git/HEAD", "a/../../notes.html", "work.py", "old/page.html"]
    for path in listing:
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text("precious")
    (site / ".generated").write_text(
        json.dumps(["index.html", *listing, str(tmp_path / "notes.html")])
    )
    assert build(catalog, tmp_path / "build", site).foreign_pages == 1
    assert all((site / path).read_text() == "precious" for path in listing)
    assert (site / "index.html").read_text() != "precious"
    assert build(catalog, tmp_path / "build", site).foreign_pages == 0


def test_tag_may_have_any_name(catalog: Path, tmp_path: Path) -> None:
    """Even the name of the page of all tags, or the folder name of another tag."""
    file = catalog / "toolkits/kit0/KIT0_DO_0/20250101_00.yaml"
    labels = '[index.html, .., a.b, A, a, con, "x/y", a-d3d99e8b]'
    text = file.read_text()
    file.write_text(text.replace("[tag0]", labels).replace('["kit0:0"]', labels))
    build(catalog, tmp_path / "build", tmp_path / "site")
    for kind in ("tags", "scopes"):
        pages = [page.read_text() for page in (tmp_path / "site" / kind).glob("*/index.html")]
        for label in ("index.html", "..", "a.b", "A", "a", "con", "x/y", "a-d3d99e8b"):
            assert sum(f"<h1><code>{label}</code></h1>" in page for page in pages) == 1, label


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_failed_build_leaves_the_site_unchanged(kind: str, catalog: Path, tmp_path: Path) -> None:
    """All pages are rendered and obstacles found before the first page is replaced; the next build
    succeeds.
    """
    out, site = tmp_path / "build", tmp_path / "site"
    build(catalog, out, site)
    (catalog / "catalog.yaml").write_text("title: Renamed\n")
    add_tool(catalog, "kit1", "KIT1_NEW", 9)
    obstacle = site / ("tools/KIT1_NEW/index.html" if kind == "folder" else "tools/KIT1_NEW")
    obstacle.mkdir(parents=True) if kind == "folder" else obstacle.write_text("mine")
    previous, current = snapshot_state(site), (out / "current").readlink()
    with pytest.raises((UsageError, OSError), match="KIT1_NEW"):
        build(catalog, out, site)
    assert {**snapshot_state(site), site: ()} == {**previous, site: ()}
    assert (out / "current").readlink() == current
    shutil.rmtree(site / "tools/KIT1_NEW") if kind == "folder" else obstacle.unlink()
    build(catalog, out, site)
    build(catalog, tmp_path / "fresh/build", tmp_path / "fresh/site")
    assert read_tree(site) == read_tree(tmp_path / "fresh/site")
    assert find_leftovers(out, site) == []
    assert not (site / ".staged").exists()


def test_failed_first_build_leaves_no_page(catalog: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "tools/KIT1_DO_1/index.html").mkdir(parents=True)
    with pytest.raises(UsageError, match="KIT1_DO_1"):
        build(catalog, tmp_path / "build", site)
    assert sorted(path.name for path in site.iterdir()) == [".lock", "tools"]
    assert not (tmp_path / "build/current").exists()


@pytest.mark.parametrize(
    "place",
    [
        "build/.cache/batches",
        "build/.cache/snapshot",
        "build/.cache/rule-facts",
        "build/.cache/lexicon",
        "build/current/manifest.json",
        "build/current/files.json",
        "build/current/query.numbers",
        "build/current/tools.deflate",
        "site/.generated",
    ],
)
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_build_reads_no_pipes_or_symlinks(
    kind: str, place: str, catalog: Path, tmp_path: Path
) -> None:
    """A link or an endless pipe in place of a file of an earlier build is rebuilt or reported."""
    arguments = ("--catalog", catalog, "--out", tmp_path / "build", "--site", tmp_path / "site")
    run_successfully("build", *arguments)
    os.mkfifo(tmp_path / "endless")
    path = (tmp_path / place).parent.resolve() / Path(place).name
    path.unlink()
    if kind == "link":
        path.symlink_to(tmp_path / "endless")
    else:
        (tmp_path / "endless").rename(path)
    if not place.endswith("files.json"):  # it is read where nothing has changed
        add_tool(catalog, "kit0", "KIT0_MORE")
    result = run_toolcatalog("build", *arguments)
    if place == "site/.generated":
        assert f"Cannot write {path}" in error_sentence(result)
    else:
        assert result.returncode == 0, result.stderr
    if place.startswith("build/.cache"):
        assert path.is_file()
        assert not path.is_symlink()


@pytest.mark.parametrize("place", ["manifest.json", "tools.json", "toolkits", "toolkits/kit0"])
def test_snapshot_contains_no_symlinks(place: str, catalog: Path, tmp_path: Path) -> None:
    """A snapshot with links in place of files or folders is rewritten, even if the targets have the
    same bytes.
    """
    run_successfully("build", "--catalog", catalog, "--out", tmp_path / "build", "--no-site")
    current = (tmp_path / "build/current").resolve()
    document = read_tree(current)
    (current / place).rename(tmp_path / "elsewhere")
    (current / place).symlink_to(tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "build/.cache")
    run_successfully("build", "--catalog", catalog, "--out", tmp_path / "build", "--no-site")
    assert not (current / place).is_symlink()
    assert read_tree(current) == document
