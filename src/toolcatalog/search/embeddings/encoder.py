"""The sentence encoder: texts to embedding vectors with a small model.

The files of the model come from `search.embeddings.model_files`, and for queries from the snapshot.
onnxruntime and tokenizers are imported only if vectors are needed.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from string import punctuation
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog import textutils
from toolcatalog.errors import UsageError
from toolcatalog.search import analysis
from toolcatalog.search.embeddings import model_files

DIMENSIONS = 384  # numbers per vector
_MAX_TOOL_TOKENS = 128  # a longer text of a tool is truncated
# Limits of a query: its parts, the tokens of each part, and the tokens of all parts. The time of
# a query is mostly spent on encoding these tokens.
_MAX_QUERY_PARTS, _MAX_PART_TOKENS, _MAX_QUERY_TOKENS = 8, 64, 96
_MIN_PART_TOKENS = 8  # a part is not truncated below this
# Texts encoded at once, and by how many tokens they may differ: shorter ones are padded.
_BATCH_SIZE, _MAX_LENGTH_DIFFERENCE = 16, 8

_FILLER_WORDS = frozenset(  # left out of queries, to leave room for words with more meaning
    """
    a also an and can could i just like me my please so that the this would you your
    """.split()  # noqa: SIM905 - easier to read
)

Vectors = NDArray[np.float32]  # a row per text, normalized to length 1


class ToolText(NamedTuple):
    """The texts of a tool to encode: names of toolkit, tool and parameters, and the description."""

    toolkit: str
    name: str
    description: str
    parameters: Sequence[str]


_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


@cache
def load_encoder(folder: Path | None = None) -> "Encoder":
    """Load the model in a folder, or the default model, once per process; it encodes tools.

    Raises UsageError if it is missing, incomplete, or not a model of sentences.
    """
    model = model_files.read_model(folder)
    try:
        encoder = Encoder(*model)
        encoder.check()
    except Exception as error:  # noqa: BLE001 - what the libraries raise has no common base class
        reason = str(error).strip().partition("\n")[0]
        raise UsageError(f"The model in {folder or 'the package'} is unusable: {reason}") from None
    return encoder


class Encoder:
    """The model and its tokenizer.

    Raises what onnxruntime and tokenizers raise if a file is invalid.
    """

    def __init__(self, model: bytes, tokenizer: bytes) -> None:
        import onnxruntime  # noqa: PLC0415 - slow to import, and only needed for semantic search
        from tokenizers import Tokenizer  # noqa: PLC0415

        options = onnxruntime.SessionOptions()
        # one thread: other processes and requests use the other cores
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._inputs = {item.name for item in self._session.get_inputs()}

    def check(self) -> None:
        """Raise ValueError unless the model maps tokens to vectors of DIMENSIONS numbers."""
        if unknown := sorted(self._inputs - _INPUTS):
            raise ValueError(f"it needs the input {unknown[0]}")
        tokens = self._tokenize(["word"])[0]
        if not tokens:
            raise ValueError("its tokenizer finds no tokens")
        shape = self._run_session(np.array([tokens]), np.ones((1, len(tokens)), np.int64)).shape
        if shape[:2] != (1, len(tokens)) or len(shape) != 3:
            raise ValueError("its first output is not a vector for each token")
        if shape[2] != DIMENSIONS:
            raise ValueError(f"its vectors have {shape[2]} numbers, not {DIMENSIONS}")

    def encode_tools(self, tools: Sequence[ToolText]) -> bytes:
        """Return the packed vector of each tool, as `search.embeddings.vectors` stores them.

        A vector is the mean of two: that of the whole text, and that of the name with the first
        sentence.
        """
        if not tools:
            return b""
        tool_vectors = self._encode_texts(
            [
                f"{_split_identifier(tool.toolkit)}"
                f" {_join_name_and_description(tool, tool.description)}"
                f" {_join_parameter_names(tool)}"
                for tool in tools
            ]
        )
        summary_vectors = self._encode_texts(
            [
                _join_name_and_description(
                    tool, next(textutils.split_sentences(tool.description), "")
                )
                for tool in tools
            ]
        )
        return quantize(_normalize(tool_vectors + summary_vectors))

    def encode_query(self, text: str) -> Vectors:
        """Return the vectors of a query: one per part and, if several, one for the whole."""
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
        return [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]

    def _encode_tokens(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """Return a vector for each text, given as tokens."""
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for positions in group_by_length([*map(len, texts)]):
            vectors[positions] = self._run_model([texts[position] for position in positions])
        return vectors

    def _run_model(self, texts: Sequence[Sequence[int]]) -> Vectors:
        ids, mask = np.zeros((2, len(texts), max(map(len, texts))), np.int64)
        for row, tokens in enumerate(texts):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        states = self._run_session(ids, mask)
        return _normalize((states * mask[..., None]).sum(1, dtype=np.float32))

    def _run_session(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a vector for each token of each text."""
        inputs: dict[str, Any] = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        chosen = {name: inputs[name] for name in self._inputs}
        states: NDArray[np.float32] = self._session.run(None, chosen)[0]
        return states


def select_query_parts(query: str) -> list[str]:
    """Return the parts of a query without filler words and without parts of filler words only.

    Returns all parts unchanged if nothing would be left.
    """
    parts = [part for part in analysis.split_query(query) if part.strip()]
    meaningful = [
        part
        for part in parts
        if any(word.spelling not in analysis.FILLER_WORDS for word in analysis.extract_words(part))
    ]
    shorter = (
        " ".join(
            word for word in part.split() if word.casefold().strip(punctuation) not in _FILLER_WORDS
        )
        for part in meaningful
    )
    return [part for part in shorter if part] or parts


def quantize(vectors: Vectors) -> bytes:
    """Return the vectors as bytes, a signed byte per number; only the direction is kept."""
    largest = np.maximum(np.abs(vectors).max(1, keepdims=True), np.float32(1e-9))
    quantized: NDArray[np.int8] = np.rint(vectors * (127 / largest)).astype(np.int8)
    return quantized.tobytes()


def _normalize(vectors: Vectors) -> Vectors:
    normalized: Vectors = vectors / np.maximum(
        np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9)
    )
    return normalized


def _join_name_and_description(tool: ToolText, description: str) -> str:
    return f"{_split_identifier(tool.name)}: {description}"


def _join_parameter_names(tool: ToolText) -> str:
    return ", ".join(map(_split_identifier, tool.parameters))


def _split_identifier(name: str) -> str:
    """Return a name as separate words, since the model knows little snake_case and camelCase."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", name)


def _truncate(tokens: Sequence[int], max_tokens: int) -> list[int]:
    """Return a text of at most `max_tokens` tokens; the first and last are delimiters and stay."""
    return [*tokens] if len(tokens) <= max_tokens else [*tokens[: max_tokens - 1], tokens[-1]]


def truncate_texts(
    texts: Sequence[Sequence[int]], max_tokens: int, max_total_tokens: int
) -> list[list[int]]:
    """Truncate the texts to `max_tokens` tokens each and, if possible, `max_total_tokens` in all.

    The longest texts are truncated first, and none below a minimum.
    """
    while (
        max_tokens > _MIN_PART_TOKENS
        and sum(min(len(tokens), max_tokens) for tokens in texts) > max_total_tokens
    ):
        max_tokens -= 1
    return [_truncate(tokens, max_tokens) for tokens in texts]


def group_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups of positions of texts to encode at once: few, and of similar length."""
    group: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (
            len(group) == _BATCH_SIZE
            or lengths[position] > lengths[group[0]] + _MAX_LENGTH_DIFFERENCE
        ):
            yield group
            group = []
        group.append(position)
    yield from [group] if group else []
