"""Top-k selection: the few smallest or largest of many numbers without a full sort."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.intp]


def top_k(values: NDArray[Any], k: int) -> Positions:
    """Return the positions of the `k` highest values, in ascending order of position."""
    if len(values) <= k:
        return np.arange(len(values))
    # Partition from the end where few values are equal: many equal ones are 20 times slower.
    inverted = -values if values.dtype.kind == "f" else ~values
    last = np.partition(inverted, k - 1)[k - 1]
    positions: Positions = (inverted <= last).nonzero()[0]
    surplus = len(positions) - k  # more equal values than fit
    return (
        positions
        if not surplus
        else np.delete(positions, (inverted[positions] == last).nonzero()[0][-surplus:])
    )


def sorted_slice(keys: NDArray[Any], start: int, stop: int) -> Positions:
    """Return the positions of the keys that rank from `start` to `stop`, smallest key first.

    Equal keys keep their order. Only the keys of this slice are sorted.
    """
    stop = min(stop, len(keys))
    is_candidate, skipped = keys <= np.partition(keys, stop - 1)[stop - 1], 0
    if start:
        low = np.partition(keys, start)[start]
        is_candidate, skipped = is_candidate & (keys >= low), int(np.count_nonzero(keys < low))
    positions = is_candidate.nonzero()[0]
    result: Positions = positions[np.argsort(keys[positions], kind="stable")]
    return result[start - skipped : stop - skipped]
