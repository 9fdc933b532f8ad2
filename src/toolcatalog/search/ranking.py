"""Ranking: a query to matching tools, best first.

A tool matches if it contains one of the query's terms, a related term, or a correction of a
misspelled one. It need not contain all of them, because agents send whole sentences. All matches
are scored by the impacts of their terms. The best ones are reranked and come first:

- The more of a tool's name, and of its toolkit's, the query covers, the more its impacts count.
- The score for the one sentence of the query that the tool fits best is added: agents ask for
  several things at once.
- Semantic similarity counts as much as the words if the snapshot has vectors: see `search.vectors`.
- A tool whose slug, slug prefix or name is the query comes before all others.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog import names
from toolcatalog.search import analysis, topk
from toolcatalog.search.index_reader import Scores, Term, TextIndex
from toolcatalog.search.vectors import NO_NEIGHBORS, Neighbors
from toolcatalog.search.vocabulary import Lookup
from toolcatalog.snapshot.tables import ToolIds

_QUOTED_PHRASE = re.compile(r"""(?<!\w)['"`\u201c\u2018](.{1,60}?)['"`\u201d\u2019](?!\w)""")
_FILLER_WEIGHT = 0.4  # weight of filler words
# weight of numbers, of quoted words, and of the corrections of a misspelled word
_REDUCED_WEIGHT = 0.5
_RELATED_WEIGHT = 0.3  # weight of a related term, times the length ratio
_COVERAGE_BOOST = 0.3  # how much more impacts count for a covered name
_SENTENCE_BOOST = 0.5  # weight of the best sentence relative to the whole query
SLUG_BONUS, SLUG_PREFIX_BONUS, _NAME_BONUS = (
    4.0,
    3.0,
    2.0,
)  # added if the query is the slug, a prefix of it, or the name
SEMANTIC_WEIGHT = 0.5  # weight of semantic similarity; the rest is that of the words
_EPSILON = np.float32(1e-9)
# the bits of a value for a term in the name, and in the toolkit's name
_FIELD_BITS = np.array([[[1]], [[2]]], np.uint16)
_SLUG_MATCH_SCORE = 1e9  # more than any sum of impacts
RERANK_LIMIT = 100  # tools that are reranked
_MAX_TERMS = 100  # terms per query
_MAX_SENTENCES = 20  # sentences of a query that are scored apart; the last one has all others
_MAX_UNKNOWN_TERMS = 5  # unknown terms per query that are corrected or completed
# Limits on the total letters of unknown terms for which single edits are looked up. Each letter
# costs about 50 lookups. Requests that look up a slug have no rate limit, so theirs is lower.
_MAX_CORRECTED_LETTERS, _MAX_SLUG_LETTERS = 48, 8
_MAX_LONGER_TERMS = 16  # completions of an unknown term
# words to correct, leading letters that must match, candidates to compare
_MAX_CORRECTIONS, _SHARED_PREFIX_LENGTH, _MAX_CANDIDATES = 3, 2, 300

FloatColumn = NDArray[np.float32]


class QueryTerm(NamedTuple):
    """A term of an expanded query: its weight, and the numbers of the sentences that have it."""

    term: Term
    weight: float
    sentences: frozenset[int]


class _ParsedTerm(NamedTuple):
    """A term as parsed: its first spelling, its weight, and the numbers of its sentences."""

    spelling: str
    weight: float
    sentences: frozenset[int]


class SlugMatch(NamedTuple):
    """A range of tool ids whose slugs match, and SLUG_BONUS or SLUG_PREFIX_BONUS."""

    tool_ids: slice
    bonus: float


class Ranking(NamedTuple):
    """The matches of a query: tool ids in ascending order, with scores by words.

    `top_ids` are the reranked tools, also in ascending order, with their final scores; `neighbors`
    are the semantic matches.
    """

    tool_ids: ToolIds
    scores: Scores
    top_ids: ToolIds
    top_scores: FloatColumn
    neighbors: Neighbors = NO_NEIGHBORS


def expand_query(
    lookup: Lookup, query: str, letters: int = _MAX_CORRECTED_LETTERS
) -> list[QueryTerm]:
    """Return the terms of a query with related terms and corrections, those with most weight first.

    There are at most 100. Unknown words are corrected as long as they have at most `letters`
    letters in all.

    The IDF of a term depends on all tools. So in a limited vocabulary it only decides the order; if
    there are too many terms, the last ones of the query are left out.
    """
    terms_by_id: dict[int, QueryTerm] = {}
    expansions: list[QueryTerm] = []
    unknown = 0
    for text, (spelling, weight, parts) in _parse_query(query).items():
        if term := lookup.term(text):
            terms_by_id[term.id] = QueryTerm(term, weight, parts)
            expansions += (
                QueryTerm(related_term, weight * share, parts)
                for related_term, share in _related_terms(lookup, term)
            )
        elif unknown < _MAX_UNKNOWN_TERMS:
            unknown += 1
            max_length = min(letters, analysis.MAX_CORRECTED_LENGTH)
            is_corrected = analysis.is_word(spelling) and len(spelling) <= max_length
            letters -= len(spelling) if is_corrected else 0
            expansions += (
                QueryTerm(other, weight * share, parts)
                for other, share in _replace_unknown(lookup, text, spelling if is_corrected else "")
            )
    if lookup.is_limited and len(terms_by_id) + len(expansions) > _MAX_TERMS:
        numbers = dict.fromkeys([*terms_by_id, *(query_term.term.id for query_term in expansions)])
        kept_ids = {*islice(numbers, _MAX_TERMS)}
        terms_by_id = {
            number: query_term for number, query_term in terms_by_id.items() if number in kept_ids
        }
        expansions = [query_term for query_term in expansions if query_term.term.id in kept_ids]
    for query_term in sorted(expansions, key=lambda query_term: -query_term.weight):
        terms_by_id.setdefault(query_term.term.id, query_term)
    return sorted(
        terms_by_id.values(), key=lambda query_term: -query_term.weight * query_term.term.idf
    )[:_MAX_TERMS]


def _parse_query(query: str) -> dict[str, _ParsedTerm]:
    """Return the terms of a query in their order, with their weights."""
    quoted = {
        word.spelling
        for match in _QUOTED_PHRASE.finditer(query)
        for word in analysis.extract_words(match[1])
    }
    parsed: dict[str, _ParsedTerm] = {}
    for number, text in enumerate(analysis.split_query(query)):
        part = min(number, _MAX_SENTENCES - 1)
        for spelling, term in analysis.extract_words(text):
            weight = (
                _FILLER_WEIGHT if spelling in analysis.FILLER_WORDS else 1
            ) * _REDUCED_WEIGHT ** ((spelling in quoted) + spelling.isdigit())
            previous = parsed.get(term, _ParsedTerm(spelling, 0.0, frozenset()))
            parsed[term] = _ParsedTerm(
                previous.spelling, max(previous.weight, weight), previous.sentences | {part}
            )
    return parsed


def _related_terms(lookup: Lookup, term: Term) -> Iterator[tuple[Term, float]]:
    """Yield the related terms of a term, each with its share of the term's weight.

    A rarer related term gets no more weight than the term itself.
    """
    for related in lookup.related(term):
        yield (
            related,
            _RELATED_WEIGHT
            * _length_ratio(related.text, term.text)
            * min(1.0, term.idf / related.idf),
        )


def _replace_unknown(lookup: Lookup, text: str, spelling: str) -> Iterator[tuple[Term, float]]:
    """Yield the replacements of an unknown term, each with its share of the weight.

    These are corrections (none if `spelling` is empty), prefixes, and longer terms.
    """
    if spelling:
        yield from ((other, _REDUCED_WEIGHT) for other in lookup.similar(spelling))
    if not analysis.is_word(text):
        return
    shorter = map(lookup.term, analysis.related_prefixes(text))
    longer = (
        term
        for term in lookup.with_prefix(text, _MAX_LONGER_TERMS)
        if text in analysis.related_prefixes(term.text)
    )
    for related in (*shorter, *longer):
        if related:
            yield related, _RELATED_WEIGHT * _length_ratio(related.text, text)


def correct_query(lookup: Lookup, query: str) -> str:
    """Return the query with the first few unknown words replaced by the nearest known ones.

    Returns an empty text if nothing was replaced.
    """
    runs = [run for run in analysis.split_runs(query) if len(run) <= analysis.MAX_CORRECTED_LENGTH]
    words = (
        (run, word)
        for run in runs
        for word in analysis.words_in_piece(run)
        if analysis.is_word(word.spelling)
    )
    unknown = (run for run, word in words if not lookup.term(word.term))
    corrected = query
    for run in islice(unknown, _MAX_CORRECTIONS):
        terms = lookup.with_prefix(run[:_SHARED_PREFIX_LENGTH].casefold(), _MAX_CANDIDATES)
        spellings = {lookup.spelling(term) for term in terms}
        if nearest := names.find_nearest(run, spellings):
            corrected = corrected.replace(run, nearest[0], 1)
    return "" if corrected == query else corrected


def _length_ratio(first: str, second: str) -> float:
    return min(len(first), len(second)) / max(len(first), len(second))


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
        counts[slug_match.tool_ids] += 2 * _MAX_TERMS
    words = _parse_query(query)
    is_mostly_known = 2 * sum(lookup.term(word) is not None for word in words) >= len(words)
    for term, _, _ in expand_query(lookup, query, 0 if is_mostly_known else _MAX_SLUG_LETTERS):
        lookup.postings.count(term, counts)
    numbers = ((counts > 0) & candidates).nonzero()[0].astype(np.uint32)
    return numbers[topk.sorted_slice(-counts[numbers], 0, limit)] if len(numbers) else numbers


def rank_tools(
    lookup: Lookup,
    query: str,
    candidates: NDArray[np.bool_],
    slug_matches: Sequence[SlugMatch],
    neighbors: Neighbors = NO_NEIGHBORS,
) -> Ranking:
    """Rank the tools that match a query; `candidates` is a mask by number.

    `neighbors` must be among the candidates too.
    """
    terms, postings = expand_query(lookup, query), lookup.postings
    scores = np.zeros(len(candidates), np.float32)
    for term, weight, _ in terms:
        postings.add_scores(term, weight * term.idf, scores)
    for slug_match in slug_matches:
        scores[slug_match.tool_ids] += _SLUG_MATCH_SCORE
    numbers = ((scores > 0) & candidates).nonzero()[0].astype(np.uint32)
    text_scores = scores.take(numbers)
    best = numbers[topk.top_k(text_scores, RERANK_LIMIT)]
    if len(neighbors.tool_ids):
        numbers, best = (
            np.union1d(numbers, neighbors.tool_ids),
            np.union1d(best, neighbors.tool_ids),
        )
        text_scores = scores.take(numbers)
    top_scores = combine_scores(
        _rerank_scores(postings, terms, best), best, neighbors
    ) + compute_bonus(postings, query, best, slug_matches)
    return Ranking(numbers, text_scores, best, top_scores, neighbors)


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
    """Scale text scores to 0 to 1.

    0 is the last score that would have been reranked by text alone.
    """
    low, high = np.sort(text_scores)[-RERANK_LIMIT:][0], text_scores.max()
    score: FloatColumn = np.clip((text_scores - low) / np.maximum(high - low, _EPSILON), 0, 1)
    return score


class RerankDetails(NamedTuple):
    """The details of reranking, a column for each tool.

    `values` has a row per term; `coverage` has two rows, for how much of the name and of the
    toolkit's name the query covers; `scores` has a row for the whole query and, if there are
    several, one for each sentence, from 0 to 1.
    """

    values: NDArray[np.uint16]
    coverage: FloatColumn
    scores: FloatColumn

    @property
    def sentence_boost(self) -> FloatColumn:
        """The boost for the best sentence; 0 if there is only one."""
        boost: FloatColumn = _SENTENCE_BOOST * self.scores[1:].max(0, initial=0)
        return boost


def rerank(index: TextIndex, terms: Sequence[QueryTerm], tool_ids: ToolIds) -> RerankDetails:
    """Compute the details of reranking; needs at least one tool and one term."""
    values = np.array([index.term_values(term, tool_ids) for term, _, _ in terms])
    rarities, weights = np.array([(term.idf, weight) for term, weight, _ in terms], np.float32).T
    term_weights = _sentence_matrix(terms) * rarities
    impacts = term_weights * weights @ (values >> 2).astype(np.float32)
    has_field = (values & _FIELD_BITS != 0).astype(np.float32)  # axes: name and toolkit, term, tool
    coverage = np.minimum(
        1,
        term_weights
        @ has_field
        / np.maximum(index.name_idf_sums.take(tool_ids, 1), _EPSILON)[:, None],
    )
    factors = 1 + _COVERAGE_BOOST * coverage
    scores = impacts * factors[0] * factors[1]
    scores /= np.maximum(scores.max(1, keepdims=True), _EPSILON)
    return RerankDetails(values, coverage[:, 0], scores)


def _rerank_scores(index: TextIndex, terms: Sequence[QueryTerm], tool_ids: ToolIds) -> FloatColumn:
    if not terms or not len(tool_ids):
        return np.zeros(len(tool_ids), np.float32)
    details = rerank(index, terms, tool_ids)
    score: FloatColumn = details.scores[0] + details.sentence_boost
    return score


def _sentence_matrix(terms: Sequence[QueryTerm]) -> FloatColumn:
    """Return which terms are in the whole query and, if there are several, in each sentence.

    It has a row for each of these and a column for each term.
    """
    parts = sorted(terms[0].sentences.union(*[term.sentences for term in terms]))
    rows = [[part in term.sentences for term in terms] for part in parts] if len(parts) > 1 else []
    return np.array([[True] * len(terms), *rows], np.float32)


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
