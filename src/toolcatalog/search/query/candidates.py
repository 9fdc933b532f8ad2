"""Candidates: the tools that pass the filters of a query, in the forms that its steps need."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toolcatalog.search.index import frequent_terms
from toolcatalog.snapshot.tables import ToolIds


class Candidates:
    """The tools that pass all filters: ids in ascending order, a mask by id, and bits by id."""

    def __init__(self, tool_ids: ToolIds, tool_count: int) -> None:
        self.tool_ids = tool_ids
        self._tool_count = tool_count

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """Whether each tool is a candidate."""
        mask = np.zeros(self._tool_count, bool)
        mask[self.tool_ids] = True
        return mask

    @cached_property
    def bits(self) -> frequent_terms.Bits:
        """A bit for every tool; see `search.index.frequent_terms`."""
        return frequent_terms.pack_bits(self.mask)
