"""The text index, opened: terms, their relatives, and what they tell of tools. Nothing is read but
what a question touches.
"""

import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog import analysis, snapshot, spelling
from toolcatalog.errors import MEND, SnapshotError
from toolcatalog.table import Data, Table

_TERMS = 1 << 13  # that are remembered: some hundred bytes each
_NEAR = 1 << 8  # unknown words for which those near them are remembered

Numbers = NDArray[np.uint32]
Values = NDArray[np.uint16]
Scores = NDArray[np.float32]


class Term(NamedTuple):
    """A term: its number, how rare it is, all its relatives by number, its spellings, the number of
    the first of them among all words, and where its postings are.
    """

    number: int
    text: str
    rarity: float
    kin: tuple[int, ...]
    word: int
    spellings: tuple[str, ...]
    first: int
    held: int
    check: int
    is_row: bool

    @property
    def spelt(self) -> str:
        """The shortest spelling."""
        return shortest(self.spellings)


def shortest(spellings: Iterable[str]) -> str:
    """The shortest spelling, of several the first in the order of code points."""
    return min(spellings, key=lambda spelling: (len(spelling), spelling))


class Postings:
    """The text index of a snapshot with so many tool versions. Methods raise SnapshotError where it
    is not what was written.
    """

    def __init__(self, words: Table, data: Mapping[str, Data], tools: int) -> None:
        self._words = words
        # of which terms the postings were read before and found as they were written
        self._sound = bytearray(len(words))
        covers = np.frombuffer(data[snapshot.COVERS], np.uint8).reshape(3, 4 * tools)
        # by name and by toolkit: rarities of the terms there, added up
        self.names_hold = covers[:2].view("<f4")
        self.names = covers[2].view("<u4")  # checksums: see `counting.called`
        self._data = memoryview(data[snapshot.POSTINGS])
        self._tools = tools
        head = bytes(self._data[: snapshot.POSTINGS_HEAD.size])
        self.usual = np.frombuffer(head[:-8], "<f8")  # how long fields are on average
        if head != snapshot.postings_head(self.usual.tolist()):
            raise SnapshotError(f"{snapshot.POSTINGS} has other bytes than were written")
        # not methods: what refers to itself stays until somebody looks for such
        self.term = lru_cache(maxsize=_TERMS)(partial(_find, words))
        self.at = lru_cache(maxsize=_TERMS)(partial(_at, words))
        self.near = lru_cache(maxsize=_NEAR)(partial(_near, words))

    def beginning(self, text: str, most: int) -> list[Term]:
        """The first terms that begin with this text."""
        place = self._words.place(text)
        return [
            self.at(place + more)
            for more, name in enumerate(self._words.names(place, place + most))
            if name.startswith(text)
        ]

    def place(self, text: str) -> int:
        """How many terms sort before this text."""
        return self._words.place(text)

    def add(self, term: Term, factor: float, scores: Scores) -> None:
        """Add the impacts of a term, times a factor, to the scores of the tools that hold it."""
        if term.is_row:
            scores += self._row(term) * np.float32(factor)
        else:
            numbers, values = self._pairs(term)
            np.add.at(scores, numbers, values * np.float32(factor))

    def count(self, term: Term, counts: NDArray[np.int32]) -> None:
        """Add 1 to the counts of the tools that hold a term, and 2 where it stands in the name."""
        if term.is_row:
            values = self._row(term)
            counts += (values > 0) + (values & 1)
        else:
            numbers, values = self._pairs(term)
            counts[numbers] += 1 + (values & 1)

    def values(self, term: Term, numbers: Numbers) -> Values:
        """What a term tells of these tools: its values, see `indexing`, and 0 for those that do not
        hold it.
        """
        if term.is_row:
            return self._row(term).take(numbers)
        known, values = self._pairs(term)
        places = known.searchsorted(numbers)
        found: Values = values.take(places, mode="clip") * (
            known.take(places, mode="clip") == numbers
        )
        return found

    def _row(self, term: Term) -> Values:
        """A value for each tool."""
        return np.frombuffer(self._vouched(term, 2 * self._tools), "<u2")

    def _pairs(self, term: Term) -> tuple[Numbers, Values]:
        """The numbers of the tools that hold a term, and their values."""
        data = self._vouched(term, 6 * term.held)
        return np.frombuffer(data, "<u4", term.held), np.frombuffer(
            data, "<u2", term.held, 4 * term.held
        )

    def _vouched(self, term: Term, size: int) -> memoryview:
        """The postings of a term, held against their checksum when they are first read."""
        data = self._data[term.first : term.first + size + size % 4]
        if not self._sound[term.number]:
            if zlib.crc32(data) != term.check:
                raise SnapshotError(f"The postings of a word are not what was written: {MEND}")
            self._sound[term.number] = 1
        return data[:size]


def _find(words: Table, text: str) -> Term | None:
    """The term of this text; None where no tool holds it."""
    found = words.find(text)
    return None if found is None else _term(found[0], text, found[1])


def _at(words: Table, number: int) -> Term:
    """The term of this number."""
    return _term(number, *words.at(number))


def _near(words: Table, word: str) -> list[Term]:
    """The terms of the words that differ from this one by a letter, in their order."""
    texts = (
        {analysis.stem(other) for other in spelling.edits(word)}
        if len(word) <= spelling.LONGEST
        else ()
    )
    return sorted(term for text in texts if (term := _find(words, text)))


def _term(number: int, text: str, entry: bytes) -> Term:
    first, held, check, rarity, is_row, kin, word = snapshot.WORD.unpack_from(entry)
    end = snapshot.WORD.size + 4 * kin
    related = memoryview(entry)[snapshot.WORD.size : end].cast("I")
    spellings = tuple(entry[end:].decode().split("\t"))
    return Term(number, text, rarity, tuple(related), word, spellings, first, held, check, is_row)
