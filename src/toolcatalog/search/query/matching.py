"""Matching: the tools that match a query, how many there are, and which are the best.

A tool matches if it contains one of the terms. There are three ways to find the best tools, with
the same result:

- If few tools pass the filters, look up the values of these.
- In a large catalog, score only the tools whose bound is high enough (`search.query.pruning`).
- Otherwise add up all postings.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from toolcatalog.search import topk
from toolcatalog.search.index.index_reader import Scores, TextIndex
from toolcatalog.search.query import pruning
from toolcatalog.search.query.candidates import Candidates
from toolcatalog.search.query.query_scores import ScoredQuery, score_all, score_tools
from toolcatalog.snapshot.tables import ToolIds

_MANY = 20  # this many times the wanted number of matches: most of these are not copied


class Matches(NamedTuple):
    """All tools that match, in ascending order, and their scores."""

    tool_ids: ToolIds
    scores: Scores


class BestMatches(NamedTuple):
    """The number of all matches, and the best ones in ascending order of id.

    `load_all` returns all matches; it may take much longer.
    """

    total: int
    tool_ids: ToolIds
    load_all: Callable[[], Matches]


def find_best(
    index: TextIndex, query: ScoredQuery, candidates: Candidates, limit: int
) -> BestMatches:
    """Return the `limit` candidates with the highest scores; of equal ones, those of lower id."""
    if len(candidates.tool_ids) <= pruning.max_lookups(index, query):
        return _select_few(
            candidates.tool_ids, score_tools(index, query, candidates.tool_ids), limit
        )
    if index.frequent is not None:
        pruned = pruning.find_best(index, index.frequent, query, candidates, limit)
        if pruned is not None:
            return BestMatches(*pruned, lambda: _match_all(index, query, candidates))
    scores = _score_candidates(index, query, candidates)
    total = int(np.count_nonzero(scores > 0))
    if total < _MANY * limit:
        return _select_few(*_select_matches(scores), limit)
    best = topk.top_k(scores, limit).astype(np.uint32)
    return BestMatches(total, best, lambda: _select_matches(scores))


def add_tools(
    index: TextIndex, query: ScoredQuery, matches: BestMatches, tool_ids: ToolIds
) -> BestMatches:
    """Return the matches with these tools (in ascending order) among them and among the best."""
    new_count = np.count_nonzero(score_tools(index, query, tool_ids) == 0)

    def load_all() -> Matches:
        by_words = matches.load_all()
        all_ids = np.union1d(by_words.tool_ids, tool_ids)
        scores = np.zeros(len(all_ids), np.float32)
        scores[all_ids.searchsorted(by_words.tool_ids)] = by_words.scores
        return Matches(all_ids, scores)

    best = np.union1d(matches.tool_ids, tool_ids)
    return BestMatches(matches.total + int(new_count), best, load_all)


def _select_few(tool_ids: ToolIds, scores: Scores, limit: int) -> BestMatches:
    is_match = scores > 0
    matches = Matches(tool_ids[is_match], scores[is_match])
    best = matches.tool_ids[topk.top_k(matches.scores, limit)]
    return BestMatches(len(matches.tool_ids), best, lambda: matches)


def _match_all(index: TextIndex, query: ScoredQuery, candidates: Candidates) -> Matches:
    return _select_matches(_score_candidates(index, query, candidates))


def _score_candidates(index: TextIndex, query: ScoredQuery, candidates: Candidates) -> Scores:
    """Return the scores of all tools, with 0 for those that are no candidates."""
    scores = score_all(index, query)
    return np.multiply(scores, candidates.mask, out=scores)


def _select_matches(scores: Scores) -> Matches:
    tool_ids = scores.nonzero()[0].astype(np.uint32)
    return Matches(tool_ids, scores.take(tool_ids))
