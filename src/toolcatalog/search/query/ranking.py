"""Ranking: a query to matching tools, best first.

A tool matches if it contains one of the query's terms, a related term, or a correction of a
misspelled one. It need not contain all of them, because agents send whole sentences. All matches
are scored by the impacts of their terms. The best ones are reranked and come first:

- The more of a tool's name, and of its toolkit's, the query covers, the more its impacts count.
- The score for the one sentence of the query that the tool fits best is added: agents ask for
  several things at once.
- Semantic similarity counts as much as the words if the snapshot has vectors
  (`search.embeddings.vectors`).
- A tool that replaces a deprecated one comes before it.
- A tool whose slug, slug prefix or name is the query comes before all others.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog.search import analysis, topk
from toolcatalog.search.embeddings.vectors import NO_NEIGHBORS, Neighbors
from toolcatalog.search.index.index_reader import TextIndex
from toolcatalog.search.index.vocabulary import Lookup
from toolcatalog.search.query import matching, query_expansion
from toolcatalog.search.query.candidates import Candidates
from toolcatalog.search.query.matching import Matches
from toolcatalog.search.query.query_expansion import QueryTerm, expand_query
from toolcatalog.search.query.query_scores import ScoredQuery
from toolcatalog.snapshot.tables import ToolIds

_COVERAGE_BOOST = 0.3  # how much more impacts count for a covered name
_SENTENCE_BOOST = 0.5  # weight of the best sentence relative to the whole query
# how much more impacts count if the name has the action of a query of up to three words
_ACTION_BOOST, _ACTION_WORDS = 0.5, 3
_DEPRECATED_FACTOR, _IMPORTANT_FACTOR = 0.9, 1.03  # factors of the final score
_REPLACEMENT_FACTOR = np.float32(1.001)  # how much higher a replacement ranks
_LABEL_FACTORS = np.array(
    [1, _DEPRECATED_FACTOR, _IMPORTANT_FACTOR, _DEPRECATED_FACTOR * _IMPORTANT_FACTOR], np.float32
)
SLUG_BONUS, SLUG_PREFIX_BONUS, _NAME_BONUS = (
    4.0,
    3.0,
    2.0,
)  # added if the query is the slug, a prefix of it, or the name
SEMANTIC_WEIGHT = 0.5  # weight of semantic similarity; the rest is that of the words
_TEXT_POWER = 1.8  # of text scores from 0 to 1 that are combined with semantic similarity
_EPSILON = np.float32(1e-9)
# the bits of a value for a term in the name, and in the toolkit's name
_FIELD_BITS = np.array([[[1]], [[2]]], np.uint16)
RERANK_LIMIT = 100  # tools that are reranked

FloatColumn = NDArray[np.float32]
# positions, in an array of tool ids, of a deprecated tool and of the one that replaces it
Replacements = Sequence[tuple[int, int]]


class SlugMatch(NamedTuple):
    """A range of tool ids whose slugs match, and SLUG_BONUS or SLUG_PREFIX_BONUS."""

    tool_ids: slice
    bonus: float


class Labels:
    """The deprecated tools, which lose against an equal, and the important ones.

    It takes a byte for each tool.
    """

    def __init__(self, deprecated: ToolIds, important: ToolIds, tool_count: int) -> None:
        self._kinds = np.zeros(tool_count, np.uint8)
        self._kinds[deprecated] = 1
        self._kinds[important] += np.uint8(2)

    def find_deprecated(self, tool_ids: ToolIds) -> list[int]:
        """Return the positions of the deprecated ones of these tools."""
        positions: list[int] = (self._kinds.take(tool_ids) & 1).nonzero()[0].tolist()
        return positions

    def factors(self, tool_ids: ToolIds) -> FloatColumn:
        """Return the factor of each tool's score."""
        factors: FloatColumn = _LABEL_FACTORS.take(self._kinds.take(tool_ids))
        return factors


def _find_none(_: ToolIds) -> Replacements:
    return ()


class Ranking(NamedTuple):
    """The matches of a query: their number, and the best ones.

    `top_ids` are the reranked tools in ascending order, with their final scores. `load_all` returns
    all matches with their scores by words, and may take much longer than all else. `neighbors` are
    the semantic matches.
    """

    total: int
    top_ids: ToolIds
    top_scores: FloatColumn
    load_all: Callable[[], Matches]
    neighbors: Neighbors = NO_NEIGHBORS


def find_similar_slugs(
    lookup: Lookup,
    query: str,
    candidates: NDArray[np.bool_],
    slug_matches: Sequence[SlugMatch],
    limit: int,
) -> ToolIds:
    """Return the candidates that contain most of the terms of a query, at most `limit`.

    `candidates` is a mask by number. Slug matches come first, then the tools with most terms, then
    by number. A term in the name counts twice; IDF does not count. Unknown words are corrected only
    if less than half of the words are known, because correction takes most of the time.
    """
    counts = np.zeros(len(candidates), np.int32)
    for slug_match in slug_matches:
        counts[slug_match.tool_ids] += 2 * query_expansion.MAX_TERMS
    words = [*query_expansion.query_terms(query)]
    is_mostly_known = 2 * sum(lookup.term(word) is not None for word in words) >= len(words)
    for term, *_ in expand_query(
        lookup, query, 0 if is_mostly_known else query_expansion.MAX_SLUG_LETTERS
    ):
        lookup.postings.count(term, counts)
    numbers = ((counts > 0) & candidates).nonzero()[0].astype(np.uint32)
    return numbers[topk.sorted_slice(-counts[numbers], 0, limit)] if len(numbers) else numbers


def rank_tools(
    lookup: Lookup,
    query: str,
    candidates: Candidates,
    slug_matches: Sequence[SlugMatch],
    labels: Labels,
    neighbors: Neighbors = NO_NEIGHBORS,
    find_replacements: Callable[[ToolIds], Replacements] = _find_none,
) -> Ranking:
    """Rank the candidates that match a query; `neighbors` must be candidates too.

    `find_replacements` takes the reranked tools.
    """
    terms, index = expand_query(lookup, query), lookup.postings
    scored_query = ScoredQuery(
        [
            (query_term.term, np.float32(query_term.weight * query_term.term.idf))
            for query_term in terms
        ],
        [slug_match.tool_ids for slug_match in slug_matches],
    )
    matches = matching.find_best(index, scored_query, candidates, RERANK_LIMIT)
    if len(neighbors.tool_ids):
        matches = matching.add_tools(index, scored_query, matches, neighbors.tool_ids)
    best = matches.tool_ids
    scores = combine_scores(compute_text_scores(index, terms, best), best, neighbors)
    top_scores = raise_replacements(
        scores * labels.factors(best), find_replacements(best)
    ) + compute_bonus(index, query, best, slug_matches)
    return Ranking(matches.total, best, top_scores, matches.load_all, neighbors)


def combine_scores(text_scores: FloatColumn, top_ids: ToolIds, neighbors: Neighbors) -> FloatColumn:
    """Return the mean of text score and semantic similarity; the text score without neighbors."""
    if not len(neighbors.tool_ids):
        return text_scores
    score: FloatColumn = normalize_scores(text_scores) * np.float32(1 - SEMANTIC_WEIGHT)
    score[top_ids.searchsorted(neighbors.tool_ids)] += neighbors.similarities * np.float32(
        SEMANTIC_WEIGHT
    )
    return score


def normalize_scores(text_scores: FloatColumn) -> FloatColumn:
    """Scale text scores to 0 to 1, and raise them to a power: those of the best tools are close.

    0 is the last score that would have been reranked by text alone.
    """
    low, high = np.sort(text_scores)[-RERANK_LIMIT:][0], text_scores.max()
    share = np.clip((text_scores - low) / np.maximum(high - low, _EPSILON), 0, 1)
    score: FloatColumn = share ** np.float32(_TEXT_POWER)
    return score


def raise_replacements(scores: FloatColumn, replacements: Replacements) -> FloatColumn:
    """Return the scores where each replacement has a higher one than what it replaces."""
    raised = scores.copy() if replacements else scores
    for deprecated, replacement in replacements:
        least = scores[deprecated] * _REPLACEMENT_FACTOR
        raised[replacement] = max(raised[replacement], least)
    return raised


class RerankDetails(NamedTuple):
    """The details of reranking, a column for each tool.

    `points` has a row per term; a term that is not the best of its group for a tool has 0 there.
    `coverage` has two rows, for how much of the name and of the toolkit's name the query covers;
    `actions` is the factor for the action in the name; `scores` has a row for the whole query and,
    if there are several, one for each sentence, from 0 to 1.
    """

    points: FloatColumn
    coverage: FloatColumn
    actions: FloatColumn
    scores: FloatColumn

    @property
    def sentence_boost(self) -> FloatColumn:
        """The boost for the best sentence; 0 if there is only one."""
        boost: FloatColumn = _SENTENCE_BOOST * self.scores[1:].max(0, initial=0)
        return boost


def rerank(index: TextIndex, terms: Sequence[QueryTerm], tool_ids: ToolIds) -> RerankDetails:
    """Compute the details of reranking; needs at least one tool and one term."""
    values = np.array([index.term_values(query_term.term, tool_ids) for query_term in terms])
    rarities, weights = np.array(
        [(query_term.term.idf, query_term.weight) for query_term in terms], np.float32
    ).T
    groups = [query_term.group for query_term in terms]
    points = _keep_best_of_group(
        (values >> 2).astype(np.float32) * (rarities * weights)[:, None], groups
    )
    parts = sorted(terms[0].sentences.union(*[query_term.sentences for query_term in terms]))
    is_in_sentence = _sentence_matrix([query_term.sentences for query_term in terms], parts)
    has_field = (values & _FIELD_BITS != 0).astype(np.float32)  # axes: name and toolkit, term, tool
    coverage = np.minimum(
        1,
        is_in_sentence
        * rarities
        @ has_field
        / np.maximum(index.name_idf_sums.take(tool_ids, 1), _EPSILON)[:, None],
    )
    factors = 1 + _COVERAGE_BOOST * coverage
    has_action = (
        _sentence_matrix([query_term.actions for query_term in terms], parts) @ has_field[0]
    )
    actions = 1 + _ACTION_BOOST * min(1.0, _ACTION_WORDS / len({*groups})) ** 2 * (has_action > 0)
    scores = is_in_sentence @ points * factors[0] * factors[1] * actions
    scores /= np.maximum(scores.max(1, keepdims=True), _EPSILON)
    return RerankDetails(points, coverage[:, 0], actions[0], scores)


def _keep_best_of_group(points: FloatColumn, groups: Sequence[str]) -> FloatColumn:
    """Return the points with 0 for every term that is not the best of its group for a tool."""
    if len({*groups}) == len(groups):
        return points
    rows_by_group: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        rows_by_group.setdefault(group, []).append(row)
    result = points.copy()
    for rows in rows_by_group.values():
        if len(rows) > 1:
            members = points[rows]
            is_best = members.argmax(0) == np.arange(len(rows))[:, None]
            result[rows] = members * is_best
    return result


def compute_text_scores(
    index: TextIndex, terms: Sequence[QueryTerm], tool_ids: ToolIds
) -> FloatColumn:
    """Return the scores by words after reranking, without labels and bonus."""
    if not terms or not len(tool_ids):
        return np.zeros(len(tool_ids), np.float32)
    details = rerank(index, terms, tool_ids)
    score: FloatColumn = details.scores[0] + details.sentence_boost
    return score


def _sentence_matrix(sentences: Sequence[frozenset[int]], parts: Sequence[int]) -> FloatColumn:
    """Return which terms are in the whole query and, if there are several, in each sentence.

    `sentences` has the sentences of each term. The matrix has a row for the query and for each of
    `parts`, and a column for each term.
    """
    rows = [[part in term for term in sentences] for part in parts] if len(parts) > 1 else []
    return np.array([[bool(term) for term in sentences], *rows], np.float32)


def compute_bonus(
    index: TextIndex, query: str, tool_ids: ToolIds, slug_matches: Sequence[SlugMatch]
) -> FloatColumn:
    """Return the bonus of each tool for a query that is its slug, a prefix of it, or its name."""
    bonus: FloatColumn = (
        index.name_checksums.take(tool_ids) == analysis.name_checksum(query)
    ) * np.float32(_NAME_BONUS)
    for slug_range, slug_bonus in slug_matches:
        inside = (tool_ids >= slug_range.start) & (tool_ids < slug_range.stop)
        bonus[inside] = np.maximum(bonus[inside], slug_bonus)
    return bonus
