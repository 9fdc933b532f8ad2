"""Files of a build on disk: content, state, and unexpected leftovers."""

from pathlib import Path

from toolcatalog.snapshot.format import COMPRESSED_DOCUMENTS
from toolcatalog.system.seals import SEAL_SIZE


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every file by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def without_seals(snapshot_files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of snapshots by path, without the user's seal at the end of some."""
    return {
        path: data[:-SEAL_SIZE] if path.endswith(COMPRESSED_DOCUMENTS) else data
        for path, data in snapshot_files.items()
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
