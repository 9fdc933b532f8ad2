"""The text index and vectors of a new snapshot, merged from all batches in the background.

They need only the compiled batches. So the work starts as soon as all batches are compiled, while
the rules are still being checked, and it writes to the cache: if a rule fails, nothing outside the
cache was touched. With very many batches it takes long and needs much memory, and starts only when
`start` is called.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from toolcatalog.build import cache, compiler, snapshot_writer
from toolcatalog.build.batches import Task
from toolcatalog.build.cache import CompiledBatch
from toolcatalog.build.changes import BuildPaths
from toolcatalog.search import index_writer
from toolcatalog.snapshot.format import FileInfo
from toolcatalog.system.processes import WorkerPool

# Above this number of batches, word counts and file states are not kept in memory: they take
# some hundred bytes per tool.
MANY_BATCHES = 1_000

WrittenFiles = dict[str, FileInfo]


class TextIndexBuild:
    """A background build of the text index and vectors into `folder`.

    The compiled batches of all tasks must be in the cache.
    """

    def __init__(
        self, paths: BuildPaths, program_digest: str, tasks: Sequence[Task], pool: WorkerPool
    ) -> None:
        self.folder = paths.cache / "words"
        self._pool = pool
        keys = [task.cache_entry.key for task in tasks]
        self._write_files = partial(
            _write_index,
            paths.cache,
            program_digest,
            self.folder,
            keys,
            with_vectors=paths.with_vectors,
        )
        self._pending: Callable[[], WrittenFiles] | None = None
        if len(tasks) <= MANY_BATCHES:
            self.start()

    def start(self) -> None:
        """Start the build, unless it was started before."""
        self._pending = self._pending or self._pool.background.submit(self._write_files)

    def result(self, tasks: Sequence[Task]) -> WrittenFiles:
        """Wait for the files and return them; compile batches again that were damaged meanwhile.

        Raises OSError, UsageError or BrokenExecutor.
        """
        self.start()
        assert self._pending
        try:
            return self._pending()
        except cache.DamagedBatch:
            for task in tasks:
                compiler.load_or_compile(task, "words", "vectors")
            return self._write_files()


def _write_index(
    cache_folder: Path,
    program_digest: str,
    folder: Path,
    keys: Sequence[str],
    *,
    with_vectors: bool,
) -> WrittenFiles:
    """Write the text index, and the vectors if wanted, from the batches with these keys.

    Raises DamagedBatch if a batch cannot be loaded.
    """

    def counts() -> Iterator[tuple[str, bytes]]:
        return (
            (key, part.words or b"")
            for key, part in zip(keys, _load_sections(cache_folder, keys, "words"), strict=True)
        )

    folder.mkdir(parents=True, exist_ok=True)
    # otherwise the counts are read from the cache for each pass
    held = [*counts()] if len(keys) <= MANY_BATCHES else None
    found = snapshot_writer.write_files(
        folder,
        _merge_counts(cache_folder, program_digest, counts if held is None else lambda: held),
    )
    return found | (
        snapshot_writer.write_vectors(
            folder, (part.vectors for part in _load_sections(cache_folder, keys, "vectors"))
        )
        if with_vectors
        else {}
    )


def _merge_counts(
    cache_folder: Path, program_digest: str, counts: index_writer.BatchCounts
) -> index_writer.FilePieces:
    """Return the pieces of the text index, and save the lexicon for the next build.

    The lexicon is no longer in memory when the index is written.
    """
    known = index_writer.load_lexicon(cache_folder, program_digest)
    found = index_writer.build_index(counts, known)
    known.save(cache_folder, program_digest)
    return found


def _load_sections(
    cache_folder: Path, keys: Sequence[str], section: str
) -> Iterator[CompiledBatch]:
    for key in keys:
        part = cache.load_batch(cache_folder, key, (section,))
        if part is None:
            raise cache.DamagedBatch(key)
        yield part
