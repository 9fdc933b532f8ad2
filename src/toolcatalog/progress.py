"""How long work tells how far it is: it hands its items to a `Track`, which gives them back one by one and may show that."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

Track = Callable[[str, Sequence[Any]], Iterable[Any]]  # (what is being done, to what) -> the same items


def quietly(_: str, items: Sequence[Any]) -> Iterable[Any]:
    """Show nothing."""
    return items
