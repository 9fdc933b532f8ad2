"""Answers that were given before, to be given again: where their pieces lie, not the bytes. A store
never changes, so they stay right.
"""

from collections.abc import Hashable

from toolcatalog.server.operations import OperationResult

# of all answers together, in units of about a hundred bytes: a unit for each piece, and for what
# stands around them
_MAX_SIZE = 1 << 17
_ENTRY_OVERHEAD = 4
_MAX_CHUNKS = 128  # pieces of one answer


class ResponseCache(dict[Hashable, OperationResult]):
    """Answers by what was asked, and by whom as far as that matters. The oldest go when there are
    too many.
    """

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def add(self, key: Hashable, result: OperationResult) -> None:
        """Remember an answer, unless it has very many pieces."""
        if key in self or len(result.chunks) > _MAX_CHUNKS:
            return
        self[key] = result
        self._size += len(result.chunks) + _ENTRY_OVERHEAD
        while self._size > _MAX_SIZE:
            self._size -= len(self.pop(next(iter(self))).chunks) + _ENTRY_OVERHEAD
