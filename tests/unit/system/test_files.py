"""Tests of `system.files`: atomic writes, cleanup and locks."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from toolcatalog.system import files

WRITERS = [
    files.write_synced,
    files.write_if_changed,
    lambda path, data: files.write_pieces(path, [data]),
    lambda path, data: files.replace_symlink(path, data.decode()),
]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_write_replaces_atomically(tmp_path: Path) -> None:
    """Open readers keep the old bytes, and no other file remains."""
    path = tmp_path / "file"
    files.write_synced(path, b"old")
    with path.open("rb") as old:
        files.write_synced(path, b"new")
        assert old.read() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_write_sets_the_mode_first(tmp_path: Path) -> None:
    """A private file is never readable by others, even if the old one was."""
    path = tmp_path / "keys"
    path.write_bytes(b"")
    path.chmod(0o644)
    files.write_synced(path, b"secret", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("write", WRITERS, ids=["write", "write_changed", "fill", "point"])
def test_failed_write_leaves_no_file(
    write: Callable[[Path, bytes], object], tmp_path: Path
) -> None:
    (tmp_path / "place/inside").mkdir(parents=True)
    with pytest.raises(OSError, match="place"):
        write(tmp_path / "place", b"data")
    assert names(tmp_path) == ["place"]
    assert names(tmp_path / "place") == ["inside"]


@pytest.mark.parametrize("filled", [files.write_pieces, files.write_sealed, files.write_new])
def test_error_names_the_failing_file(
    filled: Callable[[Path, Iterable[bytes]], object], tmp_path: Path
) -> None:
    """Pieces of a file may come from another one that cannot be read."""
    with pytest.raises(FileNotFoundError) as refused:
        filled(tmp_path / "file", ((tmp_path / name).read_bytes() for name in ["elsewhere"]))
    assert refused.value.filename == str(tmp_path / "elsewhere")


@pytest.mark.parametrize("write", WRITERS[:3], ids=["write", "write_changed", "fill"])
def test_readers_never_see_partial_content(
    write: Callable[[Path, bytes], object], tmp_path: Path
) -> None:
    """While a thread writes two long contents in turn."""
    path, contents = tmp_path / "file", [b"a" * 300_000, b"b" * 200_000]
    write(path, contents[0])
    result = threading.Event()

    def alternate() -> None:
        for number in range(150):
            write(path, contents[number % 2])
        result.set()

    writer = threading.Thread(target=alternate)
    writer.start()
    seen = set()
    while not result.is_set():
        seen.add(path.read_bytes())
    writer.join()
    assert seen <= {*contents}


def test_write_changed_keeps_equal_files(tmp_path: Path) -> None:
    """It creates folders, and returns whether it wrote."""
    path = tmp_path / "a/b/file"
    assert files.write_if_changed(path, b"x")
    before = path.stat()
    assert not files.write_if_changed(path, b"x")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert files.write_if_changed(path, b"y")
    assert path.read_bytes() == b"y"


def test_symlink_is_moved_atomically(tmp_path: Path) -> None:
    """Moved a thousand times between two folders, it always exists."""
    link = tmp_path / "current"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    files.replace_symlink(link, "one")
    result = threading.Event()

    def alternate() -> None:
        for number in range(1000):
            files.replace_symlink(link, ("one", "two")[number % 2])
        result.set()

    mover = threading.Thread(target=alternate)
    mover.start()
    seen = set()
    while not result.is_set():
        seen.add(link.resolve(strict=True).name)
    mover.join()
    assert seen <= {"one", "two"}
    assert names(tmp_path) == ["current", "one", "two"]


def test_clean_removes_only_temporary_names(tmp_path: Path) -> None:
    """Of any kind; similar names and subfolders stay."""
    ours = [".keys.json.0123abcd.part", ".current.ffffffff.part", ".a b.part.00000000.part"]
    theirs = [
        "keys.json.0123abcd.part",
        ".x.part",
        ".x.0123ABCD.part",
        ".x.0123abc.part",
        ".x.0123abcd.part.gz",
        "below",
    ]
    for name in (*ours[:1], *ours[2:], *theirs[:-1]):
        (tmp_path / name).write_text("")
    (tmp_path / ours[1]).symlink_to("nowhere")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / ours[0]).write_text("")
    files.remove_temporary_files(tmp_path)
    assert names(tmp_path) == sorted(theirs)
    assert names(tmp_path / "below") == [ours[0]]
    files.remove_temporary_files(tmp_path / "nowhere")


WRITE = """
import sys
from pathlib import Path
from toolcatalog.system import files
while True:
    files.write_if_changed(Path(sys.argv[1]), b"x" * 20_000_000)
    files.write_if_changed(Path(sys.argv[1]), b"y" * 20_000_000)
"""


def test_clean_removes_files_of_a_killed_writer(tmp_path: Path) -> None:
    """At most one file next to the complete one."""
    for _ in range(20):
        with subprocess.Popen([sys.executable, "-c", WRITE, tmp_path / "file"]) as writer:
            while not any(name.endswith(".part") for name in names(tmp_path)):
                assert writer.poll() is None
            writer.kill()
        if (tmp_path / "file").exists():
            assert (tmp_path / "file").read_bytes() in (b"x" * 20_000_000, b"y" * 20_000_000)
        left = [name for name in names(tmp_path) if name != "file"]
        files.remove_temporary_files(tmp_path)
        assert [name for name in names(tmp_path) if name != "file"] == []
        if left:
            assert len(left) == 1
            return
    raise AssertionError("no kill hit a write")


def test_remove_files_symlinks_and_folders(tmp_path: Path) -> None:
    """But not the target of a symlink; missing paths are no error."""
    (tmp_path / "folder/below").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "file").write_text("")
    for name in ("folder", "link", "file", "nothing"):
        files.remove(tmp_path / name)
    assert names(tmp_path) == ["kept"]


HOLD = """
import sys
from pathlib import Path
from toolcatalog.system import files
with files.lock(Path(sys.argv[1])):
    print(1, flush=True)
    sys.stdin.read()
"""


def test_lock_belongs_to_one_process(tmp_path: Path) -> None:
    """Another process is refused at once or after a timeout; a killed process releases it."""
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"1\n"
        with files.lock(lock) as got_it:
            assert not got_it
        start = time.monotonic()
        with files.lock(lock, timeout=0.2) as got_it:
            assert not got_it
        assert time.monotonic() - start >= 0.2
        holder.kill()
    with files.lock(lock) as got_it:
        assert got_it
    assert os.access(lock, os.R_OK)


@pytest.mark.parametrize("mode", [None, 0o644, 0o666])
def test_lock_files_are_only_for_their_owner(mode: int | None, tmp_path: Path) -> None:
    """Another account that may read the file could lock it; an older file is narrowed."""
    lock = tmp_path / "lock"
    if mode:
        lock.touch()
        lock.chmod(mode)
    previous = os.umask(0)
    try:
        with files.lock(lock) as is_locked:
            assert is_locked
            assert lock.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(previous)
