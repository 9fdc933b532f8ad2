"""The sentence encoder: texts to embedding vectors with a small model.

The model comes from `search.embeddings.model_files`, and for queries from the snapshot.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from string import punctuation
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog import textutils
from toolcatalog.search import analysis
from toolcatalog.search.embeddings import model_files
from toolcatalog.search.embeddings.model_files import DIMENSIONS

if TYPE_CHECKING:
    from toolcatalog.search.embeddings.sentence_model import SentenceModel

_QUERY_CACHE_SIZE = 256  # queries with cached vectors, a few kilobytes each
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

VECTOR_LENGTH = 450  # of a packed vector

Vectors = NDArray[np.float32]  # a row per text, normalized to length 1
QueryEncoder = Callable[[str], Vectors]  # encodes a query as vectors


class ToolText(NamedTuple):
    """The texts of a tool to encode: names of toolkit, tool and parameters, and the description."""

    toolkit: str
    name: str
    description: str
    parameters: Sequence[str]


def load_encoder(folder: Path | None = None) -> "Encoder":
    """Return an encoder with the model in a folder, or with the default model.

    Raises UsageError as `model_files.load_model` does.
    """
    return Encoder(model_files.load_model(folder))


class Encoder:
    """Encodes tools and queries with a sentence model."""

    def __init__(self, model: "SentenceModel") -> None:
        self._model = model

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
        tokens = self._model.tokenize(select_query_parts(text)[:_MAX_QUERY_PARTS])
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
            [_truncate(tokens, _MAX_TOOL_TOKENS) for tokens in self._model.tokenize(texts)]
        )

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
        states = self._model.encode_tokens(ids, mask)
        return _normalize((states * mask[..., None]).sum(1, dtype=np.float32))


def cache_queries(encode: QueryEncoder) -> QueryEncoder:
    """Return an encoder of queries that keeps the vectors of the last ones."""
    return lru_cache(maxsize=_QUERY_CACHE_SIZE)(encode)


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
    """Return vectors of length 1 as bytes: signed bytes, as parts of VECTOR_LENGTH.

    So products of packed vectors are cosines, except for a factor. Larger numbers than 0.28 count
    as that.
    """
    parts = np.clip(np.rint(vectors * np.float32(VECTOR_LENGTH)), -127, 127)
    quantized: NDArray[np.int8] = parts.astype(np.int8)
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
