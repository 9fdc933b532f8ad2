"""Query scores: for each tool, the sum of the values of the query's terms.

The value of a term counts as often as its factor says: its weight in the query times its IDF.
Sums are made in the order of the terms, so that all functions give the same bits for a tool.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolcatalog.search.index.index_reader import Scores, Term, TextIndex
from toolcatalog.snapshot.tables import ToolIds

SLUG_MATCH_SCORE = np.float32(1e9)  # more than any sum of values


class ScoredQuery(NamedTuple):
    """The terms of a query with their factors, and the ranges of tools whose slugs match it."""

    terms: Sequence[tuple[Term, np.float32]]
    slug_ranges: Sequence[slice]


def score_all(index: TextIndex, query: ScoredQuery) -> Scores:
    """Return the score of every tool; 0 if it matches nothing."""
    scores = np.zeros(index.tool_count, np.float32)
    for term, factor in query.terms:
        index.add_scores(term, factor, scores)
    for slug_range in query.slug_ranges:
        scores[slug_range] += SLUG_MATCH_SCORE
    return scores


def score_tools(index: TextIndex, query: ScoredQuery, tool_ids: ToolIds) -> Scores:
    """Return the scores of these tools."""
    scores = np.zeros(len(tool_ids), np.float32)
    for term, factor in query.terms:
        scores += index.term_values(term, tool_ids) * factor
    for slug_range in query.slug_ranges:
        is_inside = (tool_ids >= slug_range.start) & (tool_ids < slug_range.stop)
        scores[is_inside] += SLUG_MATCH_SCORE
    return scores
