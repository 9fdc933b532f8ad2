"""Why a tool stands where it does among those that a query finds: what each term gave, by field,
and what was made of that. Pure.

The index holds one impact for a term and a tool. Which fields it comes from is worked out here,
from the tool's document.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolcatalog import counting, ranking, scoring, snapshot
from toolcatalog.analysis import terms_of
from toolcatalog.lookup import Lookup
from toolcatalog.postings import Postings
from toolcatalog.ranking import Ranked, Typed
from toolcatalog.scoring import FIELDS


class Given(NamedTuple):
    """What one term gave: how it is spelt, its points (impact, times rarity, times weight in the
    query), and those of each field.
    """

    spelt: str
    points: float
    fields: Mapping[str, float]


class Explanation(NamedTuple):
    """What all terms gave, most first; the parts from 0 to 1 of name and toolkit that are covered;
    and the score with what it is made of.

    `whole` is the sum of points, raised by what is covered, beside the best tool's; `sentence`
    comes from the best sentence, `typed` where the tool itself has been typed. Their sum is the
    score, unless meaning counts: then `words`, what the first two come to on a scale from 0 to 1,
    and `meaning` on the same scale count by halves, and `typed` is added.
    """

    given: Sequence[Given]
    name: float
    toolkit: float
    whole: float
    sentence: float
    typed: float
    words: float | None = None
    meaning: float | None = None

    @property
    def score(self) -> float:
        """By which tools are ordered."""
        if self.words is None or self.meaning is None:
            return self.whole + self.sentence + self.typed
        return self.words * (1 - ranking.MEANING) + self.meaning * ranking.MEANING + self.typed


def explain(
    postings: Postings,
    query: str,
    ranked: Ranked,
    number: int,
    document: Mapping[str, Any],
    typed: Sequence[Typed],
) -> Explanation:
    """Why the tool with this number and document stands where it does among the best."""
    terms, best = ranking.wanted(Lookup(postings), query), ranked.best
    place = int(np.searchsorted(best, number))
    lift = float(ranking.bonus(postings, query, best, typed)[place])
    meaning = _meaning(ranked, number)
    if not terms:
        return Explanation((), 0.0, 0.0, 0.0, 0.0, lift, None if meaning is None else 0.0, meaning)
    look, shares = ranking.look(postings, terms, best), _shares(postings, document)
    words = (
        None if meaning is None else float(ranking.scaled(look.scores[0] + look.sentence)[place])
    )
    given = []
    for (term, weight, _), value in zip(terms, (look.values[:, place] >> 2).tolist(), strict=True):
        points = value / snapshot.MOST_IMPACT * scoring.MOST * term.rarity * weight
        if points:
            given.append(
                Given(
                    term.spelt,
                    points,
                    {field: points * share for field, share in shares[term.text].items()},
                )
            )
    name, toolkit, whole, sentence = (
        float(column[place]) for column in (*look.covered, look.scores[0], look.sentence)
    )
    return Explanation(
        sorted(given, key=lambda one: -one.points),
        name,
        toolkit,
        whole,
        sentence,
        lift,
        words,
        meaning,
    )


def _meaning(ranked: Ranked, number: int) -> float | None:
    """How alike a tool and the query are in meaning, from 0 to 1; None where nothing is, or meaning
    is not asked for.
    """
    near = dict(zip(ranked.near.numbers.tolist(), ranked.near.likeness.tolist(), strict=True))
    return near.get(number, 0.0) if near else None


def _shares(postings: Postings, document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Of each term of a tool the share that each field has in its impact."""
    toolkit = document["toolkit"]["slug"], document["toolkit"]["name"]
    said = counting.said(
        document["slug"],
        document["name"],
        document["description"],
        toolkit,
        document["input_parameters"],
        newest=True,
    )
    fields = [Counter(term for piece in field for term in terms_of(piece)) for field in said.fields]
    lengths = np.array([[sum(counts.values()) for counts in fields]], np.uint32)
    factors = scoring.factors(lengths, postings.usual)[0].tolist()
    shares: dict[str, dict[str, float]] = {}
    for field, counts, factor in zip(FIELDS, fields, factors, strict=True):
        for term, count in counts.items():
            shares.setdefault(term, {})[field] = count * factor
    return {
        term: {field: part / sum(parts.values()) for field, part in parts.items()}
        for term, parts in shares.items()
    }
