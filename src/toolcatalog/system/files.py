"""Atomic file writes, file locks and checked reads; the only module that writes the project's
files.
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
from collections.abc import Callable, Iterable, Iterator
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
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_LOCK_MODE = 0o600
_POLL_INTERVAL = 0.02  # seconds between two attempts to lock
SEAL_LINE_SIZE = 2 * seals.SEAL_SIZE + 1  # bytes of the seal line
_TEMPORARY_NAME = re.compile(r"\.(.+)\.[0-9a-f]{8}\.part")


def require_no_links(path: Path, top: Path) -> None:
    """Raise UsageError if `path`, or a folder between it and `top`, is a symbolic link.

    Otherwise files could be written elsewhere. `top` itself is the caller's choice and may be a
    link.
    """
    for ancestor in (path, *path.parents):
        if ancestor == top:
            return
        if ancestor.is_symlink():
            raise UsageError(
                f"{ancestor} is a symbolic link, and nothing is written through one: remove the "
                "link, or put the file or folder itself there."
            )


def _temporary_path(path: Path) -> str:
    """Return the path of a temporary file next to `path`."""
    folder, name = os.path.split(path)
    return f"{folder or '.'}/.{name}.{os.urandom(4).hex()}.part"


def remove_temporary_files(folder: Path, name: str = "") -> None:
    """Remove the temporary files of killed processes from a folder.

    With `name`, only those that were to become this file.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for other in os.listdir(folder):
            match = _TEMPORARY_NAME.fullmatch(other)
            if match and name in ("", match[1]):
                (folder / other).unlink(missing_ok=True)


@contextlib.contextmanager
def _name_in_errors(path: Path | str, temporary: str = "") -> Iterator[None]:
    """Put the target file's name into OSErrors, in place of the temporary file's or of none.

    An error about another file, raised while data was produced, keeps that name.
    """
    try:
        yield
    except OSError as error:
        if not isinstance(error.filename, str) or temporary in (error.filename, error.filename2):
            error.filename = str(path)
        raise


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with its contents; a missing one is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def move(path: Path, target: Path) -> None:
    """Move a file, also to another disk."""
    with _name_in_errors(target):
        shutil.move(path, target)


def move_file(path: str, target: str) -> None:
    """Move a file on the same disk in one step, and create the target's folder if necessary."""
    with _name_in_errors(target, path):
        try:
            os.replace(path, target)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(path, target)


def write_synced(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file atomically and durably: a temporary file is flushed to disk, then renamed.

    An existing file keeps its owner if permitted: a file that root rewrites must stay readable for
    the account that reads it.
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
    """Open a temporary file that replaces `path` at the end; it is removed after an error."""
    temporary = _temporary_path(path)
    with _name_in_errors(path, temporary):
        try:
            with open(os.open(temporary, _NEW_FILE_FLAGS, mode), "wb") as file:
                yield file
            os.replace(temporary, path)
        except BaseException:
            _discard(temporary)
            raise


def _write_atomic(path: Path, data: bytes) -> None:
    with _open_replacement(path) as file:
        file.write(data)


def _discard(temporary: str) -> None:
    with contextlib.suppress(OSError):  # do not hide an earlier error
        os.unlink(temporary)


def write_if_changed(path: Path, data: bytes) -> bool:
    """Write a file atomically unless it already has these bytes; return whether it was written.

    For files that can be rebuilt: they are not flushed to disk, which would take seconds for a
    thousand pages.
    """
    # if something else is there, perhaps a folder, writing raises the right error
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        if file.read(len(data) + 1) == data:
            return False
    write_unsynced(path, data)
    return True


def write_unsynced(path: Path, data: bytes) -> None:
    """Write a file atomically, and create its folder if necessary.

    For files that can be rebuilt: they are not flushed to disk.
    """
    try:
        _write_atomic(path, data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_atomic(path, data)


def write_pieces(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file atomically from pieces, which may be many.

    For files that can be rebuilt: they are not flushed to disk.
    """
    with _open_replacement(path) as file:
        file.writelines(pieces)


def write_new_file(path: str, data: bytes) -> None:
    """Write a new file, in a folder that has no readers before the file is complete.

    A file object would take a fifth of the time, and a site has a hundred thousand files.
    """
    with _name_in_errors(path):
        descriptor, rest = os.open(path, _NEW_FILE_FLAGS, 0o644), memoryview(data)
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)


def write_new(path: Path, pieces: Iterable[bytes | memoryview]) -> tuple[int, str]:
    """Write a new file from pieces; return its size in bytes and its SHA-256."""
    size, digest = 0, hashlib.sha256()
    with _name_in_errors(path), path.open("xb") as file:
        for piece in pieces:
            file.write(piece)
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()


def read_plain_file(path: Path) -> bytes:
    """Return the bytes of a regular file.

    Raises OSError otherwise, since reading a pipe or a device may never end.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # reading a folder raises its own error
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path.read_bytes()


def is_file(path: Path) -> bool:
    """Return whether there is a file; unlike `Path.is_file`, False for a name that is too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def open_regular(path: Path | str) -> BufferedReader:
    """Open a regular file for reading.

    Raises OSError for everything else, also for a symbolic link: a checkout may contain one that
    leads to a device, and reading that never ends.
    """
    return open(_open_regular(path), "rb")


def _open_regular(path: Path | str) -> int:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | _NO_LINK)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return handle


def read_limited(path: Path | str, max_size: int) -> bytes:
    """Return the bytes of a regular file of a checkout.

    Raises OSError for everything else, as `open_regular` does, and for a file that is too large.
    """
    if os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a link", str(path))
    with open_regular(path) as file:
        data = file.read(max_size + 1)
    if len(data) > max_size:
        raise OSError(errno.EFBIG, f"it is larger than {max_size >> 20} MiB", str(path))
    return data


def has_content(path: str, data: bytes) -> bool:
    """Return whether the path is a regular file, and no link, with exactly these bytes."""
    try:
        with open(_open_regular(path), "rb", buffering=0) as file:
            return os.fstat(file.fileno()).st_size == len(data) and file.read(len(data) + 1) == data
    except OSError:
        return False


def link_or_write(path: str, data: bytes, modified: int, candidates: Iterable[str]) -> None:
    """Create a file with this modification time (seconds since 1970) in a private folder.

    If one of the candidates has the same bytes, the file becomes a hard link to it: no data is
    copied, and its time is kept.
    """
    for candidate in candidates:
        if has_content(candidate, data):
            # a file system may not support hard links, or limit their number
            with contextlib.suppress(OSError):
                os.link(candidate, path)
                return
    with _name_in_errors(path), open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.utime(file.fileno(), (modified, modified))


def measure_size(path: Path) -> int:
    """Return the total size of a file or of all files in a folder, in bytes.

    Files that are removed meanwhile count as 0.
    """
    total = 0
    for file in [path, *path.rglob("*")]:
        with contextlib.suppress(OSError):
            status = file.lstat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total


def hash_file(path: Path) -> tuple[int, str]:
    """Return the size of a file in bytes and its SHA-256."""
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def open_sealed(path: Path) -> Iterator[Callable[[bytes], None]]:
    """Open a file for atomic writing, with a seal as its first line (see `system.seals`).

    Yields a function that writes a piece. The seal has hexadecimal digits. It is for files that a
    later build trusts.
    """
    with _open_replacement(path) as file:
        digest = hashlib.sha256()
        file.write(bytes(SEAL_LINE_SIZE))

        def write(piece: bytes) -> None:
            file.write(piece)
            digest.update(piece)

        yield write
        file.seek(0)
        file.write(_seal_line(path, digest.digest()))


def write_sealed(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a sealed file atomically from pieces (see `open_sealed`)."""
    with open_sealed(path) as write:
        for piece in pieces:
            write(piece)


def read_sealed(path: Path) -> bytes | None:
    """Return the content of a sealed file; None if it is missing or the seal is not valid."""
    with contextlib.suppress(OSError), open_regular(path) as file:
        seal_line, data = file.read(SEAL_LINE_SIZE), file.read()
        if _has_valid_seal(path, hashlib.sha256(data).digest(), seal_line):
            return data
    return None


def iter_sealed_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a sealed file without their ends; none if the seal is not valid.

    The file is read twice, first for the seal, so that it need not fit in memory.
    """
    with contextlib.suppress(OSError), open_regular(path) as file:
        seal_line = file.read(SEAL_LINE_SIZE)
        if _has_valid_seal(path, hashlib.file_digest(file, "sha256").digest(), seal_line):
            file.seek(SEAL_LINE_SIZE)
            yield from (line.removesuffix(b"\n") for line in file)


def _has_valid_seal(path: Path, digest: bytes, seal_line: bytes) -> bool:
    return hmac.compare_digest(_seal_line(path, digest), seal_line)


def _seal_line(path: Path, digest: bytes) -> bytes:
    return seals.compute_seal(path.name, digest).hex().encode() + b"\n"


def replace_symlink(link: Path, target: str) -> None:
    """Create a symbolic link to `target`, or replace it atomically."""
    temporary = _temporary_path(link)
    with _name_in_errors(link, temporary):
        os.symlink(target, temporary)
        try:
            os.replace(temporary, link)
        except BaseException:
            _discard(temporary)
            raise


@contextlib.contextmanager
def lock(path: Path, timeout: float = 0.0) -> Iterator[bool]:
    """Lock a file; yield False if another process still has the lock after `timeout` seconds.

    The lock ends with the process. Only the owner may open the file, because anyone who may
    read a file may lock it. Raises OSError if the path is a symbolic link.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC | _NO_LINK
    with open(os.open(path, flags, _LOCK_MODE), "a") as file:
        _narrow_lock_mode(file.fileno())
        deadline = time.monotonic() + timeout
        is_locked = _try_lock(file.fileno())
        while not is_locked and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL)
            is_locked = _try_lock(file.fileno())
        yield is_locked


def _narrow_lock_mode(handle: int) -> None:
    """Set the mode of a lock file of this account, which older versions left to the umask."""
    status = os.fstat(handle)
    if fcntl and stat.S_IMODE(status.st_mode) != _LOCK_MODE and status.st_uid == os.geteuid():
        os.fchmod(handle, _LOCK_MODE)


def _try_lock(handle: int) -> bool:
    try:
        if fcntl:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
