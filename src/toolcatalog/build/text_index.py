"""The text index and vectors of a new snapshot, merged from all batches in the background.

They need only the compiled batches and, for the queries, the sentence model. So the work starts as
soon as all batches are compiled, while the rules are still being checked, and it writes to the
cache: if a rule fails, nothing outside the cache was touched. With very many batches it takes long
and needs much memory, and starts only when `start` is called.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from toolcatalog.build import cache, compiler, snapshot_writer
from toolcatalog.build.batches import CachedBatch
from toolcatalog.build.cache import CompiledBatch
from toolcatalog.build.changes import BuildContext
from toolcatalog.search.embeddings import model_files
from toolcatalog.search.index import index_writer
from toolcatalog.snapshot import format as snapshot_format
from toolcatalog.snapshot.format import FileInfo
from toolcatalog.system import files

# Above this number of batches, word counts and file states are not kept in memory: they take
# some hundred bytes per tool.
MANY_BATCHES = 1_000

WrittenFiles = dict[str, FileInfo]


class TextIndexBuild:
    """A background build of the text index and vectors into `folder`.

    All batches must be in the cache.
    """

    def __init__(self, context: BuildContext, batches: Sequence[CachedBatch]) -> None:
        cache_folder = context.paths.cache
        self.folder = cache_folder / "words"
        self._background = context.pool.background
        self._write_files = partial(
            _write_files,
            cache_folder,
            context.program_digest,
            self.folder,
            [entry.key for _, entry in batches],
            with_vectors=context.paths.with_vectors,
            model_folder=context.paths.model,
        )
        self._wait_for_files: Callable[[], WrittenFiles] | None = None
        if len(batches) <= MANY_BATCHES:
            self.start()

    def start(self) -> None:
        """Start the build, unless it was started before."""
        if self._wait_for_files is None:
            self._wait_for_files = self._background.submit(self._write_files)

    def result(self, batches: Sequence[CachedBatch]) -> WrittenFiles:
        """Wait for the files and return them; compile batches again that were damaged meanwhile.

        Raises OSError, UsageError or BrokenExecutor.
        """
        self.start()
        assert self._wait_for_files
        try:
            return self._wait_for_files()
        except cache.DamagedBatch:
            for batch in batches:
                compiler.load_or_compile(batch, "words", "vectors")
            return self._write_files()


def _write_files(
    cache_folder: Path,
    program_digest: str,
    folder: Path,
    keys: Sequence[str],
    *,
    with_vectors: bool,
    model_folder: Path | None,
) -> WrittenFiles:
    """Write the text index, and the vectors if wanted, from the batches with these keys.

    Raises DamagedBatch if a batch cannot be loaded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    iter_counts = partial(_iter_counts, cache_folder, keys)
    if len(keys) <= MANY_BATCHES:
        counts = [*iter_counts()]  # otherwise they are read from the cache for each pass
        pieces = _merge_counts(cache_folder, program_digest, lambda: counts)
    else:
        pieces = _merge_counts(cache_folder, program_digest, iter_counts)
    written = snapshot_writer.write_files(folder, pieces)
    written |= snapshot_writer.write_frequent_terms(folder)
    if with_vectors:
        vectors = (batch.vectors for batch in _load_sections(cache_folder, keys, "vectors"))
        written |= snapshot_writer.write_vectors(folder, vectors)
        model = _load_query_model(cache_folder, program_digest, model_folder)
        written |= snapshot_writer.write_files(
            folder,
            {
                snapshot_format.MODEL: [model.network],
                snapshot_format.TOKENIZER: [model.tokenizer],
            },
        )
    return written


def _load_query_model(
    cache_folder: Path, program_digest: str, model_folder: Path | None
) -> model_files.Model:
    """Return the model for queries. It is in the cache after the first build.

    The digest of the program covers the model, too.
    """
    path, key = cache_folder / "model", program_digest.encode() + b"\n"
    model, cached = model_files.read_model(model_folder), files.read_sealed(path) or b""
    if cached.startswith(key):
        return model._replace(network=cached.removeprefix(key))
    from toolcatalog.search.embeddings import model_quantization  # noqa: PLC0415 - slow to import

    network = model_quantization.quantize_model(model.network)
    files.write_sealed(path, [key, network])
    return model._replace(network=network)


def _iter_counts(cache_folder: Path, keys: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the key and the word counts of each batch."""
    batches = _load_sections(cache_folder, keys, "words")
    return ((key, batch.words or b"") for key, batch in zip(keys, batches, strict=True))


def _merge_counts(
    cache_folder: Path, program_digest: str, counts: index_writer.BatchCounts
) -> index_writer.FilePieces:
    """Return the pieces of the text index, and save the lexicon for the next build.

    The lexicon is no longer in memory when the index is written.
    """
    lexicon = index_writer.load_lexicon(cache_folder, program_digest)
    pieces = index_writer.build_index(counts, lexicon)
    lexicon.save(cache_folder, program_digest)
    return pieces


def _load_sections(
    cache_folder: Path, keys: Sequence[str], section: str
) -> Iterator[CompiledBatch]:
    for key in keys:
        batch = cache.load_batch(cache_folder, key, (section,))
        if batch is None:
            raise cache.DamagedBatch(key)
        yield batch
