"""The search index writer: term counts of all batches to postings, with stable term numbers.

A word is a term in one of its spellings. Its number serves for lookups only: numbers are assigned
in the order in which words arrive, and no published file depends on them. The lexicon in the cache
has the numbers of each batch's words under the key of the compiled batch. If the cached lexicon is
missing or invalid, the words are read from the compiled batch.

The score of a term for a tool is its impact there (see `search.bm25`) times its rarity (IDF),
which is one number for all tools. Impacts are computed here, so that a query needs one addition per
posting.

Few tools contain a given term, mostly: the postings of such a term are pairs of tool number and
value (sparse). A term that more than a third of all tools contain is stored as a row with a value
for every tool (dense), which takes less space and constant time.

A value has 16 bits: 14 bits of impact, one bit that is set if the term is in the tool's name, and
one that is set if it is in the toolkit's name.
"""

import contextlib
import math
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import compress, count, pairwise
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from pyroaring import BitMap

from toolcatalog.search import analysis, bm25
from toolcatalog.search.bm25 import FIELDS, NAME_FIELD, TOOLKIT_FIELD
from toolcatalog.search.index import vocabulary
from toolcatalog.search.index.term_counts import TermCounts
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot import tables
from toolcatalog.system import files

# 32 bits save memory: there are thousands of batches, and thousands of words in each
TermNumbers = NDArray[np.int32]


class Lexicon:
    """Words with their numbers; `cached` has the word numbers of batches by compiled batch key."""

    def __init__(
        self, words: Iterable[str] = (), cached: Mapping[str, TermNumbers] | None = None
    ) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        for word in words:
            self._numbers[word]
        self._cached = cached or {}
        self._saved_numbers: dict[str, TermNumbers] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def entries(self) -> list[str]:
        """Return all words in the order of their numbers, perhaps with words of removed batches."""
        return [*self._numbers]

    def numbers_for_batch(self, key: str, counts: TermCounts) -> TermNumbers:
        """Return the numbers of the words of a compiled batch, in its order."""
        numbers = self._cached.get(key)
        if numbers is None:
            words = counts.spelled_terms
            numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int32, len(words))
        self._saved_numbers[key] = numbers
        return numbers

    def save(self, cache: Path, program_digest: str) -> None:
        """Write the numbers of the requested batches for the next build of this program.

        Nothing is written if the cache already has exactly these batches. Raises OSError.
        """
        if self._saved_numbers.keys() != self._cached.keys():
            files.write_sealed(_lexicon_path(cache), self._serialize(program_digest))

    def _serialize(self, program_digest: str) -> Iterator[bytes]:
        is_used = np.zeros(len(self), bool)
        for numbers in self._saved_numbers.values():
            is_used[numbers] = True
        new_numbers = np.cumsum(is_used, dtype=np.int32) - 1
        sizes = {key: len(numbers) for key, numbers in self._saved_numbers.items()}
        yield (
            orjson.dumps(
                {
                    "program": program_digest,
                    "words": [*compress(self._numbers, is_used)],
                    "sizes": sizes,
                }
            )
            + b"\n"
        )
        yield from (new_numbers[numbers].tobytes() for numbers in self._saved_numbers.values())


def load_lexicon(cache: Path, program_digest: str) -> Lexicon:
    """Load the lexicon that the last build of this program saved.

    It is empty if the file is missing or invalid.
    """
    data = files.read_sealed(_lexicon_path(cache)) or b""
    end = data.find(b"\n") + 1
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        head: dict[str, Any] = orjson.loads(data[:end])
        if head["program"] == program_digest:
            sizes = [*head["sizes"].values()]
            all_numbers = np.frombuffer(data, np.int32, sum(sizes), end)
            return Lexicon(
                head["words"],
                dict(zip(head["sizes"], np.split(all_numbers, np.cumsum(sizes)[:-1]), strict=True)),
            )
    return Lexicon()


def _lexicon_path(cache: Path) -> Path:
    return cache / "lexicon"


_MAX_BLOCK_SIZE = (
    1 << 27
)  # bytes of postings that are built at a time; peak memory is twice as much

TermIds = NDArray[np.int64]
BatchCounts = Callable[[], Iterable[tuple[str, bytes]]]  # key and term counts of each batch
FilePieces = dict[str, Iterable[bytes | memoryview]]  # the pieces of each file, by file name


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The sorted terms of all batches, with columns that are parallel to `terms`.

    `spellings` are tab-separated; `first` is the number of a term's first spelling among all words;
    `document_frequencies` counts the tool versions that contain the term; `idf` is its rarity.
    """

    terms: Sequence[str]
    spellings: Sequence[str]
    first: Sequence[int]
    document_frequencies: TermIds
    idf: NDArray[np.float64]


def build_index(batches: BatchCounts, lexicon: Lexicon) -> FilePieces:
    """Return the index files as pieces, from the counts of all batches in the order of their tools.

    The caller must consume the files in the order of the dictionary. All words are numbered before
    this function returns. It calls `batches` at least twice, so that the counts need not stay in
    memory.
    """
    stats, numbers = _CorpusStats(), list[TermNumbers]()
    for key, data in batches():
        counts = TermCounts(data)
        word_numbers = lexicon.numbers_for_batch(key, counts)
        numbers.append(word_numbers[: len(counts.document_frequencies)])
        stats.add(counts, word_numbers, len(lexicon))
    vocabulary, order, positions = stats.build_vocabulary(lexicon.entries())
    postings = _PostingsWriter(vocabulary, stats.tool_count, stats.average_lengths())

    def read_batches() -> Iterator[tuple[TermCounts, TermIds]]:
        return (
            (TermCounts(data), order[term_numbers])
            for (_, data), term_numbers in zip(batches(), numbers, strict=True)
        )

    return {
        snapshot_format.POSTINGS: postings.serialize(read_batches),
        snapshot_format.COVERS: _pack_covers(vocabulary, read_batches()),
        snapshot_format.WORDS: _pack_terms(vocabulary, postings),
        snapshot_format.VOCABULARIES: _vocabularies(stats.toolkits, order, positions),
    }


class _CorpusStats:
    """Totals of all batches: document frequencies, field lengths and the words of each toolkit."""

    def __init__(self) -> None:
        # per word: how many tool versions and newest versions contain it, and whether it is used
        self.document_frequencies, self.newest_frequencies, self.is_used = np.zeros(
            (3, 1 << 10), np.int64
        )
        # per toolkit: the words of its tools, batch by batch
        self.toolkits: defaultdict[str, list[TermNumbers]] = defaultdict(list)
        self.tool_count = self.newest_count = 0
        self.field_lengths, self.filled_counts = np.zeros(len(FIELDS)), np.zeros(len(FIELDS))

    def add(self, counts: TermCounts, numbers: TermNumbers, word_count: int) -> None:
        """Add a batch with these word numbers; `word_count` is the current size of the lexicon."""
        if word_count > len(self.document_frequencies):
            self.document_frequencies, self.newest_frequencies, self.is_used = (
                np.pad(column, (0, word_count))
                for column in (self.document_frequencies, self.newest_frequencies, self.is_used)
            )
        self.is_used[numbers] = 1
        for toolkit, positions in counts.toolkits.items():
            self.toolkits[toolkit].append(numbers[positions])
        numbers = numbers[: len(counts.document_frequencies)]
        posting_ends = np.cumsum(counts.document_frequencies)
        newest_counts = np.concatenate([[0], np.cumsum(counts.is_newest[counts.tool_numbers])])
        self.document_frequencies[numbers] += counts.document_frequencies
        self.newest_frequencies[numbers] += (
            newest_counts[posting_ends] - newest_counts[posting_ends - counts.document_frequencies]
        )
        self.tool_count += len(counts.is_newest)
        self.newest_count += int(counts.is_newest.sum())
        lengths = counts.lengths[counts.is_newest]
        self.field_lengths += lengths.sum(0)
        self.filled_counts += (lengths > 0).sum(0)

    def average_lengths(self) -> bm25.Floats:
        """Return the mean length of each field over the newest versions where it is not empty."""
        return self.field_lengths / np.maximum(self.filled_counts, 1)

    def build_vocabulary(self, words: Sequence[str]) -> tuple[Vocabulary, TermIds, TermIds]:
        """Return the vocabulary, each word's term number, and each word's position in sorted order.

        Both arrays are indexed by word number. Words that no tool contains are left out.
        """
        # This sorts by term first, because the tab behind a term sorts before all letters.
        used_numbers = sorted(self.is_used.nonzero()[0].tolist(), key=words.__getitem__)
        terms, spellings, first, term_numbers = list[str](), list[str](), list[int](), list[int]()
        for position, number in enumerate(used_numbers):
            term, _, spelling = words[number].partition("\t")
            if terms and term == terms[-1]:
                spellings[-1] += f"\t{spelling}"
            else:
                terms.append(term)
                spellings.append(spelling)
                first.append(position)
            term_numbers.append(len(terms) - 1)
        order, word_positions = np.zeros((2, len(words)), np.int64)
        order[used_numbers], word_positions[used_numbers] = (
            term_numbers,
            np.arange(len(used_numbers)),
        )
        frequencies, newest_frequencies = (
            np.bincount(term_numbers, column[used_numbers], len(terms)).astype(np.int64)
            for column in (self.document_frequencies, self.newest_frequencies)
        )
        vocabulary = Vocabulary(
            terms=terms,
            spellings=spellings,
            first=first,
            document_frequencies=frequencies,
            idf=self._compute_idf(newest_frequencies),
        )
        return vocabulary, order, word_positions

    def _compute_idf(self, frequencies: TermIds) -> NDArray[np.float64]:
        """Return the IDF of terms from the number of newest versions that contain each.

        It is computed once for each distinct number, since there are few of those.
        """
        distinct, inverse = np.unique(frequencies, return_inverse=True)
        return np.array(
            [
                math.log(1 + (self.newest_count - frequency + 0.5) / (frequency + 0.5))
                for frequency in distinct.tolist()
            ]
        )[inverse]


class _PostingsWriter:
    """The postings of all terms: their offsets in the file, and their bytes, block by block."""

    def __init__(self, vocabulary: Vocabulary, tools: int, average_lengths: bm25.Floats) -> None:
        self.average_lengths = average_lengths
        self.document_frequencies = vocabulary.document_frequencies
        self.is_dense = self.document_frequencies * 3 > tools
        sizes = np.where(self.is_dense, 2 * tools, 6 * self.document_frequencies)
        # postings are aligned to four bytes
        end_offsets = snapshot_format.POSTINGS_HEADER.size + np.cumsum(sizes + sizes % 4)
        self.offsets = np.concatenate([[snapshot_format.POSTINGS_HEADER.size], end_offsets])
        self.checksums: list[int] = []

    def serialize(
        self, read_batches: Callable[[], Iterable[tuple[TermCounts, TermIds]]]
    ) -> Iterator[bytes | memoryview]:
        """Yield the bytes of the file; afterwards `checksums` has a CRC-32 for each term."""
        yield snapshot_format.pack_postings_header(self.average_lengths.tolist())
        last = 0
        while (first := last) < len(self.document_frequencies):
            last = max(
                first + 1,
                int(np.searchsorted(self.offsets, self.offsets[first] + _MAX_BLOCK_SIZE, "right"))
                - 1,
            )
            data = self._fill(first, last, read_batches())
            bounds = (self.offsets[first : last + 1] - self.offsets[first]).tolist()
            self.checksums += (zlib.crc32(data[start:end]) for start, end in pairwise(bounds))
            yield data

    def _fill(
        self, first: int, last: int, batches: Iterable[tuple[TermCounts, TermIds]]
    ) -> memoryview:
        """Return the bytes of the postings of the terms from `first` up to `last`.

        A sparse term has its tool ids (four bytes each) and then its values (two bytes each): of a
        term that only tools 1 and 7 contain, `1 7 v1 v7`. A dense term has a row with a value for
        every tool: of three tools, `v0 v1 v2`.
        """
        data = np.zeros(int(self.offsets[last] - self.offsets[first]), np.uint8)
        id_slots, value_slots = data.view("<u4"), data.view("<u2")
        starts = self.offsets[:-1] - self.offsets[first]  # of each term, in bytes
        written = np.zeros(len(self.document_frequencies), np.int64)  # postings of each term
        first_tool = 0
        for counts, ids in batches:
            frequencies = counts.document_frequencies.astype(np.int64)
            # position of a posting in its term's list, less its position in the batch
            shifts = written[ids] - (np.cumsum(frequencies) - frequencies)
            written[ids] += frequencies
            # from here on, arrays have a row per posting of the batch
            positions = np.arange(len(counts.tool_numbers))
            tool_ids = counts.tool_numbers + first_tool
            first_tool += len(counts.is_newest)
            is_inside = np.repeat((first <= ids) & (ids < last), frequencies)
            is_dense = np.repeat(self.is_dense[ids], frequencies)
            is_sparse = is_inside & ~is_dense
            id_positions = positions + np.repeat(starts[ids] // 4 + shifts, frequencies)
            id_slots[id_positions[is_sparse]] = tool_ids[is_sparse]
            value_starts = starts[ids] // 2 + np.where(
                self.is_dense[ids], 0, 2 * self.document_frequencies[ids] + shifts
            )
            value_positions = np.repeat(value_starts, frequencies)
            value_positions += np.where(is_dense, tool_ids, positions)
            values = _encode_values(counts, self.average_lengths)
            value_slots[value_positions[is_inside]] = values[is_inside]
        return data.data


def _pack_covers(
    vocabulary: Vocabulary, batches: Iterable[tuple[TermCounts, TermIds]]
) -> Iterator[bytes]:
    """Yield, column by column, two sums of IDF per tool and a checksum of its name.

    The sums are over the terms of the tool's name and over those of its toolkit's name.
    """
    columns: list[list[bytes]] = [[], [], []]
    for counts, ids in batches:
        rarities = vocabulary.idf[np.repeat(ids, counts.document_frequencies)]
        for column, field in ((0, NAME_FIELD), (1, TOOLKIT_FIELD)):
            sums = np.bincount(
                counts.tool_numbers,
                rarities * (counts.counts[:, field] > 0),
                len(counts.is_newest),
            )
            columns[column].append(sums.astype("<f4").tobytes())
        columns[2].append(counts.name_checksums.tobytes())
    yield from (b"".join(column) for column in columns)


def _encode_values(counts: TermCounts, average_lengths: bm25.Floats) -> NDArray[np.int64]:
    """Return the 16-bit value of each posting."""
    weights = bm25.compute_field_weights(counts.lengths, average_lengths).take(
        counts.tool_numbers, 0
    )
    weights *= counts.counts
    frequencies = reduce(add, weights.T)  # same bits as `sum` gives, in a third of the time
    impacts = np.maximum(
        1,
        np.rint(
            bm25.compute_impacts(frequencies) / bm25.MAX_IMPACT * snapshot_format.MAX_ENCODED_IMPACT
        ).astype(np.int64),
    )
    return (
        impacts << 2
        | (counts.counts[:, NAME_FIELD] > 0)
        | (counts.counts[:, TOOLKIT_FIELD] > 0) << 1
    )


def _pack_terms(vocabulary: Vocabulary, postings: _PostingsWriter) -> Iterator[bytes]:
    """Yield the bytes of the table of terms."""
    related_ids = _related_terms(vocabulary.terms)
    related = [
        array("I", related_ids[id]).tobytes() if id in related_ids else b""
        for id in range(len(vocabulary.terms))
    ]
    columns = (
        postings.offsets[:-1],
        vocabulary.document_frequencies,
        np.array(postings.checksums),
        vocabulary.idf,
        postings.is_dense,
    )
    heads = map(
        snapshot_format.TERM_HEADER.pack,
        *(column.tolist() for column in columns),
        [len(related_bytes) // 4 for related_bytes in related],
        vocabulary.first,
    )
    entries = [
        head + related_bytes + spellings.encode()
        for head, related_bytes, spellings in zip(heads, related, vocabulary.spellings, strict=True)
    ]
    yield from tables.pack_table(vocabulary.terms, [*map(len, entries)], entries)


def _vocabularies(
    toolkits: Mapping[str, Sequence[TermNumbers]], order: TermIds, positions: TermIds
) -> Iterator[bytes]:
    """Yield the bytes of the table of vocabularies, from the words of each toolkit."""
    slugs = sorted(toolkits)
    entries = []
    for slug in slugs:
        numbers = np.concatenate(toolkits[slug])
        entries.append(vocabulary.pack(_bitmap(order[numbers]), _bitmap(positions[numbers])))
    yield from tables.pack_table(slugs, [*map(len, entries)], entries)


def _bitmap(numbers: TermIds) -> BitMap:
    bitmap = BitMap(np.unique(numbers).astype(np.uint32))
    bitmap.run_optimize()
    return bitmap


def _related_terms(terms: Sequence[str]) -> dict[int, list[int]]:
    """Return the related terms of each term: prefixes and extensions of similar length.

    "photo" and "photograph" are related. Those nearest in length come first. There are at most
    `MAX_RELATED_TERMS` for each term.
    """
    words = [(id, term) for id, term in enumerate(terms) if analysis.is_word(term)]
    related: dict[int, list[int]] = {}
    for index, (id, term) in enumerate(words):
        end = index + 1
        # terms are sorted: those that begin with this one follow it
        while end < len(words) and words[end][1].startswith(term):
            longer, text = words[end]
            if len(term) >= analysis.min_prefix_length(text):
                related.setdefault(id, []).append(longer)
                related.setdefault(longer, []).append(id)
            end += 1
    for id, ids in related.items():
        if len(ids) > 1:
            ids.sort(key=lambda other: (abs(len(terms[other]) - len(terms[id])), other))
            del ids[analysis.MAX_RELATED_TERMS :]
    return related
