"""What this program is, as one digest: what it once made may be taken up again only if it would make the same today."""

import hashlib
import sys
from importlib import metadata, resources
from importlib.resources.abc import Traversable

# Libraries whose output is kept.
_MAKERS = ("jinja2", "jsonschema-rs", "markdown-it-py", "nh3", "numpy", "orjson", "pyroaring", "pystemmer", "pyyaml")


def fingerprint(*more: str) -> str:
    """The digest of this package's files, of the Python that runs it, and of the libraries and what `more` has a hand in what it makes."""
    seen = hashlib.sha256(f"{sys.version}\n{more!r}\n".encode())
    for library in _MAKERS:
        seen.update(f"{library} {metadata.version(library)}\n".encode())
    _add(resources.files("toolcatalog"), seen)
    return seen.hexdigest()


def _add(folder: Traversable, seen: "hashlib._Hash") -> None:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            _add(entry, seen)
        elif entry.is_file():
            seen.update(entry.name.encode() + b"\0" + entry.read_bytes())
