"""Tests of `system.file_state`: different states differ, or are unknown."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcatalog.system import file_state

LATER = 10_000_000_000  # nanoseconds after which a change is no longer fresh


def soon() -> int:
    """A moment at which files made just now are no longer fresh."""
    return time.time_ns() + LATER


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    file.write_text("some")
    return file


def test_recently_changed_file_has_no_state(file: Path) -> None:
    """It may change again within the same clock tick; nor has one from the future."""
    assert file_state.compute_signature(str(file), time.time_ns()) == 0
    assert file_state.compute_signature(str(file), soon()) != 0
    os.utime(file, ns=(0, time.time_ns() + 2 * LATER))
    assert file_state.compute_signature(str(file), soon()) == 0


def test_old_mtime_does_not_make_a_file_old(file: Path) -> None:
    """The ctime counts."""
    os.utime(file, (0, 0))
    assert file_state.compute_signature(str(file), time.time_ns()) == 0


def test_symlinks_and_missing_files_have_no_state(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    assert file_state.compute_signature(str(link), soon()) == 0
    assert file_state.compute_signature(str(file.with_name("none")), soon()) == 0
    assert file_state.compute_signature(str(file / "below"), soon()) == 0


def touched(file: Path) -> None:
    os.utime(file)


def written(file: Path) -> None:
    file.write_text("some")


def written_with_its_old_times(file: Path) -> None:
    before = file.stat()
    file.write_text("more")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(file: Path) -> None:
    before, other = file.stat(), file.with_name("other")
    other.write_text("more")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


def longer(file: Path) -> None:
    file.write_text("some more")


def closed(file: Path) -> None:
    file.chmod(0o600)


@pytest.mark.parametrize(
    "change", [touched, written, written_with_its_old_times, replaced, longer, closed]
)
def test_every_change_changes_the_state(change: Callable[[Path], None], file: Path) -> None:
    before = file_state.compute_signature(str(file), soon())
    time.sleep(0.02)  # a tick of the clock by which the system tells times of change
    assert file_state.compute_signature(str(file), soon()) == before
    change(file)
    assert file_state.compute_signature(str(file), soon()) != before


def test_folder_state_depends_on_its_entries(tmp_path: Path) -> None:
    """Added, renamed or removed ones, not their content."""
    (tmp_path / "a").write_text("")
    seen = [file_state.compute_signature(str(tmp_path), soon())]
    for change in (
        lambda: (tmp_path / "b").write_text(""),
        lambda: (tmp_path / "b").rename(tmp_path / "c"),
        (tmp_path / "c").unlink,
        (tmp_path / "d").mkdir,
    ):
        time.sleep(0.02)
        change()
        seen.append(file_state.compute_signature(str(tmp_path), soon()))
    assert len({*seen}) == 5
    (tmp_path / "a").write_text("more")
    assert file_state.compute_signature(str(tmp_path), soon()) == seen[-1]


def test_state_is_the_same_in_every_process(file: Path) -> None:
    status = file.stat()
    expected = hash((status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
    assert file_state.settled_signature(str(file)) == expected


def test_recorded_build_files(tmp_path: Path) -> None:
    """Unchanged files match; changed or missing ones do not.

    Recent files count, because the build wrote them.
    """
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    state = {name: file_state.settled_signature(f"{tmp_path}/{name}") for name in ("a", "b")}
    stamp = file_state.digest_signatures(tmp_path, ["a", "b"])
    assert file_state.are_unchanged(tmp_path, state)
    assert file_state.are_unchanged(tmp_path, {})
    assert not file_state.are_unchanged(tmp_path, {**state, "c": 0})
    time.sleep(0.02)
    (tmp_path / "b").write_text("B")
    assert not file_state.are_unchanged(tmp_path, state)
    assert file_state.digest_signatures(tmp_path, ["a", "b"]) != stamp
    (tmp_path / "b").unlink()
    assert not file_state.are_unchanged(tmp_path, state)


def test_recorded_state_is_valid_until_a_change(file: Path) -> None:
    noted = file_state.compute_signature(str(file), soon())
    assert file_state.has_signature(str(file), noted)
    assert not file_state.has_signature(str(file), 0)
    time.sleep(0.02)
    file.write_text(file.read_text())
    assert not file_state.has_signature(str(file), noted)
    file.unlink()
    assert not file_state.has_signature(str(file), noted)
