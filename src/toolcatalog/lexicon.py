"""The words of all batches, numbered: what one build tells the next, for to number them anew is a
third of all that the text index takes.

A word is a term in one of its spellings. Its number is good for looking up and tells nothing: words
get theirs as they come, and nothing that is published depends on it. The numbers of a batch's words
are found by the key of its part, as long as the lexicon lies whole in the cache; else the part
itself is asked.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress, count
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from toolcatalog.counting import TermCounts
from toolcatalog.system import files

# few bytes: there are thousands of batches, and thousands of words in each
TermNumbers = NDArray[np.int32]


class Lexicon:
    """Words with their numbers. `known`: the numbers of the words of batches, by the keys of their
    parts.
    """

    def __init__(
        self, words: Iterable[str] = (), cached: Mapping[str, TermNumbers] | None = None
    ) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        for word in words:
            self._numbers[word]
        self._cached = cached or {}
        self._used: dict[str, TermNumbers] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def entries(self) -> list[str]:
        """All words, in the order of their numbers; those of batches that are no more may be among
        them.
        """
        return [*self._numbers]

    def numbers_for_batch(self, key: str, counts: TermCounts) -> TermNumbers:
        """The numbers of the words of a batch whose part has this key, in their order."""
        found = self._cached.get(key)
        if found is None:
            words = counts.spelled_terms
            found = np.fromiter(map(self._numbers.__getitem__, words), np.int32, len(words))
        self._used[key] = found
        return found

    def save(self, cache: Path, program_digest: str) -> None:
        """Keep what has been asked for, and nothing else, for the next build of this program.
        Raises OSError.
        """
        if self._used.keys() != self._cached.keys():
            files.write_sealed(_lexicon_path(cache), self._serialize(program_digest))

    def _serialize(self, program_digest: str) -> Iterator[bytes]:
        used = np.zeros(len(self), bool)
        for numbers in self._used.values():
            used[numbers] = True
        renumbered = np.cumsum(used, dtype=np.int32) - 1
        sizes = {key: len(numbers) for key, numbers in self._used.items()}
        yield (
            orjson.dumps(
                {
                    "program": program_digest,
                    "words": [*compress(self._numbers, used)],
                    "sizes": sizes,
                }
            )
            + b"\n"
        )
        yield from (renumbered[numbers].tobytes() for numbers in self._used.values())


def load_lexicon(cache: Path, program_digest: str) -> Lexicon:
    """What the last build of this program has kept; without words where there is nothing, or
    nothing whole.
    """
    data = files.read_sealed(_lexicon_path(cache)) or b""
    end = data.find(b"\n") + 1
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        said: dict[str, Any] = orjson.loads(data[:end])
        if said["program"] == program_digest:
            sizes = [*said["sizes"].values()]
            every = np.frombuffer(data, np.int32, sum(sizes), end)
            return Lexicon(
                said["words"],
                dict(zip(said["sizes"], np.split(every, np.cumsum(sizes)[:-1]), strict=True)),
            )
    return Lexicon()


def _lexicon_path(cache: Path) -> Path:
    return cache / "lexicon"
