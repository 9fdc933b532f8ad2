"""Answers that were given before, to be given again: where their pieces lie, not the bytes. A store
never changes, so they stay right.
"""

from collections.abc import Hashable

from toolcatalog.server.operations import Tagged

# of all answers together, in units of about a hundred bytes: a unit for each piece, and for what
# stands around them
_MOST = 1 << 17
_AROUND = 4
_SCATTERED = 128  # pieces of one answer


class Remembered(dict[Hashable, Tagged]):
    """Answers by what was asked, and by whom as far as that matters. The oldest go when there are
    too many.
    """

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
