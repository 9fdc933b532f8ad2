"""BM25 scoring: field weights, length normalization and saturation of terms.

The formula is BM25+ over several fields. The counts of a term in each field are weighted, reduced
where the field is longer than average, and summed before saturation. The rarity of the term (IDF)
is a separate factor, the same for all tools.
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

FIELD_WEIGHTS = np.array((1.5, 2.0, 0.4, 0.8, 0.7, 0.3))
# strength of the length normalization of each field
FIELD_B = np.array((0.3, 0.75, 0.4, 0.4, 0.75, 0.75))
K1 = 1.6
_DELTA = 0.7  # BM25+ lower bound: what any occurrence scores

MAX_IMPACT = K1 + 1 + _DELTA

Floats = NDArray[np.float64]


def compute_field_weights(lengths: NDArray[np.uint32], average_lengths: Floats) -> Floats:
    """Return the weight of one occurrence of a term in each of the FIELDS.

    `lengths` has a row of field lengths per tool, `average_lengths` the mean length of each field.
    """
    weights: Floats = FIELD_WEIGHTS / (
        1 - FIELD_B + FIELD_B * lengths / np.maximum(average_lengths, 1)
    )
    return weights


def compute_impacts(frequencies: Floats) -> Floats:
    """Return the impact of each weighted frequency: more than 0, less than MAX_IMPACT."""
    return frequencies * (K1 + 1) / (frequencies + K1) + _DELTA
