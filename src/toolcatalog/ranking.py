"""A query to the tools that it finds, in order of relevance.

A tool is found that holds one of the query's terms, or a relative of one, or what one is a
misspelling of: never all of them, because an agent sends a sentence. All that are found are scored
by the impacts of the terms; the best are looked at closely and come first:

- The better a tool's name, and its toolkit's, are covered by the query, the more its impacts count.
- What a tool scores for the one sentence of the query that it fits best is added: agents ask for
  several things at once.
- What a tool means counts as much as its words, where a snapshot has vectors: see `nearness`.
- A tool whose slug, beginning of slug or name has been typed comes before all others.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog import analysis, names, picking, spelling
from toolcatalog.lookup import Lookup
from toolcatalog.nearness import NOTHING, Near
from toolcatalog.postings import Numbers, Postings, Scores, Term

_QUOTED = re.compile(r"""(?<!\w)['"`\u201c\u2018](.{1,60}?)['"`\u201d\u2019](?!\w)""")
_SAYS_LITTLE = 0.4  # the weight of such words
# the weight of numbers, of what is quoted, and of the terms that a misspelt word may stand for
_LESS = 0.5
_KIN = 0.3  # the weight of a relative, times the likeness
_COVERED = 0.3  # how much more impacts count where a name is covered
_SENTENCE = 0.5  # how much the best sentence counts beside the whole
SLUG, BEGINNING, _NAME = 4.0, 3.0, 2.0  # what is added where that has been typed
MEANING = 0.5  # how much meaning counts beside words
_TINY = np.float32(1e-9)
# the bits of a value that say whether a term stands in the name, and in the toolkit's
_STANDS = np.array([[[1]], [[2]]], np.uint16)
_FOREMOST = 1e9  # more than any sum of impacts
CLOSELY = 100  # tools that are looked at closely
_TERMS = 100  # of a query
_UNKNOWN = 5  # terms of a query that are in no tool and for which others are looked up
_LONGER = 16  # terms that begin with an unknown one
# words that are corrected, letters that must be right, words that are compared
_CORRECTED, _SAME, _COMPARED = 3, 2, 300

Column = NDArray[np.float32]


class Wanted(NamedTuple):
    """A term that a query asks for: how much it counts, and in which of the query's sentences it
    stands.
    """

    term: Term
    weight: float
    parts: frozenset[int]


class _Asked(NamedTuple):
    """A term of a query: how it was spelt first, how much it counts, and in which of the query's
    sentences it stands.
    """

    spelt: str
    weight: float
    parts: frozenset[int]


class Typed(NamedTuple):
    """Numbers of tools whose slugs have been typed: SLUG, or BEGINNING of them."""

    numbers: slice
    how: float


class Ranked(NamedTuple):
    """What a query finds: the numbers of tools, smallest first, with their scores; those looked at
    closely, with theirs; and what is near to the query.
    """

    numbers: Numbers
    scores: Scores
    best: Numbers
    best_scores: Column
    near: Near = NOTHING


def wanted(lookup: Lookup, query: str) -> list[Wanted]:
    """The terms that a query asks for, with relatives and corrections; those that tell most where
    there are very many.

    How rare a term is depends on all tools. So in a limited vocabulary it decides the order only,
    and the terms that are left out where there are very many are the last of the query.
    """
    found: dict[int, Wanted] = {}
    more: list[Wanted] = []
    unknown = 0
    for text, (spelt, weight, parts) in _asked(query).items():
        if term := lookup.term(text):
            found[term.number] = Wanted(term, weight, parts)
            more += (Wanted(kin, weight * share, parts) for kin, share in _kin(lookup, term))
        elif unknown < _UNKNOWN:
            unknown += 1
            more += (
                Wanted(other, weight * share, parts)
                for other, share in _instead(lookup, text, spelt)
            )
    if lookup.is_limited and len(found) + len(more) > _TERMS:
        numbers = dict.fromkeys([*found, *(one.term.number for one in more)])
        chosen = {*islice(numbers, _TERMS)}
        found = {number: one for number, one in found.items() if number in chosen}
        more = [one for one in more if one.term.number in chosen]
    for one in sorted(more, key=lambda one: -one.weight):
        found.setdefault(one.term.number, one)
    return sorted(found.values(), key=lambda one: -one.weight * one.term.rarity)[:_TERMS]


def _asked(query: str) -> dict[str, _Asked]:
    """The terms of a query, in their order."""
    quoted = {word.spelt for match in _QUOTED.finditer(query) for word in analysis.words(match[1])}
    found: dict[str, _Asked] = {}
    for part, text in enumerate(analysis.parts(query)):
        for spelt, term in analysis.words(text):
            weight = (_SAYS_LITTLE if spelt in analysis.CHAT else 1) * _LESS ** (
                (spelt in quoted) + spelt.isdigit()
            )
            before = found.get(term, _Asked(spelt, 0.0, frozenset()))
            found[term] = _Asked(before.spelt, max(before.weight, weight), before.parts | {part})
    return found


def _kin(lookup: Lookup, term: Term) -> Iterator[tuple[Term, float]]:
    """The relatives of a term, each with its share of the term's weight: one that is rarer counts
    no more than the term itself.
    """
    for kin in lookup.kin(term):
        yield kin, _KIN * _likeness(kin.text, term.text) * min(1.0, term.rarity / kin.rarity)


def _instead(lookup: Lookup, text: str, spelt: str) -> Iterator[tuple[Term, float]]:
    """What an unknown term may stand for, each with its share of the weight: those that it
    misspells, its beginnings, longer terms.
    """
    if analysis.is_word(spelt):
        yield from ((other, _LESS) for other in lookup.near(spelt))
    if not analysis.is_word(text):
        return
    shorter = map(lookup.term, analysis.beginnings(text))
    longer = (
        term for term in lookup.beginning(text, _LONGER) if text in analysis.beginnings(term.text)
    )
    for kin in (*shorter, *longer):
        if kin:
            yield kin, _KIN * _likeness(kin.text, text)


def corrected(lookup: Lookup, query: str) -> str:
    """The query with the nearest known word for each unknown one, of the first few; empty where
    there is none.
    """
    runs = [run for run in analysis.runs(query) if len(run) <= spelling.LONGEST]
    words = (
        (run, word)
        for run in runs
        for word in analysis.words_of(run)
        if analysis.is_word(word.spelt)
    )
    unknown = (run for run, word in words if not lookup.term(word.term))
    found = query
    for run in islice(unknown, _CORRECTED):
        terms = lookup.beginning(run[:_SAME].casefold(), _COMPARED)
        known = {lookup.spelling(term) for term in terms}
        if near := names.nearest(run, known):
            found = found.replace(run, near[0], 1)
    return "" if found == query else found


def _likeness(one: str, other: str) -> float:
    return min(len(one), len(other)) / max(len(one), len(other))


def sharing(
    lookup: Lookup, query: str, among: NDArray[np.bool_], typed: Sequence[Typed], most: int
) -> Numbers:
    """The tools among these (a column by number) that hold most of the terms of a query, those with
    most first, then by number; before them those that have been typed. A term in the name counts
    twice; how rare it is does not count.
    """
    counts = np.zeros(len(among), np.int32)
    for some in typed:
        counts[some.numbers] += 2 * _TERMS
    for term, _, _ in wanted(lookup, query):
        lookup.postings.count(term, counts)
    numbers = ((counts > 0) & among).nonzero()[0].astype(np.uint32)
    return numbers[picking.ordered(-counts[numbers], 0, most)] if len(numbers) else numbers


def rank(
    lookup: Lookup,
    query: str,
    among: NDArray[np.bool_],
    typed: Sequence[Typed],
    near: Near = NOTHING,
) -> Ranked:
    """Rank the tools among these (a column by number) that a query finds, and those near to it,
    which are among them too.
    """
    terms, postings = wanted(lookup, query), lookup.postings
    scores = np.zeros(len(among), np.float32)
    for term, weight, _ in terms:
        postings.add(term, weight * term.rarity, scores)
    for some in typed:
        scores[some.numbers] += _FOREMOST
    numbers = ((scores > 0) & among).nonzero()[0].astype(np.uint32)
    found = scores.take(numbers)
    best = numbers[picking.highest(found, CLOSELY)]
    if len(near.numbers):
        numbers, best = np.union1d(numbers, near.numbers), np.union1d(best, near.numbers)
        found = scores.take(numbers)
    judged = mixed(_closely(postings, terms, best), best, near) + bonus(
        postings, query, best, typed
    )
    return Ranked(numbers, found, best, judged, near)


def mixed(words: Column, best: Numbers, near: Near) -> Column:
    """What tools score by words and, where anything is near, by meaning: as much by the one as by
    the other.
    """
    if not len(near.numbers):
        return words
    score: Column = scaled(words) * np.float32(1 - MEANING)
    score[best.searchsorted(near.numbers)] += near.likeness * np.float32(MEANING)
    return score


def scaled(words: Column) -> Column:
    """What some tools score by words, from 0 to 1. It begins at the last that words alone would
    have had looked at closely.
    """
    low, high = np.sort(words)[-CLOSELY:][0], words.max()
    score: Column = np.clip((words - low) / np.maximum(high - low, _TINY), 0, 1)
    return score


class Look(NamedTuple):
    """A close look at tools, a column for each: the values of terms (rows), how much of the name
    and of the toolkit's name the query covers, and the score for the whole query and, where there
    are several, for each of its sentences (rows), from 0 to 1.
    """

    values: NDArray[np.uint16]
    covered: Column
    scores: Column

    @property
    def sentence(self) -> Column:
        """What is added for the best sentence, where there are several."""
        found: Column = _SENTENCE * self.scores[1:].max(0, initial=0)
        return found


def look(postings: Postings, terms: Sequence[Wanted], numbers: Numbers) -> Look:
    """Look closely at tools. There are some, and some terms."""
    values = np.array([postings.values(term, numbers) for term, _, _ in terms])
    rarities, weights = np.array([(term.rarity, weight) for term, weight, _ in terms], np.float32).T
    asked = _parts(terms) * rarities
    impacts = asked * weights @ (values >> 2).astype(np.float32)
    stands = (values & _STANDS != 0).astype(np.float32)  # by name and toolkit, by term, by tool
    covered = np.minimum(
        1, asked @ stands / np.maximum(postings.names_hold.take(numbers, 1), _TINY)[:, None]
    )
    raised = 1 + _COVERED * covered
    scores = impacts * raised[0] * raised[1]
    scores /= np.maximum(scores.max(1, keepdims=True), _TINY)
    return Look(values, covered[:, 0], scores)


def _closely(postings: Postings, terms: Sequence[Wanted], numbers: Numbers) -> Column:
    if not terms or not len(numbers):
        return np.zeros(len(numbers), np.float32)
    found = look(postings, terms, numbers)
    score: Column = found.scores[0] + found.sentence
    return score


def _parts(terms: Sequence[Wanted]) -> Column:
    """A row for the whole query, and one for each sentence where there are several: which terms
    stand there.
    """
    parts = sorted(terms[0].parts.union(*[one.parts for one in terms]))
    rows = [[part in one.parts for one in terms] for part in parts] if len(parts) > 1 else []
    return np.array([[True] * len(terms), *rows], np.float32)


def bonus(postings: Postings, query: str, numbers: Numbers, typed: Sequence[Typed]) -> Column:
    """What lifts the tools that have been typed, by slug, beginning of slug or name, before all
    others.
    """
    bonus: Column = (postings.names.take(numbers) == analysis.called(query)) * np.float32(_NAME)
    for some, how in typed:
        inside = (numbers >= some.start) & (numbers < some.stop)
        bonus[inside] = np.maximum(bonus[inside], how)
    return bonus
