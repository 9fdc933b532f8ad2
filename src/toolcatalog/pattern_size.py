"""Pattern sizes: how many states a regular expression has, which bounds the time of a match."""

import re
from collections.abc import Iterator
from typing import Any

_TOKEN = re.compile(
    r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]"  # an escape or a set
    r"|(?P<repeat>\{(?P<low>[0-9]+)(?P<open>,(?P<high>[0-9]*))?\})|.",
    re.DOTALL,
)


def count_states(pattern: str) -> int:
    """Return about how many states a pattern has: `(ab{3}){2}` has 8.

    A linear engine takes as many steps for each character of a text at most.
    """
    groups, last = [0], 0  # the states of the open groups, and of what a repeat would repeat
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if token["repeat"]:
            groups[-1] += last * (max(int(token["low"]), int(token["high"] or 0)) - 1)
            last *= max(int(token["low"]), int(token["high"] or 0))
        elif text == "(":
            groups.append(0)
            last = 0
        elif text == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif text not in ("*", "+", "?", "|"):
            last = 1
            groups[-1] += 1
    return max(0, sum(groups))


def count_schema_states(schema: Any) -> int:
    """Return the states of all patterns in a JSON Schema."""
    return sum(map(count_states, _iter_patterns(schema)))


def _iter_patterns(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        pattern = value.get("pattern")
        if isinstance(pattern, str):
            yield pattern
        for child in value.values():
            yield from _iter_patterns(child)
    elif isinstance(value, list):
        for child in value:
            yield from _iter_patterns(child)
