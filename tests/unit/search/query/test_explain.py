"""Tests of `search.query.explain`: explanations add up to the scores of the ranking."""

from pathlib import Path

import pytest

from toolcatalog.store.open import open_build
from toolcatalog.store.store import Filters, Store, VersionPins

QUERIES = [
    "create an issue on github",
    "Send a message to the team. Then list the files in drive!",
    "githb isue",
    "GITHUB_CREATE_ISSUE",
    "Send an email",
    "photographs of the weather",
    "customer",
    "charge a card",
]


@pytest.fixture(scope="module")
def store(shipped_build: Path) -> Store:
    return open_build(shipped_build)


@pytest.mark.parametrize("query", QUERIES)
def test_parts_add_up_to_the_score(store: Store, query: str) -> None:
    """The points of fields are those of their term, and the parts of the score those by which the
    best tools are ordered.
    """
    result = store.search(Filters(query=query), VersionPins())
    assert result.ranking is not None
    raised = []
    for number, score in zip(
        result.ranking.top_ids.tolist(), result.ranking.top_scores.tolist(), strict=True
    ):
        reason = store.explain(query, result, number)
        assert reason.score == pytest.approx(score, rel=1e-5)
        assert [contribution.points for contribution in reason.contributions] == sorted(
            (contribution.points for contribution in reason.contributions), reverse=True
        )
        for contribution in reason.contributions:
            assert sum(contribution.fields.values()) == pytest.approx(contribution.points)
        raised.append(
            (
                sum(contribution.points for contribution in reason.contributions)
                * (1 + 0.3 * reason.name_coverage)
                * (1 + 0.3 * reason.toolkit_coverage)
                * reason.action_factor,
                reason.query_score,
            )
        )
    highest = max(points for points, _ in raised)
    assert [document for _, document in raised] == pytest.approx(
        [points / highest for points, _ in raised], rel=1e-4
    )


def test_bonus_of_slugs_and_names(store: Store) -> None:
    """A slug, the beginning of one, and a name lift a tool, in this order."""
    lifts = []
    for query in ("GMAIL_SEND_EMAIL", "GMAIL_SEND_EM", "Send an email", "send email to"):
        result = store.search(Filters(query=query), VersionPins())
        lifts.append(
            store.explain(
                query, result, int(store.select_page(result, "relevance", True, 0, 1)[0])
            ).slug_bonus
        )
    assert lifts == [4, 3, 2, 0]
