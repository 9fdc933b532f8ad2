"""Batches: how tools are grouped, and what a folder of tools contains now."""

import hashlib
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.profile import example_settings
from toolcatalog.build import batches
from toolcatalog.build.batches import FolderRow, split_into_batches

FOLDERS = [f"toolkits/kit{number % 7}/KIT{number % 7}_TOOL_{number}" for number in range(3000)]
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8)


def test_batch_is_a_run_of_slugs() -> None:
    """All tools in order, each once, in batches of about 64."""
    result = split_into_batches(FOLDERS)
    assert [folder for batch in result for folder in batch] == sorted(
        FOLDERS, key=lambda folder: folder.rpartition("/")[2]
    )
    assert all(result)
    assert 30 < len(FOLDERS) / len(result) < 130
    assert split_into_batches([]) == []
    assert split_into_batches(FOLDERS[:1]) == [(FOLDERS[0],)]


@example_settings(33)
@given(st.lists(st.tuples(NAMES, NAMES), max_size=30, unique=True), st.randoms())
def test_input_order_does_not_matter(names: list[tuple[str, str]], draw: random.Random) -> None:
    folders = [f"toolkits/{toolkit}/{slug}" for toolkit, slug in names]
    shuffled = draw.sample(folders, len(folders))
    assert split_into_batches(shuffled) == split_into_batches(folders)
    assert sorted(folder for batch in split_into_batches(folders) for folder in batch) == sorted(
        folders
    )


def test_batch_size_is_limited() -> None:
    """So that a changed tool compiles not much more than the average."""
    sizes = [*map(len, split_into_batches(FOLDERS))]
    assert sum(size * size for size in sizes) / sum(sizes) < 1.5 * sum(sizes) / len(sizes)


@pytest.mark.parametrize("number", [*range(0, 3000, 97)])
def test_boundaries_move_only_locally(number: int) -> None:
    """A removed tool changes its batch and rarely a few neighbors."""
    whole = {*split_into_batches(FOLDERS)}
    fewer = {*split_into_batches([*FOLDERS[:number], *FOLDERS[number + 1 :]])}
    assert len(whole - fewer) <= 3
    assert len(fewer - whole) <= 3


def test_removing_the_first_tool_of_a_batch() -> None:
    """The batch before takes some of its tools; distant batches stay."""
    result = split_into_batches(FOLDERS)
    for place in range(1, 20):
        first = result[place][0]
        others = split_into_batches([folder for folder in FOLDERS if folder != first])
        assert result[: place - 1] == others[: place - 1]
        assert len({*result} - {*others}) <= 6
        assert others[place - 1][: len(result[place - 1])] == result[place - 1]


SETTLED = 2.1  # seconds after which the state of a file is relied on
Change = Callable[[Path], object]


def written(folder: Path) -> None:
    (folder / "one.yaml").write_text("another")


def same_size(folder: Path) -> None:
    (folder / "one.yaml").write_text("ONE")


def same_size_and_time(folder: Path) -> None:
    file, before = folder / "one.yaml", (folder / "one.yaml").stat()
    file.write_text("ONE")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(folder: Path) -> None:
    other, before = folder.with_name("other"), (folder / "one.yaml").stat()
    other.write_text("ONE")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(folder / "one.yaml")


def touched(folder: Path) -> None:
    os.utime(folder / "one.yaml")


def deleted(folder: Path) -> None:
    (folder / "one.yaml").unlink()


def with_tool(folder: Path) -> None:
    (folder / "new.yaml").write_text("new")


def renamed(folder: Path) -> None:
    (folder / "one.yaml").rename(folder / "uno.yaml")


def exchanged(folder: Path) -> None:
    (folder / "one.yaml").rename(folder / "aside")
    (folder / "two.yaml").rename(folder / "one.yaml")
    (folder / "aside").rename(folder / "two.yaml")


def linked(folder: Path) -> None:
    (folder / "one.yaml").unlink()
    (folder / "one.yaml").symlink_to("two.yaml")


def deeper(folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "below" / "three.yaml").write_text("three")


def emptied(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def record_states(folder: Path) -> None:
    (folder / "README.md").write_text("No data.")


def recreate(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "one.yaml").write_text("one")


def removed(folder: Path) -> None:
    shutil.rmtree(folder)


CHANGES: list[Change] = [
    written,
    same_size,
    same_size_and_time,
    replaced,
    touched,
    deleted,
    with_tool,
    renamed,
    exchanged,
    linked,
    deeper,
    emptied,
    record_states,
    recreate,
    removed,
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog with a folder for each change, old enough to be relied on."""
    root = tmp_path_factory.mktemp("inventory")
    for name in ["still", "links", "hollow", *(change.__name__ for change in CHANGES)]:
        (root / "toolkits/kit" / name).mkdir(parents=True)
        for number in ("one", "two"):
            (root / "toolkits/kit" / name / f"{number}.yaml").write_text(number)
    (root / "toolkits/kit/hollow/below").mkdir()
    (root / "toolkits/kit/links/link.yaml").symlink_to("one.yaml")
    time.sleep(SETTLED)
    return root


def list_folder(root: Path, folder: str, rows: list[FolderRow]) -> list[FolderRow]:
    """List a folder twice and return the recorded state."""
    result = batches.scan_folders(root, [folder], rows)
    truth = {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (root / folder).rglob("*.yaml")
    }
    assert dict(result.files) == truth
    assert bool(result.rows) == bool(truth)
    return [*result.rows]


def marked(rows: list[FolderRow]) -> list[FolderRow]:
    """The same rows with digests that no file has, which show what was not read."""
    return [
        (folder, mark, [(path, of, "as noted") for path, of, _ in files])
        for folder, mark, files in rows
    ]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_of_a_folder_is_found(change: Change, root: Path) -> None:
    """In the next listing and the one after."""
    folder = f"toolkits/kit/{change.__name__}"
    rows = list_folder(root, folder, [])
    assert batches.are_files_unchanged(root, [folder], rows)
    change(root / folder)
    assert not batches.are_files_unchanged(root, [folder], rows)
    if (root / folder).exists():
        list_folder(root, folder, list_folder(root, folder, rows))
    else:
        assert batches.scan_folders(root, [folder], rows).problems

    """Folders deeper than tool files are listed in each build, also where there were none."""
    folder = "toolkits/kit/hollow"
    rows = list_folder(root, folder, [])
    (root / folder / "below" / "three.yaml").write_text("three")
    assert not batches.are_files_unchanged(root, [folder], rows)
    list_folder(root, folder, rows)


def test_unchanged_files_are_not_read(root: Path) -> None:
    """If the state of the folder and its files is as recorded; symlinks are always read."""
    for name, relied_on in (("still", True), ("links", False)):
        folder = f"toolkits/kit/{name}"
        rows = marked(list_folder(root, folder, []))
        assert batches.are_files_unchanged(root, [folder], rows) is relied_on
        read = {
            path.rpartition("/")[2]: digest != "as noted"
            for path, digest in batches.scan_folders(root, [folder], rows).files
        }
        assert read == {"one.yaml": False, "two.yaml": False} | (
            {} if relied_on else {"link.yaml": True}
        )


def test_record_of_other_folders_is_not_used(root: Path) -> None:
    """One folder more or less, or another order."""
    still, links = "toolkits/kit/still", "toolkits/kit/links"
    rows = list_folder(root, still, [])
    assert not batches.are_files_unchanged(root, [], rows)
    assert not batches.are_files_unchanged(root, [still, still], rows)
    assert not batches.are_files_unchanged(root, [links], rows)
    assert not batches.are_files_unchanged(root, [still], [])


def test_recent_file_is_read_every_time(tmp_path: Path) -> None:
    """It may change again without a sign."""
    folder = tmp_path / "toolkits/kit/FRESH"
    folder.mkdir(parents=True)
    rows: list[FolderRow] = []
    for text in ("abc", "abd", "abe"):
        (folder / "one.yaml").write_text(text)
        rows = list_folder(tmp_path, "toolkits/kit/FRESH", rows)
        assert not batches.are_files_unchanged(tmp_path, ["toolkits/kit/FRESH"], rows)


def test_listing_without_digests(root: Path) -> None:
    """Has no digest for files that others read, and is equal otherwise."""
    folder = "toolkits/kit/still"
    (row,) = batches.list_batch_files(root, [folder]).rows
    (other,) = batches.scan_folders(root, [folder], []).rows
    assert (row[0], row[1], [(path, mark) for path, mark, _ in row[2]]) == (
        other[0],
        other[1],
        [(path, mark) for path, mark, _ in other[2]],
    )
    assert [digest for _, _, digest in row[2]] == ["", ""]
