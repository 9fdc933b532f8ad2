"""Relevance of search on the shipped catalog: graded queries, nDCG and bootstrap intervals.

Each line of `tests/data/search/queries.tsv` has the part (`tuning`, `held-out` or `later`), the
query, and the right tools with grades from 3 (what the user wants) to 1 (close). The queries of
`later` were written when the others were known, before they were used for tuning.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from toolcatalog.store.store import Filters, Store, VersionPins

QUERIES = Path(__file__).parents[1] / "tests" / "data" / "search" / "queries.tsv"
PARTS = ("tuning", "held-out", "later")
TARGET_PARTS = ("tuning", "held-out")  # the targets are for these together
_DEPTH = 10
_SAMPLES = 1000  # of the bootstrap


class GradedQuery(NamedTuple):
    """A query with the grade of each right tool, by slug."""

    part: str
    text: str
    grades: Mapping[str, int]


class Relevance(NamedTuple):
    """The nDCG@10 of each query from 0 to 1, and whether a tool with the best grade is first."""

    ndcg: Sequence[float]
    is_first_right: Sequence[bool]


class Mean(NamedTuple):
    """A mean in percent, with half of its 95 % interval from 1,000 bootstrap samples."""

    value: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.value:.1f} ± {self.half_width:.1f}"


def load_queries(path: Path = QUERIES) -> list[GradedQuery]:
    """Load the graded queries."""
    rows = (line.split("\t") for line in path.read_text().splitlines())
    return [
        GradedQuery(
            part,
            text,
            {slug: int(grade) for slug, _, grade in (answer.partition("=") for answer in answers)},
        )
        for part, text, *answers in rows
    ]


def measure_relevance(store: Store, queries: Sequence[GradedQuery]) -> Relevance:
    """Search for each query and compare the first ten tools with its grades."""
    results = [(query, _first_slugs(store, query.text)) for query in queries]
    return Relevance(
        [
            compute_ndcg([query.grades.get(slug, 0) for slug in slugs], query)
            for query, slugs in results
        ],
        [
            bool(slugs) and query.grades.get(slugs[0]) == max(query.grades.values())
            for query, slugs in results
        ],
    )


def _first_slugs(store: Store, text: str) -> list[str]:
    result = store.search(Filters(query=text), VersionPins())
    page = store.select_page(result, "relevance", True, 0, _DEPTH)
    return [orjson.loads(store.read_document(int(tool_id))[0])["slug"] for tool_id in page]


def compute_ndcg(grades: Sequence[int], query: GradedQuery) -> float:
    """Return the nDCG of the grades of results; a grade `g` gains 2 to the power of `g`, less 1."""
    ideal = sorted(query.grades.values(), reverse=True)[:_DEPTH]
    return _dcg(grades[:_DEPTH]) / _dcg(ideal)


def _dcg(grades: Sequence[int]) -> float:
    return math.fsum((2.0**grade - 1) / math.log2(rank + 2) for rank, grade in enumerate(grades))


def bootstrap_mean(values: Sequence[float] | Sequence[bool]) -> Mean:
    """Return the mean of values from 0 to 1."""
    column = 100 * np.array(values, float)
    draw = np.random.default_rng(0)
    means = column[draw.integers(0, len(column), (_SAMPLES, len(column)))].mean(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Mean(float(column.mean()), float(high - low) / 2)
