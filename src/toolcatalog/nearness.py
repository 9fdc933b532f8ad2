"""The vectors of all tool versions: how they lie in their file, and which are nearest to a query's.

A vector's sketch is the sign of each of its numbers, a bit for each. Vectors whose sketches differ
in few bits are near each other, mostly, and bits are counted many times faster than products: so of
a million tools a thousand are compared in full.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog import picking
from toolcatalog.meaning import LENGTH, Vectors
from toolcatalog.postings import Numbers
from toolcatalog.table import Data

_WORDS = LENGTH // 64  # of a sketch
_SKETCHED = 1000  # tools whose sketches are nearest, and that are compared in full
_NEAREST = 100
_ALIKE = 0.2  # cosine: what is less alike than that is not alike
_FAR = LENGTH + 1


Encode = Callable[[str], Vectors]  # a query to its vectors


class Near(NamedTuple):
    """The tools that mean most alike: their numbers, smallest first, and how alike, from 0 for the
    last of them to 1 for the first.
    """

    numbers: Numbers
    likeness: NDArray[np.float32]


NOTHING = Near(np.zeros(0, np.uint32), np.zeros(0, np.float32))


def pack(batches: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces of the file, from the vectors of batches of tools in the order of their numbers:
    those, then their sketches by word.
    """
    sketches = [np.zeros((0, LENGTH // 8), np.uint8)]
    for data in batches:
        sketches.append(_sketch(np.frombuffer(data, np.int8).reshape(-1, LENGTH)))
        yield data
    yield np.ascontiguousarray(np.concatenate(sketches).view("<u8").T).tobytes()


def _sketch(vectors: NDArray[np.int8] | Vectors) -> NDArray[np.uint8]:
    return np.packbits(vectors > 0, axis=1)


class Nearness:
    """The vectors of so many tool versions, opened."""

    def __init__(self, data: Data, tools: int) -> None:
        self._vectors = np.frombuffer(data, np.int8, tools * LENGTH).reshape(tools, LENGTH)
        self._sketches = np.frombuffer(data, "<u8", tools * _WORDS, tools * LENGTH).reshape(
            _WORDS, tools
        )

    def nearest(self, query: Vectors, among: NDArray[np.bool_]) -> Near:
        """Of these tools (a column by number) those nearest to any vector of a query."""
        numbers = self._sketched(query, among)
        if not len(query) or not len(numbers):
            return NOTHING
        vectors = self._vectors[numbers].astype(np.float32)
        alike = (vectors @ query.T).max(1) / np.maximum(
            np.linalg.norm(vectors, axis=1), np.float32(1)
        )
        best = picking.highest(alike, _NEAREST)
        best = best[alike[best] >= _ALIKE]
        return _scaled(numbers[best], alike[best])

    def _sketched(self, query: Vectors, among: NDArray[np.bool_]) -> Numbers:
        """Those that are worth comparing in full."""
        if np.count_nonzero(among) <= _SKETCHED:
            return among.nonzero()[0].astype(np.uint32)
        apart = np.full(len(among), _FAR, np.uint16)  # in how many bits
        for sketch in _sketch(query).view("<u8"):
            bits = np.zeros(len(among), np.uint16)
            for column, word in zip(self._sketches, sketch, strict=True):
                bits += np.bitwise_count(column ^ word)
            np.minimum(apart, bits, out=apart)
        apart[~among] = _FAR
        return picking.highest(_FAR - apart, _SKETCHED).astype(np.uint32)


def _scaled(numbers: Numbers, alike: NDArray[np.float32]) -> Near:
    if not len(numbers):
        return NOTHING
    low, high = float(alike.min()), float(alike.max())
    return Near(
        numbers,
        ((alike - low) / (high - low)).astype(np.float32) if high > low else np.ones_like(alike),
    )
