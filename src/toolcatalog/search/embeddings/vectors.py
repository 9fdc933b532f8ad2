"""Vector search: the file of embedding vectors, and the nearest neighbors of a query.

A vector's sketch has one bit for each number: its sign. Vectors whose sketches differ in few bits
are mostly near each other, and counting bits is many times faster than computing products. So the
sketches select a thousand tools of a million, and only those are compared in full.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog.search import topk
from toolcatalog.search.embeddings.encoder import Vectors
from toolcatalog.search.embeddings.model_files import DIMENSIONS
from toolcatalog.snapshot.mapped_files import Buffer
from toolcatalog.snapshot.tables import ToolIds

_SKETCH_WORDS = DIMENSIONS // 64  # 64-bit words of a sketch
_MAX_SKETCH_CANDIDATES = 1000  # tools with the nearest sketches, which are compared in full
_MAX_NEIGHBORS = 100
_MIN_SIMILARITY = 0.2  # cosine similarity; tools below it do not match
_MAX_DISTANCE = DIMENSIONS + 1


QueryEncoder = Callable[[str], Vectors]  # encodes a query as vectors


class Neighbors(NamedTuple):
    """The tools nearest in meaning: their numbers in ascending order, and their similarities.

    Similarities are scaled so that the nearest tool has 1 and the last one 0.
    """

    tool_ids: ToolIds
    similarities: NDArray[np.float32]


NO_NEIGHBORS = Neighbors(np.zeros(0, np.uint32), np.zeros(0, np.float32))


def pack_vectors(batches: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of the vector file from the vectors of batches, in tool number order.

    The vectors come first, then their sketches word by word.
    """
    sketches = [np.zeros((0, DIMENSIONS // 8), np.uint8)]
    for data in batches:
        sketches.append(_sketch(np.frombuffer(data, np.int8).reshape(-1, DIMENSIONS)))
        yield data
    yield np.ascontiguousarray(np.concatenate(sketches).view("<u8").T).tobytes()


def _sketch(vectors: NDArray[np.int8] | Vectors) -> NDArray[np.uint8]:
    return np.packbits(vectors > 0, axis=1)


class VectorIndex:
    """The opened vector file of `tool_count` tool versions."""

    def __init__(self, data: Buffer, tool_count: int) -> None:
        self._vectors = np.frombuffer(data, np.int8, tool_count * DIMENSIONS).reshape(
            tool_count, DIMENSIONS
        )
        self._sketches = np.frombuffer(
            data, "<u8", tool_count * _SKETCH_WORDS, tool_count * DIMENSIONS
        ).reshape(_SKETCH_WORDS, tool_count)

    def find_nearest(self, query: Vectors, candidates: NDArray[np.bool_]) -> Neighbors:
        """Return the candidates (a mask by number) nearest to any of the query's vectors."""
        numbers = self._select_by_sketch(query, candidates)
        if not len(query) or not len(numbers):
            return NO_NEIGHBORS
        vectors = self._vectors[numbers].astype(np.float32)
        similarities = (vectors @ query.T).max(1) / np.maximum(
            np.linalg.norm(vectors, axis=1), np.float32(1)
        )
        best = topk.top_k(similarities, _MAX_NEIGHBORS)
        best = best[similarities[best] >= _MIN_SIMILARITY]
        return _normalize_similarities(numbers[best], similarities[best])

    def _select_by_sketch(self, query: Vectors, candidates: NDArray[np.bool_]) -> ToolIds:
        """Return the tools whose sketches are near enough for a full comparison."""
        if np.count_nonzero(candidates) <= _MAX_SKETCH_CANDIDATES:
            return candidates.nonzero()[0].astype(np.uint32)
        distances = np.full(len(candidates), _MAX_DISTANCE, np.uint16)  # number of different bits
        for sketch in _sketch(query).view("<u8"):
            bits = np.zeros(len(candidates), np.uint16)
            for column, word in zip(self._sketches, sketch, strict=True):
                bits += np.bitwise_count(column ^ word)
            np.minimum(distances, bits, out=distances)
        distances[~candidates] = _MAX_DISTANCE
        return topk.top_k(_MAX_DISTANCE - distances, _MAX_SKETCH_CANDIDATES).astype(np.uint32)


def _normalize_similarities(numbers: ToolIds, similarities: NDArray[np.float32]) -> Neighbors:
    if not len(numbers):
        return NO_NEIGHBORS
    low, high = float(similarities.min()), float(similarities.max())
    return Neighbors(
        numbers,
        ((similarities - low) / (high - low)).astype(np.float32)
        if high > low
        else np.ones_like(similarities),
    )
