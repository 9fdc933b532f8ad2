"""The state of a file told from its other states without reading it: inode, size, and times of
change, as git does it.

A file that had changed within two seconds before it was looked at has no signature to rely on,
because its times could stay the same through another change; nor has a link, because what it leads
to has times of its own.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

_FRESH = 2_000_000_000  # nanoseconds
_FOREVER = 1 << 63


def signature(path: str, now: int) -> int:
    """What tells a state of a file or folder from others; 0 where it is not to be relied on. `now`
    is when looking began.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    if changed > now - _FRESH or stat.S_ISLNK(found.st_mode):
        return 0
    return _of(found)


def _of(found: os.stat_result) -> int:
    return hash((found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)) or 1


def holds(path: str, noted: int) -> bool:
    """Tell whether a file or folder has the signature that was noted; one that was not to be relied
    on never holds.
    """
    try:
        return _of(os.lstat(path)) == noted
    except OSError:
        return False


def left(path: str) -> int:
    """The signature of a file that nobody but a build should change, as it has left it; 0 where
    there is none.
    """
    return signature(path, _FOREVER)


def stamp(folder: Path, paths: Iterable[str]) -> str:
    """One digest of the signatures of such files."""
    return hashlib.sha256(
        repr([(path, left(f"{folder}/{path}")) for path in paths]).encode()
    ).hexdigest()


def is_left(folder: Path, state: Mapping[str, int]) -> bool:
    """Tell whether files, given by path and signature, are there and as they were left."""
    return all(holds(f"{folder}/{path}", mark) for path, mark in state.items())
