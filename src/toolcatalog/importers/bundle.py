"""Bundle an OpenAPI document that consists of several files into one document.

References to other files become local references: each file is put below the key
`x-bundled-files`. Files are read from the folder of the document and its subfolders only, and
nothing is fetched.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from toolcatalog.errors import UsageError
from toolcatalog.importers.documents import (
    BUNDLE_KEY,
    SourceDocument,
    format_reference,
    read_document,
    resolve_reference,
)

_MAX_FILES = 10_000
# of files that a document may refer to: others, such as `.env`, may have secrets
_SUFFIXES = frozenset([".json", ".yaml", ".yml", ".md"])
_MAX_TOTAL_SIZE = 128 * 1024 * 1024  # bytes of all files
_MAX_FILE_SIZE = 64 * 1024 * 1024  # bytes
_MAX_REFERENCES = 50  # in a chain
# keywords with values in which a `$ref` is data
_VALUE_KEYWORDS = ("example", "default", "enum", "const")
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")  # a URL, or an absolute path

ReadFile = Callable[[str], bytes]


def bundle_files(source: SourceDocument, read_file: ReadFile) -> SourceDocument:
    """Return a document together with all files that it refers to.

    `read_file` returns the bytes of a file at a path relative to the document, or raises
    FileNotFoundError or UsageError. Raises UsageError if a file is not valid, or if there are too
    many.
    """
    bundle = _Bundle(source, read_file)
    root = bundle.load_all()
    if not bundle.values:
        return source._replace(unreadable=bundle.unreadable)
    whole = {**root, BUNDLE_KEY: bundle.values}
    return source._replace(
        value=_replace_scalar_references(whole, whole),
        files=bundle.files,
        unreadable=bundle.unreadable,
    )


def read_below(folder: Path) -> ReadFile:
    """Return a function that reads the JSON, YAML and Markdown files below a folder."""
    top = folder.resolve()

    def read_file(path: str) -> bytes:
        file = (top / path).resolve()
        if not file.is_relative_to(top):
            raise UsageError("which leads out of the folder of the document")
        names = file.relative_to(top).parts
        if file.suffix.lower() not in _SUFFIXES or any(name.startswith(".") for name in names):
            raise UsageError("which is not a JSON, YAML or Markdown file with a plain name")
        if not file.is_file():
            raise FileNotFoundError(path)
        if file.stat().st_size > _MAX_FILE_SIZE:
            raise UsageError(f"which is larger than {_MAX_FILE_SIZE // 1024**2} MiB")
        return file.read_bytes()

    return read_file


@dataclass(slots=True)
class _Bundle:
    """The files of a document while they are read.

    `values` are the values of the files with rewritten references, by path. `unreadable` maps
    references that cannot be followed to the reason.
    """

    source: SourceDocument
    read_file: ReadFile
    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, SourceDocument] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    size: int = 0

    def load_all(self) -> Any:
        """Read all files, and return the value of the root document with rewritten references."""
        root = self.rewrite(self.source.value, "")
        waiting = [*self.files]
        while waiting:
            path = waiting.pop()
            known_paths = {*self.files}
            self.values[path] = self.rewrite(self.files[path].value, path)
            waiting += [new for new in self.files if new not in known_paths]
        self.values = {path: self.values[path] for path in sorted(self.values)}
        return root

    def rewrite(self, value: Any, base: str) -> Any:
        """Return a value of the file `base` with local references to all files."""
        if isinstance(value, list):
            return [self.rewrite(item, base) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            key: self.rewrite_reference(inner, base)
            if key == "$ref" and isinstance(inner, str)
            else inner
            if key in _VALUE_KEYWORDS
            else self.rewrite(inner, base)
            for key, inner in value.items()
        }

    def rewrite_reference(self, ref: str, base: str) -> str:
        """Return a reference in the file `base` as a local reference of the bundle."""
        location, _, fragment = ref.partition("#")
        if _REMOTE.match(location):
            return ref
        if not location:
            return _bundled_reference(base, fragment) if base else ref
        path = posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(location)))
        if path == posixpath.basename(self.source.name):
            return f"#{fragment}"
        reason = self.load(path)
        if reason:
            self.unreadable[ref] = reason
            return ref
        return _bundled_reference(path, fragment)

    def load(self, path: str) -> str:
        """Read a file, and return why it cannot be read, or an empty string."""
        if path in self.files:
            return ""
        try:
            data = self.read_file(path)
        except FileNotFoundError:
            return f"and there is no file {path} in its folder"
        except UsageError as error:
            return str(error)
        except OSError as error:
            return f"which cannot be read ({error.strerror})"
        self.size += len(data)
        if len(self.files) >= _MAX_FILES or self.size > _MAX_TOTAL_SIZE:
            raise UsageError(
                f"{self.source.name} consists of more than {_MAX_FILES:,} files or "
                f"{_MAX_TOTAL_SIZE // 1024**2} MiB: import a part of it at a time."
            )
        name = posixpath.join(posixpath.dirname(self.source.name), path)
        self.files[path] = read_document(data, name)
        return ""


def _bundled_reference(path: str, fragment: str) -> str:
    """Return the local reference to a part of a file in the bundle."""
    pointer = format_reference((BUNDLE_KEY, path)).replace("%", "%25")
    return pointer + (fragment if fragment.startswith("/") else "")


def _replace_scalar_references(value: Any, root: Any) -> Any:
    """Return a value in which references to texts, numbers and lists are replaced by them.

    For example, `description: {$ref: texts.yaml#/intro}` becomes `description: ...`. References to
    mappings stay, because they may be recursive.
    """
    if isinstance(value, list):
        return [_replace_scalar_references(item, root) for item in value]
    if not isinstance(value, dict):
        return value
    target = _last_target(value, root)
    if target is not None and not isinstance(target, dict):
        return target
    return {key: _replace_scalar_references(inner, root) for key, inner in value.items()}


def _last_target(value: dict[str, Any], root: Any) -> Any:
    """Return what a chain of references leads to; None if there is none or it has no end."""
    target: Any = None
    for target in _follow(value, root):
        if not (isinstance(target, dict) and isinstance(target.get("$ref"), str)):
            return target
    return None


def _follow(value: Any, root: Any) -> Iterator[Any]:
    for _ in range(_MAX_REFERENCES):
        ref = value.get("$ref") if isinstance(value, dict) else None
        if not isinstance(ref, str):
            return
        value = resolve_reference(root, ref)
        yield value
