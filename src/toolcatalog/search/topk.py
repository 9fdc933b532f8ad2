"""Top-k selection: the few smallest or largest of many numbers without a full sort."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.intp]

_COLUMNS_PER_RESULT = 10  # columns of values of which only the maxima are compared


def top_k(values: NDArray[Any], k: int) -> Positions:
    """Return the positions of the `k` highest values, in ascending order of position.

    Of equal values, the first ones count as higher.
    """
    if len(values) <= k:
        return np.arange(len(values))
    positions = (values >= kth_largest_bound(values, k)).nonzero()[0]
    values = values[positions]
    # Partition from the end where few values are equal: many equal ones are 20 times slower.
    inverted = -values if values.dtype.kind == "f" else ~values
    last = np.partition(inverted, k - 1)[k - 1]
    is_selected = inverted <= last
    surplus = np.count_nonzero(is_selected) - k  # more equal values than fit
    if surplus:
        is_selected[(inverted == last).nonzero()[0][-surplus:]] = False
    selected: Positions = positions[is_selected]
    return selected


def kth_largest(values: NDArray[Any], k: int) -> Any:
    """Return the `k`-th highest of at least `k` values."""
    return np.partition(values, len(values) - k)[len(values) - k]


def kth_largest_bound(values: NDArray[Any], k: int) -> Any:
    """Return a number that at least `k` of the values reach, mostly few more.

    There must be `k` values. The values are put into columns: `k` columns have a maximum that
    reaches the result.
    """
    columns = _COLUMNS_PER_RESULT * k
    rows = len(values) // columns
    if rows < 2:
        return values.min()
    maxima = values[: rows * columns].reshape(rows, columns).max(0)
    return kth_largest(maxima, k)


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
