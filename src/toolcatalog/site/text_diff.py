"""Text differences as HTML: by word for descriptions, by line for schemas.

Removed parts are `del` elements and added ones `ins`. The work is bounded: texts beyond
`_MAX_PARTS`, and what is left when the comparisons of a page are spent, are shown as removed and
added as a whole. What no longer fits into the page is left out: see `Budget.fits`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from html import escape
from itertools import accumulate

from toolcatalog.textutils import escape_hidden

_WORD = re.compile(r"\s+|[\w'-]+|[^\w\s]")
_MAX_PARTS = 2_000  # words or lines of a text
_MAX_COMPARISONS = 5_000_000  # of equal parts on a page, which take some tenths of a second
_MAX_SIZE = 4 << 20  # characters of all differences on a page
_CONTEXT = 2  # equal lines around a difference

Operation = tuple[str, int, int, int, int]


class Budget:
    """The numbers of comparisons and characters that are left for the differences of a page."""

    def __init__(self) -> None:
        self.comparisons = _MAX_COMPARISONS
        self.size = _MAX_SIZE

    @property
    def has_space(self) -> bool:
        """Whether there is space for more HTML."""
        return self.size > 0

    def fits(self, html: str) -> bool:
        """Return whether this HTML fits into the page; if it does, count its characters."""
        if len(html) > self.size:
            return False
        self.size -= len(html)
        return True


def diff_words(old: str, new: str, budget: Budget) -> str:
    """Return the new text with what was removed and added."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    html: list[str] = []
    for kind, start, end, new_start, new_end in _compare(before, after, budget):
        if kind == "equal":
            html.append(_escape("".join(before[start:end])))
            continue
        html += _mark("del", "".join(before[start:end]))
        html += _mark("ins", "".join(after[new_start:new_end]))
    return "".join(html)


def diff_lines(old: str, new: str, budget: Budget) -> str:
    """Return the lines that differ, with the lines around them; empty if all are equal."""
    if old == new:
        return ""
    before, after = old.split("\n"), new.split("\n")
    html: list[str] = []
    for kind, start, end, new_start, new_end in _compare(before, after, budget):
        if kind == "equal":
            html += _context(before[start:end], start == 0, end == len(before))
            continue
        html += _mark("del", "\n".join(before[start:end]))
        html += _mark("ins", "\n".join(after[new_start:new_end]))
    return "\n".join(html)


def _compare(before: Sequence[str], after: Sequence[str], budget: Budget) -> list[Operation]:
    """Return the operations that make one text into the other, as `difflib` does.

    The parts at both ends that are equal are left out of the comparison, which takes the time.
    """
    head = _common_length(before, after)
    tail = _common_length(before[head:][::-1], after[head:][::-1])
    ends = len(before) - tail, len(after) - tail
    middle = [
        (kind, start + head, end + head, new_start + head, new_end + head)
        for kind, start, end, new_start, new_end in _opcodes(
            before[head : ends[0]], after[head : ends[1]], budget
        )
    ]
    first = [("equal", 0, head, 0, head)] if head else []
    last = [("equal", ends[0], len(before), ends[1], len(after))] if tail else []
    return [*first, *middle, *last]


def _opcodes(before: Sequence[str], after: Sequence[str], budget: Budget) -> list[Operation]:
    if not before and not after:
        return []
    if not before or not after or max(len(before), len(after)) > _MAX_PARTS:
        # nothing to compare, or too much
        kind = "insert" if not before else "delete" if not after else "replace"
        return [(kind, 0, len(before), 0, len(after))]
    return [*_BoundedMatcher(before, after, budget).get_opcodes()]


class _BoundedMatcher(SequenceMatcher[str]):
    """Finds equal parts until the budget is spent; the rest counts as different.

    White space alone is no equal part, unless it is next to one.
    """

    def __init__(self, before: Sequence[str], after: Sequence[str], budget: Budget) -> None:
        super().__init__(str.isspace, before, after, autojunk=False)
        self._budget = budget
        counts = Counter(part for part in after if not part.isspace())
        # the number of equal pairs before each part
        self._pairs_before = [0, *accumulate(counts[part] + 1 for part in before)]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        end = -1 if ahi is None else ahi
        self._budget.comparisons -= self._pairs_before[end] - self._pairs_before[alo]
        if self._budget.comparisons < 0:
            return Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)


def _common_length(before: Sequence[str], after: Sequence[str]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    shortest = min(len(before), len(after))
    return next((place for place, (old, new) in pairs if old != new), shortest)


def _context(lines: Sequence[str], is_first: bool, is_last: bool) -> Iterator[str]:
    """Yield the equal lines next to a difference, and an ellipsis in place of the others."""
    head = lines[:0] if is_first else lines[:_CONTEXT]
    tail = lines[len(lines) :] if is_last else lines[max(len(head), len(lines) - _CONTEXT) :]
    yield from map(_escape, head)
    if len(head) + len(tail) < len(lines):
        yield "…"
    yield from map(_escape, tail)


def _mark(tag: str, text: str) -> list[str]:
    return [f"<{tag}>{_escape(text)}</{tag}>"] if text else []


def _escape(text: str) -> str:
    return escape(escape_hidden(text), quote=False)
