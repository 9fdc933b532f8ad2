"""Route suggestion: the path that a client probably meant when it asked for an unknown one."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

_MIN_SIMILARITY = 0.6  # of a segment with that of a route; 1 is equal
_MAX_SEGMENT = 40  # characters of a segment that are compared
_MAX_SEGMENTS = 8


def suggest_route(path: str, templates: Iterable[str], prefix: str) -> str:
    """Return the path like `path` that one of the route templates matches; empty if none is near.

    Segments such as `{slug}` match any text, which is kept. `prefix` is tried in front of a path
    that lacks it. The cost is bounded, because anyone may send any path.
    """
    segments = path.strip("/").split("/")
    if len(segments) > _MAX_SEGMENTS:
        return ""
    prefix_segments = prefix.strip("/").split("/")
    best, suggestion = 0.0, ""
    for template in templates:
        wanted = template.strip("/").split("/")
        for given in (segments, [*prefix_segments, *segments]):
            similarity = _compare(given, wanted)
            if similarity > best:
                best, suggestion = similarity, _fill(given, wanted)
    return suggestion


def _compare(given: Sequence[str], wanted: Sequence[str]) -> float:
    """Return the mean similarity of the fixed segments; 0 if any of them is not near."""
    if len(given) != len(wanted):
        return 0.0
    total = 0.0
    for segment, name in zip(given, wanted, strict=True):
        if name.startswith("{"):
            total += 0.5  # a fixed segment that is equal is a better match
            continue
        ratio = SequenceMatcher(None, segment[:_MAX_SEGMENT].casefold(), name.casefold()).ratio()
        if ratio < _MIN_SIMILARITY:
            return 0.0
        total += ratio
    return total / len(wanted)


def _fill(given: Sequence[str], wanted: Sequence[str]) -> str:
    pairs = zip(given, wanted, strict=True)
    return "/" + "/".join(segment if name.startswith("{") else name for segment, name in pairs)
