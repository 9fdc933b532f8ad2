"""Tests of `pruning`, `matching` and `index.frequent_terms`: pruning finds the same tools as adding
up all postings of every tool.
"""

import random
import zlib
from collections.abc import Iterable, Mapping
from itertools import accumulate

import numpy as np
import pytest

from support.profile import DEEP_PROFILE
from toolcatalog.errors import SnapshotError
from toolcatalog.search.index import frequent_terms
from toolcatalog.search.index.frequent_terms import FrequentTerms
from toolcatalog.search.index.index_reader import TextIndex
from toolcatalog.search.query import matching, pruning
from toolcatalog.search.query.candidates import Candidates
from toolcatalog.search.query.query_scores import ScoredQuery
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import tables
from toolcatalog.snapshot.tables import Table

QUERIES = 10_000 if DEEP_PROFILE else 300
SEED = 29

Values = Mapping[str, Mapping[int, int]]  # of each term, the value of each tool that contains it


def open_index(values: Values, tool_count: int, frequent: Iterable[str] | None = None) -> TextIndex:
    """Return an index with these values, and with these frequent terms; None: as builds choose."""
    names, is_dense, postings = sorted(values), {}, []
    rows = {}
    for name in names:
        tool_ids = np.array(sorted(values[name]), "<u4")
        column = np.array([values[name][tool] for tool in tool_ids.tolist()], "<u2")
        is_dense[name] = 3 * len(tool_ids) > tool_count
        rows[name] = np.zeros(tool_count, "<u2")
        rows[name][tool_ids] = column
        data = rows[name].tobytes() if is_dense[name] else tool_ids.tobytes() + column.tobytes()
        postings.append(data + bytes(len(data) % 4))
    header = snapshot_format.pack_postings_header([1.0] * 6)
    offsets = accumulate(map(len, postings), initial=len(header))
    entries = [
        snapshot_format.TERM_HEADER.pack(
            offset, len(values[name]), zlib.crc32(data), 1.0, is_dense[name], 0, number
        )
        + name.encode()
        for number, (name, data, offset) in enumerate(zip(names, postings, offsets, strict=False))
    ]
    words = b"".join(tables.pack_table(names, [*map(len, entries)], entries))
    files = {
        snapshot_format.POSTINGS: header + b"".join(postings),
        snapshot_format.COVERS: bytes(snapshot_format.COVER_SIZE * tool_count),
    }
    packed = (
        TextIndex(Table(words), files, tool_count).pack_frequent_terms()
        if frequent is None
        else frequent_terms.pack((names.index(name), rows[name]) for name in sorted(frequent))
    )
    files[snapshot_format.FREQUENT] = b"".join(packed)
    return TextIndex(Table(words), files, tool_count)


def draw_values(draw: random.Random, tool_count: int, term_count: int) -> Values:
    """Draw terms of all kinds: in most tools and in few, with values alike and far apart."""
    values = {}
    for number in range(term_count):
        tools = draw.sample(range(tool_count), max(1, int(tool_count * draw.random() ** 4)))
        if draw.random() < 0.3:  # next to each other, as the tools of a toolkit are
            first = draw.randrange(tool_count)
            tools = [(first + position) % tool_count for position in range(len(tools))]
        levels = [draw.randrange(1, 1 << 14) << 2 for _ in range(draw.choice((1, 3, 1000)))]
        values[f"w{number}"] = {tool: draw.choice(levels) | draw.randrange(4) for tool in tools}
    return values


def draw_query(draw: random.Random, index: TextIndex) -> ScoredQuery:
    """Draw terms with factors, and sometimes a range of slugs."""
    numbers = draw.sample(range(len(index._terms)), draw.choice((1, 2, 2, 3, 15, 60)))
    terms = [
        (index.term_at(number), np.float32(draw.choice((1.0, draw.random() * 12, 0.1))))
        for number in numbers
    ]
    first = draw.randrange(index.tool_count)
    ranges = [slice(first, min(index.tool_count, first + draw.choice((1, 30, 500))))]
    return ScoredQuery(terms, ranges if draw.random() < 0.1 else [])


def score_simply(index: TextIndex, query: ScoredQuery, candidates: Candidates) -> dict[int, float]:
    """Return the score of each candidate that matches, by looking at every tool."""
    scores = np.zeros(index.tool_count, np.float32)
    everything = np.arange(index.tool_count, dtype=np.uint32)
    for term, factor in query.terms:
        scores = scores + index.term_values(term, everything).astype(np.float32) * factor
    for slug_range in query.slug_ranges:
        scores[slug_range] += np.float32(1e9)
    return {tool: float(scores[tool]) for tool in candidates.tool_ids.tolist() if scores[tool] > 0}


def test_pruning_gives_the_same_as_scoring_every_tool() -> None:
    """Total, best tools and all scores, with and without filters, for random queries."""
    draw, pruned = random.Random(SEED), 0  # noqa: S311 - nothing secret
    for number in range(QUERIES):
        if number % 100 == 0:
            tool_count = draw.choice((700, 3000, 20_000))
            index = open_index(draw_values(draw, tool_count, 150), tool_count)
        assert index.frequent is not None
        query, limit = draw_query(draw, index), draw.choice((1, 10, 100))
        share = draw.choice((1, 1, 0.8, 0.3, 0.01))
        candidates = Candidates(
            np.array([tool for tool in range(tool_count) if draw.random() < share], np.uint32),
            tool_count,
        )
        scores = score_simply(index, query, candidates)
        expected = sorted(sorted(scores, key=lambda tool: (-scores[tool], tool))[:limit])
        best = matching.find_best(index, query, candidates, limit)
        assert (best.total, best.tool_ids.tolist()) == (len(scores), expected)
        assert dict(zip(*map(np.ndarray.tolist, best.load_all()), strict=True)) == scores
        result = pruning.find_best(index, index.frequent, query, candidates, limit)
        if result is not None:
            assert (result.total, result.tool_ids.tolist()) == (len(scores), expected)
            pruned += 1
    print(f"seed {SEED}: {pruned} of {QUERIES} pruned")
    assert pruned > QUERIES / 4


# The example of docs/explanation/search-large-catalogs.md; other tools have none of the terms
EXAMPLE: Values = {
    "refund": {1: 5, 2: 1},
    "send": {2: 2, 3: 6},
    "file": {1: 2, 3: 3, 4: 4},
}
FACTORS = {"refund": 4, "send": 2, "file": 1}
SCORES = {1: 22, 2: 8, 3: 15, 4: 4}


def test_the_example_of_the_documentation() -> None:
    """The levels, the sums of bits, the scores and the best two tools are those in the text."""
    index = open_index(EXAMPLE, 2000, ["send", "file"])
    assert index.frequent is not None
    send, file = (index.frequent.get(index._terms.bisect(name)) for name in ("send", "file"))
    assert send is not None
    assert file is not None
    assert (send.base, send.step, file.base, file.step) == (3, 2, 2, 1)
    columns = [
        [file.low],
        [send.members, file.members, file.high],
        [send.members, send.low],
        [send.high],
    ]
    sums = pruning._add_columns(columns, len(send.members))
    assert [frequent_terms.unpack_bits(row).tolist() for row in sums] == [
        [3],
        [1, 2],
        [2, 4],
        [],
        [3],
    ]
    terms = [(index.find_term(name), np.float32(FACTORS[name])) for name in EXAMPLE]
    query = ScoredQuery([(term, factor) for term, factor in terms if term], [])
    everything = Candidates(np.arange(2000, dtype=np.uint32), 2000)
    assert score_simply(index, query, everything) == SCORES
    best = matching.find_best(index, query, everything, 2)
    assert (best.total, best.tool_ids.tolist()) == (4, [1, 3])


def test_levels_are_upper_bounds() -> None:
    """A level is never lower than the value, and higher by less than a step."""
    draw = random.Random(SEED)  # noqa: S311 - nothing secret
    for number in range(50):
        index = open_index(draw_values(draw, 200, 1), 200, ["w0"])
        assert index.frequent is not None
        term, values = index.frequent.get(0), index.term_values(index.term_at(0), ALL)
        assert term is not None
        members, low, high = (
            np.unpackbits(row.view(np.uint8), bitorder="little")[:200].astype(np.int64)
            for row in (term.members, term.low, term.high)
        )
        levels = members * term.base + (low + 2 * high) * term.step
        assert (members > 0).tolist() == (values > 0).tolist(), number
        assert ((levels - values)[values > 0] < term.step).all()
        assert (levels >= values).all()
        assert term.bound >= values.max()


ALL = np.arange(200, dtype=np.uint32)


@pytest.mark.parametrize("position", [0, 40, -20, -8, -1, None])
def test_damaged_frequent_terms_are_refused(position: int | None) -> None:
    """A changed or missing byte is an error when the file is opened, or when the term is read."""
    values = np.concatenate([np.arange(1, 151), np.zeros(50)]).astype(np.uint16)
    data = bytearray(b"".join(frequent_terms.pack([(7, values)])))
    term = FrequentTerms(bytes(data), 200).get(7)
    assert term is not None
    assert frequent_terms.unpack_bits(term.members).tolist() == [*range(150)]
    assert FrequentTerms(bytes(data), 200).get(6) is None
    if position is None:
        del data[-1]
    else:
        data[position] ^= 1
    with pytest.raises(SnapshotError):
        FrequentTerms(bytes(data), 200).get(7)
