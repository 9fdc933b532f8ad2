"""Queries: drawn from the rows with a seed, the same for all servers, and distinct."""

import json
from itertools import product

import pytest

from benchmarks import urls, workload
from benchmarks.vocabulary import TAGS
from benchmarks.workload import (
    NEW,
    OPERATIONS,
    REPEATED,
    CatalogSample,
    LoadCase,
    ToolQuery,
)

DRAWN = [(operation, kind) for operation in OPERATIONS for kind in operation.targets]
BY_NAME = {operation.name: operation for operation in OPERATIONS}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> CatalogSample:
    """5,000 tools of 25 toolkits, with three tags each."""
    rows = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    tools = (
        {
            "slug": f"T{toolkit:02}_{number:03}",
            "name": f"List users {number}",
            "description": f"Return every user of group {toolkit}, {number} at a time.",
            "toolkit": {"slug": f"t{toolkit:02}"},
            "tags": [TAGS[(number + shift) % len(TAGS)] for shift in (0, 7, 11)],
        }
        for toolkit, number in product(range(25), range(200))
    )
    rows.write_text("".join(json.dumps(tool) + "\n" for tool in tools))
    return workload.load_sample(rows)


@pytest.mark.parametrize("name", BY_NAME)
def test_seed_determines_the_queries(sample: CatalogSample, name: str) -> None:
    """About 2,000 repeated queries for each operation."""
    operation = BY_NAME[name]
    queries = workload.draw_queries(operation, sample, REPEATED)
    assert queries == workload.draw_queries(operation, sample, REPEATED)
    assert 0 <= len(queries) - 2_000 < len(operation.draws)


def test_new_queries_are_distinct(sample: CatalogSample) -> None:
    """A catalog of 5,000 tools has 30,000 different filters."""
    assert len({*workload.draw_queries(BY_NAME["filter"], sample, NEW)}) == 30_000


def test_pages_have_filters_and_positions(sample: CatalogSample) -> None:
    """Pages of 20 are of all tools, a toolkit, and a tag, each with the slug before it."""
    queries = workload.draw_queries(BY_NAME["list20"], sample, REPEATED)
    counts = [
        sum(bool(query.toolkits) for query in queries),
        sum(bool(query.tags) for query in queries),
        sum(not query.toolkits and not query.tags for query in queries),
    ]
    assert {*counts} == {667}
    for query in queries:
        slugs = sample.by_toolkit[query.toolkits[0]] if query.toolkits else sample.slugs
        slugs = sample.by_tag[query.tags[0]] if query.tags else slugs
        before = slugs[(query.page - 1) * 20 - 1] if query.page > 1 else ""
        assert (query.size, query.after) == (20, before)


def test_query_has_a_path_for_each_server() -> None:
    """A page, a filter, and words."""
    page = ToolQuery(page=2, size=20, after="AB_19")
    assert urls.to_api_path(page) == "/api/v3.1/tools?limit=20&cursor=MjoyMA%3D%3D"
    assert urls.to_datasette_path(page).endswith("&_next=AB_19")
    filtered = ToolQuery(toolkits=("ab", "cd"), tags=("users", "news"), exclude_deprecated=True)
    assert urls.to_api_path(filtered) == (
        "/api/v3.1/tools?limit=20&toolkit_slug=ab%2Ccd&tags=users%2Cnews&include_deprecated=false"
    )
    path = urls.to_datasette_path(filtered)
    assert "toolkit__in=ab%2Ccd&_where=exists" in path
    assert path.endswith("is_deprecated=0")
    words = ToolQuery(words="list users", page=2)
    assert urls.to_datasette_path(words).endswith("q=%22list%22%20OR%20%22users%22&size=20&skip=20")


def test_profiles_have_operations() -> None:
    """Main and plain have all, others get and the page of 20; only httpx is compared with other
    services.
    """
    cases = workload.load_cases()
    names = {profile: [c for c in cases if c.profile == profile] for profile in ("httpx", "node")}
    assert len(names["httpx"]) == len(DRAWN)
    assert {case.operation.name for case in names["node"]} == {"get", "list20"}
    assert {case.profile for case in cases if case.has_peers} == {"httpx"}


def test_targets_depend_on_the_client() -> None:
    """Without compression, .05 less; a browser has no target."""
    get = BY_NAME["get"]
    targets = [LoadCase(get, name, REPEATED).target for name in ("httpx", "node", "plain")]
    assert targets == [0.75, 0.75, 0.70]
    assert LoadCase(get, "browser", REPEATED).target is None
