"""Pruned searches: a store that prunes gives the same answers as one that adds up all postings."""

import random
from collections.abc import Mapping

import numpy as np
import orjson
import pytest

from benchmarks import synthetic
from support.profile import DEEP_PROFILE
from toolcatalog.build.pipeline import build
from toolcatalog.search.query import pruning
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.tables import Table
from toolcatalog.store.store import TABLES, Filters, Store, VersionPins

TOOLS = 3_000
QUERIES = 10_000 if DEEP_PROFILE else 300
SEED = 29


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    folder = tmp_path_factory.mktemp("pruned")
    synthetic.write_catalog(folder / "catalog", TOOLS)
    build(folder / "catalog", folder / "build", None)
    current = folder / "build/current"
    return {path.name: path.read_bytes() for path in current.iterdir() if path.is_file()}


def open_store(files: Mapping[str, bytes]) -> Store:
    return Store("", files, {path: Table(files[path]) for path in TABLES})


def draw_filters(draw: random.Random, toolkits: list[str]) -> Filters:
    """Draw filters; half of the time none."""
    if draw.random() < 0.5:
        return Filters()
    return Filters(
        toolkits=draw.choice([None, draw.sample(toolkits, draw.randint(1, len(toolkits)))]),
        tags=draw.choice([(), ("readOnlyHint",), ("messages", "files", "projects")]),
        scopes=draw.choice([(), ("files:read", "users:read")]),
        only_important=draw.random() < 0.1,
        include_deprecated=draw.random() < 0.5,
    )


def draw_query(draw: random.Random, tools: list[Mapping[str, str]]) -> str:
    """Draw a sentence, a few words, a misspelled word, a slug, the start of one, or a name."""
    words = [word for tool in draw.sample(tools, 2) for word in tool["description"].split()]
    slug, name = (draw.choice(tools)[key] for key in ("slug", "name"))
    sentence = " ".join(draw.sample(words, min(len(words), draw.choice((1, 2, 3, 15, 40)))))
    word = draw.choice(words)
    return draw.choice(
        [sentence] * 6
        + [word[:3] + word[4:], slug, slug.rpartition("_")[0], name, f"{name} {word}"]
    )


def test_a_store_that_prunes_gives_the_same_answers(
    files: Mapping[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Totals, pages from both ends and scores, with filters, pins, limited keys and slugs."""
    without = open_store(files)
    assert snapshot_format.FREQUENT not in files  # only large catalogs have it
    frequent = b"".join(without._index.pack_frequent_terms())
    pruned = open_store({**files, snapshot_format.FREQUENT: frequent})
    # a small catalog would seldom prune
    monkeypatch.setattr(pruning, "_LOOKUP_COST", 1)
    results: list[object] = []
    find_best = pruning.find_best

    def record(*arguments: object) -> object:
        results.append(find_best(*arguments))  # type: ignore[arg-type]
        return results[-1]

    monkeypatch.setattr(pruning, "find_best", record)
    draw, toolkits = random.Random(SEED), without.list_toolkits()  # noqa: S311 - nothing secret
    pins = [VersionPins(), VersionPins(), *(VersionPins(default=v) for v in without.all_versions())]
    tools = [
        orjson.loads(without.read_document(number)[0])
        for number in draw.sample(range(without.version_count), 500)
    ]
    for _ in range(QUERIES):
        filters = draw_filters(draw, toolkits)._replace(query=draw_query(draw, tools))
        visible = draw.choice([None, None, draw.sample(toolkits, draw.randint(1, len(toolkits)))])
        if visible is not None:
            filters = filters._replace(
                toolkits=[slug for slug in filters.toolkits or toolkits if slug in visible]
            )
        pin = draw.choice(pins)
        expected, result = (store.search(filters, pin, visible) for store in (without, pruned))
        assert result.total == expected.total, filters
        assert result.ranking is not None
        assert expected.ranking is not None
        assert result.ranking.top_ids.tolist() == expected.ranking.top_ids.tolist(), filters
        assert result.ranking.top_scores.tolist() == expected.ranking.top_scores.tolist(), filters
        for start, descending in ((0, True), (95, True), (0, False)):
            page, expected_page = (
                store.select_page(found, "relevance", descending, start, 20)
                for store, found in ((pruned, result), (without, expected))
            )
            assert page.tolist() == expected_page.tolist(), (filters, start)
        assert np.array_equal(np.asarray(result.tool_ids), np.asarray(expected.tool_ids)), filters
    share = sum(found is not None for found in results) / QUERIES
    print(f"seed {SEED}: {share:.0%} of {QUERIES} pruned")
    assert share > 0.25
