"""Full text over slug, name and description: one analysis for build and query, an index of impacts, a ranking.

A text becomes words; a tool's impact for a word is its BM25 score, with the three fields weighted and summed before saturation. A
query's tools are those that hold at least one of its words (never all of them: an agent sends a sentence), best sum of impacts
first. The impacts are worked out at build time, so a query is one addition for each posting.

A batch of tools is counted where it is compiled (`count`); what the counts of all batches add up to is worked out once (`merge`).

Serves: "`query` then keeps those that match at all and orders them by relevance".
"""

import math
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

_WEIGHTS = (4, 6, 1)  # slug, name, description
_SATURATION, _LENGTH = 1.2, 0.6
_LATIN = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff"  # also with accents, which do not end a word
_RUN = re.compile(rf"\d+|[{_LATIN}]+|[^\W\d_{_LATIN}]+")
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HEAD = struct.Struct("<III")
_STRIDE = 1 << 20  # postings worked out at a time

_MOST = (1 << 16) - 1  # of a weight: past some hundred it makes no difference

Numbers = NDArray[np.uint32]
Weights = NDArray[np.uint16]
Impacts = NDArray[np.float32]


def words(text: str) -> list[str]:
    """The words of a text, folded to lower case: runs of Latin letters, of other letters or of digits; camelCase and snake_case apart."""
    return [word for run in _RUN.findall(text) for word in _folded(run)]


@lru_cache(maxsize=1 << 16)
def _folded(run: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in _HUMP.split(run))


def count(fields: Iterable[tuple[str, str, str]]) -> bytes:
    """How often each word stands in each of a batch of tools, given as (slug, name, description) in their order."""
    postings: defaultdict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    tools = 0
    for number, texts in enumerate(fields):
        tools += 1
        for word, weight in _weighted(texts).items():
            numbers, weights = postings[word]
            numbers.append(number)
            weights.append(weight)
    vocabulary = sorted(postings)
    columns = [postings[word] for word in vocabulary]
    arrays = (map(len, (numbers for numbers, _ in columns)), *(chain.from_iterable(column) for column in zip(*columns, strict=True)))
    names = "\n".join(vocabulary).encode()
    return _HEAD.pack(tools, len(vocabulary), len(names)) + names + b"".join(_packed(values) for values in arrays)


def _packed(values: Iterable[int]) -> bytes:
    return np.fromiter(values, "<u4").tobytes()


def _weighted(texts: tuple[str, str, str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for weight, text in zip(_WEIGHTS, texts, strict=True):
        for word in words(text):
            found[word] = found.get(word, 0) + weight
    return found


class _Counted:
    """What `count` gave: for each word of the batch how many tools hold it, then those tools and how often, word by word."""

    def __init__(self, data: bytes) -> None:
        self.tools, size, length = _HEAD.unpack_from(data)
        names = data[_HEAD.size : _HEAD.size + length].decode()
        self.words = names.split("\n") if size else []
        arrays = np.frombuffer(data, "<u4", offset=_HEAD.size + length)
        self.holders = arrays[:size]
        self.numbers, self.weights = arrays[size:].reshape(2, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """All postings, word by word. `numbers` and `impacts` of a word begin where those of the words before it end."""

    words: Sequence[str]
    holders: Sequence[int]
    numbers: Numbers
    impacts: Impacts


def merge(batches: Callable[[], Iterable[bytes]]) -> Index:
    """The index, from the counts of all batches in the order of their tools; `batches` is called twice, so that they need not be held."""
    vocabulary: dict[str, int] = {}
    seen = [_seen(_Counted(data), vocabulary) for data in batches()]
    words = sorted(vocabulary)
    order = np.array([vocabulary[word] for word in words], np.int64)
    holders = np.zeros(len(words), np.int64)
    for ids, held, _ in seen:
        holders[ids] += held
    held_in_order = holders[order]
    starts = np.zeros(len(words), np.int64)
    starts[order] = np.cumsum(held_in_order) - held_in_order
    numbers, weights = _filled(batches(), [ids for ids, _, _ in seen], starts, int(holders.sum()))
    norms = _norms(np.concatenate([lengths for _, _, lengths in seen]) if seen else np.zeros(0, np.int64))
    return Index(words=words, holders=held_in_order.tolist(), numbers=numbers, impacts=_impacts(held_in_order, numbers, weights, norms))


def _seen(counted: "_Counted", vocabulary: dict[str, int]) -> tuple[NDArray[np.int32], Numbers, NDArray[np.int64]]:
    """The ids of a batch's words, how many of its tools hold each, and how long each of its tools is."""
    new = [word for word in counted.words if word not in vocabulary]
    vocabulary.update(zip(new, range(len(vocabulary), len(vocabulary) + len(new)), strict=True))
    ids = np.fromiter(map(vocabulary.__getitem__, counted.words), np.int32, len(counted.words))
    lengths = np.bincount(counted.numbers, counted.weights, counted.tools).astype(np.int64)
    return ids, counted.holders.copy(), lengths


def _norms(lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    mean = int(lengths.sum()) / len(lengths) if len(lengths) else 0.0
    return _SATURATION * (1 - _LENGTH + _LENGTH * lengths.astype(np.float64) / (mean or 1.0))


def _filled(batches: Iterable[bytes], ids: Sequence[NDArray[np.int32]], free: NDArray[np.int64], size: int) -> tuple[Numbers, Weights]:
    """The numbers and weights of all postings, word by word, and within a word in order; `free` is used up."""
    numbers, weights = np.empty(size, np.uint32), np.empty(size, np.uint16)
    before = 0
    for data, words in zip(batches, ids, strict=True):
        counted = _Counted(data)
        held = counted.holders.astype(np.int64)
        places = np.arange(len(counted.numbers)) + np.repeat(free[words] - (np.cumsum(held) - held), held)
        numbers[places] = counted.numbers + np.uint32(before)
        weights[places] = np.minimum(counted.weights, _MOST)
        free[words] += held
        before += counted.tools
    return numbers, weights


def _impacts(holders: NDArray[np.int64], numbers: Numbers, weights: Weights, norms: NDArray[np.float64]) -> Impacts:
    """The impact of each posting, worked out for so many words at a time that little more is held than what comes of it."""
    tools = len(norms)
    rarity = np.array([math.log(1 + (tools - count + 0.5) / (count + 0.5)) for count in holders.tolist()])
    impacts, ends = np.empty(len(numbers), np.float32), np.cumsum(holders)
    word = end = 0
    while word < len(holders):
        first, start = word, end
        word = max(int(np.searchsorted(ends, start + _STRIDE, "right")), first + 1)
        end = int(ends[word - 1])
        weight = weights[start:end].astype(np.float64)
        rare = np.repeat(rarity[first:word], holders[first:word])
        impacts[start:end] = rare * weight * (_SATURATION + 1) / (weight + norms[numbers[start:end]])
    return impacts
