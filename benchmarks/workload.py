"""The workload: operations with their targets, and queries drawn from the catalog itself.

Every server gets the same queries: the same slugs, pages, filters, and words.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import orjson

from benchmarks import profiles
from benchmarks.vocabulary import ADJECTIVES, NOUNS, STOP_WORDS, TAGS, VERBS

REPEATED, NEW = "repeated", "new"
PLAIN_TOLERANCE = 0.05  # how much lower the targets of clients without compression are
_QUERY_COUNTS = {REPEATED: 2_000, NEW: 30_000}
_ATTEMPTS = 4  # draws for each query before duplicates are accepted
_SAMPLE = 5_000  # tools whose texts give words and filters
_LATER_PAGE_SHARE = 0.2  # of queries by words
_MATRIX = ("get", "list20")  # operations that are measured with every header profile


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQuery:
    """One query: a tool by its slug, or a page of a list.

    `after` is the slug before the page, for servers that page by key. `size` is the page size.
    """

    slug: str = ""
    page: int = 1
    size: int = 20
    after: str = ""
    toolkits: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    exclude_deprecated: bool = False
    words: str = ""


@dataclass(frozen=True, slots=True)
class CatalogSample:
    """The source of queries: slugs in order (all, by toolkit, and by tag), and some whole tools."""

    slugs: Sequence[str]
    by_toolkit: Mapping[str, Sequence[str]]
    by_tag: Mapping[str, Sequence[str]]
    tools: Sequence[Mapping[str, Any]]


Draw = Callable[[random.Random, CatalogSample, str], ToolQuery]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the API and its load.

    `draws` are the kinds of its queries, in equal shares. `targets` are shares of the ceiling, by
    requests or by CPU.
    """

    name: str
    title: str
    draws: Sequence[Draw]
    targets: Mapping[str, float]
    connections: int = 16
    status: int = 200


@dataclass(frozen=True, slots=True)
class LoadCase:
    """One row of the benchmark: an operation, a header profile, and repeated or new queries."""

    operation: Operation
    profile: str
    queries: str

    @property
    def name(self) -> str:
        """The identifier of this row in results and file names."""
        return f"{self.profile}-{self.operation.name}-{self.queries}"

    @property
    def target(self) -> float | None:
        """The share of the ceiling that this row must reach."""
        target = self.operation.targets[self.queries]
        if self.profile == "plain":
            return round(target - PLAIN_TOLERANCE, 2)
        return None if self.profile == "browser" else target

    @property
    def has_peers(self) -> bool:
        """Whether the other services are measured too; they have no response with status 304."""
        return self.profile == profiles.MAIN and self.operation.status == 200


def load_sample(rows: Path) -> CatalogSample:
    """Read the rows: a tool's JSON on each line, in the order of slugs."""
    slugs, tools = [], []
    by_toolkit, by_tag = defaultdict(list), defaultdict(list)
    with rows.open("rb") as lines:
        step = max(1, sum(1 for _ in lines) // _SAMPLE)
        lines.seek(0)
        for number, line in enumerate(lines):
            tool = orjson.loads(line)
            slug = tool["slug"]
            slugs.append(slug)
            by_toolkit[tool["toolkit"]["slug"]].append(slug)
            for tag in tool["tags"]:
                by_tag[tag].append(slug)
            if number % step == 0:
                tools.append(tool)
    return CatalogSample(slugs, by_toolkit, by_tag, tools)


def draw_queries(operation: Operation, sample: CatalogSample, kind: str) -> list[ToolQuery]:
    """Draw the queries of an operation; `kind` is REPEATED or NEW.

    They are distinct, unless the catalog has too few of a kind.
    """
    rng = random.Random(f"{operation.name} {kind}")
    count = -(-_QUERY_COUNTS[kind] // len(operation.draws))
    queries = [
        query
        for draw in operation.draws
        for query in _draw_distinct(rng, sample, draw, kind, count)
    ]
    rng.shuffle(queries)
    return queries


def _draw_distinct(
    rng: random.Random, sample: CatalogSample, draw: Draw, kind: str, count: int
) -> Iterator[ToolQuery]:
    queries: dict[ToolQuery, None] = {}
    for _ in range(_ATTEMPTS * count):
        queries.setdefault(draw(rng, sample, kind))
        if len(queries) == count:
            break
    return islice(cycle(queries), count)


def draw_tool(rng: random.Random, sample: CatalogSample, _: str) -> ToolQuery:
    """Draw a tool."""
    return ToolQuery(slug=rng.choice(sample.slugs))


def page_query(slugs: Sequence[str], number: int, size: int, **filters: Any) -> ToolQuery:
    """Return the query for a page of the given slugs."""
    after = slugs[(number - 1) * size - 1] if number > 1 else ""
    return ToolQuery(page=number, size=size, after=after, **filters)


def _draw_page(
    rng: random.Random, slugs: Sequence[str], size: int, kind: str, **filters: Any
) -> ToolQuery:
    """Draw a page. New queries have pages of three quarters of the size up to the size."""
    size = rng.randint(size * 3 // 4, size) if kind == NEW else size
    return page_query(slugs, rng.randint(1, max(1, len(slugs) // size)), size, **filters)


def _list_pages(size: int) -> Draw:
    return lambda rng, sample, kind: _draw_page(rng, sample.slugs, size, kind)


def _toolkit_pages(size: int) -> Draw:
    def draw(rng: random.Random, sample: CatalogSample, kind: str) -> ToolQuery:
        toolkit = rng.choice([*sample.by_toolkit])
        return _draw_page(rng, sample.by_toolkit[toolkit], size, kind, toolkits=(toolkit,))

    return draw


def _tag_pages(size: int) -> Draw:
    def draw(rng: random.Random, sample: CatalogSample, kind: str) -> ToolQuery:
        tag = rng.choice([*sample.by_tag])
        return _draw_page(rng, sample.by_tag[tag], size, kind, tags=(tag,))

    return draw


def _draw_relevance_page(rng: random.Random, _: CatalogSample, kind: str) -> ToolQuery:
    """Draw a page of 1000 by relevance; of a common word, so that it matches many tools."""
    count = 1 if kind == REPEATED else 2
    words = " ".join(rng.choice(NOUNS + VERBS + ADJECTIVES) for _ in range(count))
    return ToolQuery(words=words, size=1000)


def draw_filter(rng: random.Random, sample: CatalogSample, _: str) -> ToolQuery:
    """Draw a filter: one to three toolkits, two tags, not deprecated."""
    tools = [rng.choice(sample.tools) for _ in range(rng.randint(1, 3))]
    tags = [*rng.sample(TAGS, 2), tools[0]["tags"][-1]]
    return ToolQuery(
        toolkits=tuple(sorted({tool["toolkit"]["slug"] for tool in tools})),
        tags=tuple(rng.sample([*dict.fromkeys(tags)], 2)),
        exclude_deprecated=True,
    )


def draw_words(rng: random.Random, sample: CatalogSample, _: str) -> ToolQuery:
    """Draw one to four words of a tool's name and of the first words of its description."""
    tool = rng.choice(sample.tools)
    text = f"{tool['name']} {tool['description']}".replace(".", "").lower().split()[:20]
    words = [*dict.fromkeys(word for word in text if word not in STOP_WORDS)]
    drawn = rng.sample(words, min(len(words), rng.randint(1, 4)))
    page = rng.randint(2, 3) if rng.random() < _LATER_PAGE_SHARE else 1
    return ToolQuery(words=" ".join(drawn), page=page)


def draw_sentence(rng: random.Random, sample: CatalogSample, _: str) -> ToolQuery:
    """Draw a sentence about a tool, as an agent writes it."""
    tool = rng.choice(sample.tools)
    rare = tool["description"].replace(".", "").lower().split()[-3:]
    verbs, nouns = rng.sample(VERBS, 2), rng.sample(NOUNS, 3)
    middle = f"{tool['name'].lower()} for each {nouns[0]} of the {nouns[1]} in {' '.join(rare)}"
    words = f"I want to {middle} and then {verbs[0]} the {nouns[2]} that is not {verbs[1]}d"
    return ToolQuery(words=words)


OPERATIONS = (
    Operation(name="get", title="get a tool", draws=[draw_tool], targets={REPEATED: 0.75}),
    Operation(
        name="unchanged",
        title="get, answered 304",
        draws=[draw_tool],
        targets={REPEATED: 0.75},
        status=304,
    ),
    Operation(
        name="list20",
        title="page of 20",
        draws=[_list_pages(20), _toolkit_pages(20), _tag_pages(20)],
        targets={REPEATED: 0.60, NEW: 0.40},
    ),
    Operation(
        name="list1000",
        title="page of 1000",
        draws=[_list_pages(1000), _tag_pages(1000), _draw_relevance_page],
        targets={REPEATED: 0.50, NEW: 0.25},
        connections=4,
    ),
    Operation(
        name="filter",
        title="filter: toolkits, two tags, not deprecated",
        draws=[draw_filter],
        targets={REPEATED: 0.60, NEW: 0.30},
    ),
    Operation(
        name="query",
        title="query of 1 to 4 words",
        draws=[draw_words],
        targets={REPEATED: 0.50, NEW: 0.15},
    ),
)


def load_cases() -> list[LoadCase]:
    """Return all rows: the main profile and `plain` with each operation, the others with two."""
    return [
        LoadCase(operation, profile, queries)
        for operation in OPERATIONS
        for queries in operation.targets
        for profile in profiles.PROFILES
        if profile in (profiles.MAIN, "plain") or operation.name in _MATRIX
    ]
