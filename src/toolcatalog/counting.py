"""What the tools of a batch say: how often each term stands in each field of each tool. Pure; done
where a batch is compiled.

Fields are what a tool is told by. Its slug counts with its name, as far as it says more than name
and toolkit do. The first sentence of a description counts by itself too: it mostly says what the
tool is for, and the others how.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog.analysis import Word, called, pieces, runs, sentences, terms_of, words_of
from toolcatalog.parameters import texts
from toolcatalog.scoring import FIELDS

_MOST = 255  # times that a term is counted in one field
_HEAD = struct.Struct("<IIIII")

Numbers = NDArray[np.int64]


class Said(NamedTuple):
    """What a tool version says: the pieces of each of the FIELDS, its name, whether it is its
    tool's newest, and the slug of its toolkit.
    """

    fields: Sequence[Sequence[str]]
    name: str
    newest: bool
    toolkit: str = ""


def said(
    slug: str,
    name: str,
    description: str,
    toolkit: tuple[str, str],
    inputs: Mapping[str, Any],
    newest: bool,
) -> Said:
    """What one tool version says; `toolkit` is its slug and its name, `inputs` are the parameters
    that it takes.
    """
    of_toolkit = _with(runs(toolkit[1]), runs(toolkit[0]), ())
    of_name = _with(runs(name), runs(slug), of_toolkit)
    described = [*texts(inputs)]
    names, descriptions = (
        pieces("\n".join(column))
        for column in ([name for name, _ in described], [text for _, text in described])
    )
    first = next(sentences(description), "")
    return Said(
        (of_name, of_toolkit, pieces(first), pieces(description), names, descriptions),
        name,
        newest,
        toolkit[0],
    )


def _with(some: list[str], more: Sequence[str], elsewhere: Sequence[str]) -> list[str]:
    """Runs, and more of them as far as their terms stand neither there nor elsewhere."""
    known = set(chain.from_iterable(map(terms_of, chain(some, elsewhere))))
    return some + [run for run in more if not known.issuperset(terms_of(run))]


def count(tools: Iterable[Said]) -> bytes:
    """How often each term stands in the fields of each of a batch of tools, as `Counted` reads it."""
    every = [*tools]
    fields = [field for tool in every for field in tool.fields]
    words = {piece: words_of(piece) for piece in dict.fromkeys(chain.from_iterable(fields))}
    spellings = _spellings(chain.from_iterable(words.values()))
    terms, width = sorted(spellings), len(FIELDS)
    stands, within = _stands(fields, words, terms)
    places, often = np.unique(stands * len(fields) + within, return_counts=True)
    pairs, posting = _different(places // width)  # of term and tool
    counts = np.zeros((len(pairs), width), np.uint8)
    counts[posting, places % width] = np.minimum(often, _MOST)
    holders = np.bincount(pairs // max(len(every), 1), minlength=len(terms))
    lines = [f"{term}\t{spellings[term]}" for term in terms]
    lines, of_toolkit = _by_toolkit(every, words, lines)
    text, toolkits = "\n".join(lines).encode(), "\n".join(of_toolkit).encode()
    lengths = np.bincount(within, minlength=len(fields))
    columns = (
        lengths,
        [called(tool.name) for tool in every],
        holders,
        pairs % max(len(every), 1),
        [*map(len, of_toolkit.values())],
        np.fromiter(chain.from_iterable(of_toolkit.values()), np.int64),
    )
    return b"".join(
        [
            _HEAD.pack(len(every), len(terms), len(pairs), len(text), len(toolkits)),
            text,
            toolkits,
            bytes(tool.newest for tool in every),
            counts.tobytes(),
            *(np.asarray(column).astype("<u4").tobytes() for column in columns),
        ]
    )


def _spellings(words: Iterable[Word]) -> dict[str, str]:
    """The shortest spelling of each term."""
    found: dict[str, str] = {}
    for spelt, term in words:
        other = found.setdefault(term, spelt)
        if (len(spelt), spelt) < (len(other), other):
            found[term] = spelt
    return found


def _by_toolkit(
    tools: Sequence[Said], words: Mapping[str, Sequence[Word]], lines: Sequence[str]
) -> tuple[list[str], dict[str, Sequence[int]]]:
    """The words of each toolkit, as places in a longer list of words: behind those that are given
    come those that a toolkit spells in another way than the batch.
    """
    toolkits = sorted({tool.toolkit for tool in tools})
    if len(toolkits) < 2:
        return [*lines], dict.fromkeys(toolkits, range(len(lines)))
    places = _numbered(lines)
    found: dict[str, Sequence[int]] = {}
    for toolkit in toolkits:
        fields = chain.from_iterable(tool.fields for tool in tools if tool.toolkit == toolkit)
        said = dict.fromkeys(chain.from_iterable(fields))
        spellings = _spellings(chain.from_iterable(words[piece] for piece in said))
        found[toolkit] = sorted(
            places.setdefault(f"{term}\t{spelling}", len(places))
            for term, spelling in sorted(spellings.items())
        )
    return [*places], found


def _stands(
    fields: Sequence[Sequence[str]], words: Mapping[str, Sequence[Word]], terms: Sequence[str]
) -> tuple[Numbers, Numbers]:
    """Each term that stands in a field, by its place among all terms, and the number of the field;
    `words` are those of each piece.

    It is done in numbers, piece by piece, for a tool says hundreds: which terms are in a piece is
    looked up once in a batch.
    """
    places, ids = _numbered(words), _numbered(terms)
    held = np.fromiter(map(len, words.values()), np.int64, len(words))
    terms_held = np.fromiter(
        (ids[term] for some in words.values() for _, term in some), np.int64, held.sum()
    )
    lengths = [*map(len, fields)]
    told = np.fromiter(map(places.__getitem__, chain.from_iterable(fields)), np.int64, sum(lengths))
    many = held[told]
    first = np.cumsum(held) - held  # where the terms of a piece begin
    skipped = np.cumsum(many) - many
    stands = terms_held[np.arange(many.sum()) + np.repeat(first[told] - skipped, many)]
    return stands, np.repeat(np.repeat(np.arange(len(fields)), lengths), many)


def _numbered(some: Iterable[str]) -> dict[str, int]:
    return {one: number for number, one in enumerate(some)}


def _different(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """The different ones of sorted numbers, and of each of those which one of these it is."""
    is_new = np.diff(numbers, prepend=-1) != 0
    return numbers[is_new], np.cumsum(is_new) - 1


class Counted:
    """What `count` gave.

    `holders` tells how many tools hold each term; then come, term by term, those tools in `numbers`
    (from 0) and how often the term stands in each field in `counts` (a row of six). `newest`,
    `lengths` (a row of six) and `names` are of each tool; `toolkits` has the places among the
    `words` of those that stand in the tools of each toolkit.
    """

    def __init__(self, data: bytes) -> None:
        tools, size, held, length, more = _HEAD.unpack_from(data)
        at = _HEAD.size + length
        self._text = data[_HEAD.size : at]
        slugs, at = data[at : at + more].decode().split("\n"), at + more
        small = np.frombuffer(data, np.uint8, tools + held * len(FIELDS), at)
        self.newest, self.counts = (
            small[:tools].view(bool),
            small[tools:].reshape(held, len(FIELDS)),
        )
        # a copy, for where it begins is no multiple of four
        rest = np.frombuffer(data[at + len(small) :], "<u4")
        self.lengths, rest = (
            rest[: tools * len(FIELDS)].reshape(tools, len(FIELDS)),
            rest[tools * len(FIELDS) :],
        )
        self.names, self.holders, self.numbers, sizes, places = np.split(
            rest, np.cumsum([tools, size, held, len(slugs) if tools else 0])
        )
        self.toolkits = dict(zip(slugs, np.split(places, np.cumsum(sizes)[:-1]), strict=False))

    numbers: NDArray[np.uint32]
    holders: NDArray[np.uint32]

    @property
    def words(self) -> list[str]:
        """The terms, sorted, each with a tab and its shortest spelling behind it; then other
        spellings of them: see `toolkits`.
        """
        return self._text.decode().split("\n") if self._text else []
