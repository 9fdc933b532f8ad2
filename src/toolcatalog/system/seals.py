"""Seals: keyed digests on files that a later build trusts, with a secret of the user.

A seal is a keyed BLAKE2b over a file's SHA-256 and its name. The key is a random secret in the
user's cache folder, which no checkout contains. A file that somebody else wrote into a build's
cache or into a site has no valid seal, and counts as missing. If the secret cannot be stored, each
process creates its own, and the next process reuses nothing.
"""

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

SEAL_SIZE = 32  # bytes of a seal and of the secret
_FILE_NAME = "cache-secret"
_OPEN_FLAGS = (
    os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)


class Secret(bytes):
    """A secret with a hidden `repr`, because workers of a cluster may log their arguments."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret()"


_current: list[Secret] = []


def get_secret() -> Secret:
    """Return the secret of this process: the user's, or a new one if it cannot be stored."""
    if not _current:
        _current.append(Secret(_load_secret() or os.urandom(SEAL_SIZE)))
    return _current[0]


def use_secret(secret: Secret) -> None:
    """Use the secret of the process that this one works for."""
    _current[:] = [secret]


def compute_seal(name: str, digest: bytes) -> bytes:
    """Return the seal of a file with this name and this SHA-256."""
    text = digest + name.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, key=get_secret(), digest_size=SEAL_SIZE).digest()


def get_secret_path() -> Path | None:
    """Return the path of the secret in the user's cache folder; None without a home folder."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():
        try:
            home = Path.home()
        except RuntimeError:
            return None
        if not (home.is_absolute() and home.is_dir()):
            return None
        folder = home / ".cache"
    return folder / "toolcatalog" / _FILE_NAME


def _load_secret() -> bytes | None:
    """Return the secret in the user's cache folder, created if missing; None if that fails."""
    path = get_secret_path()
    try:
        if path is None:
            return None
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return _read_secret(path) or _create_secret(path)
    except OSError:
        return None


def _read_secret(path: Path) -> bytes | None:
    """Return the secret in a file; None if it is missing or accessible to others.

    Raises OSError if it cannot be read or belongs to another user.
    """
    try:
        handle = os.open(path, _OPEN_FLAGS)
    except FileNotFoundError:
        return None
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if hasattr(os, "geteuid"):
            if status.st_uid != os.geteuid():
                raise PermissionError(f"{path} belongs to another user")
            if stat.S_IMODE(status.st_mode) & 0o077:
                return None
        secret = file.read(SEAL_SIZE + 1) if stat.S_ISREG(status.st_mode) else b""
    return secret if len(secret) == SEAL_SIZE else None


def _create_secret(path: Path) -> bytes | None:
    """Replace a missing or unusable secret by a new one, in one step.

    If two processes do this at once, both use the secret of the first.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{_FILE_NAME}.")
    try:
        with open(handle, "wb") as file:
            file.write(os.urandom(SEAL_SIZE))
        if _read_secret(path) is None:
            path.unlink(missing_ok=True)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        Path(temporary).unlink()
    return _read_secret(path)
