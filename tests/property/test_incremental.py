"""Incremental builds give the same bytes as builds into empty folders."""

import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.catalog_editor import CatalogEditor
from support.catalogs import generate_catalog
from support.command import only_errors, run_successfully
from support.files_on_disk import find_leftovers, read_tree, snapshot_state
from support.paths import ROOT
from toolcatalog.build import cache as build_cache
from toolcatalog.build.batches import split_into_batches
from toolcatalog.build.pipeline import build, check
from toolcatalog.errors import InvalidCatalog, UsageError
from toolcatalog.progress import Advance, Progress
from toolcatalog.snapshot.directory import BuildResult
from toolcatalog.validation import checker
from toolcatalog.validation.severity import SEVERITIES

SETTLED = 2.1  # seconds after which the state of a file is relied on


class Folders:
    """The folders of a catalog that is built incrementally, and from scratch next to it."""

    def __init__(self, catalog: Path, folder: Path) -> None:
        self.catalog, self.folder = catalog, folder
        self.out, self.site = folder / "build", folder / "site"

    @property
    def cache(self) -> Path:
        return self.out / ".cache"

    def build(self) -> BuildResult:
        return build(self.catalog, self.out, self.site)

    def parts(self) -> dict[Path, int]:
        """Each part in the cache, and which file it is."""
        return {path: path.stat().st_ino for path in (self.cache / "parts").glob("*/*")}

    def assert_as_new(self, built: BuildResult) -> None:
        """Snapshot and site are those of a build into empty folders, and nothing is left over."""
        fresh = self.folder / "fresh"
        new = build(self.catalog, fresh / "build", fresh / "site")
        assert (built.digest, built.pages, built.tools, built.tool_versions) == (
            new.digest,
            new.pages,
            new.tools,
            new.tool_versions,
        )
        assert read_tree(self.out / "current") == read_tree(fresh / "build" / "current")
        assert read_tree(self.site) == read_tree(fresh / "site")
        assert find_leftovers(self.out, self.site) == []
        shutil.rmtree(fresh)


@pytest.fixture
def editor(tmp_path: Path) -> CatalogEditor:
    return CatalogEditor(tmp_path / "catalog", seed=0)


@pytest.fixture
def folders(editor: CatalogEditor, tmp_path: Path) -> Folders:
    return Folders(editor.root, tmp_path)


def test_catalog_has_many_batches(editor: CatalogEditor) -> None:
    """Otherwise the next tests would prove little."""
    assert (
        len(split_into_batches([str(tool.relative_to(editor.root)) for tool in editor.tools()])) > 8
    )


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.deep), pytest.param(3, marks=pytest.mark.deep)]
)
def test_any_sequence_of_edits_equals_a_clean_build(seed: int, tmp_path: Path) -> None:
    """The bytes are equal, no unchanged file is written, and problems are those of `check`.

    Checks in between equal checks without a cache.
    """
    editor = CatalogEditor(tmp_path / "catalog", seed)
    folders = Folders(editor.root, tmp_path)
    folders.build()
    for number in range(14):
        if number == 6:
            time.sleep(SETTLED)  # from here on the states of most files are relied on
        edits = [editor.edit_randomly() for _ in range(editor.random.randrange(1, 4))]
        previous, pages = snapshot_state(folders.site), read_tree(folders.site)
        if editor.random.random() < 0.4:
            assert_checked(editor, folders)
        if editor.random.random() < 0.3:
            assert_refused(editor, folders)
        built = folders.build()
        current, content = read_tree(folders.site), snapshot_state(folders.site)
        changed = {path for path in current if current[path] != pages.get(path)}
        assert changed == {
            path
            for path in current
            if content[folders.site / path] != previous.get(folders.site / path)
        }, edits
        folders.assert_as_new(built)
        assert not folders.build().changed


def assert_checked(editor: CatalogEditor, folders: Folders) -> None:
    """A check finds, twice, what one without a cache does, and changes nothing but the cache."""
    previous = snapshot_state(folders.site, folders.out / "current", folders.out / "snapshots")
    expected = checker.check_folder(editor.root)
    for _ in range(2):
        result = check(editor.root, folders.out, SEVERITIES)
        assert (*result.problems,) == expected.problems
        assert (result.files, result.rules) == (expected.file_count, expected.catalog.about.rules)
    assert (
        snapshot_state(folders.site, folders.out / "current", folders.out / "snapshots") == previous
    )


def assert_refused(editor: CatalogEditor, folders: Folders) -> None:
    """Check that a broken catalog is reported as by `check`, twice, and changes nothing."""
    mend = editor.break_something()
    previous = snapshot_state(folders.site, folders.out / "current", folders.out / "snapshots")
    expected = checker.check_folder(editor.root)
    for _ in range(2):
        with pytest.raises(InvalidCatalog) as caught:
            folders.build()
        assert (caught.value.problems, caught.value.file_count) == (
            (*only_errors(expected.problems),),
            expected.file_count,
        )
    assert (
        snapshot_state(folders.site, folders.out / "current", folders.out / "snapshots") == previous
    )
    mend()


# Only what is concerned


@pytest.fixture
def settled(folders: Folders) -> Folders:
    """A build of files whose states are relied on."""
    time.sleep(SETTLED)
    folders.build()
    return folders


def rewritten(previous: dict[Path, tuple[int, int, bytes]], site: Path) -> set[str]:
    return {
        path.relative_to(site).as_posix()
        for path, state in snapshot_state(site).items()
        if path.is_file() and previous.get(path) != state
    }


def test_only_affected_pages_and_batches_are_rebuilt(
    editor: CatalogEditor, settled: Folders
) -> None:
    """A tool: its batch, its pages, its toolkit and its lists; a title: every page; a
    session: none.
    """
    tool = editor.tools()[0]
    toolkit = tool.parent.name
    cases: list[tuple[Callable[[], object], int, set[str] | None]] = [
        (
            lambda: editor.write(min(tool.glob("*.yaml")), "name: Other\ndescription: Other.\n"),
            1,
            {f"tools/{tool.name}", f"toolkits/{toolkit}"},
        ),
        (lambda: (editor.root / "sessions/trs_new.yaml").write_text("project: p\n"), 0, set()),
        (
            lambda: (editor.root / "auth_configs/ac_new.yaml").write_text(f"toolkit: {toolkit}\n"),
            0,
            set(),
        ),
        (editor.touch, 0, set()),
        (editor.change_title, 0, None),
    ]
    for change, result, pages in cases:
        site, parts = snapshot_state(settled.site), settled.parts()
        change()
        settled.build()
        remaining = settled.parts()
        assert len(remaining.keys() - parts.keys()) == result
        assert all(remaining[path] == parts[path] for path in remaining.keys() & parts.keys())
        results = {path for path in rewritten(site, settled.site) if path.endswith(".html")}
        all_values = {path for path in read_tree(settled.site) if path.endswith(".html")}
        assert results == all_values if pages is None else single_subject(results) == pages


def test_check_counts_terms_of_many_tools_only(editor: CatalogEditor, folders: Folders) -> None:
    """After a change of few tools, it leaves to the build what only search needs."""
    check(editor.root, folders.out, SEVERITIES)
    first = {path.stem for path in folders.parts() if path.suffix == ".compiled"}
    assert all(build_cache.load_batch(folders.cache, key) for key in first)
    batches_before = (folders.cache / "batches").read_bytes()
    assert all(key.encode() in batches_before for key in first)  # so a build need not look for them
    tool = editor.tools()[0]
    editor.write(min(tool.glob("*.yaml")), "name: Other\ndescription: Other.\n")
    check(editor.root, folders.out, SEVERITIES)
    (key,) = {path.stem for path in folders.parts() if path.suffix == ".compiled"} - first
    assert build_cache.load_batch(folders.cache, key, ("facts", "newest", "advice"))
    assert build_cache.load_batch(folders.cache, key) is None
    folders.assert_as_new(folders.build())
    assert build_cache.load_batch(folders.cache, key)


def single_subject(paths: set[str]) -> set[str]:
    """Return the folders that belong to one tool or toolkit."""
    return {
        path.rpartition("/")[0] for path in paths if re.fullmatch("(tools|toolkits)/[^/]+/.+", path)
    }


def test_toolkit_change_rebuilds_the_batches_of_its_tools(
    editor: CatalogEditor, settled: Folders
) -> None:
    result = split_into_batches(
        [
            str(tool.relative_to(editor.root))
            for tool in sorted(editor.root.glob("toolkits/*/*/"))
            if tool.is_dir()
        ]
    )
    concerned = [
        batch for batch in result if any(folder.startswith("toolkits/alpha/") for folder in batch)
    ]
    parts = settled.parts()
    (editor.root / "toolkits/alpha/toolkit.yaml").write_text(
        "name: Omega\nlogo: https://example.com/omega.svg\n"
    )
    settled.build()
    assert 0 < len(concerned) < len(result)
    assert len(settled.parts().keys() - parts.keys()) == len(concerned)
    assert len(settled.parts()) == len(result)
    assert b"Omega" in (settled.site / "tools/ALPHA_READ/index.html").read_bytes()


def test_changed_or_removed_page_is_restored(editor: CatalogEditor, settled: Folders) -> None:
    """Also if a folder was replaced."""
    tool = editor.tools()[0].name
    good = read_tree(settled.site)
    changed, used = settled.site / f"tools/{tool}/index.html", settled.site / "index.html"
    changed.write_bytes(changed.read_bytes().replace(b"<main>", b"<MAIN>"))
    used.unlink()
    assert not settled.build().changed
    assert read_tree(settled.site) == good
    shutil.rmtree(settled.site)
    settled.build()
    assert read_tree(settled.site) == good


def test_quickly_rewritten_file_is_read_again(editor: CatalogEditor, folders: Folders) -> None:
    """With the same size and mtime."""
    file = editor.files()[0]
    folders.build()
    for number in range(10):
        previous = file.stat()
        text = file.read_text()
        file.write_text(f"{text[:6]}{number}{text[7:]}")
        os.utime(file, ns=(previous.st_atime_ns, previous.st_mtime_ns))
        folders.assert_as_new(folders.build())


# The cache is never trusted


def corrupt(cache: Path, draw: random.Random) -> str:
    """Damage the cache in one way: which."""
    # one emptied before stays so
    files = sorted(path for path in cache.rglob("*") if path.is_file() and path.stat().st_size)
    file, other = draw.choice(files), draw.choice(files)
    way = draw.choice(
        [
            "flip",
            "flip",
            "cut",
            "lengthen",
            "empty",
            "swap",
            "copy",
            "foreign",
            "remove",
            "nothing",
            "folders",
            "everything",
        ]
    )
    if way == "flip":
        for items in files[:: draw.randrange(1, 4)]:
            data = bytearray(items.read_bytes())
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            items.write_bytes(data)
    elif way in ("cut", "lengthen", "empty"):
        document = file.read_bytes()
        file.write_bytes(
            {
                "cut": document[: draw.randrange(len(document))],
                "lengthen": document + b"\0",
                "empty": b"",
            }[way]
        )
    elif way == "swap":
        item, two = file.read_bytes(), other.read_bytes()
        file.write_bytes(two)
        other.write_bytes(item)
    elif way == "copy":
        file.write_bytes(other.read_bytes())
    elif way == "foreign":
        (cache / "parts" / "zz").mkdir(parents=True, exist_ok=True)
        for path in (
            cache / "notes.txt",
            cache / "parts/zz/notes.compiled",
            cache / "parts/zz/.x.0123abcd.part",
            cache / "site-0",
        ):
            path.write_bytes(draw.randbytes(50))
    elif way == "remove":
        file.unlink()
    elif way == "folders":
        shutil.rmtree(cache / "parts")
    elif way == "everything":
        shutil.rmtree(cache)
    return way


@pytest.mark.parametrize(
    "seed", [3, pytest.param(4, marks=pytest.mark.deep), pytest.param(5, marks=pytest.mark.deep)]
)
def test_damaged_cache_only_costs_time(seed: int, tmp_path: Path) -> None:
    """Flipped bits, cut, swapped, removed or added files, with or without an edit."""
    editor = CatalogEditor(tmp_path / "catalog", seed)
    folders = Folders(editor.root, tmp_path)
    folders.build()
    time.sleep(SETTLED)
    folders.build()
    for _ in range(14):
        corrupt(folders.cache, editor.random)
        edited = editor.random.random() < 0.5 and editor.edit_randomly()
        built = folders.build()
        assert edited or not built.changed
        folders.assert_as_new(built)


def test_temporary_files_are_removed_without_changes(
    settled: Folders,
) -> None:
    """Of a killed build, for a change that was reverted."""
    folder = next((settled.cache / "parts").iterdir())
    (folder / ".x.compiled.0123abcd.part").write_bytes(b"half")
    assert not settled.build().changed
    assert find_leftovers(settled.out, settled.site) == []


def test_older_or_foreign_cache_is_safe(
    editor: CatalogEditor, folders: Folders, tmp_path: Path
) -> None:
    """One that a CI system restored, or of another catalog."""
    other = Folders(generate_catalog(tmp_path / "other catalog", 30), tmp_path / "other")
    other.build()
    folders.build()
    remaining = Path(shutil.copytree(folders.cache, tmp_path / "kept"))
    for cache in (remaining, other.cache, remaining):
        editor.edit_randomly()
        editor.edit_randomly()
        folders.build()
        shutil.rmtree(folders.cache)
        shutil.copytree(cache, folders.cache)
        folders.assert_as_new(folders.build())


def test_alternating_catalogs_do_not_mix(
    editor: CatalogEditor, folders: Folders, tmp_path: Path
) -> None:
    """Two catalogs with the same names, built into one folder in turn."""
    other = Path(shutil.copytree(editor.root, tmp_path / "other", symlinks=True))
    for file in sorted(other.glob("toolkits/eins/*/*.yaml")):
        file.write_text(file.read_text().replace("description: Do", "description: No"))
    first = folders.build()
    second = build(other, folders.out, folders.site)
    assert first.digest != second.digest
    time.sleep(SETTLED)
    for catalog in (editor.root, other, editor.root):
        turn = Folders(catalog, tmp_path)
        turn.assert_as_new(turn.build())


def test_skipped_site_is_updated_later(editor: CatalogEditor, folders: Folders) -> None:
    """Or one that was changed meanwhile."""
    folders.build()
    for _ in range(3):
        editor.change_file()
        build(folders.catalog, folders.out, None)
        build(folders.catalog, folders.out, folders.folder / "another")
        assert not build(folders.catalog, folders.out, None).changed
        folders.assert_as_new(folders.build())
        assert read_tree(folders.folder / "another") == read_tree(folders.site)


def test_moved_folders_stay_valid(folders: Folders, tmp_path: Path) -> None:
    """Of the catalog, its build and its site: no tool is compiled again."""
    folders.build()
    digest, parts = folders.build().digest, sorted(path.name for path in folders.parts())
    (tmp_path / "moved").mkdir()
    for folder in (folders.catalog, folders.out, folders.site):
        folder.rename(tmp_path / "moved" / folder.name)
    moved = Folders(tmp_path / "moved" / folders.catalog.name, tmp_path / "moved")
    remaining = moved.parts()
    built = moved.build()
    assert (built.digest, built.changed) == (digest, False)
    assert sorted(path.name for path in moved.parts()) == parts
    assert moved.parts() == remaining
    moved.assert_as_new(built)


def test_other_program_version_rebuilds_everything(
    editor: CatalogEditor, folders: Folders, tmp_path: Path
) -> None:
    """After a change of one byte."""
    package = Path(
        shutil.copytree(
            ROOT / "src" / "toolcatalog",
            tmp_path / "program" / "toolcatalog",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    )
    arguments = ("build", "--catalog", editor.root, "--out", folders.out, "--site", folders.site)
    env = {"PYTHONPATH": str(package.parent)}
    run_successfully(*arguments, env=env)
    parts = folders.parts()
    template = package / "site" / "templates" / "base.html"
    template.write_text(template.read_text().replace("</main>", "<p>New.</p></main>"))
    run_successfully(*arguments, env=env)
    assert len(parts) == len(folders.parts()) > 8
    assert not parts.keys() & folders.parts().keys()
    assert all(
        "<p>New.</p>" in page.read_text() for page in folders.site.glob("tools/*/index.html")
    )


# Files that change meanwhile


@pytest.mark.parametrize(
    "stage", ["Detecting changes", "Reading tools", "Writing the snapshot", "Rendering pages"]
)
def test_edits_during_a_build(stage: str, tmp_path: Path) -> None:
    """It reports them, or succeeds; the next build has them all."""
    editor = CatalogEditor(tmp_path / "catalog", 4)
    folders = Folders(editor.root, tmp_path)
    folders.build()
    for index in range(4):
        editor.change_title()
        editor.change_file()
        meanwhile = edit_at(stage, index, editor, folders.cache / "parts")
        try:
            build(folders.catalog, folders.out, folders.site, meanwhile)
        except (UsageError, InvalidCatalog) as stop:
            output = str(stop)
        else:
            output = ""
        assert (
            output == ""
            or "changed while they were read: build again." in output
            or "in the catalog" in output
        )
        folders.assert_as_new(folders.build())


def edit_at(stage: str, at: int, editor: CatalogEditor, parts: Path) -> Progress:
    """Edit where a stage of a build begins, or where so much of it is done; then the cache goes
    too.
    """

    @contextmanager
    def track(label: str, _: int) -> Iterator[Advance]:
        result = 0

        def advance(_: int) -> None:
            nonlocal result
            result += 1
            if label == stage and result == at:
                editor.edit_randomly()
                shutil.rmtree(parts, ignore_errors=True)

        if label == stage and at == 0:
            editor.edit_randomly()
        yield advance

    return track


def test_several_processes(tmp_path: Path) -> None:
    """Also when workers compile and render."""
    root = generate_catalog(tmp_path / "catalog", 650)
    folders = Folders(root, tmp_path)
    digests = []
    arguments = ("--catalog", root, "--out", folders.out, "--site", folders.site, "--jobs", 2)
    for number in range(3):
        digests.append(run_successfully("build", *arguments).strip())
        for tool in sorted((root / "toolkits/kit1").glob("KIT1_*"))[number::60]:
            shutil.rmtree(tool)
        (root / "toolkits/kit2/toolkit.yaml").write_text(
            f"name: Kit {number}\nlogo: https://example.com/logo.svg\n"
        )
        shutil.rmtree(
            folders.cache
            / "parts"
            / sorted(path.name for path in (folders.cache / "parts").iterdir())[number]
        )
    digests.append(run_successfully("build", *arguments).strip())
    assert len({*digests}) == 4
    folders.assert_as_new(build(root, folders.out, folders.site))
    assert (folders.out / "current").readlink().name == digests[-1]
