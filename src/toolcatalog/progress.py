"""Progress reporting: the callbacks through which long operations report their progress."""

import contextlib
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]
# (description, total number of items)
Progress = Callable[[str, int], contextlib.AbstractContextManager[Advance]]


@contextlib.contextmanager
def no_progress(_: str, __: int) -> Iterator[Advance]:
    """Report no progress."""
    yield lambda _: None
