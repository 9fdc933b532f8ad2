"""The columns of `query.numbers`, as arrays. Pure.

By place, which is the order in which the documents lie: `offset` (where each begins, and where one
more would), `tag`, `check` (its CRC-32) and `number`; by number: `place`, and the ranks `name` and
`version`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolcatalog.snapshot import TAG_SIZE

_OFFSET_TYPE = "<u8"  # of these there is one more than there are tool versions
_COLUMN_TYPES = {
    "tag": f"V{TAG_SIZE}",
    "check": "<u4",
    "number": "<u4",
    "place": "<u4",
    "name": "<u4",
    "version": "<u4",
}


def unpack_columns(data: memoryview) -> dict[str, NDArray[Any]]:
    """The columns by name; nothing is copied. Raises ValueError where the bytes are not those of
    columns, or where a column refers to what is not there.
    """
    every, end, found = np.frombuffer(data, np.uint8), 0, {}
    count = (len(every) - np.dtype(_OFFSET_TYPE).itemsize) // sum(
        np.dtype(kind).itemsize for kind in (_OFFSET_TYPE, *_COLUMN_TYPES.values())
    )
    for name, kind, items in (
        ("offset", _OFFSET_TYPE, count + 1),
        *((name, kind, count) for name, kind in _COLUMN_TYPES.items()),
    ):
        start, end = end, end + items * np.dtype(kind).itemsize
        found[name] = every[start:end].view(kind)
    offset = found["offset"]
    if (
        count < 0
        or end != len(every)
        or (offset[1:] < offset[:-1]).any()
        or any((found[name] >= count).any() for name in ("number", "place"))
    ):
        raise ValueError("no columns")
    return found


def pack_columns(columns: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of the columns."""
    return b"".join(
        columns[name].astype(kind, copy=False).tobytes()
        for name, kind in (("offset", _OFFSET_TYPE), *_COLUMN_TYPES.items())
    )
