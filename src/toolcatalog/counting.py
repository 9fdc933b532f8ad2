"""What the tools of a batch say: how often each term stands in each field of each tool. Pure; done where a batch is compiled.

Fields are what a tool is told by. Its slug counts with its name, as far as it says more than name and toolkit do. The first sentence
of a description counts by itself too: it mostly says what the tool is for, and the others how.

Serves: "weighted fields (name, toolkit, description, parameter names, parameter descriptions)".
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolcatalog.analysis import called, runs, sentences, terms_of, words_of
from toolcatalog.parameters import texts
from toolcatalog.scoring import FIELDS

_MOST = 255  # times that a term is counted in one field
_HEAD = struct.Struct("<IIII")


class Said(NamedTuple):
    """What a tool version says: the runs of each of the FIELDS, its name, and whether it is its tool's newest."""

    fields: Sequence[Sequence[str]]
    name: str
    newest: bool


def said(slug: str, name: str, description: str, toolkit: tuple[str, str], inputs: Mapping[str, Any], newest: bool) -> Said:
    """What one tool version says; `toolkit` is its slug and its name, `inputs` are the parameters that it takes."""
    of_toolkit = _with(runs(toolkit[1]), runs(toolkit[0]), ())
    of_name = _with(runs(name), runs(slug), of_toolkit)
    described = [*texts(inputs)]
    names, descriptions = (runs("\n".join(column)) for column in ([name for name, _ in described], [text for _, text in described]))
    first = next(sentences(description), "")
    return Said((of_name, of_toolkit, runs(first), runs(description), names, descriptions), name, newest)


def _with(some: list[str], more: Sequence[str], elsewhere: Sequence[str]) -> list[str]:
    """Runs, and more of them as far as their terms stand neither there nor elsewhere."""
    known = {*_terms(some), *_terms(elsewhere)}
    return some + [run for run in more if not known.issuperset(terms_of(run))]


def _terms(some: Iterable[str]) -> Iterable[str]:
    return chain.from_iterable(map(terms_of, some))


def count(tools: Iterable[Said]) -> bytes:
    """How often each term stands in the fields of each of a batch of tools, as `Counted` reads it."""
    every = [*tools]
    fields = [[*_terms(field)] for tool in every for field in tool.fields]
    lengths, width = [*map(len, fields)], len(FIELDS)
    terms = sorted({*chain.from_iterable(fields)})
    ids = dict(zip(terms, range(len(terms)), strict=True))
    stands = np.fromiter(map(ids.__getitem__, chain.from_iterable(fields)), np.int64, sum(lengths))
    places, often = np.unique(stands * len(fields) + np.repeat(np.arange(len(fields)), lengths), return_counts=True)
    pairs, posting = np.unique(places // width, return_inverse=True)  # of term and tool
    counts = np.zeros((len(pairs), width), np.uint8)
    counts[posting, places % width] = np.minimum(often, _MOST)
    holders = np.bincount(pairs // max(len(every), 1), minlength=len(terms))
    spellings = _spellings(every)
    text = "\n".join(f"{term}\t{spellings[term]}" for term in terms).encode()
    columns = (lengths, [called(tool.name) for tool in every], holders, pairs % max(len(every), 1))
    return b"".join(
        [
            _HEAD.pack(len(every), len(terms), len(pairs), len(text)),
            text,
            bytes(tool.newest for tool in every),
            counts.tobytes(),
            *(np.asarray(column).astype("<u4").tobytes() for column in columns),
        ]
    )


def _spellings(tools: Iterable[Said]) -> dict[str, str]:
    """The shortest spelling of each term."""
    found: dict[str, str] = {}
    for spelt, term in {word for run in {run for tool in tools for field in tool.fields for run in field} for word in words_of(run)}:
        if term not in found or (len(spelt), spelt) < (len(found[term]), found[term]):
            found[term] = spelt
    return found


class Counted:
    """What `count` gave.

    `holders` tells how many tools hold each term; then come, term by term, those tools in `numbers` (from 0) and how often the term
    stands in each field in `counts` (a row of six). `newest`, `lengths` (a row of six) and `names` are of each tool.
    """

    def __init__(self, data: bytes) -> None:
        tools, size, held, length = _HEAD.unpack_from(data)
        at = _HEAD.size + length
        self._text = data[_HEAD.size : at]
        small = np.frombuffer(data, np.uint8, tools + held * len(FIELDS), at)
        self.newest, self.counts = small[:tools].view(bool), small[tools:].reshape(held, len(FIELDS))
        rest = np.frombuffer(data[at + len(small) :], "<u4")  # a copy, for where it begins is no multiple of four
        self.lengths, rest = rest[: tools * len(FIELDS)].reshape(tools, len(FIELDS)), rest[tools * len(FIELDS) :]
        self.names, self.holders, self.numbers = rest[:tools], rest[tools : tools + size], rest[tools + size :]

    numbers: NDArray[np.uint32]
    holders: NDArray[np.uint32]

    @property
    def words(self) -> list[str]:
        """The terms, sorted, each with a tab and its shortest spelling behind it."""
        return self._text.decode().split("\n") if self._text else []
