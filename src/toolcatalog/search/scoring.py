"""BM25 scoring: field weights, length normalization and saturation of terms.

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
NAME_FIELD, TOOLKIT_FIELD = 0, 1

_FIELD_WEIGHTS = np.array((1.5, 2.0, 0.4, 0.8, 0.7, 0.3))
# how much a longer field than usual makes less of each of its terms
_FIELD_B = np.array((0.3, 0.75, 0.4, 0.4, 0.75, 0.75))
_K1 = 1.6
_DELTA = 0.7  # what a term tells by standing there at all

MAX_IMPACT = _K1 + 1 + _DELTA

Floats = NDArray[np.float64]


def compute_field_weights(lengths: NDArray[np.uint32], average_lengths: Floats) -> Floats:
    """What a term counts in each of the FIELDS, for rows of the lengths of fields; `usual` are
    those lengths on average.
    """
    found: Floats = _FIELD_WEIGHTS / (
        1 - _FIELD_B + _FIELD_B * lengths / np.maximum(average_lengths, 1)
    )
    return found


def compute_impacts(frequencies: Floats) -> Floats:
    """The impact of terms, each from the sum of what it counts in all fields: more than 0, less
    than MOST.
    """
    return frequencies * (_K1 + 1) / (frequencies + _K1) + _DELTA
