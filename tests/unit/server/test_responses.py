"""Response bodies: their chunks are joined unless they are few and large."""

import pytest

from toolcatalog.server.responses import BodyChunk, join_chunks

SMALL, LARGE = memoryview(b"small"), memoryview(bytes(100_000))


@pytest.mark.parametrize(
    ("chunks", "count"),
    [
        ([SMALL, SMALL], 1),
        ([SMALL, LARGE, SMALL], 3),  # a page in the order of the files
        ([LARGE] * 20, 1),  # a page of documents from everywhere
        ([LARGE], 1),
        ([SMALL], 1),
    ],
)
def test_chunks_are_joined_unless_few_and_large(chunks: list[BodyChunk], count: int) -> None:
    """A client gets the same bytes in each case."""
    result = join_chunks(chunks)
    assert len(result) == count
    assert b"".join(result) == b"".join(chunks)
