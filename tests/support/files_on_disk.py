"""Files of a build on disk: content, state, and unexpected leftovers."""

from pathlib import Path


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every file by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def snapshot_state(*folders: Path) -> dict[Path, tuple[int, int, bytes]]:
    """Every file, folder and link: when and as what it was made, and what it holds."""
    results = {}
    for path in (path for folder in folders for path in [folder, *folder.rglob("*")]):
        holds = (
            bytes(path.readlink())
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else b""
        )
        results[path] = (path.lstat().st_mtime_ns, path.lstat().st_ino, holds)
    return results


def find_leftovers(*folders: Path) -> list[Path]:
    """What was half written and never taken away."""
    return [path for folder in folders for path in folder.rglob("*.part")]
