"""Tests of `search.topk`: the results are those of sorting everything."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolcatalog.search import topk

VALUES = st.lists(st.integers(0, 9), max_size=40)


@given(VALUES, st.integers(1, 12))
def test_highest(values: list[int], maximum: int) -> None:
    """The highest values, of equal ones the first, in order of place."""
    expected = sorted(sorted(range(len(values)), key=lambda position: -values[position])[:maximum])
    assert topk.top_k(np.array(values, np.float32), maximum).tolist() == expected


@given(VALUES, st.integers(0, 39), st.integers(1, 12))
def test_ordered(values: list[int], start: int, size: int) -> None:
    """A page of the places, smallest value first, equal ones in their order."""
    if start < len(values):
        expected = sorted(range(len(values)), key=lambda position: values[position])[
            start : start + size
        ]
        assert topk.sorted_slice(np.array(values), start, start + size).tolist() == expected
