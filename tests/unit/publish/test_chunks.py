"""Tests of `publish.chunks`: chunks cover a file, and a change affects few."""

import hashlib
import random

import pytest

from toolcatalog.publish import chunks as publish_chunks

DATA = random.Random(7).randbytes(6_000_000)  # noqa: S311 - always the same


def chunks(data: bytes) -> list[bytes]:
    """The chunks of a file."""
    return [data[begin:end] for begin, end in publish_chunks.split_chunks(data)]


@pytest.mark.parametrize(
    "size",
    [
        0,
        1,
        7,
        8,
        15,
        16,
        17,
        100,
        publish_chunks.MIN_CHUNK_SIZE,
        publish_chunks.MAX_CHUNK_SIZE,
        publish_chunks.MAX_CHUNK_SIZE + 1,
        (1 << 22) + 9,
        len(DATA),
    ],
)
@pytest.mark.parametrize("kind", ["random", "zeros", "text"])
def test_chunks_cover_the_file(size: int, kind: str) -> None:
    """Without gaps, and within the size limits, except the last."""
    data = {
        "random": DATA[:size],
        "zeros": bytes(size),
        "text": (b'{"slug":"A_TOOL"},' * (size // 18 + 1))[:size],
    }[kind]
    result = chunks(data)
    assert b"".join(result) == data
    assert all(
        publish_chunks.MIN_CHUNK_SIZE <= len(chunk) <= publish_chunks.MAX_CHUNK_SIZE
        for chunk in result[:-1]
    )
    assert all(0 < len(chunk) <= publish_chunks.MAX_CHUNK_SIZE for chunk in result[-1:])


@pytest.mark.parametrize("place", [0, 1_000_003, (1 << 22) - 3, 1 << 22, 5_999_999])
@pytest.mark.parametrize("change", [b"", b"x", b"x" * 5000])
def test_change_affects_few_chunks(place: int, change: bytes) -> None:
    """An insertion or removal changes its chunk and at most two neighbors."""
    previous = {hashlib.sha256(chunk).digest() for chunk in chunks(DATA)}
    current = [
        hashlib.sha256(chunk).digest()
        for chunk in chunks(DATA[:place] + change + DATA[place + 1 :])
    ]
    assert len(current) > 20
    assert 1 <= sum(chunk not in previous for chunk in current) <= 3
