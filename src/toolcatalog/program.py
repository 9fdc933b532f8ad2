"""What this program is, as one digest: what it once made may be taken up again only if it would
make the same today.
"""

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Libraries whose output is kept.
_MAKERS = (
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
_INSTALLED = re.compile(r"(.+?)-([^-]+)(?:-.*)?\.(?:dist|egg)-info")


def fingerprint(*more: str) -> str:
    """The digest of this package's files, of the Python that runs it, and of the libraries and what
    `more` has a hand in what it makes.
    """
    seen = hashlib.sha256(f"{sys.version}\n{more!r}\n".encode())
    versions = dict(reversed([*_installed()]))  # what is found first is what is imported
    for library in _MAKERS:
        seen.update(
            f"{library} {versions.get(library.replace('-', '_')) or _version(library)}\n".encode()
        )
    _add(Path(__file__).parent, seen)
    return seen.hexdigest()


def _installed() -> Iterator[tuple[str, str]]:
    """Libraries and their versions by the names of the folders that say so: to ask Python for nine
    takes longer than all that follows.
    """
    for folder in filter(Path.is_dir, map(Path, sys.path)):
        for path in folder.iterdir():
            if found := _INSTALLED.fullmatch(path.name):
                yield re.sub("[-_.]+", "_", found[1]).lower(), found[2]


def _version(library: str) -> str:
    """The version of a library that lies elsewhere."""
    from importlib import metadata  # noqa: PLC0415 - it takes a while to load

    return metadata.version(library)


def _add(folder: Path, seen: "hashlib._Hash") -> None:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.is_dir() and entry.name != "__pycache__":
            _add(Path(entry.path), seen)
        elif entry.is_file():
            with open(entry.path, "rb", buffering=0) as file:
                seen.update(entry.name.encode() + b"\0" + file.read())
