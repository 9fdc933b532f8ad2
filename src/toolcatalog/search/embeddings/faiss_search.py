"""Clustering and comparing vectors with faiss. Needs the extra `semantic`, and is slow to import.

faiss opens no file here: its readers trust what they read, and a snapshot may come from a stranger.
It compares bytes of the mapped file in place, so that processes share them.
"""

import threading
from collections.abc import Iterable
from typing import Any

import faiss
import numpy as np
from faiss import swig_ptr
from numpy.typing import NDArray

from toolcatalog.search.embeddings.encoder import VECTOR_LENGTH, Vectors
from toolcatalog.search.embeddings.model_files import DIMENSIONS

# vectors, a row each: their signed bytes, plus 128; and their ids
Block = tuple[NDArray[np.uint8], NDArray[np.int64]]

_ITERATIONS, _SEED = 10, 1  # of k-means
_SAMPLES_PER_LIST = 40  # vectors that k-means computes with
_ASSIGNED_VECTORS = 16_384  # at a time, so that they take little memory
_MAX_BYTE = 127


def cluster(vectors: NDArray[np.int8], list_count: int) -> tuple[Vectors, NDArray[np.uint32]]:
    """Return the centroids of lists of similar vectors, and the list of each vector.

    There must be at least as many vectors as lists. Equal vectors give equal results on a machine.
    """
    faiss.omp_set_num_threads(1)  # more would change how sums are rounded
    sample_count = min(len(vectors), _SAMPLES_PER_LIST * list_count)
    sample = vectors[np.linspace(0, len(vectors) - 1, sample_count).astype(np.intp)]
    means = faiss.Kmeans(
        DIMENSIONS,
        list_count,
        niter=_ITERATIONS,
        seed=_SEED,
        min_points_per_centroid=1,
        max_points_per_centroid=_SAMPLES_PER_LIST,
    )
    means.train(sample.astype(np.float32))
    lists = np.empty(len(vectors), np.uint32)
    for start in range(0, len(vectors), _ASSIGNED_VECTORS):
        part = slice(start, start + _ASSIGNED_VECTORS)
        lists[part] = means.assign(vectors[part].astype(np.float32))[1]
    assert means.centroids is not None
    return means.centroids, lists


class _ThreadScanner(threading.local):
    """A scanner for each thread; faiss gives Python no way to delete one after each query."""

    def __init__(self) -> None:
        self._quantizer = _make_quantizer()
        self._no_ids = np.zeros(1, np.uint8)
        selector = faiss.IDSelectorBitmap(len(self._no_ids), swig_ptr(self._no_ids))
        self.scanner = self._quantizer.select_InvertedListScanner(
            faiss.METRIC_INNER_PRODUCT, None, False, selector, False
        )
        self.scanner.set_list(0, 0)


def _make_quantizer() -> Any:  # the library's types lack what it has
    return faiss.ScalarQuantizer(DIMENSIONS, faiss.ScalarQuantizer.QT_8bit_direct_signed)


_thread = _ThreadScanner()


def find_nearest(
    query: Vectors,
    blocks: Iterable[Block],
    candidates: NDArray[np.bool_],
    count: int,
    min_similarity: float,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the ids of the `count` vectors in the blocks nearest to a query, and their cosines.

    They are in no order. Only vectors of `candidates`, a mask by id, with more than
    `min_similarity` count. All ids must be in the mask. Thread-safe.
    """
    # faiss compares bytes with bytes, and would cut off the fractions
    scale = _MAX_BYTE / max(float(np.abs(query).max()), 1e-9)
    rounded = np.rint(query * np.float32(scale)).astype(np.float32)
    unit = np.float32(scale * VECTOR_LENGTH)
    bits = np.packbits(candidates, bitorder="little")
    selector = faiss.IDSelectorBitmap(len(bits), swig_ptr(bits))
    products = np.full(count, min_similarity * unit, np.float32)
    ids = np.full(count, -1, np.int64)
    products_pointer, ids_pointer = swig_ptr(products), swig_ptr(ids)
    scanner = _thread.scanner
    scanner.sel = selector
    scanner.set_query(swig_ptr(rounded))
    for codes, code_ids in blocks:
        scanner.scan_codes(
            len(code_ids),
            swig_ptr(codes),
            swig_ptr(code_ids),
            products_pointer,
            ids_pointer,
            count,
        )
    is_used = ids >= 0
    return ids[is_used], products[is_used] / unit
