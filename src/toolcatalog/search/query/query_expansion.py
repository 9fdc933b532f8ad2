"""Query expansion: a query to weighted terms, with related terms, synonyms and corrections.

All terms come from the vocabulary of the tools that the client may see (`search.index.vocabulary`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from toolcatalog import names
from toolcatalog.search import analysis
from toolcatalog.search.analysis import Word
from toolcatalog.search.index.index_reader import Term
from toolcatalog.search.index.vocabulary import Lookup
from toolcatalog.search.query.synonyms import find_synonyms, has_synonyms

_QUOTED_PHRASE = re.compile(r"""(?<!\w)['"`\u201c\u2018](.{1,60}?)['"`\u201d\u2019](?!\w)""")
_FILLER_WEIGHT = 0.4  # weight of filler words, and of words that mean something only as a pair
# weight of numbers, of quoted words, and of the corrections of a misspelled word
_REDUCED_WEIGHT = 0.5
_RELATED_WEIGHT = 0.3  # weight of a related term, times the length ratio
# weight of a synonym: of a pair of words, of an action in a short query, and of a thing
_PAIR_WEIGHT, _ACTION_WEIGHT, _THING_WEIGHT = 0.9, 0.8, 0.6
_SHORT_QUERY = 5  # terms; an action counts less in a longer query, a thing more in a shorter one
_THING_BONUS = 0.15  # added to the weight of a thing, as far as the query is shorter
MAX_TERMS = 100  # terms per query
_MAX_SENTENCES = 20  # sentences of a query that are scored apart; the last one has all others
_NO_SENTENCE = frozenset[int]()
_SENTENCES = [frozenset({number}) for number in range(_MAX_SENTENCES)]
_MAX_UNKNOWN_TERMS = 5  # unknown terms per query that are corrected or completed
_MIN_CORRECTED_LENGTH = 5  # letters; nearly all shorter words have neighbors that mean other things
# Limits on the total letters of unknown terms for which single edits are looked up. Each letter
# costs about 50 lookups. Requests that look up a slug have no rate limit, so theirs is lower.
_MAX_CORRECTED_LETTERS, MAX_SLUG_LETTERS = 48, 8
_MAX_LONGER_TERMS = 16  # completions of an unknown term
# words to correct, leading letters that must match, candidates to compare
_MAX_CORRECTIONS, _SHARED_PREFIX_LENGTH, _MAX_CANDIDATES = 3, 2, 300


class QueryTerm(NamedTuple):
    """A term of an expanded query.

    `sentences` has the numbers of the sentences that have it, and `actions` those whose first
    action it is or stands for. Of several terms of a group (a word and its synonyms), only the
    best counts for a tool; a term without synonyms is its own group.
    """

    term: Term
    weight: float
    sentences: frozenset[int]
    group: str
    actions: frozenset[int] = frozenset()


class _ParsedTerm(NamedTuple):
    """A term as parsed: its first spelling, its weight, and the numbers of its sentences."""

    spelling: str
    weight: float
    sentences: frozenset[int]


class _ParsedSynonym(NamedTuple):
    """A synonym as parsed: the term that it stands for, and the rest as in `QueryTerm`."""

    source: str
    is_action: bool
    is_pair: bool
    sentences: frozenset[int]
    actions: frozenset[int]


class _ParsedQuery(NamedTuple):
    """The terms of a query, in their order, and their synonyms."""

    terms: dict[str, _ParsedTerm]
    synonyms: dict[str, _ParsedSynonym]


def expand_query(
    lookup: Lookup, query: str, letters: int = _MAX_CORRECTED_LETTERS
) -> list[QueryTerm]:
    """Return the terms of a query and their expansions, those with most weight first.

    There are at most MAX_TERMS. Unknown words are corrected as long as they have at most `letters`
    letters in all.

    The IDF of a term depends on all tools. So in a limited vocabulary it only decides the order; if
    there are too many terms, the last ones of the query are left out.
    """
    parsed = _parse_query(query)
    terms_by_id: dict[int, QueryTerm] = {}
    expansions: list[QueryTerm] = []
    unknown = 0
    for text, (spelling, weight, parts) in parsed.terms.items():
        if term := lookup.term(text):
            terms_by_id[term.id] = QueryTerm(term, weight, parts, text, _actions(parsed, text))
            expansions += (
                QueryTerm(related_term, weight * share, parts, related_term.text)
                for related_term, share in _related_terms(lookup, term)
            )
        elif unknown < _MAX_UNKNOWN_TERMS:
            unknown += 1
            max_length = min(letters, analysis.MAX_CORRECTED_LENGTH)
            is_corrected = _may_be_misspelled(spelling) and len(spelling) <= max_length
            letters -= len(spelling) if is_corrected else 0
            expansions += (
                QueryTerm(other, weight * share, parts, other.text)
                for other, share in _replace_unknown(lookup, text, spelling if is_corrected else "")
            )
    expansions += _expand_synonyms(lookup, parsed)
    if lookup.is_limited and len(terms_by_id) + len(expansions) > MAX_TERMS:
        numbers = dict.fromkeys([*terms_by_id, *(query_term.term.id for query_term in expansions)])
        kept_ids = {*islice(numbers, MAX_TERMS)}
        terms_by_id = {
            number: query_term for number, query_term in terms_by_id.items() if number in kept_ids
        }
        expansions = [query_term for query_term in expansions if query_term.term.id in kept_ids]
    for query_term in sorted(expansions, key=lambda query_term: -query_term.weight):
        terms_by_id.setdefault(query_term.term.id, query_term)
    return sorted(
        terms_by_id.values(), key=lambda query_term: -query_term.weight * query_term.term.idf
    )[:MAX_TERMS]


def _parse_query(query: str) -> _ParsedQuery:
    """Return the terms of a query with their weights, and their synonyms."""
    quoted = {
        word.spelling
        for match in _QUOTED_PHRASE.finditer(query)
        for word in analysis.extract_words(match[1])
    }
    terms: dict[str, _ParsedTerm] = {}
    synonyms: dict[str, _ParsedSynonym] = {}
    paired: set[str] = set()
    for number, text in enumerate(analysis.split_query(query)):
        words = analysis.extract_all_words(text)
        sentence = _SENTENCES[min(number, _MAX_SENTENCES - 1)]
        paired |= _parse_synonyms(words, sentence, synonyms)
        for spelling, term in words:
            if spelling in analysis.STOP_WORDS:
                continue
            weight = 1.0
            if spelling in analysis.FILLER_WORDS or spelling in paired:
                weight = _FILLER_WEIGHT
            if quoted and spelling in quoted:
                weight *= _REDUCED_WEIGHT
            if spelling.isdigit():
                weight *= _REDUCED_WEIGHT
            previous = terms.get(term)
            terms[term] = (
                _ParsedTerm(spelling, weight, sentence)
                if previous is None
                else _ParsedTerm(
                    previous.spelling,
                    max(previous.weight, weight),
                    previous.sentences | sentence,
                )
            )
    return _ParsedQuery(terms, synonyms)


def _parse_synonyms(
    words: Sequence[Word], sentence: frozenset[int], synonyms: dict[str, _ParsedSynonym]
) -> set[str]:
    """Add the synonyms of a sentence to `synonyms`; return the words that stand in pairs."""
    found = find_synonyms(words)
    if not found:
        return set()
    first = min((synonym.positions[0] for synonym in found if synonym.is_action), default=-1)
    for positions, term, is_action in found:
        actions = sentence if is_action and positions[0] == first else _NO_SENTENCE
        previous = synonyms.get(term)
        synonyms[term] = (
            _ParsedSynonym(
                words[positions[0]].term, is_action, len(positions) > 1, sentence, actions
            )
            if previous is None
            else _ParsedSynonym(
                *previous[:3], previous.sentences | sentence, previous.actions | actions
            )
        )
    return {
        words[position].spelling
        for synonym in found
        if synonym.is_pair
        for position in synonym.positions
    }


def _actions(parsed: _ParsedQuery, text: str) -> frozenset[int]:
    return parsed.synonyms[text].actions if text in parsed.synonyms else _NO_SENTENCE


def _expand_synonyms(lookup: Lookup, parsed: _ParsedQuery) -> Iterator[QueryTerm]:
    """Yield the synonyms that are terms of the vocabulary.

    A rarer synonym of an action gets no more weight than the word that it stands for.
    """
    brevity = min(1.0, _SHORT_QUERY / max(1, len(parsed.terms)))
    thing_weight = _THING_WEIGHT + _THING_BONUS * max(0.0, 1 - len(parsed.terms) / _SHORT_QUERY)
    for text, (source, is_action, is_pair, parts, actions) in parsed.synonyms.items():
        if term := lookup.term(text):
            weight = _PAIR_WEIGHT if is_pair else thing_weight
            if is_action and not is_pair:
                known = lookup.term(source)
                weight = _ACTION_WEIGHT * brevity * (min(1.0, known.idf / term.idf) if known else 1)
            yield QueryTerm(term, weight, parts, source, actions)


def _may_be_misspelled(spelling: str) -> bool:
    return (
        analysis.is_word(spelling)
        and len(spelling) >= _MIN_CORRECTED_LENGTH
        and not has_synonyms(spelling)
    )


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


def query_terms(query: str) -> Iterable[str]:
    """Return the terms of a query as written, each once."""
    return _parse_query(query).terms


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
