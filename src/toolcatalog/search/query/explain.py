"""Score explanation: why a tool has its rank for a query, term by term and field by field.

The index has one impact for each term and tool. The share of each field is computed here from the
tool's document.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolcatalog.search import bm25
from toolcatalog.search.analysis import terms_in_piece
from toolcatalog.search.bm25 import FIELDS, MAX_IMPACT
from toolcatalog.search.index import term_counts
from toolcatalog.search.index.index_reader import TextIndex
from toolcatalog.search.index.vocabulary import Lookup
from toolcatalog.search.query import ranking
from toolcatalog.search.query.query_expansion import expand_query
from toolcatalog.search.query.ranking import Labels, Ranking, Replacements, SlugMatch
from toolcatalog.snapshot import format as snapshot_format


class TermContribution(NamedTuple):
    """The contribution of one term: its spelling, its points, and the points per field.

    Points are impact times IDF times the term's weight in the query.
    """

    spelling: str
    points: float
    fields: Mapping[str, float]


class Explanation(NamedTuple):
    """The contributions of all terms, largest first, name and toolkit coverage, and the score.

    The coverages are from 0 to 1. `query_score` is the sum of points, raised by the coverages and
    by `action_factor` (if the name has the action of the query), relative to the best tool's.
    `sentence_score` is the boost for the best sentence. Their sum times `label_factor` (of
    deprecated and important tools) and `slug_bonus`, if the query names the tool itself, make the
    score. If a deprecated tool that this one replaces would rank above it, `replaced_score` is a
    little more than that tool's sum times its factor, and takes the place of this one's.
    With semantic search, `text_score` (that sum on a scale from 0 to 1) and `semantic_score` (the
    similarity of the vectors on the same scale) count one half each.
    """

    contributions: Sequence[TermContribution]
    name_coverage: float
    toolkit_coverage: float
    action_factor: float
    query_score: float
    sentence_score: float
    slug_bonus: float
    label_factor: float
    text_score: float | None = None
    semantic_score: float | None = None
    replaced_score: float | None = None

    @property
    def score(self) -> float:
        """The score by which tools are ordered."""
        if self.replaced_score is not None:
            return self.replaced_score + self.slug_bonus
        if self.text_score is None or self.semantic_score is None:
            score = self.query_score + self.sentence_score
        else:
            score = (
                self.text_score * (1 - ranking.SEMANTIC_WEIGHT)
                + self.semantic_score * ranking.SEMANTIC_WEIGHT
            )
        return score * self.label_factor + self.slug_bonus


def explain_result(
    index: TextIndex,
    query: str,
    ranking_result: Ranking,
    tool_id: int,
    document: Mapping[str, Any],
    slug_matches: Sequence[SlugMatch],
    labels: Labels,
    replacements: Replacements,
) -> Explanation:
    """Explain the rank of a tool among the reranked ones; `document` is the tool's document.

    `replacements` are those among the reranked tools.
    """
    terms, best = expand_query(Lookup(index), query), ranking_result.top_ids
    position = int(np.searchsorted(best, tool_id))
    bonus = float(ranking.compute_bonus(index, query, best, slug_matches)[position])
    label_factor = float(labels.factors(best[position : position + 1])[0])
    semantic_score = _semantic_similarity(ranking_result, tool_id)
    text_scores = ranking.compute_text_scores(index, terms, best)
    scores = ranking.combine_scores(text_scores, best, ranking_result.neighbors)
    scores *= labels.factors(best)
    raised_score = float(ranking.raise_replacements(scores, replacements)[position])
    replaced_score = raised_score if raised_score > scores[position] else None
    words = (
        None if semantic_score is None else float(ranking.normalize_scores(text_scores)[position])
    )
    if not terms:
        return Explanation(
            *((), 0.0, 0.0, 1.0, 0.0, 0.0, bonus, label_factor),
            text_score=words,
            semantic_score=semantic_score,
            replaced_score=replaced_score,
        )
    details, shares = ranking.rerank(index, terms, best), _field_shares(index, document)
    contributions = []
    for query_term, value in zip(terms, details.points[:, position].tolist(), strict=True):
        term, points = query_term.term, value / snapshot_format.MAX_ENCODED_IMPACT * MAX_IMPACT
        if points:
            contributions.append(
                TermContribution(
                    term.spelling,
                    points,
                    {field: points * share for field, share in shares[term.text].items()},
                )
            )
    name, toolkit, action, query_score, sentence = (
        float(column[position])
        for column in (
            *details.coverage,
            details.actions,
            details.scores[0],
            details.sentence_boost,
        )
    )
    return Explanation(
        sorted(contributions, key=lambda contribution: -contribution.points),
        name,
        toolkit,
        action,
        query_score,
        sentence,
        bonus,
        label_factor,
        words,
        semantic_score,
        replaced_score,
    )


def _semantic_similarity(ranked: Ranking, number: int) -> float | None:
    """Return the similarity of tool and query from 0 to 1; None without semantic matches."""
    similarities = dict(
        zip(ranked.neighbors.tool_ids.tolist(), ranked.neighbors.similarities.tolist(), strict=True)
    )
    return similarities.get(number, 0.0) if similarities else None


def _field_shares(index: TextIndex, document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return, per term of a tool, the share of each field in its impact."""
    toolkit = document["toolkit"]["slug"], document["toolkit"]["name"]
    tool_fields = term_counts.extract_fields(
        document["slug"],
        document["name"],
        document["description"],
        toolkit,
        document["input_parameters"],
        is_newest=True,
    )
    fields = [
        Counter(term for piece in field for term in terms_in_piece(piece))
        for field in tool_fields.fields
    ]
    lengths = np.array([[sum(counts.values()) for counts in fields]], np.uint32)
    factors = bm25.compute_field_weights(lengths, index.average_lengths)[0].tolist()
    shares: dict[str, dict[str, float]] = {}
    for field, counts, factor in zip(FIELDS, fields, factors, strict=True):
        for term, count in counts.items():
            shares.setdefault(term, {})[field] = count * factor
    return {
        term: {field: part / sum(parts.values()) for field, part in parts.items()}
        for term, parts in shares.items()
    }
