"""Writing to disk so that a reader never sees half of it. The only room that writes files of the project's own."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - there are no advisory locks to take on this system
    fcntl = None  # type: ignore[assignment]


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put the bytes at `path` in one step: under another name beside it, flushed to disk, then renamed."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_changed(path: Path, data: bytes) -> bool:
    """Put the bytes at `path` unless they are there already; tell whether anything was written."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, data)
    return True


def point(link: Path, target: str) -> None:
    """Make the symbolic link name `target`, in one step also where it named something else before."""
    beside = link.with_name(f".{link.name}.{secrets.token_hex(4)}.part")
    beside.symlink_to(target)
    try:
        beside.replace(link)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Hold the lock file at `path`: yields False, without waiting, where another process holds it. Ends with the process."""
    with open(path, "a") as file:
        try:
            if fcntl:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
