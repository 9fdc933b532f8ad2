"""Pruning: the best tools for a query, without adding up all postings.

Most postings of a query are those of its frequent words. So a cheap upper bound of every tool's
score comes first, and only tools whose bound reaches the score of the 100th best one are scored:

1. Add up the exact values of the rare terms.
2. Add up the levels of the frequent terms (`search.index.frequent_terms`) for all tools at once.
3. Score the tools with the highest bounds. The 100th best of them is the *threshold*: at least a
   hundred tools reach it.
4. Score all other tools whose bound reaches the threshold. No other tool can be among the best.

Step 2 counts in whole units, rounded up. Sets of tools are bits, 64 tools in each word, and the
counts of all tools are sets too: those of the tools whose count has bit 0, bit 1, and so on. They
are added like numbers on paper, column by column with a carry (`_add_columns`): one operation on
two words adds for 64 tools. `docs/explanation/search-large-catalogs.md` has an example.
"""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog.search import topk
from toolcatalog.search.index.frequent_terms import (
    Bits,
    FrequentTerm,
    FrequentTerms,
    count_bits,
    unpack_bits,
)
from toolcatalog.search.index.index_reader import Scores, TextIndex
from toolcatalog.search.query.candidates import Candidates
from toolcatalog.search.query.query_scores import SLUG_MATCH_SCORE, ScoredQuery, score_tools
from toolcatalog.snapshot.tables import ToolIds

_SAMPLE = 4  # at most so many times the wanted number of tools give the threshold
_UNITS = 32  # units of a bound for each frequent term, on average and before rounding
_BLOCK = 4096  # words of bits that are added up together
# how many postings are added up in the time of a step for every tool, and of a lookup of a value
_TOOL_COST, _LOOKUP_COST = 2, 32
_ROW_COST = 4  # tools of a dense term that are added up in the time of one posting
# relative; sums of a hundred positive 32-bit numbers differ by less, whatever their order
_PRECISION = 1e-4


class Pruned(NamedTuple):
    """The number of candidates that match, and the best ones in ascending order of id."""

    total: int
    tool_ids: ToolIds


def max_lookups(index: TextIndex, query: ScoredQuery) -> int:
    """Return of how many tools the scores can be looked up in the time of adding up all postings.

    Some steps of the latter take time for every tool.
    """
    postings = index.tool_count * _TOOL_COST + sum(
        index.tool_count // _ROW_COST if term.is_dense else term.document_frequency
        for term, _ in query.terms
    )
    return postings // (_LOOKUP_COST * (1 + len(query.terms)))


def find_best(
    index: TextIndex,
    frequent_terms: FrequentTerms,
    query: ScoredQuery,
    candidates: Candidates,
    limit: int,
) -> Pruned | None:
    """Return the `limit` best candidates; None if too many tools have a high bound.

    The result is the same as that of scoring all tools.
    """
    frequent = [
        (term, float(factor))
        for query_term, factor in query.terms
        if (term := frequent_terms.get(query_term.id))
    ]
    rare_ids, rare_sums = _add_rare_terms(index, frequent_terms, query, candidates)
    if not frequent:
        return Pruned(len(rare_ids), _select_best(rare_ids, rare_sums, limit))
    bounds, max_count = _Bounds(frequent, candidates.bits), max_lookups(index, query)
    is_counted, bounds_of_rare = bounds.lookup(rare_ids)
    total, rare_bounds = bounds.count_members(), rare_sums + bounds_of_rare
    total += int(np.count_nonzero(~is_counted))

    highest = unpack_bits(bounds.select_highest(limit), _SAMPLE * limit)
    sample = _unite(highest, rare_ids[topk.top_k(rare_bounds, limit)])
    scores, threshold = score_tools(index, query, sample), 0.0
    if len(sample) >= limit:
        threshold = float(topk.kth_largest(scores, limit)) * (1 - _PRECISION)
    reaching, rare_reaching = bounds.select_from(threshold), rare_ids[rare_bounds >= threshold]
    if count_bits(reaching) + len(rare_reaching) > max_count:
        return None
    tool_ids = _unite(unpack_bits(reaching), rare_reaching)
    others = tool_ids[np.isin(tool_ids, sample, assume_unique=True, invert=True)]
    scores = np.concatenate([scores, score_tools(index, query, others)])
    return Pruned(total, _select_best(np.concatenate([sample, others]), scores, limit))


def _select_best(tool_ids: ToolIds, scores: Scores, limit: int) -> ToolIds:
    """Return the `limit` tools with the highest scores, in ascending order of id."""
    if len(tool_ids) > limit:  # sort few of them
        is_high = scores >= topk.kth_largest_bound(scores, limit)
        tool_ids, scores = tool_ids[is_high], scores[is_high]
    order = tool_ids.argsort()
    return tool_ids[order][topk.top_k(scores[order], limit)]


def _unite(*tool_ids: ToolIds) -> ToolIds:
    """Return the tools of all sets in ascending order."""
    both = np.concatenate(tool_ids)
    both.sort()
    return both[np.append(True, both[1:] != both[:-1])] if len(both) else both


def _add_rare_terms(
    index: TextIndex, frequent: FrequentTerms, query: ScoredQuery, candidates: Candidates
) -> tuple[ToolIds, Scores]:
    """Return the candidates that a rare term or a slug finds, and the sums of these alone.

    The tools are in no order.
    """
    sums, pieces = np.zeros(index.tool_count, np.float32), [np.zeros(0, np.uint32)]

    def add(tool_ids: ToolIds, points: Scores | np.float32) -> None:
        pieces.append(tool_ids[sums.take(tool_ids) == 0])
        np.add.at(sums, tool_ids, points)

    for term, factor in query.terms:
        if not frequent.get(term.id):
            tool_ids, values = index.postings(term)
            assert tool_ids is not None
            add(tool_ids, values * factor)
    for slug_range in query.slug_ranges:
        add(np.arange(slug_range.start, slug_range.stop, dtype=np.uint32), SLUG_MATCH_SCORE)
    tool_ids = np.concatenate(pieces)
    tool_ids = tool_ids[candidates.mask.take(tool_ids)]
    return tool_ids, sums.take(tool_ids)


class _Bounds:
    """Upper bounds of what the frequent terms add to the score of each candidate.

    A bound is a whole number of units; `_counts` has its bits, a set of tools for each.
    """

    def __init__(self, terms: Sequence[tuple[FrequentTerm, float]], candidates: Bits) -> None:
        self._candidates = candidates
        self._members = np.zeros(len(candidates), np.uint64)
        bounds = [factor * term.bound for term, factor in terms]
        self._unit = sum(bounds) / (_UNITS * len(bounds))
        columns: list[list[Bits]] = []
        for term, factor in terms:
            self._members |= term.members
            step = ceil(term.step * factor / self._unit)
            _enter(columns, term.members, ceil(term.base * factor / self._unit))
            _enter(columns, term.low, step)
            _enter(columns, term.high, 2 * step)
        self._members &= candidates
        self._counts = _add_columns(columns, len(candidates))

    def count_members(self) -> int:
        """Return how many candidates contain a frequent term."""
        return count_bits(self._members)

    def lookup(self, tool_ids: ToolIds) -> tuple[NDArray[np.bool_], Scores]:
        """Return which of these candidates contain a frequent term, and their bounds."""
        octets, positions = tool_ids >> 3, (tool_ids & 7).astype(np.uint8)

        def test(bits: Bits) -> NDArray[np.uint8]:
            return (bits.view(np.uint8).take(octets) >> positions) & np.uint8(1)

        counts = np.zeros(len(tool_ids), np.uint32)
        for exponent, bits in enumerate(self._counts):
            counts |= test(bits).astype(np.uint32) << np.uint32(exponent)
        return test(self._members).view(np.bool_), counts * np.float32(self._unit)

    def select_highest(self, limit: int) -> Bits:
        """Return the `limit` members with the highest bounds, and all with the same as the last."""
        selected, undecided, missing = np.zeros_like(self._members), self._members, limit
        for bits in self._counts[::-1]:
            higher = undecided & bits
            count = count_bits(higher)
            if count >= missing:
                undecided = higher
            elif count:
                selected |= higher
                missing -= count
                undecided = undecided & ~bits
        return selected | undecided

    def select_from(self, bound: float) -> Bits:
        """Return the members with at least this bound."""
        least = ceil(bound / self._unit)
        if least >> len(self._counts):
            return np.zeros_like(self._members)
        selected, equal = np.zeros_like(self._members), self._members
        for position in reversed(range(len(self._counts))):
            bits = self._counts[position]
            if least >> position & 1:
                equal = equal & bits
            else:
                selected |= equal & bits
                equal = equal & ~bits
        return selected | equal


def _enter(columns: list[list[Bits]], tools: Bits, weight: int) -> None:
    """Enter a set of tools into the columns where `weight` has a bit."""
    while len(columns) < weight.bit_length():
        columns.append([])
    for position, column in enumerate(columns):
        if weight >> position & 1:
            column.append(tools)


def _add_columns(columns: Sequence[list[Bits]], word_count: int) -> NDArray[np.uint64]:
    """Return the sums of the columns: for each tool a number, one bit in each row of the result.

    A set in column i counts 2 to the power of i for its tools.
    """
    highest = sum(len(column) << position for position, column in enumerate(columns))
    sums = np.zeros((highest.bit_length(), word_count), np.uint64)
    for start in range(0, word_count, _BLOCK):  # small enough for the cache of a core
        block = slice(start, start + _BLOCK)
        waiting, carries = [[tools[block] for tools in column] for column in columns], list[Bits]()
        for row in sums:
            column = carries + (waiting.pop(0) if waiting else [])
            row[block], carries = _add_column(column) if column else (0, [])
    return sums


def _add_column(column: list[Bits]) -> tuple[Bits, list[Bits]]:
    """Return the sum of a column, and the carries to the next one.

    Three sets become one, of the tools in an odd number of them, and a carry, of those in two or
    more.
    """
    carries = []
    while len(column) > 2:
        first, second, third = column.pop(), column.pop(), column.pop()
        odd = first ^ second
        carries.append((first & second) | (odd & third))
        column.append(odd ^ third)
    if len(column) == 2:
        first, second = column
        carries.append(first & second)
        column = [first ^ second]
    return column[0], carries
