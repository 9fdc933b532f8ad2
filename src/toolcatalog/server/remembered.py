"""Answers that were given before, to be given again: where their pieces lie, not the bytes. A store never changes, so they stay right.

Serves: "list of 20 ≥ 0.70, ... filter (toolkit + two tags + not deprecated) ≥ 0.60, short query ≥ 0.50" of issue 3.
"""

from collections.abc import Hashable

from toolcatalog.server.operations import Tagged

_MOST = 1 << 17  # of all answers together, in units of about a hundred bytes: a unit for each piece, and for what stands around them
_AROUND = 4
_SCATTERED = 128  # pieces of one answer


class Remembered(dict[Hashable, Tagged]):
    """Answers by what was asked, and by whom as far as that matters. The oldest go when there are too many."""

    def __init__(self) -> None:
        super().__init__()
        self._held = 0

    def keep(self, asked: Hashable, found: Tagged) -> None:
        """Remember an answer, unless it has very many pieces."""
        if asked in self or len(found.pieces) > _SCATTERED:
            return
        self[asked] = found
        self._held += len(found.pieces) + _AROUND
        while self._held > _MOST:
            self._held -= len(self.pop(next(iter(self))).pieces) + _AROUND
