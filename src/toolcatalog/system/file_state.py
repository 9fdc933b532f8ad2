"""File state fingerprints: detect a change by inode, size and times, without reading the file.

A file that was changed less than two seconds before the check has no reliable signature, because
another change could leave the same times. A symbolic link has none either, because its target has
times of its own.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

_FRESH_PERIOD = 2_000_000_000  # nanoseconds
_NO_FRESHNESS_LIMIT = 1 << 63


def compute_signature(path: str, now: int) -> int:
    """Return a signature of the state of a file or folder; 0 if there is no reliable one.

    `now` is the time at which the check began, in nanoseconds.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    if changed > now - _FRESH_PERIOD or stat.S_ISLNK(status.st_mode):
        return 0
    return _hash_status(status)


def _hash_status(status: os.stat_result) -> int:
    return hash((status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)) or 1


def has_signature(path: str, signature: int) -> bool:
    """Return whether a file or folder still has this signature; never true for 0."""
    try:
        return _hash_status(os.lstat(path)) == signature
    except OSError:
        return False


def settled_signature(path: str) -> int:
    """Return the signature of a file that only builds change; 0 if there is none."""
    return compute_signature(path, _NO_FRESHNESS_LIMIT)


def digest_signatures(folder: Path, paths: Iterable[str]) -> str:
    """Return one digest of the settled signatures of these files."""
    signatures = [(path, settled_signature(f"{folder}/{path}")) for path in paths]
    return hashlib.sha256(repr(signatures).encode()).hexdigest()


def are_unchanged(folder: Path, signatures: Mapping[str, int]) -> bool:
    """Return whether all files, given by path and signature, are unchanged."""
    return all(
        has_signature(f"{folder}/{path}", signature) for path, signature in signatures.items()
    )
