"""Top-k selection: the few smallest or largest of many numbers without a full sort."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.intp]


def top_k(values: NDArray[Any], k: int) -> Positions:
    """The places of so many of the highest values, in order of place."""
    if len(values) <= k:
        return np.arange(len(values))
    # from the end where few are equal: many equal numbers cost numpy twenty times as much
    turned = -values if values.dtype.kind == "f" else ~values
    last = np.partition(turned, k - 1)[k - 1]
    places: Positions = (turned <= last).nonzero()[0]
    ties = len(places) - k  # that are too many
    return places if not ties else np.delete(places, (turned[places] == last).nonzero()[0][-ties:])


def sorted_slice(keys: NDArray[Any], start: int, stop: int) -> Positions:
    """The places of the smallest keys from `start` to `stop`; equal keys keep their order. Only the
    keys of the page are sorted.
    """
    stop = min(stop, len(keys))
    near, before = keys <= np.partition(keys, stop - 1)[stop - 1], 0
    if start:
        low = np.partition(keys, start)[start]
        near, before = near & (keys >= low), int(np.count_nonzero(keys < low))
    places = near.nonzero()[0]
    found: Positions = places[np.argsort(keys[places], kind="stable")]
    return found[start - before : stop - before]
