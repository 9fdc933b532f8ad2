"""What there is in a build, in numbers: counts, labels, sizes, and how much is described.

What can be told from sets and columns is counted in full, whatever the size of the catalog; what
only the documents tell (parameters, authentication, tokens) is read from a sample of them, evenly
spread, and the figures say from how many.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from toolcatalog import exports, parameters, snapshot
from toolcatalog.postings import Numbers
from toolcatalog.progress import Track, quietly
from toolcatalog.store import Filters, Pins, Store

SAMPLE = 20_000
_MOST = 10  # labels that are named
_LARGEST = 5
_NEWEST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The numbers; of the newest versions alone, but for `versions`. Those below `sampled` are of
    so many tools.

    `scopes` and `tags`: name and how many tools have it, most first, the first ones; `largest` and
    `newest`: slug and what it is told for.
    """

    toolkits: int
    tools: int
    versions: int
    deprecated: int
    important: int
    scopes: int
    tags: int
    most_scopes: tuple[tuple[str, int], ...]
    most_tags: tuple[tuple[str, int], ...]
    bytes_median: int
    bytes_whole: int
    largest: tuple[tuple[str, int, int], ...]  # slug, bytes, tokens
    newest: tuple[tuple[str, str], ...]  # slug, version
    sampled: int
    no_auth: int
    parameters: int
    parameters_described: int
    tokens_median: int


def figures(store: Store, track: Track = quietly, sample: int = SAMPLE) -> Figures:
    """The figures of a build; at most so many documents are read. Raises SnapshotError where it is
    damaged.
    """
    every = store.matching(Filters(), Pins())
    numbers = store.page(every, "slug", False, 0, len(every.numbers))
    sizes = store.sizes(numbers)
    scopes, tags = store.labels("scope"), store.labels("tag")
    newest = store.page(every, "version", True, 0, _NEWEST)
    alive = len(store.matching(Filters(deprecated=False), Pins()).numbers)
    chosen = (
        numbers
        if len(numbers) <= sample
        else numbers[np.linspace(0, len(numbers) - 1, sample).astype(np.int64)]
    )
    return Figures(
        toolkits=len(store.toolkits()),
        tools=len(numbers),
        versions=store.versions,
        deprecated=len(numbers) - alive,
        important=tags.get("important", 0),
        scopes=len(scopes),
        tags=len(tags),
        most_scopes=_most(scopes),
        most_tags=_most(tags),
        bytes_median=int(np.median(sizes)) if len(sizes) else 0,
        bytes_whole=int(sizes.sum()),
        largest=tuple(
            _large(store, numbers[place], sizes[place])
            for place in np.argsort(-sizes, kind="stable")[:_LARGEST]
        ),
        newest=tuple(
            (document["slug"], document["version"]) for document in _documents(store, newest)
        ),
        sampled=len(chosen),
        **_read(store, chosen, track),
    )


def _most(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST])


def _large(store: Store, number: int, size: int) -> tuple[str, int, int]:
    document = orjson.loads(store.document(number)[0])
    return document["slug"], int(size), exports.tokens(snapshot.tool_of(document, None))


def _documents(store: Store, numbers: Numbers) -> Iterator[dict[str, Any]]:
    return (orjson.loads(store.document(number)[0]) for number in numbers.tolist())


def _read(store: Store, numbers: Numbers, track: Track) -> dict[str, int]:
    """What the documents of some tools tell."""
    free = named = described = 0
    tokens: list[int] = []
    with track("Reading tools", len(numbers)) as advance:
        for document in _documents(store, numbers):
            free += document["no_auth"]
            tokens.append(exports.tokens(snapshot.tool_of(document, None)))
            told = [bool(said.strip()) for said in _said(document)]
            named, described = named + len(told), described + sum(told)
            advance(1)
    middle = int(np.median(tokens)) if tokens else 0
    return {
        "no_auth": free,
        "parameters": named,
        "parameters_described": described,
        "tokens_median": middle,
    }


def _said(document: Mapping[str, Any]) -> Sequence[str]:
    """What is said of each parameter that has a name, inputs and outputs, at every level."""
    both = (document["input_parameters"], document["output_parameters"])
    return [said for described in both for name, said in parameters.texts(described) if name]
