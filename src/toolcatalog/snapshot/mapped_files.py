"""Mapped files: the files of a snapshot as memory, with advice on how they are read."""

import mmap
import os
from enum import Enum
from pathlib import Path

Buffer = bytes | mmap.mmap  # slices of it are bytes


class Access(Enum):
    """How a mapped file is read, which decides how much the system reads ahead of a page."""

    RANDOM = "MADV_RANDOM"  # nothing
    SEQUENTIAL = "MADV_SEQUENTIAL"


def map_file(file: Path, access: Access) -> Buffer:
    """Map a file into memory for reading; an empty one is empty bytes. Raises OSError."""
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not os.fstat(handle).st_size:
            return b""
        data = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(handle)
    advice = getattr(mmap, access.value, None)
    if advice is not None:  # this system takes no advice
        data.madvise(advice)
    return data
