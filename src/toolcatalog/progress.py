"""Progress reporting: how long work reports how far it is."""

import contextlib
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]
# (what is being done, to how many)
Progress = Callable[[str, int], contextlib.AbstractContextManager[Advance]]


@contextlib.contextmanager
def no_progress(_: str, __: int) -> Iterator[Advance]:
    """Show nothing."""
    yield lambda _: None
