"""The counts of all batches to the text index. Pure.

What a term tells of a tool is its impact there (see `scoring`), times its rarity, which is one number for all its tools. Impacts are worked
out here, so that a query is one addition for each posting.

Most terms are held by few tools: their postings are pairs of number and value. A term that a third of all tools hold takes less room,
and no more time however many hold it, as a row with a value for every tool.

A value has sixteen bits: fourteen of the impact, and whether the term stands in the tool's name, and in its toolkit's.

Serves: "Precomputed at build time, opened in milliseconds".
"""

import math
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, count, pairwise

import numpy as np
from numpy.typing import NDArray

from toolcatalog import analysis, scoring, snapshot, table
from toolcatalog.counting import Counted
from toolcatalog.scoring import FIELDS, NAME, TOOLKIT

_AT_ONCE = 1 << 27  # bytes of postings that are made at a time; twice as many are held for a moment
_MOST_KIN = 12  # of a term

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The sorted terms of all batches, with what is known of each: how many tool versions hold it, its rarity, a short spelling."""

    terms: Sequence[str]
    spellings: Sequence[str]
    holders: Ids
    rarities: NDArray[np.float64]


def merge(batches: Callable[[], Iterable[bytes]]) -> dict[str, Iterable[bytes | memoryview]]:
    """The files of the index as pieces, to be taken in this order, from the counts of all batches in the order of their tools.

    `batches` is called twice and more, so that they need not be held.
    """
    seen = _Seen()
    ids = [seen.add(Counted(data)) for data in batches()]
    vocabulary, order = seen.vocabulary()
    postings = _Postings(vocabulary, seen.tools, seen.usual())

    def counted() -> Iterator[tuple[Counted, Ids]]:
        return ((Counted(data), order[some]) for data, some in zip(batches(), ids, strict=True))

    return {
        snapshot.POSTINGS: postings.pieces(counted),
        snapshot.COVERS: _covers(vocabulary, counted()),
        snapshot.WORDS: _words(vocabulary, postings),
    }


class _Seen:
    """What one look at all batches tells."""

    def __init__(self) -> None:
        self.ids: defaultdict[str, int] = defaultdict(count().__next__)  # numbers in the order of coming
        self.spellings: list[str] = []
        self.holders, self.new = np.zeros((2, 1 << 10), np.int64)  # by id: how many tool versions hold a term, how many newest ones
        self.tools = self.newest = 0
        self.lengths, self.filled = np.zeros(len(FIELDS)), np.zeros(len(FIELDS))

    def add(self, counted: Counted) -> NDArray[np.int32]:
        """The ids of a batch's terms, in few bytes: there are thousands of batches."""
        terms, spellings = counted.terms
        ids = np.fromiter(map(self.ids.__getitem__, terms), np.int32, len(terms))
        self.spellings += compress(spellings, ids >= len(self.spellings))  # that of the first batch that has the term
        ends = np.cumsum(counted.holders)
        new = np.concatenate([[0], np.cumsum(counted.newest[counted.numbers])])
        if len(self.ids) > len(self.holders):
            self.holders, self.new = (np.pad(column, (0, len(self.ids))) for column in (self.holders, self.new))
        self.holders[ids] += counted.holders
        self.new[ids] += new[ends] - new[ends - counted.holders]
        self.tools += len(counted.newest)
        self.newest += int(counted.newest.sum())
        lengths = counted.lengths[counted.newest]
        self.lengths += lengths.sum(0)
        self.filled += (lengths > 0).sum(0)
        return ids

    def usual(self) -> scoring.Floats:
        """How long each field of a newest version is on average, where it is not empty."""
        return self.lengths / np.maximum(self.filled, 1)

    def vocabulary(self) -> tuple[Vocabulary, Ids]:
        """The terms, sorted, and the place of each id among them."""
        terms = sorted(self.ids)
        ids = np.array([self.ids[term] for term in terms], np.int64)
        order = np.empty_like(ids)
        order[ids] = np.arange(len(ids))
        rarities = [math.log(1 + (self.newest - held + 0.5) / (held + 0.5)) for held in self.new[ids].tolist()]
        spellings = [self.spellings[id] for id in ids.tolist()]
        return Vocabulary(terms=terms, spellings=spellings, holders=self.holders[ids], rarities=np.array(rarities)), order


class _Postings:
    """The postings of all terms: where those of each lie in their file, and their bytes, made for as many terms at a time as fit."""

    def __init__(self, vocabulary: Vocabulary, tools: int, usual: scoring.Floats) -> None:
        self.usual = usual
        self.holders = vocabulary.holders
        self.is_row = self.holders * 3 > tools
        sizes = np.where(self.is_row, 2 * tools, 6 * self.holders)
        ends = snapshot.POSTINGS_HEAD.size + np.cumsum(sizes + sizes % 4)  # each begins where a number of four bytes may
        self.bounds = np.concatenate([[snapshot.POSTINGS_HEAD.size], ends])
        self.checks: list[int] = []

    def pieces(self, counted: Callable[[], Iterable[tuple[Counted, Ids]]]) -> Iterator[bytes | memoryview]:
        """The bytes of the file. Afterwards `checks` has the checksum of each term's."""
        yield snapshot.postings_head(self.usual.tolist())
        last = 0
        while (first := last) < len(self.holders):
            last = max(first + 1, int(np.searchsorted(self.bounds, self.bounds[first] + _AT_ONCE, "right")) - 1)
            data = self._filled(first, last, counted())
            bounds = (self.bounds[first : last + 1] - self.bounds[first]).tolist()
            self.checks += (zlib.crc32(data[start:end]) for start, end in pairwise(bounds))
            yield data

    def _filled(self, first: int, last: int, batches: Iterable[tuple[Counted, Ids]]) -> memoryview:
        """The bytes of the postings of some terms."""
        data = np.zeros(int(self.bounds[last] - self.bounds[first]), np.uint8)
        places = self.bounds[:-1] - self.bounds[first]  # of the first number of each term, or of the first value of its row
        quads, pairs, before = data.view("<u4"), data.view("<u2"), 0
        free = np.zeros(len(self.holders), np.int64)  # how many numbers each term has by now
        for counted, ids in batches:
            holders = counted.holders.astype(np.int64)
            term = np.repeat(ids, holders)
            nth = np.arange(len(term)) + np.repeat(free[ids] - (np.cumsum(holders) - holders), holders)
            free[ids] += holders
            values, numbers, row = _values(counted, self.usual), counted.numbers + before, self.is_row[term]
            before += len(counted.newest)
            inside = (term >= first) & (term < last)
            few = inside & ~row
            quads[places[term[few]] // 4 + nth[few]] = numbers[few]
            at = places[term] // 2 + np.where(row, numbers, 2 * self.holders[term] + nth)
            pairs[at[inside]] = values[inside]
        return data.data


def _covers(vocabulary: Vocabulary, batches: Iterable[tuple[Counted, Ids]]) -> Iterator[bytes]:
    """Of each tool the rarities of the terms of its name, and of its toolkit's, added up, and a checksum of the name: column by column."""
    columns: list[list[bytes]] = [[], [], []]
    for counted, ids in batches:
        rarities = vocabulary.rarities[np.repeat(ids, counted.holders)]
        for column, field in ((0, NAME), (1, TOOLKIT)):
            told = np.bincount(counted.numbers, rarities * (counted.counts[:, field] > 0), len(counted.newest))
            columns[column].append(told.astype("<f4").tobytes())
        columns[2].append(counted.names.tobytes())
    yield from (b"".join(column) for column in columns)


def _values(counted: Counted, usual: scoring.Floats) -> NDArray[np.int64]:
    """The value of each posting."""
    frequencies = (counted.counts * scoring.factors(counted.lengths, usual)[counted.numbers]).sum(1)
    impacts = np.maximum(1, np.rint(scoring.impacts(frequencies) / scoring.MOST * snapshot.MOST_IMPACT).astype(np.int64))
    return impacts << 2 | (counted.counts[:, NAME] > 0) | (counted.counts[:, TOOLKIT] > 0) << 1


def _words(vocabulary: Vocabulary, postings: _Postings) -> Iterator[bytes]:
    """The table of terms."""
    kin = _kin(vocabulary.terms)
    entries = []
    columns = zip(vocabulary.holders.tolist(), vocabulary.rarities.tolist(), vocabulary.spellings, strict=True)
    for id, (held, rarity, spelt) in enumerate(columns):
        related = kin.get(id, ())
        head = snapshot.WORD.pack(postings.bounds[id], held, postings.checks[id], rarity, bool(postings.is_row[id]), len(related))
        entries.append(head + array("I", related).tobytes() + spelt.encode())
    yield from table.pack(vocabulary.terms, [*map(len, entries)], entries)


def _kin(terms: Sequence[str]) -> dict[int, list[int]]:
    """Of each term those that begin with it, or that it begins with, and are not much longer or shorter: "photo" and "photograph"."""
    ids = {term: id for id, term in enumerate(terms) if analysis.is_word(term)}
    kin: dict[int, list[int]] = {}
    for term, id in ids.items():
        for beginning in analysis.beginnings(term):
            shorter = ids.get(beginning)
            if shorter is not None:
                kin.setdefault(shorter, []).append(id)
                kin.setdefault(id, []).append(shorter)
    for id, some in kin.items():
        if len(some) > 1:
            some.sort(key=lambda other: (abs(len(terms[other]) - len(terms[id])), other))
    return {id: some[:_MOST_KIN] for id, some in kin.items()}
