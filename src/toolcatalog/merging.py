"""The words of all parts, and their vectors, merged for a new snapshot beside what else there is to
do.

They need the parts and nothing else. So they begin as soon as all are there, while the rules are
still being heard, and in the cache: should the rules object, nothing outside of it has been
touched. Of very many parts they take long and much memory, and begin when they are told to.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from toolcatalog import assembling, compiling, indexing, lexicon, parts
from toolcatalog.batches import Task
from toolcatalog.crew import Crew
from toolcatalog.looking import Places
from toolcatalog.parts import Part
from toolcatalog.snapshot import Stated

# batches whose counts of words, and what is noted of their files, are not held in memory: some
# hundred bytes a tool
MANY = 1_000

Files = dict[str, Stated]


class Words:
    """The files for which words are needed, on their way into `folder`; the parts of all tasks are
    in the cache.
    """

    def __init__(self, places: Places, program: str, tasks: Sequence[Task], crew: Crew) -> None:
        self.folder = places.cache / "words"
        self._crew = crew
        keys = [task.known.key for task in tasks]
        self._write = partial(
            _write, places.cache, program, self.folder, keys, vectors=places.vectors
        )
        self._written: Callable[[], Files] | None = None
        if len(tasks) <= MANY:
            self.begin()

    def begin(self) -> None:
        """Begin, unless that has been done."""
        self._written = self._written or self._crew.beside(self._write)

    def files(self, tasks: Sequence[Task]) -> Files:
        """The files, once they are written; parts of these tasks that have been damaged meanwhile
        are made again.

        Raises OSError, UsageError or BrokenExecutor.
        """
        self.begin()
        assert self._written
        try:
            return self._written()
        except parts.Damaged:
            for task in tasks:
                compiling.part_of(task, "words", "vectors")
            return self._write()


def _write(cache: Path, program: str, folder: Path, keys: Sequence[str], *, vectors: bool) -> Files:
    """Write the text index, and vectors where they are wanted, from the parts with these keys.
    Raises Damaged where one is not whole.
    """

    def counts() -> Iterator[tuple[str, bytes]]:
        return (
            (key, part.words or b"")
            for key, part in zip(keys, _each(cache, keys, "words"), strict=True)
        )

    folder.mkdir(parents=True, exist_ok=True)
    # else they are read each time that they are gone through
    held = [*counts()] if len(keys) <= MANY else None
    found = assembling.written(
        folder, _index(cache, program, counts if held is None else lambda: held)
    )
    return found | (
        assembling.vectors(folder, (part.vectors for part in _each(cache, keys, "vectors")))
        if vectors
        else {}
    )


def _index(cache: Path, program: str, counts: indexing.Counts) -> indexing.Pieces:
    """The text index, and what it has told of words in the cache for the next build; no longer in
    memory when the index is written.
    """
    known = lexicon.load(cache, program)
    found = indexing.merge(counts, known)
    known.save(cache, program)
    return found


def _each(cache: Path, keys: Sequence[str], section: str) -> Iterator[Part]:
    for key in keys:
        part = parts.load(cache, key, (section,))
        if part is None:
            raise parts.Damaged(key)
        yield part
