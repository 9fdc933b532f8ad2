"""Search among many vectors: how many of the nearest are found, and how long it takes.

Encoding a million tools takes hours. So the vectors of real tools are mixed in pairs, with noise,
and queries are real ones.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from toolcatalog.search.embeddings import encoder, vectors
from toolcatalog.search.embeddings.encoder import Vectors
from toolcatalog.search.embeddings.vectors import VectorIndex
from toolcatalog.snapshot.mapped_files import Access, map_file

RECALL_TARGET, TIME_TARGET = 0.98, 3.0  # the latter in milliseconds
_NEIGHBORS = 100
_ROUNDS = 3
_BATCH = 20_000
_NOISE = 0.012  # of each number of a vector


class VectorFigures(NamedTuple):
    """Mean recall of the 100 nearest, median and 95th percentile of milliseconds."""

    recall: float
    median: float
    high: float


def mix_vectors(tools: Vectors, count: int) -> list[bytes]:
    """Return packed vectors: mixtures of two tools, with noise."""
    draw = np.random.default_rng(5)
    batches = []
    for start in range(0, count, _BATCH):
        size = min(_BATCH, count - start)
        share = draw.uniform(0.55, 1, (size, 1)).astype(np.float32)
        first, second = draw.integers(0, len(tools), (2, size))
        mixed = share * tools[first] + (1 - share) * tools[second]
        mixed += draw.normal(0, _NOISE, mixed.shape).astype(np.float32)
        batches.append(encoder.quantize(_normalize(mixed)))
    return batches


def measure_vectors(tools: Vectors, queries: Sequence[Vectors], count: int) -> VectorFigures:
    """Return the figures of `count` mixed vectors for queries of one vector each."""
    batches = mix_vectors(tools, count)
    nearest = _find_exactly(batches, np.concatenate(queries))
    everything = np.ones(count, np.bool_)
    with tempfile.TemporaryDirectory() as folder, machine.keep_cores_awake():
        file = Path(folder) / "vectors"
        with file.open("wb") as output:
            output.writelines(vectors.pack_vectors(batches))
        index = VectorIndex(map_file(file, Access.WHOLE), count)
        recalls, times = [], []
        for query, expected in zip(queries, nearest, strict=True):
            durations = []
            for _ in range(_ROUNDS):
                start = time.perf_counter()
                found = index.find_nearest(query, everything).tool_ids
                durations.append(1000 * (time.perf_counter() - start))
            times.append(min(durations))
            recalls.append(len(np.intersect1d(found, expected)) / max(1, len(expected)))
    return VectorFigures(
        statistics.mean(recalls), float(np.median(times)), float(np.percentile(times, 95))
    )


def read_tools(file: Path, count: int) -> Vectors:
    """Return the vectors of a snapshot's vector file, normalized, in the order of the file."""
    lists = vectors.read_vectors(file.read_bytes(), count)
    return _normalize(lists.vectors.astype(np.float32) - 128)


def _find_exactly(batches: Sequence[bytes], queries: Vectors) -> list[NDArray[np.intp]]:
    """Return the nearest of the packed vectors for each query, from all cosines."""
    cosines = np.concatenate(
        [
            _normalize(
                np.frombuffer(data, np.int8).reshape(-1, queries.shape[1]).astype(np.float32)
            )
            @ queries.T
            for data in batches
        ]
    )
    best = np.argpartition(cosines, -_NEIGHBORS, axis=0)[-_NEIGHBORS:]
    return [
        column[cosines[column, query] >= vectors.MIN_SIMILARITY]
        for query, column in enumerate(best.T)
    ]


def _normalize(values: Vectors) -> Vectors:
    normalized: Vectors = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)
    return normalized
