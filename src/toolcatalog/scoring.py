"""What a term that stands in the fields of a tool tells of it: the formula, in one place for
building and for explaining. Pure.

BM25+ over fields: how often the term stands in each, weighted and made less of where the field is
longer than usual, is summed up before it is saturated. How rare the term is comes on top of that,
once for all tools.
"""

import numpy as np
from numpy.typing import NDArray

FIELDS = (
    "name",
    "toolkit",
    "first sentence",
    "description",
    "parameter names",
    "parameter descriptions",
)
NAME, TOOLKIT = 0, 1

_WEIGHTS = np.array((1.5, 2.0, 0.4, 0.8, 0.7, 0.3))
# how much a longer field than usual makes less of each of its terms
_LENGTHS = np.array((0.3, 0.75, 0.4, 0.4, 0.75, 0.75))
_SATURATION = 1.6
_PRESENT = 0.7  # what a term tells by standing there at all

MOST = _SATURATION + 1 + _PRESENT

Floats = NDArray[np.float64]


def factors(lengths: NDArray[np.uint32], usual: Floats) -> Floats:
    """What a term counts in each of the FIELDS, for rows of the lengths of fields; `usual` are
    those lengths on average.
    """
    found: Floats = _WEIGHTS / (1 - _LENGTHS + _LENGTHS * lengths / np.maximum(usual, 1))
    return found


def impacts(frequencies: Floats) -> Floats:
    """The impact of terms, each from the sum of what it counts in all fields: more than 0, less
    than MOST.
    """
    return frequencies * (_SATURATION + 1) / (frequencies + _SATURATION) + _PRESENT
