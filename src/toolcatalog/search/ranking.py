"""Ranking: a query to matching tools, best first.

A tool is found that holds one of the query's terms, or a relative of one, or what one is a
misspelling of: never all of them, because an agent sends a sentence. All that are found are scored
by the impacts of the terms; the best are looked at closely and come first:

- The better a tool's name, and its toolkit's, are covered by the query, the more its impacts count.
- What a tool scores for the one sentence of the query that it fits best is added: agents ask for
  several things at once.
- What a tool means counts as much as its words, where a snapshot has vectors: see `search.vectors`.
- A tool whose slug, beginning of slug or name has been typed comes before all others.
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

_QUOTED = re.compile(r"""(?<!\w)['"`\u201c\u2018](.{1,60}?)['"`\u201d\u2019](?!\w)""")
_FILLER_WEIGHT = 0.4  # the weight of such words
# the weight of numbers, of what is quoted, and of the terms that a misspelt word may stand for
_REDUCED_WEIGHT = 0.5
_RELATED_WEIGHT = 0.3  # the weight of a relative, times the likeness
_COVERAGE_BOOST = 0.3  # how much more impacts count where a name is covered
_SENTENCE_BOOST = 0.5  # how much the best sentence counts beside the whole
SLUG_BONUS, SLUG_PREFIX_BONUS, _NAME_BONUS = (
    4.0,
    3.0,
    2.0,
)  # what is added where that has been typed
SEMANTIC_WEIGHT = 0.5  # how much meaning counts beside words
_EPSILON = np.float32(1e-9)
# the bits of a value that say whether a term stands in the name, and in the toolkit's
_FIELD_BITS = np.array([[[1]], [[2]]], np.uint16)
_SLUG_MATCH_SCORE = 1e9  # more than any sum of impacts
RERANK_LIMIT = 100  # tools that are looked at closely
_MAX_TERMS = 100  # of a query
_MAX_UNKNOWN_TERMS = 5  # terms of a query that are in no tool and for which others are looked up
# Letters of unknown terms for which spellings that differ by a letter are looked up. Each letter
# costs some fifty lookups. A slug is looked up by requests that have no rate limit.
_MAX_CORRECTED_LETTERS, _MAX_SLUG_LETTERS = 48, 8
_MAX_LONGER_TERMS = 16  # terms that begin with an unknown one
# words that are corrected, letters that must be right, words that are compared
_MAX_CORRECTIONS, _SHARED_PREFIX_LENGTH, _MAX_CANDIDATES = 3, 2, 300

FloatColumn = NDArray[np.float32]


class QueryTerm(NamedTuple):
    """A term that a query asks for: how much it counts, and in which of the query's sentences it
    stands.
    """

    term: Term
    weight: float
    sentences: frozenset[int]


class _ParsedTerm(NamedTuple):
    """A term of a query: how it was spelt first, how much it counts, and in which of the query's
    sentences it stands.
    """

    spelling: str
    weight: float
    sentences: frozenset[int]


class SlugMatch(NamedTuple):
    """Numbers of tools whose slugs have been typed: SLUG, or BEGINNING of them."""

    tool_ids: slice
    bonus: float


class Ranking(NamedTuple):
    """What a query finds: the numbers of tools, smallest first, with their scores; those looked at
    closely, with theirs; and what is near to the query.
    """

    tool_ids: ToolIds
    scores: Scores
    top_ids: ToolIds
    top_scores: FloatColumn
    neighbors: Neighbors = NO_NEIGHBORS


def expand_query(
    lookup: Lookup, query: str, letters: int = _MAX_CORRECTED_LETTERS
) -> list[QueryTerm]:
    """The terms that a query asks for, with relatives and corrections; those that tell most where
    there are very many. Unknown words are corrected that have at most so many letters together.

    How rare a term is depends on all tools. So in a limited vocabulary it decides the order only,
    and the terms that are left out where there are very many are the last of the query.
    """
    found: dict[int, QueryTerm] = {}
    more: list[QueryTerm] = []
    unknown = 0
    for text, (spelt, weight, parts) in _parse_query(query).items():
        if term := lookup.term(text):
            found[term.id] = QueryTerm(term, weight, parts)
            more += (
                QueryTerm(kin, weight * share, parts) for kin, share in _related_terms(lookup, term)
            )
        elif unknown < _MAX_UNKNOWN_TERMS:
            unknown += 1
            max_length = min(letters, analysis.MAX_CORRECTED_LENGTH)
            is_corrected = analysis.is_word(spelt) and len(spelt) <= max_length
            letters -= len(spelt) if is_corrected else 0
            more += (
                QueryTerm(other, weight * share, parts)
                for other, share in _replace_unknown(lookup, text, spelt if is_corrected else "")
            )
    if lookup.is_limited and len(found) + len(more) > _MAX_TERMS:
        numbers = dict.fromkeys([*found, *(one.term.id for one in more)])
        chosen = {*islice(numbers, _MAX_TERMS)}
        found = {number: one for number, one in found.items() if number in chosen}
        more = [one for one in more if one.term.id in chosen]
    for one in sorted(more, key=lambda one: -one.weight):
        found.setdefault(one.term.id, one)
    return sorted(found.values(), key=lambda one: -one.weight * one.term.idf)[:_MAX_TERMS]


def _parse_query(query: str) -> dict[str, _ParsedTerm]:
    """The terms of a query, in their order."""
    quoted = {
        word.spelling
        for match in _QUOTED.finditer(query)
        for word in analysis.extract_words(match[1])
    }
    found: dict[str, _ParsedTerm] = {}
    for part, text in enumerate(analysis.split_query(query)):
        for spelt, term in analysis.extract_words(text):
            weight = (
                _FILLER_WEIGHT if spelt in analysis.FILLER_WORDS else 1
            ) * _REDUCED_WEIGHT ** ((spelt in quoted) + spelt.isdigit())
            before = found.get(term, _ParsedTerm(spelt, 0.0, frozenset()))
            found[term] = _ParsedTerm(
                before.spelling, max(before.weight, weight), before.sentences | {part}
            )
    return found


def _related_terms(lookup: Lookup, term: Term) -> Iterator[tuple[Term, float]]:
    """The relatives of a term, each with its share of the term's weight: one that is rarer counts
    no more than the term itself.
    """
    for kin in lookup.kin(term):
        yield (
            kin,
            _RELATED_WEIGHT * _length_ratio(kin.text, term.text) * min(1.0, term.idf / kin.idf),
        )


def _replace_unknown(lookup: Lookup, text: str, spelling: str) -> Iterator[tuple[Term, float]]:
    """What an unknown term may stand for, each with its share of the weight: those that it
    misspells (none if `spelling` is empty), its beginnings, longer terms.
    """
    if spelling:
        yield from ((other, _REDUCED_WEIGHT) for other in lookup.near(spelling))
    if not analysis.is_word(text):
        return
    shorter = map(lookup.term, analysis.related_prefixes(text))
    longer = (
        term
        for term in lookup.beginning(text, _MAX_LONGER_TERMS)
        if text in analysis.related_prefixes(term.text)
    )
    for kin in (*shorter, *longer):
        if kin:
            yield kin, _RELATED_WEIGHT * _length_ratio(kin.text, text)


def correct_query(lookup: Lookup, query: str) -> str:
    """The query with the nearest known word for each unknown one, of the first few; empty where
    there is none.
    """
    runs = [run for run in analysis.split_runs(query) if len(run) <= analysis.MAX_CORRECTED_LENGTH]
    words = (
        (run, word)
        for run in runs
        for word in analysis.words_in_piece(run)
        if analysis.is_word(word.spelling)
    )
    unknown = (run for run, word in words if not lookup.term(word.term))
    found = query
    for run in islice(unknown, _MAX_CORRECTIONS):
        terms = lookup.beginning(run[:_SHARED_PREFIX_LENGTH].casefold(), _MAX_CANDIDATES)
        known = {lookup.spelling(term) for term in terms}
        if near := names.find_nearest(run, known):
            found = found.replace(run, near[0], 1)
    return "" if found == query else found


def _length_ratio(first: str, second: str) -> float:
    return min(len(first), len(second)) / max(len(first), len(second))


def sharing(
    lookup: Lookup, query: str, among: NDArray[np.bool_], typed: Sequence[SlugMatch], most: int
) -> ToolIds:
    """The tools among these (a column by number) that hold most of the terms of a query, those with
    most first, then by number; before them those that have been typed. A term in the name counts
    twice; how rare it is does not count.
    """
    counts = np.zeros(len(among), np.int32)
    for some in typed:
        counts[some.tool_ids] += 2 * _MAX_TERMS
    for term, _, _ in expand_query(lookup, query, _MAX_SLUG_LETTERS):
        lookup.postings.count(term, counts)
    numbers = ((counts > 0) & among).nonzero()[0].astype(np.uint32)
    return numbers[topk.sorted_slice(-counts[numbers], 0, most)] if len(numbers) else numbers


def rank_tools(
    lookup: Lookup,
    query: str,
    candidates: NDArray[np.bool_],
    slug_matches: Sequence[SlugMatch],
    neighbors: Neighbors = NO_NEIGHBORS,
) -> Ranking:
    """Rank the tools among these (a column by number) that a query finds, and those near to it,
    which are among them too.
    """
    terms, postings = expand_query(lookup, query), lookup.postings
    scores = np.zeros(len(candidates), np.float32)
    for term, weight, _ in terms:
        postings.add_scores(term, weight * term.idf, scores)
    for some in slug_matches:
        scores[some.tool_ids] += _SLUG_MATCH_SCORE
    numbers = ((scores > 0) & candidates).nonzero()[0].astype(np.uint32)
    found = scores.take(numbers)
    best = numbers[topk.top_k(found, RERANK_LIMIT)]
    if len(neighbors.tool_ids):
        numbers, best = (
            np.union1d(numbers, neighbors.tool_ids),
            np.union1d(best, neighbors.tool_ids),
        )
        found = scores.take(numbers)
    judged = combine_scores(_rerank_scores(postings, terms, best), best, neighbors) + compute_bonus(
        postings, query, best, slug_matches
    )
    return Ranking(numbers, found, best, judged, neighbors)


def combine_scores(text_scores: FloatColumn, top_ids: ToolIds, neighbors: Neighbors) -> FloatColumn:
    """What tools score by words and, where anything is near, by meaning: as much by the one as by
    the other.
    """
    if not len(neighbors.tool_ids):
        return text_scores
    score: FloatColumn = normalize_scores(text_scores) * np.float32(1 - SEMANTIC_WEIGHT)
    score[top_ids.searchsorted(neighbors.tool_ids)] += neighbors.similarities * np.float32(
        SEMANTIC_WEIGHT
    )
    return score


def normalize_scores(text_scores: FloatColumn) -> FloatColumn:
    """What some tools score by words, from 0 to 1. It begins at the last that words alone would
    have had looked at closely.
    """
    low, high = np.sort(text_scores)[-RERANK_LIMIT:][0], text_scores.max()
    score: FloatColumn = np.clip((text_scores - low) / np.maximum(high - low, _EPSILON), 0, 1)
    return score


class RerankDetails(NamedTuple):
    """A close look at tools, a column for each: the values of terms (rows), how much of the name
    and of the toolkit's name the query covers, and the score for the whole query and, where there
    are several, for each of its sentences (rows), from 0 to 1.
    """

    values: NDArray[np.uint16]
    coverage: FloatColumn
    scores: FloatColumn

    @property
    def sentence_boost(self) -> FloatColumn:
        """What is added for the best sentence, where there are several."""
        found: FloatColumn = _SENTENCE_BOOST * self.scores[1:].max(0, initial=0)
        return found


def rerank(index: TextIndex, terms: Sequence[QueryTerm], tool_ids: ToolIds) -> RerankDetails:
    """Look closely at tools. There are some, and some terms."""
    values = np.array([index.term_values(term, tool_ids) for term, _, _ in terms])
    rarities, weights = np.array([(term.idf, weight) for term, weight, _ in terms], np.float32).T
    asked = _sentence_matrix(terms) * rarities
    impacts = asked * weights @ (values >> 2).astype(np.float32)
    stands = (values & _FIELD_BITS != 0).astype(np.float32)  # by name and toolkit, by term, by tool
    covered = np.minimum(
        1, asked @ stands / np.maximum(index.name_idf_sums.take(tool_ids, 1), _EPSILON)[:, None]
    )
    raised = 1 + _COVERAGE_BOOST * covered
    scores = impacts * raised[0] * raised[1]
    scores /= np.maximum(scores.max(1, keepdims=True), _EPSILON)
    return RerankDetails(values, covered[:, 0], scores)


def _rerank_scores(index: TextIndex, terms: Sequence[QueryTerm], tool_ids: ToolIds) -> FloatColumn:
    if not terms or not len(tool_ids):
        return np.zeros(len(tool_ids), np.float32)
    found = rerank(index, terms, tool_ids)
    score: FloatColumn = found.scores[0] + found.sentence_boost
    return score


def _sentence_matrix(terms: Sequence[QueryTerm]) -> FloatColumn:
    """A row for the whole query, and one for each sentence where there are several: which terms
    stand there.
    """
    parts = sorted(terms[0].sentences.union(*[one.sentences for one in terms]))
    rows = [[part in one.sentences for one in terms] for part in parts] if len(parts) > 1 else []
    return np.array([[True] * len(terms), *rows], np.float32)


def compute_bonus(
    index: TextIndex, query: str, tool_ids: ToolIds, slug_matches: Sequence[SlugMatch]
) -> FloatColumn:
    """What lifts the tools that have been typed, by slug, beginning of slug or name, before all
    others.
    """
    bonus: FloatColumn = (
        index.name_checksums.take(tool_ids) == analysis.name_checksum(query)
    ) * np.float32(_NAME_BONUS)
    for some, how in slug_matches:
        inside = (tool_ids >= some.start) & (tool_ids < some.stop)
        bonus[inside] = np.maximum(bonus[inside], how)
    return bonus
