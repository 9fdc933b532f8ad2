"""Program fingerprint: a digest of this program and its libraries, for cached results."""

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Libraries whose output is cached.
_LIBRARIES = (
    "jinja2",
    "jsonschema-rs",
    "markdown-it-py",
    "nh3",
    "numpy",
    "orjson",
    "pyroaring",
    "pystemmer",
    "pyyaml",
)
_DIST_INFO = re.compile(r"(.+?)-([^-]+)(?:-.*)?\.(?:dist|egg)-info")


def compute(*extra: str) -> str:
    """Return a digest of everything that determines what this program produces.

    It covers the files of this package, the running Python, the versions of the libraries in use,
    and `extra`.
    """
    seen = hashlib.sha256(f"{sys.version}\n{extra!r}\n".encode())
    versions = dict(
        reversed([*_installed_versions()])
    )  # the first match on `sys.path` is the one imported
    for library in _LIBRARIES:
        seen.update(
            f"{library} {versions.get(library.replace('-', '_')) or _library_version(library)}\n".encode()
        )
    _hash_folder(Path(__file__).parents[1], seen)
    return seen.hexdigest()


def _installed_versions() -> Iterator[tuple[str, str]]:
    """Yield the name and version of each installed library, from the names of its metadata folder.

    Listing folders is faster than `importlib.metadata`: nine queries to it take longer than the
    rest of `compute`.
    """
    for folder in filter(Path.is_dir, map(Path, sys.path)):
        for path in folder.iterdir():
            if found := _DIST_INFO.fullmatch(path.name):
                yield re.sub("[-_.]+", "_", found[1]).lower(), found[2]


def _library_version(library: str) -> str:
    """Return the version of a library that has no metadata folder on `sys.path`."""
    from importlib import metadata  # noqa: PLC0415 - slow to import

    return metadata.version(library)


def _hash_folder(folder: Path, digest: "hashlib._Hash") -> None:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.is_dir() and entry.name != "__pycache__":
            _hash_folder(Path(entry.path), digest)
        elif entry.is_file():
            with open(entry.path, "rb", buffering=0) as file:
                digest.update(entry.name.encode() + b"\0" + file.read())
