"""Term counts: how often each term occurs in each field of each tool of a batch.

The fields are the texts of a tool. The slug counts with the name, as far as it has terms that
neither name nor toolkit have. The first sentence of a description is also a field of its own: it
mostly says what the tool is for, and the others how.
"""

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog.parameters import iter_texts
from toolcatalog.search.analysis import (
    Word,
    name_checksum,
    split_pieces,
    split_runs,
    terms_in_piece,
    words_in_piece,
)
from toolcatalog.search.bm25 import FIELDS
from toolcatalog.textutils import split_sentences

_MAX_COUNT = 255  # a term counts at most this often per field
_HEADER = struct.Struct("<IIIII")

IntArray = NDArray[np.int64]


class ToolFields(NamedTuple):
    """The texts of a tool version: pieces per field, name, whether newest, and toolkit slug."""

    fields: Sequence[Sequence[str]]
    name: str
    is_newest: bool
    toolkit: str = ""


def extract_fields(
    slug: str,
    name: str,
    description: str,
    toolkit: tuple[str, str],
    inputs: Mapping[str, Any],
    is_newest: bool,
) -> ToolFields:
    """Return the fields of a tool version.

    `toolkit` is its slug and its name; `inputs` are the input parameters.
    """
    toolkit_runs = _extend_runs(split_runs(toolkit[1]), split_runs(toolkit[0]), ())
    name_runs = _extend_runs(split_runs(name), split_runs(slug), toolkit_runs)
    parameter_texts = [*iter_texts(inputs)]
    names, descriptions = (
        split_pieces("\n".join(column))
        for column in ([name for name, _ in parameter_texts], [text for _, text in parameter_texts])
    )
    description = _drop_references(description, toolkit[0])
    first = next(split_sentences(description), "")
    return ToolFields(
        (
            name_runs,
            toolkit_runs,
            split_pieces(first),
            split_pieces(description),
            names,
            descriptions,
        ),
        name,
        is_newest,
        toolkit[0],
    )


def _drop_references(description: str, toolkit: str) -> str:
    """Return a description without the slugs of tools of the same toolkit.

    They say what other tools do.
    """
    prefix = f"{toolkit.upper()}_"
    if prefix not in description:
        return description
    return re.sub(rf"\b{re.escape(prefix)}[A-Z0-9_]+", " ", description)


def _extend_runs(runs: list[str], extra: Sequence[str], elsewhere: Sequence[str]) -> list[str]:
    """Return `runs` and those of `extra` with terms that are in neither `runs` nor `elsewhere`."""
    present = set(chain.from_iterable(map(terms_in_piece, chain(runs, elsewhere))))
    return runs + [run for run in extra if not present.issuperset(terms_in_piece(run))]


def count_terms(tools: Iterable[ToolFields]) -> bytes:
    """Return the serialized term counts of a batch of tools; `TermCounts` reads them."""
    all_tools = [*tools]
    fields = [field for tool in all_tools for field in tool.fields]
    words = {piece: words_in_piece(piece) for piece in dict.fromkeys(chain.from_iterable(fields))}
    spellings = _shortest_spellings(chain.from_iterable(words.values()))
    terms, width = sorted(spellings), len(FIELDS)
    term_numbers, field_numbers = _term_occurrences(fields, words, terms)
    cells, occurrences = np.unique(term_numbers * len(fields) + field_numbers, return_counts=True)
    pairs, posting = _unique_sorted(cells // width)  # distinct pairs of term and tool
    counts = np.zeros((len(pairs), width), np.uint8)
    counts[posting, cells % width] = np.minimum(occurrences, _MAX_COUNT)
    holders = np.bincount(pairs // max(len(all_tools), 1), minlength=len(terms))
    lines = [f"{term}\t{spellings[term]}" for term in terms]
    lines, toolkit_words = _by_toolkit(all_tools, words, lines)
    text, toolkits = "\n".join(lines).encode(), "\n".join(toolkit_words).encode()
    lengths = np.bincount(field_numbers, minlength=len(fields))
    columns = (
        lengths,
        [name_checksum(tool.name) for tool in all_tools],
        holders,
        pairs % max(len(all_tools), 1),
        [*map(len, toolkit_words.values())],
        np.fromiter(chain.from_iterable(toolkit_words.values()), np.int64),
    )
    return b"".join(
        [
            _HEADER.pack(len(all_tools), len(terms), len(pairs), len(text), len(toolkits)),
            text,
            toolkits,
            bytes(tool.is_newest for tool in all_tools),
            counts.tobytes(),
            *(np.asarray(column).astype("<u4").tobytes() for column in columns),
        ]
    )


def _shortest_spellings(words: Iterable[Word]) -> dict[str, str]:
    """Return the shortest spelling of each term."""
    shortest: dict[str, str] = {}
    for spelling, term in words:
        other = shortest.setdefault(term, spelling)
        if spelling != other and (len(spelling), spelling) < (len(other), other):
            shortest[term] = spelling
    return shortest


def _by_toolkit(
    tools: Sequence[ToolFields], words: Mapping[str, Sequence[Word]], lines: Sequence[str]
) -> tuple[list[str], dict[str, Sequence[int]]]:
    """Return all words of a batch, and the positions of each toolkit's words among them.

    The words are `lines` followed by those that a toolkit spells in another way than the batch.
    """
    toolkits = sorted({tool.toolkit for tool in tools})
    if len(toolkits) < 2:
        return [*lines], dict.fromkeys(toolkits, range(len(lines)))
    line_numbers = _number_items(lines)
    positions_by_toolkit: dict[str, Sequence[int]] = {}
    for toolkit in toolkits:
        fields = chain.from_iterable(tool.fields for tool in tools if tool.toolkit == toolkit)
        pieces = dict.fromkeys(chain.from_iterable(fields))
        spellings = _shortest_spellings(chain.from_iterable(words[piece] for piece in pieces))
        positions_by_toolkit[toolkit] = sorted(
            line_numbers.setdefault(f"{term}\t{spelling}", len(line_numbers))
            for term, spelling in sorted(spellings.items())
        )
    return [*line_numbers], positions_by_toolkit


def _term_occurrences(
    fields: Sequence[Sequence[str]], words: Mapping[str, Sequence[Word]], terms: Sequence[str]
) -> tuple[IntArray, IntArray]:
    """Return, for each occurrence of a term in a field, the term's and the field's number.

    `words` has the words of each piece. A tool has hundreds of pieces, so the terms of each
    distinct piece are looked up once per batch, and the rest is array operations.
    """
    piece_numbers, term_ids = _number_items(words), _number_items(terms)
    piece_term_counts = np.fromiter(map(len, words.values()), np.int64, len(words))
    piece_terms = np.fromiter(
        (term_ids[term] for piece_words in words.values() for _, term in piece_words),
        np.int64,
        piece_term_counts.sum(),
    )
    lengths = [*map(len, fields)]
    field_pieces = np.fromiter(
        map(piece_numbers.__getitem__, chain.from_iterable(fields)), np.int64, sum(lengths)
    )
    occurrence_counts = piece_term_counts[field_pieces]
    first_positions = (
        np.cumsum(piece_term_counts) - piece_term_counts
    )  # where the terms of each piece begin
    occurrence_starts = np.cumsum(occurrence_counts) - occurrence_counts
    term_numbers = piece_terms[
        np.arange(occurrence_counts.sum())
        + np.repeat(first_positions[field_pieces] - occurrence_starts, occurrence_counts)
    ]
    return term_numbers, np.repeat(np.repeat(np.arange(len(fields)), lengths), occurrence_counts)


def _number_items(items: Iterable[str]) -> dict[str, int]:
    return {item: number for number, item in enumerate(items)}


def _unique_sorted(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct values of sorted numbers, and the position of each number's value."""
    is_new = np.diff(numbers, prepend=-1) != 0
    return numbers[is_new], np.cumsum(is_new) - 1


class TermCounts:
    """The term counts that `count_terms` serialized.

    `document_frequencies` has the number of tools that contain each term. Term by term, these tools
    are in `tool_numbers` (from 0), and the counts per field in `counts` (six columns). `is_newest`,
    `lengths` (six columns) and `name_checksums` have a row per tool. `toolkits` has, per toolkit,
    the positions of its tools' words in `spelled_terms`.
    """

    def __init__(self, data: bytes) -> None:
        tools, term_count, posting_count, text_size, toolkits_size = _HEADER.unpack_from(data)
        position = _HEADER.size + text_size
        self._text = data[_HEADER.size : position]
        slugs, position = (
            data[position : position + toolkits_size].decode().split("\n"),
            position + toolkits_size,
        )
        small_columns = np.frombuffer(data, np.uint8, tools + posting_count * len(FIELDS), position)
        self.is_newest, self.counts = (
            small_columns[:tools].view(bool),
            small_columns[tools:].reshape(posting_count, len(FIELDS)),
        )
        # a copy, since the columns may not be aligned to four bytes
        numbers = np.frombuffer(data[position + len(small_columns) :], "<u4")
        self.lengths, numbers = (
            numbers[: tools * len(FIELDS)].reshape(tools, len(FIELDS)),
            numbers[tools * len(FIELDS) :],
        )
        self.name_checksums, self.document_frequencies, self.tool_numbers, sizes, positions = (
            np.split(
                numbers, np.cumsum([tools, term_count, posting_count, len(slugs) if tools else 0])
            )
        )
        self.toolkits = dict(zip(slugs, np.split(positions, np.cumsum(sizes)[:-1]), strict=False))

    tool_numbers: NDArray[np.uint32]
    document_frequencies: NDArray[np.uint32]

    @property
    def spelled_terms(self) -> list[str]:
        """The sorted terms, each with a tab and its shortest spelling, then other spellings.

        `toolkits` refers to the latter.
        """
        return self._text.decode().split("\n") if self._text else []
