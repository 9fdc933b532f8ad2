"""What is asked: the operations, questions drawn from the catalog itself, and their spelling for
each server.

The same questions go to every server: the same slugs, pages, filters and words. Where a server has
no such operation it has no path.
"""

import base64
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from benchmarks.words import NOUNS, SMALL_WORDS, TAGS, VERBS

_QUESTIONS, _MANY_QUESTIONS = 2_000, 30_000  # those many are more than our server remembers
_SAMPLE = 5_000
_API = "/api/v3/tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation: how many connections ask at once, the status of its answers, whether they are
    ranked (each server its own way), which share of the ceiling it shall reach (None: not said),
    and from how many questions those asked are drawn.
    """

    name: str
    title: str
    connections: int = 16
    status: int = 200
    ranked: bool = False
    target: float | None = None
    questions: int = _QUESTIONS


OPERATIONS = (
    Operation(name="get", title="get a tool", target=0.90),
    Operation(name="unchanged", title="get, answered 304", status=304, target=0.90),
    Operation(name="list20", title="list, a page of 20", target=0.70),
    Operation(name="list1000", title="list, a page of 1000", target=0.80, connections=4),
    Operation(name="filter", title="filter: toolkit, two tags, not deprecated", target=0.60),
    Operation(name="query", title="query of 1 to 3 words", ranked=True, target=0.50),
    Operation(name="sentence", title="query of a sentence", ranked=True),
    Operation(
        name="new_filter", title="filter, mostly not asked before", questions=_MANY_QUESTIONS
    ),
    Operation(
        name="new_query",
        title="query, mostly not asked before",
        ranked=True,
        questions=_MANY_QUESTIONS,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkQuery:
    """One thing asked: a tool by its slug, or a page of a list. `after` is the slug before the
    page, for those who page by it.
    """

    slug: str = ""
    page: int = 1
    size: int = 20
    after: str = ""
    toolkit: str = ""
    tags: tuple[str, ...] = ()
    query: str = ""


@dataclass(frozen=True, slots=True)
class CatalogSample:
    """What questions are made of: all slugs in order, and some tools as they are answered."""

    slugs: Sequence[str]
    tools: Sequence[dict[str, Any]]


def load_sample(rows: Path) -> CatalogSample:
    """Read the rows: a tool's JSON on each line, in order of slug."""
    with rows.open("rb") as lines:
        # the slug is a document's first field
        slugs = [line[: line.index(b'",')].rpartition(b'"')[2].decode() for line in lines]
    step = max(1, len(slugs) // _SAMPLE)
    with rows.open("rb") as lines:
        return CatalogSample(
            slugs, [json.loads(line) for number, line in enumerate(lines) if number % step == 0]
        )


def draw_queries(
    operation: Operation, catalog_sample: CatalogSample, seed: int = 1
) -> list[BenchmarkQuery]:
    """The questions of an operation."""
    rng = random.Random(f"{operation.name} {seed}")
    make = _MAKERS[operation.name]
    return [make(rng, catalog_sample) for _ in range(operation.questions)]


def _draw_get(rng: random.Random, of: CatalogSample) -> BenchmarkQuery:
    return BenchmarkQuery(slug=rng.choice(of.slugs))


def page_query(catalog_sample: CatalogSample, size: int, number: int) -> BenchmarkQuery:
    """A page of the whole list."""
    return BenchmarkQuery(
        page=number,
        size=size,
        after=catalog_sample.slugs[(number - 1) * size - 1] if number > 1 else "",
    )


def _page_maker(size: int) -> Callable[[random.Random, CatalogSample], BenchmarkQuery]:
    return lambda rng, of: page_query(of, size, rng.randint(1, max(1, len(of.slugs) // size)))


def _draw_filter(rng: random.Random, of: CatalogSample) -> BenchmarkQuery:
    tool = rng.choice(of.tools)
    return BenchmarkQuery(
        toolkit=tool["toolkit"]["slug"],
        tags=tuple(rng.sample([*{*rng.sample(TAGS, 2), tool["tags"][-1]}], 2)),
    )


def _draw_words(rng: random.Random, of: CatalogSample) -> BenchmarkQuery:
    """One to three words of a tool's name and of the first words about it, as somebody types who
    half remembers it.
    """
    tool = rng.choice(of.tools)
    said = f"{tool['name']} {tool['description']}".replace(".", "").lower().split()[:20]
    words = [*dict.fromkeys(word for word in said if word not in SMALL_WORDS)]
    return BenchmarkQuery(query=" ".join(rng.sample(words, min(len(words), rng.randint(1, 3)))))


def _draw_sentence(rng: random.Random, of: CatalogSample) -> BenchmarkQuery:
    tool = rng.choice(of.tools)
    rare = tool["description"].replace(".", "").lower().split()[-3:]
    verbs, nouns = rng.sample(VERBS, 2), rng.sample(NOUNS, 3)
    middle = f"{tool['name'].lower()} for each {nouns[0]} of the {nouns[1]} in {' '.join(rare)}"
    return BenchmarkQuery(
        query=f"I want to {middle} and then {verbs[0]} the {nouns[2]} that is not {verbs[1]}d"
    )


_MAKERS: dict[str, Callable[[random.Random, CatalogSample], BenchmarkQuery]] = {
    "get": _draw_get,
    "unchanged": _draw_get,
    "list20": _page_maker(20),
    "list1000": _page_maker(1000),
    "filter": _draw_filter,
    "query": _draw_words,
    "sentence": _draw_sentence,
    "new_filter": _draw_filter,
    "new_query": _draw_words,
}


def to_api_path(question: BenchmarkQuery) -> str:
    """The path at our server, and at the plain service, which has the same paths."""
    if question.slug:
        return f"{_API}/{question.slug}"
    fields: dict[str, Any] = {"limit": question.size}
    if question.page > 1:
        fields["cursor"] = base64.b64encode(f"{question.page}:{question.size}".encode()).decode()
    if question.toolkit:
        fields |= {
            "toolkit_slug": question.toolkit,
            "tags": ",".join(question.tags),
            "include_deprecated": "false",
        }
    if question.query:
        fields["query"] = question.query
    return f"{_API}?{urlencode(fields)}"


def to_datasette_path(question: BenchmarkQuery) -> str:
    """The path at Datasette: no facets, suggestions or counts; pages by the key before them; the
    filter's tags by a `_where`.
    """
    if question.slug:
        return f"/tables/tools/{question.slug}.json?_shape=objects"
    if question.query:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(question.query.split()))
        return f"/tables/search.json?_shape=array&q={quote(words)}"
    fields: dict[str, Any] = {
        "_shape": "array",
        "_size": question.size,
        "_nofacet": 1,
        "_nosuggest": 1,
        "_nocount": 1,
    }
    if question.after:
        fields["_next"] = question.after
    if question.toolkit:
        either = ", ".join(f"'{tag}'" for tag in question.tags)
        fields |= {"toolkit": question.toolkit, "is_deprecated": 0}
        fields["_where"] = f"exists (select 1 from json_each(tags) where value in ({either}))"  # noqa: S608 - our own words
    return f"/tables/tools.json?{urlencode(fields)}"


PATH_FORMATTERS: dict[str, Callable[[BenchmarkQuery], str]] = {
    "ours": to_api_path,
    "fastapi": to_api_path,
    "datasette": to_datasette_path,
}
