"""The vocabulary of a query: the terms that the visible tools contain.

A key that is limited to some toolkits looks up terms in their vocabulary only. A word that occurs
in no tool of these toolkits is unknown to it, whatever other tools contain: it is corrected,
completed and counted as if those tools did not exist. Every step that selects a few of many terms
must be done here, after the other terms were left out.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from pyroaring import BitMap

from toolcatalog.search.index.index_reader import Term, TextIndex, shortest
from toolcatalog.snapshot.tables import Table

MAX_RELATED = 12  # related terms per term


class Lookup:
    """The terms with the numbers `terms`, in the spellings with the numbers `words`; None: all."""

    def __init__(
        self, postings: TextIndex, terms: BitMap | None = None, words: BitMap | None = None
    ) -> None:
        self.postings = postings
        self._terms = terms
        self._words = words

    @property
    def is_limited(self) -> bool:
        """Whether terms of the snapshot may be missing here."""
        return self._terms is not None

    def term(self, text: str) -> Term | None:
        """Return the term with this text; None if there is none."""
        term = self.postings.find_term(text)
        return term if term and self._contains(term.id) else None

    def similar(self, word: str) -> list[Term]:
        """Return the terms of the words that differ from this one by one edit, sorted."""
        return [term for term in self.postings.similar_terms(word) if self._contains(term.id)]

    def related(self, term: Term) -> list[Term]:
        """Return the related terms of a term, those nearest in length first."""
        numbers = filter(self._contains, term.related)
        return [self.postings.term_at(number) for number in islice(numbers, MAX_RELATED)]

    def with_prefix(self, text: str, limit: int) -> list[Term]:
        """Return the first terms that begin with this text, at most `limit`."""
        if self._terms is None:
            return self.postings.terms_with_prefix(text, limit)
        terms = []
        numbers = self._terms.iter_equal_or_larger(self.postings.position_of(text))
        for number in islice(numbers, limit):
            term = self.postings.term_at(number)
            if not term.text.startswith(text):
                break
            terms.append(term)
        return terms

    def spelling(self, term: Term) -> str:
        """Return the shortest spelling of a term."""
        if self._words is None:
            return term.spelling
        words = enumerate(term.spellings, term.word)
        return shortest(spelling for number, spelling in words if number in self._words)

    def _contains(self, number: int) -> bool:
        return self._terms is None or number in self._terms


def pack(terms: BitMap, words: BitMap) -> bytes:
    """Return the entry of a toolkit in the table of vocabularies.

    It has the length of the serialized term set in four bytes, the term set, and the word set.
    """
    data: bytes = terms.serialize()
    return len(data).to_bytes(4, "little") + data + words.serialize()


def read(table: Table, postings: TextIndex, toolkits: Iterable[str]) -> Lookup:
    """Return the vocabulary of these toolkits; unknown or empty toolkits have no terms."""
    entries = [entry for entry in map(table.get, toolkits) if entry is not None]
    return Lookup(postings, *(_union(column) for column in _columns(entries)))


def _columns(entries: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    term_ends = [4 + int.from_bytes(entry[:4], "little") for entry in entries]
    return (
        [entry[4:end] for entry, end in zip(entries, term_ends, strict=True)],
        [entry[end:] for entry, end in zip(entries, term_ends, strict=True)],
    )


def _union(sets: Sequence[bytes]) -> BitMap:
    return BitMap.union(*map(BitMap.deserialize, sets)) if sets else BitMap()
