"""Catalog statistics: counts, labels, sizes and description coverage of a build.

Figures from sets and columns cover the whole catalog, whatever its size. Figures that need the
documents (parameters, authentication, tokens) come from an evenly spread sample; `sampled` is its
size.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from toolcatalog import parameters
from toolcatalog.exports import definitions
from toolcatalog.progress import Progress, no_progress
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.tables import ToolIds
from toolcatalog.store.store import Filters, Store, VersionPins

SAMPLE_SIZE = 20_000
_MAX_LABELS = 10  # labels that are listed
_LARGEST_COUNT = 5
_NEWEST_COUNT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStats:
    """The figures of the newest versions; only `versions` counts all.

    `most_scopes` and `most_tags`: name and number of tools, most used first, at most ten. Sizes are
    in bytes. `no_auth`, the parameters and the tokens are of the `sampled` tools only.
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


def compute_stats(
    store: Store, progress: Progress = no_progress, sample_size: int = SAMPLE_SIZE
) -> CatalogStats:
    """Compute the statistics of a build from at most `sample_size` documents.

    Raises SnapshotError if the snapshot is damaged.
    """
    all_tools = store.search(Filters(), VersionPins())
    numbers = store.select_page(all_tools, "slug", False, 0, all_tools.total)
    sizes = store.document_sizes(numbers)
    scopes, tags = store.count_labels("scope"), store.count_labels("tag")
    newest = store.select_page(all_tools, "version", True, 0, _NEWEST_COUNT)
    active_count = store.search(Filters(include_deprecated=False), VersionPins()).total
    sample = (
        numbers
        if len(numbers) <= sample_size
        else numbers[np.linspace(0, len(numbers) - 1, sample_size).astype(np.int64)]
    )
    return CatalogStats(
        toolkits=len(store.list_toolkits()),
        tools=len(numbers),
        versions=store.version_count,
        deprecated=len(numbers) - active_count,
        important=tags.get("important", 0),
        scopes=len(scopes),
        tags=len(tags),
        most_scopes=_most_common(scopes),
        most_tags=_most_common(tags),
        bytes_median=int(np.median(sizes)) if len(sizes) else 0,
        bytes_whole=int(sizes.sum()),
        largest=tuple(
            _describe_tool(store, numbers[index], sizes[index])
            for index in np.argsort(-sizes, kind="stable")[:_LARGEST_COUNT]
        ),
        newest=tuple(
            (document["slug"], document["version"]) for document in _read_documents(store, newest)
        ),
        sampled=len(sample),
        **_read_sample(store, sample, progress),
    )


def _most_common(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_LABELS])


def _describe_tool(store: Store, tool_id: int, size: int) -> tuple[str, int, int]:
    document = orjson.loads(store.read_document(tool_id)[0])
    return (
        document["slug"],
        int(size),
        definitions.estimate_tokens(snapshot_format.tool_from_document(document, None)),
    )


def _read_documents(store: Store, tool_ids: ToolIds) -> Iterator[dict[str, Any]]:
    return (orjson.loads(store.read_document(number)[0]) for number in tool_ids.tolist())


def _read_sample(store: Store, tool_ids: ToolIds, progress: Progress) -> dict[str, int]:
    """Return the figures that need the documents of these tools."""
    free = named_count = described_count = 0
    tokens: list[int] = []
    with progress("Reading tools", len(tool_ids)) as advance:
        for document in _read_documents(store, tool_ids):
            free += document["no_auth"]
            tokens.append(
                definitions.estimate_tokens(snapshot_format.tool_from_document(document, None))
            )
            is_described = [
                bool(description.strip()) for description in _parameter_descriptions(document)
            ]
            named_count, described_count = (
                named_count + len(is_described),
                described_count + sum(is_described),
            )
            advance(1)
    median = int(np.median(tokens)) if tokens else 0
    return {
        "no_auth": free,
        "parameters": named_count,
        "parameters_described": described_count,
        "tokens_median": median,
    }


def _parameter_descriptions(document: Mapping[str, Any]) -> Sequence[str]:
    """Return the description of every named parameter, inputs and outputs, at every level."""
    parameter_maps = (document["input_parameters"], document["output_parameters"])
    return [
        description
        for parameter_map in parameter_maps
        for name, description in parameters.iter_texts(parameter_map)
        if name
    ]
