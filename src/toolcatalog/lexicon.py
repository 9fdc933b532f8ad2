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

from toolcatalog import files
from toolcatalog.counting import Counted

# few bytes: there are thousands of batches, and thousands of words in each
Numbers = NDArray[np.int32]


class Lexicon:
    """Words with their numbers. `known`: the numbers of the words of batches, by the keys of their
    parts.
    """

    def __init__(
        self, words: Iterable[str] = (), known: Mapping[str, Numbers] | None = None
    ) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        for word in words:
            self._numbers[word]
        self._known = known or {}
        self._asked: dict[str, Numbers] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def words(self) -> list[str]:
        """All words, in the order of their numbers; those of batches that are no more may be among
        them.
        """
        return [*self._numbers]

    def numbers(self, key: str, counted: Counted) -> Numbers:
        """The numbers of the words of a batch whose part has this key, in their order."""
        found = self._known.get(key)
        if found is None:
            words = counted.words
            found = np.fromiter(map(self._numbers.__getitem__, words), np.int32, len(words))
        self._asked[key] = found
        return found

    def save(self, cache: Path, program: str) -> None:
        """Keep what has been asked for, and nothing else, for the next build of this program.
        Raises OSError.
        """
        if self._asked.keys() != self._known.keys():
            files.seal(_place(cache), self._pieces(program))

    def _pieces(self, program: str) -> Iterator[bytes]:
        used = np.zeros(len(self), bool)
        for numbers in self._asked.values():
            used[numbers] = True
        renumbered = np.cumsum(used, dtype=np.int32) - 1
        sizes = {key: len(numbers) for key, numbers in self._asked.items()}
        yield (
            orjson.dumps(
                {"program": program, "words": [*compress(self._numbers, used)], "sizes": sizes}
            )
            + b"\n"
        )
        yield from (renumbered[numbers].tobytes() for numbers in self._asked.values())


def load(cache: Path, program: str) -> Lexicon:
    """What the last build of this program has kept; without words where there is nothing, or
    nothing whole.
    """
    data = files.unsealed(_place(cache)) or b""
    end = data.find(b"\n") + 1
    with contextlib.suppress(orjson.JSONDecodeError, TypeError, ValueError, KeyError):
        said: dict[str, Any] = orjson.loads(data[:end])
        if said["program"] == program:
            sizes = [*said["sizes"].values()]
            every = np.frombuffer(data, np.int32, sum(sizes), end)
            return Lexicon(
                said["words"],
                dict(zip(said["sizes"], np.split(every, np.cumsum(sizes)[:-1]), strict=True)),
            )
    return Lexicon()


def _place(cache: Path) -> Path:
    return cache / "lexicon"
