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
from itertools import compress, count

import numpy as np
from numpy.typing import NDArray

from toolcatalog import analysis, scoring, snapshot, table
from toolcatalog.counting import Counted
from toolcatalog.scoring import FIELDS, NAME, TOOLKIT

_LEAST_KIN = 0.6  # of a term's length: that of the beginning which is a term of its own
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
    """The files of the index as pieces, from the counts of all batches in the order of their tools.

    `batches` is called twice, so that they need not be held.
    """
    seen = _Seen()
    ids = [seen.add(Counted(data)) for data in batches()]
    vocabulary, order = seen.vocabulary()
    postings = _Postings(vocabulary, seen.tools, seen.usual())
    covers = []
    for data, of_batch in zip(batches(), ids, strict=True):
        covers.append(postings.add(Counted(data), order[of_batch]))
    return {
        snapshot.WORDS: _words(vocabulary, postings),
        snapshot.POSTINGS: postings.pieces(),
        snapshot.COVERS: [np.concatenate(columns).tobytes() for columns in zip(*covers, strict=True)],
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
    """The postings of all terms, being filled batch by batch."""

    def __init__(self, vocabulary: Vocabulary, tools: int, usual: scoring.Floats) -> None:
        self.usual = usual
        self.rarities = vocabulary.rarities
        self.is_row = vocabulary.holders * 3 > tools
        held = np.where(self.is_row, 0, vocabulary.holders)
        self.first = np.where(self.is_row, np.cumsum(self.is_row) - 1, np.cumsum(held) - held)  # posting, or row
        self.free = self.first.copy()
        self.numbers, self.values = np.empty(int(held.sum()), "<u4"), np.empty(int(held.sum()), "<u2")
        self.rows = np.zeros((int(self.is_row.sum()), tools), "<u2")
        self.before = 0

    def add(self, counted: Counted, ids: Ids) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.uint32]]:
        """Add those of a batch. What comes back is of each tool: the rarities of the terms of its name, of its toolkit's, and its name."""
        tools, holders = len(counted.newest), counted.holders.astype(np.int64)
        term = np.repeat(ids, holders)
        in_name, in_toolkit = counted.counts[:, NAME] > 0, counted.counts[:, TOOLKIT] > 0
        values = _values(counted, self.usual) << 2 | in_name | in_toolkit << 1
        numbers = counted.numbers + self.before
        rare = self.is_row[term]
        self.rows[self.first[term[rare]], numbers[rare]] = values[rare]
        starts = np.repeat(self.free[ids] - (np.cumsum(holders) - holders), holders)
        places = (starts + np.arange(len(term)))[~rare]
        self.numbers[places], self.values[places] = numbers[~rare], values[~rare]
        self.free[ids] += np.where(self.is_row[ids], 0, holders)
        self.before += tools
        cover = [np.bincount(counted.numbers, self.rarities[term] * where, tools).astype("<f4") for where in (in_name, in_toolkit)]
        return cover[0], cover[1], counted.names

    def pieces(self) -> list[bytes | memoryview]:
        """The bytes of all postings."""
        columns = (self.numbers, self.values, self.rows.reshape(-1))
        return [
            snapshot.POSTINGS_HEAD.pack(len(self.numbers), len(self.rows), *self.usual),
            *(column.view(np.uint8).data for column in columns),
        ]

    def check(self, id: int, held: int) -> tuple[int, int]:
        """Where the postings of a term are, and their checksum."""
        first = int(self.first[id])
        if self.is_row[id]:
            return first, zlib.crc32(self.rows[first].data)
        values = self.values[first : first + held]
        return first, zlib.crc32(values.data, zlib.crc32(self.numbers[first : first + held].data))


def _values(counted: Counted, usual: scoring.Floats) -> NDArray[np.int64]:
    """The impact of each posting, as a whole number."""
    frequencies = (counted.counts * scoring.factors(counted.lengths, usual)[counted.numbers]).sum(1)
    return np.maximum(1, np.rint(scoring.impacts(frequencies) / scoring.MOST * snapshot.MOST_IMPACT).astype(np.int64))


def _words(vocabulary: Vocabulary, postings: _Postings) -> Iterator[bytes]:
    """The table of terms."""
    kin = _kin(vocabulary.terms)
    entries = []
    columns = zip(vocabulary.holders.tolist(), vocabulary.rarities.tolist(), vocabulary.spellings, strict=True)
    for id, (held, rarity, spelt) in enumerate(columns):
        first, check = postings.check(id, held)
        related = kin.get(id, ())
        head = snapshot.WORD.pack(first, held, check, rarity, bool(postings.is_row[id]), len(related))
        entries.append(head + array("I", related).tobytes() + spelt.encode())
    return table.pack(vocabulary.terms, [*map(len, entries)], entries)


def _kin(terms: Sequence[str]) -> dict[int, list[int]]:
    """Of each term those that begin with it, or that it begins with, and are not much longer or shorter: "photo" and "photograph"."""
    ids = {term: id for id, term in enumerate(terms) if analysis.is_word(term)}
    kin: dict[int, list[int]] = {}
    for term, id in ids.items():
        for length in range(max(4, math.ceil(_LEAST_KIN * len(term))), len(term)):
            shorter = ids.get(term[:length])
            if shorter is not None:
                kin.setdefault(shorter, []).append(id)
                kin.setdefault(id, []).append(shorter)
    for id, some in kin.items():
        if len(some) > 1:
            some.sort(key=lambda other: (abs(len(terms[other]) - len(terms[id])), other))
    return {id: some[:_MOST_KIN] for id, some in kin.items()}
