"""File state fingerprints: detect a change by inode, size and times, without reading the file.

A file that had changed within two seconds before it was looked at has no signature to rely on,
because its times could stay the same through another change; nor has a link, because what it leads
to has times of its own.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

_FRESH_PERIOD = 2_000_000_000  # nanoseconds
_NO_FRESHNESS_LIMIT = 1 << 63


def compute_signature(path: str, now: int) -> int:
    """What tells a state of a file or folder from others; 0 where it is not to be relied on. `now`
    is when looking began.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    if changed > now - _FRESH_PERIOD or stat.S_ISLNK(found.st_mode):
        return 0
    return _hash_status(found)


def _hash_status(status: os.stat_result) -> int:
    return hash((status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)) or 1


def has_signature(path: str, signature: int) -> bool:
    """Tell whether a file or folder has the signature that was noted; one that was not to be relied
    on never holds.
    """
    try:
        return _hash_status(os.lstat(path)) == signature
    except OSError:
        return False


def settled_signature(path: str) -> int:
    """The signature of a file that nobody but a build should change, as it has left it; 0 where
    there is none.
    """
    return compute_signature(path, _NO_FRESHNESS_LIMIT)


def digest_signatures(folder: Path, paths: Iterable[str]) -> str:
    """One digest of the signatures of such files."""
    return hashlib.sha256(
        repr([(path, settled_signature(f"{folder}/{path}")) for path in paths]).encode()
    ).hexdigest()


def are_unchanged(folder: Path, signatures: Mapping[str, int]) -> bool:
    """Tell whether files, given by path and signature, are there and as they were left."""
    return all(has_signature(f"{folder}/{path}", mark) for path, mark in signatures.items())
