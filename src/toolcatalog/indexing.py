"""The counts of all batches to the text index. Pure.

What a term tells of a tool is its impact there (see `scoring`), times its rarity, which is one
number for all its tools. Impacts are worked out here, so that a query is one addition for each
posting.

Most terms are held by few tools: their postings are pairs of number and value. A term that a third
of all tools hold takes less room, and no more time however many hold it, as a row with a value for
every tool.

A value has sixteen bits: fourteen of the impact, and whether the term stands in the tool's name,
and in its toolkit's.
"""

import math
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from toolcatalog import analysis, lookup, scoring, snapshot, table
from toolcatalog.counting import Counted
from toolcatalog.lexicon import Lexicon, Numbers
from toolcatalog.scoring import FIELDS, NAME, TOOLKIT

_AT_ONCE = 1 << 27  # bytes of postings that are made at a time; twice as many are held for a moment

Ids = NDArray[np.int64]
Counts = Callable[[], Iterable[tuple[str, bytes]]]  # of each batch, with the key of its part
Pieces = dict[str, Iterable[bytes | memoryview]]  # of files by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The sorted terms of all batches, with what is known of each: how many tool versions hold it,
    its rarity, its spellings, and the number of the first of these among all words.
    """

    terms: Sequence[str]
    spellings: Sequence[str]
    first: Sequence[int]
    holders: Ids
    rarities: NDArray[np.float64]


def merge(batches: Counts, lexicon: Lexicon) -> Pieces:
    """The files of the index as pieces, to be taken in this order, from the counts of all batches
    in the order of their tools.

    The words are asked for at once. `batches` is called twice and more, so that the counts need not
    be held.
    """
    seen, numbers = _Seen(), list[Numbers]()
    for key, data in batches():
        counted = Counted(data)
        every_word = lexicon.numbers(key, counted)
        numbers.append(every_word[: len(counted.holders)])
        seen.add(counted, every_word, len(lexicon))
    vocabulary, order, places = seen.vocabulary(lexicon.words())
    postings = _Postings(vocabulary, seen.tools, seen.usual())

    def every() -> Iterator[tuple[Counted, Ids]]:
        return (
            (Counted(data), order[some]) for (_, data), some in zip(batches(), numbers, strict=True)
        )

    return {
        snapshot.POSTINGS: postings.pieces(every),
        snapshot.COVERS: _covers(vocabulary, every()),
        snapshot.WORDS: _words(vocabulary, postings),
        snapshot.VOCABULARIES: _vocabularies(seen.toolkits, order, places),
    }


class _Seen:
    """What one look at all batches tells."""

    def __init__(self) -> None:
        # of each word: how many tool versions hold it, how many newest ones
        self.holders, self.new, self.used = np.zeros((3, 1 << 10), np.int64)
        # of each toolkit: the words of its tools, batch by batch
        self.toolkits: defaultdict[str, list[Numbers]] = defaultdict(list)
        self.tools = self.newest = 0
        self.lengths, self.filled = np.zeros(len(FIELDS)), np.zeros(len(FIELDS))

    def add(self, counted: Counted, numbers: Numbers, words: int) -> None:
        """Add a batch whose words have these numbers, of so many as there are by now."""
        if words > len(self.holders):
            self.holders, self.new, self.used = (
                np.pad(column, (0, words)) for column in (self.holders, self.new, self.used)
            )
        self.used[numbers] = 1
        for toolkit, places in counted.toolkits.items():
            self.toolkits[toolkit].append(numbers[places])
        numbers = numbers[: len(counted.holders)]
        ends = np.cumsum(counted.holders)
        new = np.concatenate([[0], np.cumsum(counted.newest[counted.numbers])])
        self.holders[numbers] += counted.holders
        self.new[numbers] += new[ends] - new[ends - counted.holders]
        self.tools += len(counted.newest)
        self.newest += int(counted.newest.sum())
        lengths = counted.lengths[counted.newest]
        self.lengths += lengths.sum(0)
        self.filled += (lengths > 0).sum(0)

    def usual(self) -> scoring.Floats:
        """How long each field of a newest version is on average, where it is not empty."""
        return self.lengths / np.maximum(self.filled, 1)

    def vocabulary(self, words: Sequence[str]) -> tuple[Vocabulary, Ids, Ids]:
        """The terms, sorted, the place among them of each word's, and the place of each word among
        all words, sorted; words that nobody holds are left out.
        """
        # by term: a tab sorts before all letters
        held = sorted(self.used.nonzero()[0].tolist(), key=words.__getitem__)
        terms, spellings, first, places = list[str](), list[str](), list[int](), list[int]()
        for place, number in enumerate(held):
            term, _, spelling = words[number].partition("\t")
            if terms and term == terms[-1]:
                spellings[-1] += f"\t{spelling}"
            else:
                terms.append(term)
                spellings.append(spelling)
                first.append(place)
            places.append(len(terms) - 1)
        order, of_words = np.zeros((2, len(words)), np.int64)
        order[held], of_words[held] = places, np.arange(len(held))
        holders, new = (
            np.bincount(places, column[held], len(terms)).astype(np.int64)
            for column in (self.holders, self.new)
        )
        found = Vocabulary(
            terms=terms,
            spellings=spellings,
            first=first,
            holders=holders,
            rarities=self._rarities(new),
        )
        return found, order, of_words

    def _rarities(self, new: Ids) -> NDArray[np.float64]:
        """How rare terms are that so many newest versions hold; most are held by as many as some
        other is.
        """
        every, places = np.unique(new, return_inverse=True)
        return np.array(
            [math.log(1 + (self.newest - some + 0.5) / (some + 0.5)) for some in every.tolist()]
        )[places]


class _Postings:
    """The postings of all terms: where those of each lie in their file, and their bytes, made for
    as many terms at a time as fit.
    """

    def __init__(self, vocabulary: Vocabulary, tools: int, usual: scoring.Floats) -> None:
        self.usual = usual
        self.holders = vocabulary.holders
        self.is_row = self.holders * 3 > tools
        sizes = np.where(self.is_row, 2 * tools, 6 * self.holders)
        # each begins where a number of four bytes may
        ends = snapshot.POSTINGS_HEAD.size + np.cumsum(sizes + sizes % 4)
        self.bounds = np.concatenate([[snapshot.POSTINGS_HEAD.size], ends])
        self.checks: list[int] = []

    def pieces(
        self, counted: Callable[[], Iterable[tuple[Counted, Ids]]]
    ) -> Iterator[bytes | memoryview]:
        """The bytes of the file. Afterwards `checks` has the checksum of each term's."""
        yield snapshot.postings_head(self.usual.tolist())
        last = 0
        while (first := last) < len(self.holders):
            last = max(
                first + 1,
                int(np.searchsorted(self.bounds, self.bounds[first] + _AT_ONCE, "right")) - 1,
            )
            data = self._filled(first, last, counted())
            bounds = (self.bounds[first : last + 1] - self.bounds[first]).tolist()
            self.checks += (zlib.crc32(data[start:end]) for start, end in pairwise(bounds))
            yield data

    def _filled(self, first: int, last: int, batches: Iterable[tuple[Counted, Ids]]) -> memoryview:
        """The bytes of the postings of some terms."""
        data = np.zeros(int(self.bounds[last] - self.bounds[first]), np.uint8)
        # of the first number of each term, or of the first value of its row
        places = self.bounds[:-1] - self.bounds[first]
        quads, pairs, before = data.view("<u4"), data.view("<u2"), 0
        free = np.zeros(len(self.holders), np.int64)  # how many numbers each term has by now
        for counted, ids in batches:
            held, row = counted.holders.astype(np.int64), self.is_row[ids]
            # of a posting among its term's, less its place in the batch
            nth = free[ids] - (np.cumsum(held) - held)
            free[ids] += held
            values, numbers, every = (
                _values(counted, self.usual),
                counted.numbers + before,
                np.arange(len(counted.numbers)),
            )
            before += len(counted.newest)
            inside, in_row = np.repeat((first <= ids) & (ids < last), held), np.repeat(row, held)
            few = inside & ~in_row
            quads[(every + np.repeat(places[ids] // 4 + nth, held))[few]] = numbers[few]
            at = np.repeat(
                places[ids] // 2 + np.where(row, 0, 2 * self.holders[ids] + nth), held
            ) + np.where(in_row, numbers, every)
            pairs[at[inside]] = values[inside]
        return data.data


def _covers(vocabulary: Vocabulary, batches: Iterable[tuple[Counted, Ids]]) -> Iterator[bytes]:
    """Of each tool the rarities of the terms of its name, and of its toolkit's, added up, and a
    checksum of the name: column by column.
    """
    columns: list[list[bytes]] = [[], [], []]
    for counted, ids in batches:
        rarities = vocabulary.rarities[np.repeat(ids, counted.holders)]
        for column, field in ((0, NAME), (1, TOOLKIT)):
            told = np.bincount(
                counted.numbers, rarities * (counted.counts[:, field] > 0), len(counted.newest)
            )
            columns[column].append(told.astype("<f4").tobytes())
        columns[2].append(counted.names.tobytes())
    yield from (b"".join(column) for column in columns)


def _values(counted: Counted, usual: scoring.Floats) -> NDArray[np.int64]:
    """The value of each posting."""
    told = scoring.factors(counted.lengths, usual).take(counted.numbers, 0)
    told *= counted.counts
    frequencies = reduce(add, told.T)  # as `sum` has it, to the last bit, in a third of the time
    impacts = np.maximum(
        1,
        np.rint(scoring.impacts(frequencies) / scoring.MOST * snapshot.MOST_IMPACT).astype(
            np.int64
        ),
    )
    return impacts << 2 | (counted.counts[:, NAME] > 0) | (counted.counts[:, TOOLKIT] > 0) << 1


def _words(vocabulary: Vocabulary, postings: _Postings) -> Iterator[bytes]:
    """The table of terms."""
    kin = _kin(vocabulary.terms)
    related = [
        array("I", kin[id]).tobytes() if id in kin else b"" for id in range(len(vocabulary.terms))
    ]
    columns = (
        postings.bounds[:-1],
        vocabulary.holders,
        np.array(postings.checks),
        vocabulary.rarities,
        postings.is_row,
    )
    heads = map(
        snapshot.WORD.pack,
        *(column.tolist() for column in columns),
        [len(some) // 4 for some in related],
        vocabulary.first,
    )
    entries = [
        head + some + spellings.encode()
        for head, some, spellings in zip(heads, related, vocabulary.spellings, strict=True)
    ]
    yield from table.pack(vocabulary.terms, [*map(len, entries)], entries)


def _vocabularies(
    toolkits: Mapping[str, Sequence[Numbers]], order: Ids, places: Ids
) -> Iterator[bytes]:
    """The table of vocabularies, from the words of each toolkit."""
    slugs = sorted(toolkits)
    entries = []
    for slug in slugs:
        numbers = np.concatenate(toolkits[slug])
        entries.append(lookup.pack(_bitmap(order[numbers]), _bitmap(places[numbers])))
    yield from table.pack(slugs, [*map(len, entries)], entries)


def _bitmap(numbers: Ids) -> BitMap:
    bitmap = BitMap(np.unique(numbers).astype(np.uint32))
    bitmap.run_optimize()
    return bitmap


def _kin(terms: Sequence[str]) -> dict[int, list[int]]:
    """Of each term those that begin with it, or that it begins with, and are not much longer or
    shorter: "photo" and "photograph".
    """
    words = [(id, term) for id, term in enumerate(terms) if analysis.is_word(term)]
    kin: dict[int, list[int]] = {}
    for place, (id, term) in enumerate(words):
        end = place + 1
        # they are sorted: those that begin with a term are next to it
        while end < len(words) and words[end][1].startswith(term):
            longer, text = words[end]
            if len(term) >= analysis.least_kin(text):
                kin.setdefault(id, []).append(longer)
                kin.setdefault(longer, []).append(id)
            end += 1
    for id, some in kin.items():
        if len(some) > 1:
            some.sort(key=lambda other: (abs(len(terms[other]) - len(terms[id])), other))
    return kin
