"""Vector search: the file of embedding vectors, and the nearest neighbors of a query.

Similar vectors are in one list, and each list has a centroid. A query is compared with the vectors
of the lists that have the nearest centroids: with all of a small catalog, and with one of thirty
among a million. Numbers of the file are little-endian:

    header     magic, number of vectors, number of lists
    ids        the id of the tool version of each vector, list by list
    positions  by id: the position of its vector in that order
    sizes      the number of vectors in each list
    centroids  384 floating-point numbers for each list
    vectors    384 bytes each, which are signed numbers plus 128
"""

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog.search import topk
from toolcatalog.search.embeddings.encoder import Vectors
from toolcatalog.search.embeddings.model_files import DIMENSIONS
from toolcatalog.snapshot.mapped_files import Buffer
from toolcatalog.snapshot.tables import ToolIds

_HEADER, _MAGIC = struct.Struct("<8sII"), b"tcvector"
# Vectors to compare a query with. Smaller catalogs have one list, and all of it is compared.
_MAX_COMPARED = 32_000
_SELECTION_COST = 16  # comparing a vector anywhere takes as long as reading so many of a list
_SIGN = np.uint8(128)  # added to a signed byte
_MAX_NEIGHBORS = 100
MIN_SIMILARITY = 0.2  # cosine similarity; tools below it do not match


_Block = tuple[NDArray[np.uint8], NDArray[np.int64]]  # vectors, and their ids


class Neighbors(NamedTuple):
    """The tools nearest in meaning: their numbers in ascending order, and their similarities.

    Similarities are scaled so that the nearest tool has 1 and the last one 0.
    """

    tool_ids: ToolIds
    similarities: NDArray[np.float32]


NO_NEIGHBORS = Neighbors(np.zeros(0, np.uint32), np.zeros(0, np.float32))


def pack_vectors(batches: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of the vector file from the vectors of batches, in tool number order."""
    data = bytearray()
    for batch in batches:
        data += batch
    vectors = np.frombuffer(data, np.int8).reshape(-1, DIMENSIONS)
    count = len(vectors)
    centroids, lists = np.zeros((1, DIMENSIONS), np.float32), np.zeros(count, np.uint32)
    if count > _MAX_COMPARED:
        from toolcatalog.search.embeddings import faiss_search  # noqa: PLC0415 - slow to import

        centroids, lists = faiss_search.cluster(vectors, 4 * math.isqrt(count))
    ids = np.argsort(lists, kind="stable")
    positions = np.empty(count, "<u4")
    positions[ids] = np.arange(count)
    sizes = np.bincount(lists, minlength=len(centroids))
    yield _HEADER.pack(_MAGIC, count, len(centroids))
    yield ids.astype("<i8").tobytes()
    yield positions.tobytes()
    yield sizes.astype("<u4").tobytes()
    yield centroids.astype("<f4").tobytes()
    start = 0
    for size in sizes.tolist():
        yield (vectors[ids[start : start + size]].view(np.uint8) ^ _SIGN).tobytes()
        start += size


class VectorLists(NamedTuple):
    """The arrays of a vector file, without a copy.

    List i has the vectors from `starts[i]` to `starts[i + 1]`.
    """

    ids: NDArray[np.int64]
    positions: ToolIds
    starts: Sequence[int]
    centroids: Vectors
    vectors: NDArray[np.uint8]


def read_vectors(data: Buffer, tool_count: int) -> VectorLists:
    """Return the arrays of the vector file of `tool_count` tool versions.

    Raises ValueError if a build does not write such a file: native code relies on it.
    """
    if len(data) < _HEADER.size:
        raise ValueError("no vectors")
    magic, count, list_count = _HEADER.unpack(data[: _HEADER.size])
    end, arrays = _HEADER.size, []
    for kind, length in (
        ("<i8", count),
        ("<u4", count),
        ("<u4", list_count),
        ("<f4", list_count * DIMENSIONS),
        ("u1", count * DIMENSIONS),
    ):
        start, end = end, end + length * np.dtype(kind).itemsize
        if end <= len(data):
            arrays.append(np.frombuffer(data, kind, length, start))
    if magic != _MAGIC or count != tool_count or end != len(data):
        raise ValueError("no vectors of these tools")
    ids, positions, sizes, centroids, vectors = arrays
    starts = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
    if (
        not list_count
        or starts[-1] != count
        or positions.max(initial=0) > max(0, count - 1)
        or not np.array_equal(ids[positions], np.arange(count))  # so each is there once
        or not np.abs(centroids).max() <= _SIGN  # not if it is no number
    ):
        raise ValueError("no lists of these vectors")
    shape = -1, DIMENSIONS
    return VectorLists(ids, positions, starts, centroids.reshape(shape), vectors.reshape(shape))


class VectorIndex:
    """The opened vector file of `tool_count` tool versions. Needs the extra `semantic`.

    Raises ValueError as `read_vectors` does.
    """

    def __init__(self, data: Buffer, tool_count: int) -> None:
        from toolcatalog.search.embeddings import faiss_search  # noqa: PLC0415 - slow to import

        self._find_nearest = faiss_search.find_nearest
        self._lists = read_vectors(data, tool_count)

    def find_nearest(self, query: Vectors, candidates: NDArray[np.bool_]) -> Neighbors:
        """Return the candidates (a mask by number) nearest to any of the query's vectors.

        Thread-safe.
        """
        count = int(np.count_nonzero(candidates))
        if not len(query) or not count:
            return NO_NEIGHBORS
        # The fewer candidates there are, the more lists have the nearest of them.
        share = count / len(candidates)
        max_read = min(_MAX_COMPARED / math.sqrt(share), len(candidates))
        is_selective = count * _SELECTION_COST <= max_read
        selected = [self._select(candidates)] if is_selective else None
        nearest = [
            self._find_nearest(
                vector,
                selected or self._iter_lists(vector, candidates, max_read * share),
                candidates,
                _MAX_NEIGHBORS,
                MIN_SIMILARITY,
            )
            for vector in query
        ]
        numbers, places = np.unique(
            np.concatenate([ids for ids, _ in nearest]), return_inverse=True
        )
        highest = np.zeros(len(numbers), np.float32)
        np.maximum.at(highest, places, np.concatenate([cosines for _, cosines in nearest]))
        best = topk.top_k(highest, _MAX_NEIGHBORS)
        return _normalize_similarities(numbers[best].astype(np.uint32), highest[best])

    def _select(self, candidates: NDArray[np.bool_]) -> _Block:
        """Return the vectors of the candidates, and their ids, in the order of the file."""
        positions = np.sort(self._lists.positions[candidates])
        return self._lists.vectors[positions], self._lists.ids[positions]

    def _iter_lists(
        self, vector: Vectors, candidates: NDArray[np.bool_], max_compared: float
    ) -> Iterator[_Block]:
        """Yield the lists with candidates, nearest centroid first, until there are enough."""
        ids, _, starts, centroids, vectors = self._lists
        compared = 0
        for number in np.argsort(-(centroids @ vector)).tolist():
            start, end = starts[number], starts[number + 1]
            list_ids = ids[start:end]
            count = int(np.count_nonzero(candidates.take(list_ids)))
            if count:
                yield vectors[start:end], list_ids
            compared += count
            if compared >= max_compared:
                return


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
