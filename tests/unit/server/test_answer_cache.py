"""The answer cache returns what was added, stays within its size, and counts lookups."""

from toolcatalog.api.answers import Answer
from toolcatalog.api.bodies import make_body
from toolcatalog.server.answer_cache import MAX_ENTRY_SIZE, AnswerCache
from toolcatalog.server.metrics.counters import CacheCounts
from toolcatalog.server.responses import PreparedAnswer
from toolcatalog.snapshot.mapped_files import FileSlices


def test_get_returns_the_answer_that_was_added_first() -> None:
    """Adding another answer under the same key changes nothing."""
    counts = CacheCounts()
    cache, answer = AnswerCache(counts), PreparedAnswer(Answer(b"a", b"tag"))
    cache.add(("key",), answer)
    cache.add(("key",), PreparedAnswer(Answer(b"b", b"tag")))
    assert cache.get(("key",)) is answer
    assert cache.get(("other",)) is None
    assert (len(cache), counts.hits, counts.misses) == (1, 1, 2)


def test_the_oldest_answers_are_removed_when_the_cache_is_full() -> None:
    """Bytes count in full, slices of a mapped file only as numbers, and so do long requests."""
    max_size = 1 << 20
    slices = FileSlices(memoryview(bytes(100_000)), [0] * 40, [100_000] * 40)
    for body, request_size, limit in (
        (b"x" * 10_000, 0, max_size // 10_000),
        (make_body(b"", slices, b"", b""), 0, max_size // (40 * 16)),
        (b"x", 50_000, max_size // 50_000),
    ):
        cache = AnswerCache(max_size=max_size)
        for number in range(5 * limit):
            cache.add((number, bytes(request_size)), PreparedAnswer(Answer(body, b"tag")))
        assert 0 < len(cache) <= limit
        keys = range(5 * limit)
        assert [number for number in keys if cache.get((number, bytes(request_size)))] == [*keys][
            -len(cache) :
        ]


def test_a_very_large_answer_is_not_cached() -> None:
    """It would replace many others."""
    cache = AnswerCache()
    cache.add(("key",), PreparedAnswer(Answer(b"x" * MAX_ENTRY_SIZE, b"tag")))
    assert len(cache) == 0
