"""Atomic file writes, file locks and checked reads; the only module that writes the project's
files.

The only room that writes files of the
project's own.
"""

import contextlib
import errno
import hashlib
import hmac
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from toolcatalog.errors import UsageError
from toolcatalog.system import seals

try:
    import fcntl
except ImportError:  # pragma: no cover - there are no advisory locks to take on this system
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_POLL_INTERVAL = 0.02  # seconds between two looks at a lock
SEAL_LINE_SIZE = 2 * seals.SEAL_SIZE + 1  # bytes of the line with a seal
_TEMPORARY_NAME = re.compile(r"\.(.+)\.[0-9a-f]{8}\.part")


def require_no_links(path: Path, top: Path) -> None:
    """Raise UsageError where `path`, or a folder between it and `top`, is a symbolic link: what is
    written there would come to lie elsewhere. `top` itself is what the caller named.
    """
    for place in (path, *path.parents):
        if place == top:
            return
        if place.is_symlink():
            raise UsageError(
                f"{place} is a symbolic link, and nothing is written through one: remove the link, "
                "or put the file or folder itself there."
            )


def _temporary_path(path: Path) -> str:
    """The name under which something is made before it takes its place."""
    folder, name = os.path.split(path)
    return f"{folder or '.'}/.{name}.{os.urandom(4).hex()}.part"


def remove_temporary_files(folder: Path, name: str = "") -> None:
    """Remove what a process that was killed while writing has left in the folder under the name
    that `_beside` gives.

    `name`: only what was to become the file of this name.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for other in os.listdir(folder):
            found = _TEMPORARY_NAME.fullmatch(other)
            if found and name in ("", found[1]):
                (folder / other).unlink(missing_ok=True)


@contextlib.contextmanager
def _name_in_errors(path: Path | str, temporary: str = "") -> Iterator[None]:
    """Let what the disk refuses name the file that was to be written: a write names none, and what
    is beside nobody knows.

    What was refused of another file, while there was something to write, names that one.
    """
    try:
        yield
    except OSError as error:
        if not isinstance(error.filename, str) or temporary in (error.filename, error.filename2):
            error.filename = str(path)
        raise


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that it holds; nothing happens where there is
    none.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def move(path: Path, target: Path) -> None:
    """Put a file where there is none yet; a cache may lie on another disk."""
    with _name_in_errors(target):
        shutil.move(path, target)


def move_file(path: str, target: str) -> None:
    """Move a file to another place on the same disk in one step, also where its folder is not there
    yet.
    """
    with _name_in_errors(target, path):
        try:
            os.replace(path, target)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(path, target)


def write_synced(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put the bytes at `path` in one step: under another name beside it, flushed to disk, then
    renamed.

    A file that is there keeps its owner where we may give it: what root rewrites must stay readable
    to the account that reads it.
    """

    with _open_replacement(path, mode) as file:
        file.write(data)
        file.flush()
        with contextlib.suppress(FileNotFoundError, PermissionError):
            before = path.stat()
            os.chown(file.fileno(), before.st_uid, before.st_gid)
        os.fsync(file.fileno())


@contextlib.contextmanager
def _open_replacement(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when all is written, and is gone where that fails."""
    beside = _temporary_path(path)
    with _name_in_errors(path, beside):
        try:
            with open(
                os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb"
            ) as file:
                yield file
            os.replace(beside, path)
        except BaseException:
            _discard(beside)
            raise


def _write_atomic(path: Path, data: bytes) -> None:
    with _open_replacement(path) as file:
        file.write(data)


def _discard(temporary: str) -> None:
    with contextlib.suppress(OSError):  # what went wrong before is what there is to tell
        os.unlink(temporary)


def write_if_changed(path: Path, data: bytes) -> bool:
    """Put the bytes at `path` in one step unless they are there already; tell whether anything was
    written.

    For what can be made again: not flushed to disk, which would cost a thousand pages seconds.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            if file.read(len(data) + 1) == data:
                return False
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError:
        pass  # there is something, if only a folder: putting ours there says what is wrong
    _write_atomic(path, data)
    return True


def write_unsynced(path: Path, data: bytes) -> None:
    """Put the bytes at `path` in one step, also where its folder is not there yet. For what can be
    made again: not flushed to disk.
    """
    try:
        _write_atomic(path, data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_atomic(path, data)


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Put bytes at `path` in one step, piece by piece, for they may be many. For what can be made
    again: not flushed to disk.
    """
    with _open_replacement(path) as file:
        file.writelines(pieces)


def write_new(path: Path, pieces: Iterable[bytes | memoryview]) -> tuple[int, str]:
    """Write a new file piece by piece: its size in bytes and its SHA-256."""
    size, seen = 0, hashlib.sha256()
    with _name_in_errors(path), path.open("xb") as file:
        for piece in pieces:
            file.write(piece)
            seen.update(piece)
            size += len(piece)
    return size, seen.hexdigest()


def read_plain_file(path: Path) -> bytes:
    """The bytes of a plain file. Raises OSError, also for a pipe or a device: reading one of those
    may never end.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a folder says so by itself
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    return path.read_bytes()


def open_regular(path: Path | str) -> BufferedReader:
    """Open a regular file for reading.

    Raises OSError for everything else, also for a symbolic link: a checkout may contain one that
    leads to a device, and reading that never ends.
    """
    return open(_open_regular(path), "rb")


def _open_regular(path: Path | str) -> int:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | _NO_LINK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return handle


def has_content(path: str, data: bytes) -> bool:
    """Tell whether there is a file, and no link, with these very bytes."""
    try:
        with open(_open_regular(path), "rb", buffering=0) as file:
            return os.fstat(file.fileno()).st_size == len(data) and file.read(len(data) + 1) == data
    except OSError:
        return False


def link_or_write(path: str, data: bytes, modified: int, candidates: Iterable[str]) -> None:
    """Put a new file into a folder that nobody reads yet, as changed at `when` (seconds since
    1970).

    Where one of the files `like` has the very bytes, it becomes another name of that: no byte is
    copied, and its time stays.
    """
    for twin in candidates:
        if has_content(twin, data):
            # a file system may know no second names, or have a limit for them
            with contextlib.suppress(OSError):
                os.link(twin, path)
                return
    with _name_in_errors(path), open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.utime(file.fileno(), (modified, modified))


def measure_size(path: Path) -> int:
    """The bytes of all files in a folder, or of the file that is there; what goes meanwhile counts
    as nothing.
    """
    total = 0
    for one in [path, *path.rglob("*")]:
        with contextlib.suppress(OSError):
            found = one.lstat()
            total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total


def hash_file(path: Path) -> tuple[int, str]:
    """The size of a file in bytes and its SHA-256."""
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def write_sealed(path: Path, pieces: Iterable[bytes]) -> None:
    """Put bytes at `path` in one step, under a seal (see `seals`), for what a later build trusts;
    piece by piece, for they may be many.

    The seal is the first line, in hexadecimal digits.
    """
    with _open_replacement(path) as file:
        seen = hashlib.sha256()
        file.write(bytes(SEAL_LINE_SIZE))
        for piece in pieces:
            file.write(piece)
            seen.update(piece)
        file.seek(0)
        file.write(seals.compute_seal(path.name, seen.digest()).hex().encode() + b"\n")


def read_sealed(path: Path) -> bytes | None:
    """The bytes that were put at `path` under their seal; None where there are none, or the seal is
    not one of this user.
    """
    with contextlib.suppress(OSError), open_regular(path) as file:
        said, data = file.read(SEAL_LINE_SIZE), file.read()
        if _has_valid_seal(path, hashlib.sha256(data).digest(), said):
            return data
    return None


def iter_sealed_lines(path: Path) -> Iterator[bytes]:
    """The same as lines, without their ends and one after another, for they may be many; gone
    through once before, for the seal.
    """
    with contextlib.suppress(OSError), open_regular(path) as file:
        said = file.read(SEAL_LINE_SIZE)
        if _has_valid_seal(path, hashlib.file_digest(file, "sha256").digest(), said):
            file.seek(SEAL_LINE_SIZE)
            yield from (line.removesuffix(b"\n") for line in file)


def _has_valid_seal(path: Path, digest: bytes, seal_line: bytes) -> bool:
    return hmac.compare_digest(
        seals.compute_seal(path.name, digest).hex().encode() + b"\n", seal_line
    )


def replace_symlink(link: Path, target: str) -> None:
    """Make the symbolic link name `target`, in one step also where it named something else before."""
    beside = _temporary_path(link)
    with _name_in_errors(link, beside):
        os.symlink(target, beside)
        try:
            os.replace(beside, link)
        except BaseException:
            _discard(beside)
            raise


@contextlib.contextmanager
def lock(path: Path, timeout: float = 0.0) -> Iterator[bool]:
    """Hold the lock file at `path`: yields False where another process still holds it after `wait`
    seconds. Ends with the process. Raises OSError where a symbolic link is in its place.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC | _NO_LINK
    with open(os.open(path, flags, 0o666), "a") as file:
        until = time.monotonic() + timeout
        while not (got_it := _try_lock(file.fileno())) and time.monotonic() < until:
            time.sleep(_POLL_INTERVAL)
        yield got_it


def _try_lock(handle: int) -> bool:
    try:
        if fcntl:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
