"""The search index reader: the memory-mapped text index with terms, relatives and postings.

A query reads only the terms and postings that it needs.
"""

import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog.errors import REBUILD_HINT, SnapshotError
from toolcatalog.search import analysis
from toolcatalog.search.index import frequent_terms
from toolcatalog.search.index.frequent_terms import FrequentTerms, PostingValues
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import tables
from toolcatalog.snapshot.mapped_files import Buffer, prefetch
from toolcatalog.snapshot.tables import Table

_TERM_CACHE_SIZE = 1 << 13  # cached terms, a few hundred bytes each
_POSTINGS_CACHE_SIZE = 1 << 12  # terms whose postings are cached as arrays: views of the file
_SIMILAR_CACHE_SIZE = 1 << 8  # unknown words whose similar terms are cached
Scores = NDArray[np.float32]


class Term(NamedTuple):
    """A term: number, text, IDF, the numbers of related terms, spellings and postings location.

    `word` is the number of its first spelling among all words; `offset` and `checksum` are those of
    its postings.
    """

    id: int
    text: str
    idf: float
    related: tuple[int, ...]
    word: int
    spellings: tuple[str, ...]
    offset: int
    document_frequency: int
    checksum: int
    is_dense: bool

    @property
    def spelling(self) -> str:
        """The shortest spelling."""
        return shortest(self.spellings)


class Postings(NamedTuple):
    """The postings of a term: the tools that contain it in ascending order, and their values.

    `tool_ids` is None if the term is dense: then there is a value for every tool, 0 for those that
    do not contain it. See `search.index.index_writer` for values.
    """

    tool_ids: tables.ToolIds | None
    values: PostingValues


def shortest(spellings: Iterable[str]) -> str:
    """Return the shortest spelling; of several, the first in code point order."""
    return min(spellings, key=lambda spelling: (len(spelling), spelling))


class TextIndex:
    """The text index of a snapshot with `tool_count` tool versions.

    Methods raise SnapshotError if the data read differs from what was written.
    """

    def __init__(self, terms: Table, data: Mapping[str, Buffer], tool_count: int) -> None:
        self._terms = terms
        # terms whose postings matched their checksum
        self._verified = bytearray(len(terms))
        covers = np.frombuffer(data[snapshot_format.COVERS], np.uint8).reshape(3, 4 * tool_count)
        # sums of IDF over the terms of the name and of the toolkit's name
        self.name_idf_sums = covers[:2].view("<f4")
        self.name_checksums = covers[2].view("<u4")  # see `search.analysis.name_checksum`
        self._postings = data[snapshot_format.POSTINGS]
        self._data = memoryview(self._postings)
        self._cached_postings: dict[int, Postings] = {}
        self.tool_count = tool_count
        frequent = data.get(snapshot_format.FREQUENT)
        self.frequent = None if frequent is None else FrequentTerms(frequent, tool_count)
        head = bytes(self._data[: snapshot_format.POSTINGS_HEADER.size])
        self.average_lengths = np.frombuffer(head[:-8], "<f8")  # mean length of each field
        if head != snapshot_format.pack_postings_header(self.average_lengths.tolist()):
            raise SnapshotError(f"{snapshot_format.POSTINGS} has other bytes than were written")
        # Not cached methods: those would make a reference cycle, which keeps the mapped files open.
        self.find_term = lru_cache(maxsize=_TERM_CACHE_SIZE)(partial(_find_term, terms))
        self.term_at = lru_cache(maxsize=_TERM_CACHE_SIZE)(partial(_term_at, terms))
        self.similar_terms = lru_cache(maxsize=_SIMILAR_CACHE_SIZE)(
            partial(_find_similar_terms, terms)
        )

    def terms_with_prefix(self, prefix: str, limit: int) -> list[Term]:
        """Return the first terms that begin with `prefix`, at most `limit`."""
        position = self._terms.bisect(prefix)
        return [
            self.term_at(position + offset)
            for offset, name in enumerate(self._terms.names(position, position + limit))
            if name.startswith(prefix)
        ]

    def position_of(self, text: str) -> int:
        """Return the number of terms that sort before this text."""
        return self._terms.bisect(text)

    def add_scores(self, term: Term, factor: np.float32, scores: Scores) -> None:
        """Add the values of a term, times `factor`, to the scores of the tools that contain it."""
        tool_ids, values = self.postings(term)
        if tool_ids is None:
            scores += values * factor
        else:
            np.add.at(scores, tool_ids, values * factor)

    def count(self, term: Term, counts: NDArray[np.int32]) -> None:
        """Add 1 to the count of each tool that contains the term, 2 if it is in the tool's name."""
        tool_ids, values = self.postings(term)
        if tool_ids is None:
            counts += (values > 0) + (values & 1)
        else:
            counts[tool_ids] += 1 + (values & 1)

    def term_values(self, term: Term, tool_ids: tables.ToolIds) -> PostingValues:
        """Return the values of a term for these tools (see `search.index.index_writer`).

        Tools that do not contain the term have 0.
        """
        term_tools, values = self.postings(term)
        if term_tools is None:
            return values.take(tool_ids)
        positions = term_tools.searchsorted(tool_ids)
        result: PostingValues = values.take(positions, mode="clip") * (
            term_tools.take(positions, mode="clip") == tool_ids
        )
        return result

    def find_unsound_postings(self) -> int | None:
        """Return the number of the first term with postings that no build writes; None if there is
        none.

        The tools of a term are known and ascend, as many as its entry says, and have values.
        """
        for number in range(len(self._terms)):
            term = _term_at(self._terms, number)
            tool_ids, values = self._read_postings(term)
            is_sound = np.count_nonzero(values) == term.document_frequency
            if tool_ids is not None:
                is_sound &= tool_ids[-1] < self.tool_count and (tool_ids[1:] > tool_ids[:-1]).all()
            if not is_sound:
                return number
        return None

    def pack_frequent_terms(self) -> Iterator[bytes]:
        """Yield the bytes of the file of frequent terms (see `search.index.frequent_terms`)."""
        return frequent_terms.pack(self._frequent_rows())

    def _frequent_rows(self) -> Iterator[tuple[int, PostingValues]]:
        """Yield each frequent term's number, and its value for every tool."""
        for number in range(len(self._terms)):
            term = _term_at(self._terms, number)
            if term.document_frequency * frequent_terms.MIN_SHARE > self.tool_count:
                tool_ids, values = self._read_postings(term)
                if tool_ids is not None:
                    values, sparse_values = np.zeros(self.tool_count, np.uint16), values
                    values[tool_ids] = sparse_values
                yield number, values

    def postings(self, term: Term) -> Postings:
        """Return the postings of a term."""
        postings = self._cached_postings.get(term.id)
        if postings is None:
            if len(self._cached_postings) >= _POSTINGS_CACHE_SIZE:
                self._cached_postings.clear()
            postings = self._cached_postings[term.id] = self._read_postings(term)
        return postings

    def _read_postings(self, term: Term) -> Postings:
        """Read the postings of a term from the file, and check their checksum."""
        count = term.document_frequency
        size = 2 * self.tool_count if term.is_dense else 6 * count
        data = self._data[term.offset : term.offset + size + size % 4]
        if not self._verified[term.id]:
            prefetch(self._postings, term.offset, len(data))
            if zlib.crc32(data) != term.checksum:
                raise SnapshotError(
                    f"The postings of a word are not what was written: {REBUILD_HINT}"
                )
            self._verified[term.id] = 1
        if term.is_dense:
            tool_ids, values = None, np.frombuffer(data, "<u2", self.tool_count)
        else:
            tool_ids = np.frombuffer(data, "<u4", count)
            values = np.frombuffer(data, "<u2", count, 4 * count)
        return Postings(tool_ids, values)


def _find_term(terms: Table, text: str) -> Term | None:
    """Return the term with this text; None if no tool contains it."""
    match = terms.find(text)
    return None if match is None else _parse_term(match[0], text, match[1])


def _term_at(terms: Table, id: int) -> Term:
    """Return the term with this number."""
    return _parse_term(id, *terms.entry_at(id))


def _find_similar_terms(terms: Table, word: str) -> list[Term]:
    """Return the terms of the words that differ from `word` by one edit, sorted."""
    texts = (
        {analysis.stem(other) for other in analysis.single_edits(word)}
        if len(word) <= analysis.MAX_CORRECTED_LENGTH
        else ()
    )
    return sorted(itertools.starmap(_parse_term, terms.find_all(texts)))


def _parse_term(id: int, text: str, entry: bytes) -> Term:
    first, document_frequency, checksum, rarity, is_row, related_count, word = (
        snapshot_format.TERM_HEADER.unpack_from(entry)
    )
    end = snapshot_format.TERM_HEADER.size + 4 * related_count
    related = memoryview(entry)[snapshot_format.TERM_HEADER.size : end].cast("I")
    spellings = tuple(entry[end:].decode().split("\t"))
    return Term(
        id,
        text,
        rarity,
        tuple(related),
        word,
        spellings,
        first,
        document_frequency,
        checksum,
        is_row,
    )
